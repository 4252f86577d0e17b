package history

import (
	"slices"
	"strings"
)

// A Reason says why a statement was not observed exactly, in the few words that are recorded: "view", "trigger",
// "plan". The zero Reason is none. Reasons are comparable. There are those that this package declares, each with what
// hangs on it, and those of other versions of isotap, of which [ParseReason] keeps the text.
type Reason struct {
	text  string
	cause *cause // nil: none, or one that this version does not know
}

// A cause is what is known of a reason, whatever its detail.
type cause struct {
	text   string // as recorded; of a reason with a detail, what stands before that
	detail string // what stands for the detail where none is given; empty: the reason has none
	topic  topic
	// means says what the reason means, in Markdown, and postgres what on PostgreSQL alone, or there beside that. One
	// of them may be empty.
	means, postgres string
	hint            string // what a user can do
	logged          string // and what is known where the server's own log tells what was written; empty: no more
	tablesKnown     bool   // see [Reason.TablesKnown]
}

// A topic is a part of the documentation's table of reasons.
type topic uint8

const (
	tables   topic = iota // which tables a statement names
	reading               // what it reads, or how it shows that
	writing               // what it writes
	settings              // its text and protocol, the session's settings, bounds
)

// All that is known of reasons: in the order of declaration, by text where that is all of it, and where a detail
// follows.
var (
	causes   []*cause
	byText   = make(map[string]*cause)
	detailed []*cause
)

// declare makes a reason known.
func (t topic) declare(c cause) Reason {
	c.topic = t
	causes = append(causes, &c)
	if c.detail == "" {
		byText[c.text] = &c
	} else {
		detailed = append(detailed, &c)
	}
	return Reason{c.text, &c}
}

// Reasons returns all reasons that are declared, topic by topic; those with a detail are without it.
func Reasons() []Reason {
	all := make([]Reason, len(causes))
	for i, c := range causes {
		all[i] = Reason{c.text, c}
	}
	slices.SortStableFunc(all, func(a, b Reason) int { return int(a.cause.topic) - int(b.cause.topic) })
	return all
}

// ParseReason returns the reason that is recorded as text: the inverse of [Reason.String]. It is for what reads
// recordings; whatever observes takes a declared reason.
func ParseReason(text string) Reason {
	r := Reason{text, byText[text]}
	if r.cause != nil {
		return r
	}
	for _, c := range detailed {
		if len(text) > len(c.text) && strings.HasPrefix(text, c.text) &&
			(r.cause == nil || len(c.text) > len(r.cause.text)) {
			r.cause = c
		}
	}
	return r
}

// String returns the reason as it is recorded; empty for none.
func (r Reason) String() string { return r.text }

// IsZero reports whether there is no reason.
func (r Reason) IsZero() bool { return r == Reason{} }

// With returns a declared reason with its detail.
func (r Reason) With(detail string) Reason { return ParseReason(r.text + detail) }

// Is reports whether two reasons are the same, whatever their details.
func (r Reason) Is(of Reason) bool {
	return r.cause == of.cause && (r.cause != nil || r.text == of.text)
}

// Detail returns what [Reason.With] was given; empty where there is none.
func (r Reason) Detail() string {
	if r.cause == nil {
		return ""
	}
	return r.text[len(r.cause.text):]
}

// Hint returns what a user can do so that statements are observed which were not for this reason. Where nothing can be
// done it says so: a reader should not look for it. Of a reason of another version nothing is known.
func (r Reason) Hint() string {
	if r.cause == nil {
		return "Nothing is known that helps: read the finding list as silent about these statements."
	}
	return r.cause.hint
}

// HintBesideLog returns as Hint what a user can do, where the server's own log told all that transactions wrote unseen.
func (r Reason) HintBesideLog() string {
	if r.cause != nil && r.cause.logged != "" {
		return r.cause.logged
	}
	return r.Hint()
}

// YieldsTo reports whether a statement that is inexact for both reasons is recorded with the other one. The server's
// log may settle an unknown key, and a cascade. These give way to what no log settles, and the key to the cascade.
func (r Reason) YieldsTo(other Reason) bool {
	return r == ReasonKey || r == ReasonCascade && other != ReasonKey
}

// TablesKnown reports whether a SELECT that is opaque for this reason reads tables of which it is known that they are
// no views: it wrote nothing but what functions did that its text calls.
func (r Reason) TablesKnown() bool { return r.cause != nil && r.cause.tablesKnown }
