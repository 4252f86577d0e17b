// Package interop reads the histories of other checkers, so that [analyzer] judges them, and writes
// isotap's recordings as such histories.
//
// The formats, each by the program whose files they are:
//
//   - [Elle] and [ElleRW]: histories of Jepsen in EDN, with transactions over lists (list-append: [:append k v],
//     [:r k [v ...]]) or over registers (rw-register: [:w k v], [:r k v]).
//   - [JepsenJSON]: the same maps as JSON.
//   - [Plume]: lines r(key,value,session,transaction) and w(...), which Plume, PolySI and AWDIT read.
//   - [AWDIT]: lines "r key value" and "w key value", between transactions a line of dashes, between sessions one of
//     equals signs: what AWDIT calls its test format.
//   - [DBCop]: dbcop's sessions as JSON.
//
// # Versions and their orders
//
// In all of them a value is written once to each key, so that it names a version. In which order the
// versions were installed is inferred as Elle does it (Kingsbury and Alvaro, "Elle: Inferring Isolation
// Anomalies from Experimental Observations", VLDB 2020, section 4):
//
//   - Lists: a read shows the order of all that it holds, and reads must be prefixes of each other. What no
//     read shows came after what reads show. Past the point where reads contradict each other nothing is
//     known.
//   - Registers: the initial state comes first, and what a transaction writes to a key comes after what it
//     had read of that key. [Options] has two more assumptions, which Elle leaves to the user, too.
//
// Where that leaves the order of two versions open, they take part in wr dependencies only: nothing is
// guessed. [History.Notes] says for how many versions.
//
// # Outcomes
//
// A transaction of unknown outcome (:info, or never answered) counts as committed when another one saw
// what it wrote, as in Elle; otherwise it takes no part. What a failed one wrote was never there.
//
// # The files
//
// detect.go finds formats by what files hold. tree.go holds a value of a file while it is decoded; edn.go,
// edn_atoms.go and json.go read them. jepsen.go, plume.go,
// awdit.go and dbcop.go make transactions of them and put these into the compact arrays of history.go. lists.go,
// registers.go and realtime.go infer orders, internal.go finds what is wrong within one transaction, problems.go
// makes findings of that, and txns.go hands all to the analyzer. On the way back, recording.go takes in a
// recording's transactions, and write.go with write_jepsen.go and write_plain.go writes them.
package interop

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Format is one of the formats that this package reads and writes.
type Format string

// The formats.
const (
	Elle       Format = "elle"        // Jepsen's EDN over lists
	ElleRW     Format = "elle-rw"     // Jepsen's EDN over registers
	JepsenJSON Format = "jepsen-json" // Jepsen's maps as JSON, over lists or registers
	Plume      Format = "plume"       // lines of reads and writes
	AWDIT      Format = "awdit"       // lines of reads and writes, between lines of dashes and of equals signs
	DBCop      Format = "dbcop"       // sessions as JSON
)

// Formats are all of them.
var Formats = []Format{Elle, ElleRW, JepsenJSON, Plume, AWDIT, DBCop}

// ParseFormat finds a format by its name.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("format %q is none of %s", name, formatNames())
}

func formatNames() string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// Options are assumptions about registers that Elle leaves to its user, too. The zero value assumes nothing
// that does not hold in every database.
type Options struct {
	// SequentialKeys: each register is sequentially consistent, so that what a session reads or writes of
	// it later is a later version.
	SequentialKeys bool
	// LinearizableKeys: each register is linearizable, so that what a transaction reads or writes of it is
	// a later version than what ended before the transaction began.
	LinearizableKeys bool
}

// Read reads a history of a format from r to its end, and infers the order of its versions. Memory grows
// with the number of reads and writes: about 150 bytes for each write and 16 for each read. An error says
// where in the file it is, as name:line:column, columns in bytes.
func Read(r io.Reader, name string, f Format, o Options) (*History, error) {
	h := newHistory(f)
	if o.LinearizableKeys && (f == Plume || f == AWDIT || f == DBCop) {
		return nil, fmt.Errorf("%s: histories of format %s do not say when transactions began and ended, "+
			"so that linearizable keys tell nothing", name, f)
	}
	err := h.decode(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	h.infer(o)
	return h, nil
}

func (h *History) decode(r *bufio.Reader) error {
	switch h.format {
	case Elle:
		h.kind = lists
		return newJepsen(h).read(newEDN(r))
	case ElleRW:
		h.kind = registers
		return newJepsen(h).read(newEDN(r))
	case JepsenJSON:
		return newJepsen(h).read(newJSONOps(r))
	case Plume:
		h.kind = registers
		return h.readPlume(r)
	case AWDIT:
		h.kind = registers
		return h.readAWDIT(r)
	case DBCop:
		h.kind = registers
		return h.readDBCop(r)
	}
	return fmt.Errorf("1:1: format %q is not known", h.format)
}

// A position is a position in a file: line and column from 1, columns in bytes.
type position struct{ line, column int32 }

// String returns the place as errors have it.
func (p position) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }

// at is an error at a place.
func at(p position, format string, args ...any) error {
	return fmt.Errorf("%s: %w", p, fmt.Errorf(format, args...))
}
