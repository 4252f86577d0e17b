// Package jsonlines is a recording as text: one JSON object a line, for other programs to read and
// write, and for moving recordings. docs/recording-json.md describes the lines.
//
// [Export] writes a recording, [Import] makes one. What is exported and imported again is the same
// history: the same runs, sessions, transactions, statements and accesses. The whole texts that isotap run records for
// playing them again ([recorder.Reader.Texts]) are left out: arguments are shortened as in every report.
package jsonlines

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/isotap/isotap/history"
)

// Format is the version of the lines. Whatever changes what existing lines mean takes a new number.
const Format = 1

// A line is one line: exactly one field is set.
type line struct {
	Isotap     *header     `json:"isotap,omitempty"` // the first line
	Run        *run        `json:"run,omitempty"`
	Session    *session    `json:"session,omitempty"`
	Matches    *matches    `json:"matches,omitempty"`
	Definition *definition `json:"definition,omitempty"`
	Defined    *defined    `json:"defined,omitempty"`
	Logged     *logged     `json:"logged,omitempty"`
	Txn        *txn        `json:"txn,omitempty"`
	After      string      `json:"after,omitempty"` // in a stream only: see Encoder.After
	End        *end        `json:"end,omitempty"`   // the last line
}

type header struct {
	Format int `json:"format"`
}

// end counts the lines before it, so that a file that was cut off is noticed.
type end struct {
	Runs        int `json:"runs"`
	Sessions    int `json:"sessions"`
	Txns        int `json:"txns"`
	Matches     int `json:"matches,omitempty"`
	Definitions int `json:"definitions,omitempty"`
	Defined     int `json:"defined,omitempty"`
	Logged      int `json:"logged,omitempty"`
}

type run struct {
	Run               string     `json:"run"`
	Started           time.Time  `json:"started"`
	Ended             *time.Time `json:"ended,omitempty"`
	Isotap            text       `json:"isotap"`
	Mode              text       `json:"mode"`
	Engine            text       `json:"engine"`
	Version           text       `json:"version"`
	SnapshotIsolation bool       `json:"snapshot_isolation,omitempty"`
	System            uint64     `json:"system,omitempty,string"` // more than a double holds
	Horizon           uint64     `json:"horizon,omitempty"`
	RecentFrom        uint64     `json:"recent_from,omitempty"`
	RecentTo          uint64     `json:"recent_to,omitempty"`
	Running           []uint64   `json:"running,omitempty"`
	Columns           bool       `json:"columns,omitempty"`
	Rewritten         []text     `json:"rewritten,omitempty"`
	PutBack           bool       `json:"put_back,omitempty"`
	Untested          uint64     `json:"untested,omitempty"`
	BeyondBound       uint64     `json:"beyond,omitempty"`
	Gaps              []gap      `json:"gaps,omitempty"`
	// Log is when the server's own log was read.
	Log        []logStretch `json:"log,omitempty"`
	Damaged    bool         `json:"damaged,omitempty"`
	Unreadable uint64       `json:"unreadable,omitempty"`
}

// A gap is a stretch in which transactions were not recorded.
type gap struct {
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Txns   uint64 `json:"txns"`
	Reason text   `json:"reason"`
}

type session struct {
	ID       uint32 `json:"id"`
	Client   text   `json:"client,omitempty"`
	User     text   `json:"user,omitempty"`
	Database text   `json:"database,omitempty"`
	Start    int64  `json:"start"`
	End      int64  `json:"end,omitempty"`
}

