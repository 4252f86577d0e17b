package history

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Run is the prefix of all transaction ids that one life of one proxy hands out: drawn at random,
// so that two proxies, or a proxy and its next life, do not share it. Its text form has six base-36
// digits. The zero Run is not used.
type Run uint32

const (
	runDigits = 6
	// MaxRun is the number of distinct runs: what six base-36 digits can say.
	MaxRun = 36 * 36 * 36 * 36 * 36 * 36
	// Unrecorded is the run of the tags of versions that no recorded transaction wrote although all that
	// was there before is known: no proxy has it, and no recording. A transaction's counter is PostgreSQL's
	// transaction id.
	Unrecorded Run = MaxRun
	// Forgotten is the run of the tags of versions that transactions wrote which were recorded, but are no longer
	// known to an analysis that goes on while they come.
	Forgotten Run = MaxRun + 1
	// FirstPast is the first of the runs of transactions that no proxy ran, and that the server's log alone has: one
	// for each run whose log was read. No recording has them.
	FirstPast Run = MaxRun + 2
)

// Past reports whether the run's transactions went past isotap.
func (r Run) Past() bool { return r >= FirstPast }

// String returns the run's six base-36 digits.
func (r Run) String() string {
	s := strconv.FormatUint(uint64(r), 36)
	return strings.Repeat("0", max(0, runDigits-len(s))) + s
}

// ParseRun reads what [Run.String] wrote.
func ParseRun(s string) (Run, error) {
	n, ok := parse36(s)
	if !ok || len(s) != runDigits || n == 0 || n >= MaxRun {
		return 0, fmt.Errorf("run %q is not six base-36 digits", s)
	}
	return Run(n), nil
}

// A TxnID names a transaction over all proxies and restarts: a [Run] in the upper 32 bits and a
// counter from 1 in the lower. The zero TxnID stands for the transaction that wrote every initial
// version. Ids of one run grow in the order in which transactions began.
type TxnID uint64

// MakeTxnID joins a run and a counter.
func MakeTxnID(r Run, seq uint32) TxnID { return TxnID(r)<<32 | TxnID(seq) }

// Run is the run that handed the id out.
func (id TxnID) Run() Run { return Run(id >> 32) }

// Seq is the id's place in its run.
func (id TxnID) Seq() uint32 { return uint32(id) }

// String returns the id's text form: the run's six digits and the counter in base 36; "0" for the
// initial transaction.
func (id TxnID) String() string { return string(id.Append(nil)) }

// Append adds the id's text form to b.
func (id TxnID) Append(b []byte) []byte {
	if id == 0 {
		return append(b, '0')
	}
	b = append(b, id.Run().String()...)
	return strconv.AppendUint(b, uint64(id.Seq()), 36)
}

// ParseTxnID reads what [TxnID.String] wrote.
func ParseTxnID(s string) (TxnID, error) {
	if s == "0" {
		return 0, nil
	}
	if len(s) <= runDigits {
		return 0, fmt.Errorf("transaction id %q is too short", s)
	}
	run, err := ParseRun(s[:runDigits])
	if err != nil {
		return 0, fmt.Errorf("transaction id %q: %w", s, err)
	}
	seq, ok := parse36(s[runDigits:])
	if !ok || s[runDigits] == '0' {
		return 0, fmt.Errorf("transaction id %q has no counter after its run", s)
	}
	return MakeTxnID(run, seq), nil
}

// A Tag names the statement that installed a row version: TXN.STMT. The zero Tag is the initial
// version's and reads "0".
type Tag struct {
	Txn  TxnID
	Stmt uint32
}

// Initial reports whether the tag is that of a row's initial version.
func (t Tag) Initial() bool { return t.Txn == 0 }

// String returns the tag's text form, as it stands in isotap_wlist: base 36, "TXN.STMT" or "0".
func (t Tag) String() string { return string(t.Append(nil)) }

// Append adds the tag's text form to b.
func (t Tag) Append(b []byte) []byte {
	if t.Initial() {
		return append(b, '0')
	}
	b = t.Txn.Append(b)
	b = append(b, '.')
	return strconv.AppendUint(b, uint64(t.Stmt), 36)
}

// ParseTag reads what [Tag.String] wrote.
func ParseTag(s string) (Tag, error) {
	if s == "0" {
		return Tag{}, nil
	}
	txn, stmt, ok := strings.Cut(s, ".")
	if !ok {
		return Tag{}, fmt.Errorf("tag %q has no statement number", s)
	}
	id, err := ParseTxnID(txn)
	if err != nil {
		return Tag{}, fmt.Errorf("tag %q: %w", s, err)
	}
	n, ok := parse36(stmt)
	if !ok || id == 0 || stmt[0] == '0' {
		return Tag{}, fmt.Errorf("tag %q has no statement number", s)
	}
	return Tag{Txn: id, Stmt: n}, nil
}

// parse36 reads a number in base 36, in either case. It is quicker than strconv: every row that a
// statement reads has its tags parsed.
func parse36(s string) (uint32, bool) {
	const maxDigits = 7 // of 32 bits
	if s == "" || len(s) > maxDigits {
		return 0, false
	}
	var n uint64
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n = n*36 + uint64(c-'0')
		case c >= 'a' && c <= 'z':
			n = n*36 + uint64(c-'a') + 10
		case c >= 'A' && c <= 'Z':
			n = n*36 + uint64(c-'A') + 10
		default:
			return 0, false
		}
	}
	return uint32(n), n <= math.MaxUint32
}

// ParseWList reads a row's isotap_wlist: tags separated by commas, oldest first. The last one is
// the row's version. An empty list is an error: every row has at least its initial version.
func ParseWList(s string) ([]Tag, error) { return AppendWList(nil, s) }

// AppendWList adds the tags of an isotap_wlist to tags.
func AppendWList(tags []Tag, s string) ([]Tag, error) {
	for rest, more := s, true; more; {
		var part string
		part, rest, more = strings.Cut(rest, ",")
		t, err := ParseTag(part)
		if err != nil {
			return tags, fmt.Errorf("wlist %q: %w", s, err)
		}
		tags = append(tags, t)
	}
	return tags, nil
}
