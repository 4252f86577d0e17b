package mysql

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
)

// The session variables of a capture (ADR 7). Their values are text without exception: a variable
// that changes its type fails with error 1292.
//
//	@isotap    entries, up to firstLevel bytes: it is copied for every row
//	@isotap_b  entries moved there from @isotap
//	@isotap_l  the length of @isotap_b
//	@isotap_n  how many entries were not collected, for lack of space
//	@isotap_o  the stored values of the row being updated, before its update
//	@isotap_s  ~ when the row being updated stays as it was
//	@isotap_w  the tag of the last statement that showed what its subqueries read that hang on no row
//	           (@isotap_w0 and so on: of one of them that not each row comes to)
//	@isotap_g  how many rows of a subquery were looked at
//	@isotap_t  the tag of the last statement that ran copies for its rows, =, and how often
//	@isotap_i  images, up to firstLevel bytes; @isotap_j and @isotap_k are for them what @isotap_b and @isotap_l
//	           are for entries
//	@isotap_c  the tag of the last INSERT that numbered its rows, a colon, and the last number
const captureVariables = "isotap"

// firstLevel is when @isotap moves into @isotap_b.
const firstLevel = 8 << 10

// CaptureInit is the statement that prepares a session for statements whose plan says Capture. Run it
// before the first of them, and after whatever resets the session's variables.
const CaptureInit = "SET @isotap = _binary'', @isotap_b = _binary'', @isotap_l = _binary'0', " +
	"@isotap_n = _binary'0', @isotap_o = _binary'', @isotap_s = _binary'', @isotap_c = _binary'', @isotap_w = _binary'', " +
	"@isotap_g = _binary'0'"

// CaptureRead is the statement that reads what was collected, and empties the variables. Its result is
// one row of one column, for [ParseCapture].
const CaptureRead = "SELECT CONCAT(CONCAT(IFNULL(@isotap_n, _binary'0'), _binary'|', IFNULL(@isotap_b, _binary''), " +
	"IFNULL(@isotap, _binary'')), LEFT((@isotap := _binary''), 0), LEFT((@isotap_b := _binary''), 0), " +
	"LEFT((@isotap_l := _binary'0'), 0), LEFT((@isotap_n := _binary'0'), 0)) AS isotap"

// A CaptureEntry is one row that a statement saw.
type CaptureEntry struct {
	RowID string        // empty when the row has none
	WList []history.Tag // before the change; nil when the row had none
	Tag   history.Tag   // of the statement
	// Met is what became of the row.
	Outcome Outcome
	// Instead is the id of the row that would have been inserted, had ON DUPLICATE KEY UPDATE not met this
	// one. Otherwise empty.
	Instead string
	// Source is the row's table: an index of [Result].Sources.
	Source int
	// Array is what a subquery read of the table Source, an index of [Writes].Beside, in the form of [Source].Array;
	// all other fields but Tag are empty then.
	Array string
}

// An Outcome says what became of a captured row.
type Outcome byte

const (
	Changed Outcome = iota // it was updated
	Same                   // it had the new values already and did not change
	Deleted                // it was deleted
	Seen                   // it was only read
)

// outcomeMarks stand behind the tag of an entry; Changed has none.
const outcomeMarks = "~-<"

// ParseCapture reads the value that [CaptureRead] gives: the entries in the order of the changes, and
// how many more there were that were not collected. With an error come the entries before the bad one.
func ParseCapture(b []byte) (entries []CaptureEntry, uncollected uint64, err error) {
	count, list, ok := bytes.Cut(b, []byte{'|'})
	if !ok {
		return nil, 0, fmt.Errorf("reading captured entries: no count in %.40q", b)
	}
	if uncollected, err = strconv.ParseUint(string(count), 10, 64); err != nil {
		return nil, 0, fmt.Errorf("reading the count of uncollected entries: %w", err)
	}
	entries = make([]CaptureEntry, 0, bytes.Count(list, []byte{';'}))
	for len(list) > 0 {
		entry, rest, ok := bytes.Cut(list, []byte{';'})
		if !ok {
			return entries, uncollected, fmt.Errorf("reading captured entries: %.80q is cut off", entry)
		}
		e, err := parseEntry(string(entry))
		if err != nil {
			return entries, uncollected, fmt.Errorf("reading captured entries: %w", err)
		}
		entries, list = append(entries, e), rest
	}
	return entries, uncollected, nil
}

// parseEntry reads rowid=wlist=tag, a mark of outcomeMarks, and perhaps a fourth part: a row id has a
// colon, the index of a source has none.
func parseEntry(s string) (CaptureEntry, error) {
	if strings.HasPrefix(s, arrayMark) {
		return parseArrayEntry(s[len(arrayMark):])
	}
	parts := strings.Split(s, "=")
	if len(parts) != 3 && len(parts) != 4 {
		return CaptureEntry{}, fmt.Errorf("%.80q has %d parts, not rowid=wlist=tag", s, len(parts))
	}
	e := CaptureEntry{RowID: parts[0]}
	text := parts[2]
	if n := len(text); n > 0 {
		if i := strings.IndexByte(outcomeMarks, text[n-1]); i >= 0 {
			e.Outcome, text = Changed+1+Outcome(i), text[:n-1]
		}
	}
	var err error
	if e.Tag, err = history.ParseTag(text); err != nil {
		return CaptureEntry{}, err
	}
	if len(parts[1]) > 0 {
		if e.WList, err = history.ParseWList(parts[1]); err != nil {
			return CaptureEntry{}, err
		}
	}
	switch {
	case len(parts) == 3:
	case strings.IndexByte(parts[3], ':') >= 0:
		e.Instead = parts[3]
	default:
		n, err := strconv.ParseUint(parts[3], 10, 16)
		if err != nil {
			return CaptureEntry{}, fmt.Errorf("the source of %.80q: %w", s, err)
		}
		e.Source = int(n)
	}
	return e, nil
}

// arrayMark begins an entry of what a subquery read.
const arrayMark = "+"

// parseArrayEntry reads array=tag=source.
func parseArrayEntry(s string) (e CaptureEntry, err error) {
	at := strings.LastIndexByte(s, '=')
	source, sourceErr := strconv.ParseUint(s[at+1:], 10, 16)
	from := strings.LastIndexByte(s[:max(at, 0)], '=')
	if sourceErr != nil || from < 0 {
		return e, fmt.Errorf("%.80q is no array, tag and source", s)
	}
	e.Array, e.Source = s[:from], int(source)
	e.Tag, err = history.ParseTag(s[from+1 : at])
	return e, err
}

// A ConditionList is what SHOW WARNINGS or SHOW ERRORS asks for.
type ConditionList struct {
	Errors     bool // errors alone
	Skip, Take uint64
}

// ReadConditionList reads a text whose plan says [ListsConditions].
func ReadConditionList(text string, s *Session) ConditionList {
	st := scan(text, s.ANSIQuotes, s.NoBackslashEscapes)
	list := ConditionList{Errors: st.is(1, "ERRORS"), Take: math.MaxUint64}
	if !st.is(2, "LIMIT") {
		return list
	}
	list.Take = numberAt(st, 3)
	switch {
	case st.mark(4, ","):
		list.Skip, list.Take = list.Take, numberAt(st, 5)
	case st.is(4, "OFFSET"):
		list.Skip = numberAt(st, 5)
	}
	return list
}

// numberAt reads the token at i; none, where the server would not take it either.
func numberAt(st *statement, i int) uint64 {
	if i >= len(st.Tokens) {
		return 0
	}
	n, _ := strconv.ParseUint(st.tok(i), 10, 64)
	return n
}