type txn struct {
	ID      string `json:"id"`
	Session uint32 `json:"session"`
	Status  string `json:"status"`
	Level   string `json:"level"`
	// Conflicts is left out where it is unknown.
	Conflicts string `json:"conflicts,omitempty"`
	Implicit  bool   `json:"implicit,omitempty"`
	StaleRead bool   `json:"stale_read,omitempty"`
	Fresh     bool   `json:"fresh,omitempty"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	Stmts     []stmt `json:"stmts"`
}

type stmt struct {
	Num         uint32      `json:"num"`
	Kind        string      `json:"kind"`
	Locking     string      `json:"locking,omitempty"`
	Observation string      `json:"observation"`
	Reason      text        `json:"reason,omitempty"`
	Void        bool        `json:"void,omitempty"`
	Shape       text        `json:"shape"`
	Args        []text      `json:"args,omitempty"`
	Origin      text        `json:"origin,omitempty"`
	Action      text        `json:"action,omitempty"`
	Request     text        `json:"request,omitempty"`
	Start       int64       `json:"start"`
	End         int64       `json:"end"`
	Error       *stmtError  `json:"error,omitempty"`
	Rows        uint64      `json:"rows,omitempty"`
	Affected    uint64      `json:"affected,omitempty"`
	XID         uint32      `json:"xid,omitempty"`
	Accesses    []rowAccess `json:"accesses,omitempty"`
	Predicates  []condition `json:"predicates,omitempty"`
}

type condition struct {
	Table text `json:"table"`
	Of    text `json:"of"`
	As    text `json:"as"`
	Where text `json:"where,omitempty"`

	TimeZone      text `json:"time_zone,omitempty"`
	DateStyle     text `json:"date_style,omitempty"`
	IntervalStyle text `json:"interval_style,omitempty"`
	SQLMode       text `json:"sql_mode,omitempty"`
	Collation     text `json:"collation,omitempty"`
	Wide          bool `json:"wide,omitempty"`
	// Told has the words of history.Asked.
	Told []string `json:"told,omitempty"`
}

type matches struct {
	Database  text      `json:"database,omitempty"`
	Predicate condition `json:"predicate"`
	Versions  []version `json:"versions"`
}

// A version is known by the access that wrote it, the first of its statement being 0.
type version struct {
	Tag    string `json:"tag"`
	Access int    `json:"access"`
}

type definition struct {
	Database   text  `json:"database,omitempty"`
	Name       text  `json:"name,omitempty"`
	At         int64 `json:"at"`
	SQL        text  `json:"sql,omitempty"`
	References text  `json:"references,omitempty"`
	Missing    text  `json:"missing,omitempty"`
}

type defined struct {
	Database text `json:"database,omitempty"`
	txn
}

type stmtError struct {
	Code     uint16 `json:"code,omitempty"`
	SQLState text   `json:"sqlstate,omitempty"`
	Message  text   `json:"message,omitempty"`
}

type rowAccess struct {
	Table    text     `json:"table"`
	Row      text     `json:"row"`
	Op       string   `json:"op"`
	Inexact  bool     `json:"inexact,omitempty"`
	Subquery bool     `json:"subquery,omitempty"`
	Version  string   `json:"version"`
	Prior    []string `json:"prior,omitempty"`
	Place    *tupleID `json:"place,omitempty"`
	Image    text     `json:"image,omitempty"`
}

// text is a string that need not be UTF-8: SQL comes in its client's own character set. A JSON string
// holds what is UTF-8, {"base64": "..."} the rest.
type text string

type base64Text struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes the text.
func (t text) MarshalJSON() ([]byte, error) {
	if validUTF8(string(t)) {
		return appendJSON(string(t))
	}
	return json.Marshal(base64Text{[]byte(t)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = text(s)
		return nil
	}
	var raw base64Text
	if err := strictly(b, &raw); err != nil {
		return fmt.Errorf("%.40s is neither a string nor {\"base64\": ...}", b)
	}
	*t = text(raw.Base64)
	return nil
}

// words are the names of an enumeration's values, which [history] prints.
type words[T ~uint8] map[string]T

func wordsOf[T interface {
	~uint8
	fmt.Stringer
}]() words[T] {
	all := words[T]{}
	for i := T(0); ; i++ {
		name := i.String()
		if name == fmt.Sprintf("unknown(%d)", uint8(i)) {
			return all
		}
		all[name] = i
	}
}

var (
	statuses     = wordsOf[history.Status]()
	levels       = wordsOf[history.Level]()
	kinds        = wordsOf[history.Kind]()
	conflicts    = wordsOf[history.Conflicts]()
	lockings     = wordsOf[history.Locking]()
	observations = wordsOf[history.Observation]()
	ops          = wordsOf[history.Op]()
)

func (w words[T]) parse(what, name string) (T, error) {
	v, ok := w[name]
	if !ok {
		return 0, fmt.Errorf("%s %q is not known", what, name)
	}
	return v, nil
}
