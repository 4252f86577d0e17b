package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A timeline shows a witness's transactions side by side, one row for each statement in the order in
// which they were sent. A statement that was still running when others were sent reaches down over
// their rows: that is how waiting for a lock looks.
type timeline struct {
	Began   string // when its first row took place
	Columns []timelineColumn
	Rows    []timelineRow
	Left    int // statements that were left out
	// MinWidth is the width in pixels below which the columns would be too narrow to read.
	MinWidth int
}

// A timelineColumn heads a transaction.
type timelineColumn struct {
	Name, ID, Program string
	// Who is the session and how it ran; of a transaction past isotap that it went there.
	Who     string
	Status  string
	Aborted bool
}

// A timelineRow is a moment, or a gap where statements were left out.
type timelineRow struct {
	Offset string // since the timeline's first row
	Gap    int    // statements left out here; a gap has no statement
	Cells  []timelineCell
}

// A timelineCell is what a transaction did from a row on. A Covered cell belongs to a statement
// further up and is not written at all.
type timelineCell struct {
	Covered bool
	Open    bool // the transaction was under way
	First   bool // the transaction's first event
	Last    bool
	Span    int
	Event   *timelineEvent
}

// A timelineEvent is a statement, or a transaction's beginning or end where no statement stands for
// it.
type timelineEvent struct {
	Text     string // the statement
	Boundary string // "begins", "commits", ...
	Took     string
	Waited   bool // it went on until after another transaction ended, as if for a lock
	Brief    bool // it does no more than begin or end its transaction
	Outcome  string
	Error    string
	Observed string // inexact or opaque, with the reason
	Marks    []mark
	stmt     *history.Stmt // nil for a boundary that no statement stands for
	ends     bool          // its transaction
	column   int
	start    int64
	end      int64
}

// A mark says which edge a statement is at fault for, and what it did there.
type mark struct {
	Edge int // its number, from 1
	Kind analyzer.DepKind
	Deed string
	Row  string
}

// The limits that keep a timeline readable and a report small.
const (
	timelineRows = 60  // beyond it, statements far from those at fault are left out
	timelineText = 320 // characters of a statement in a cell
	timelineMark = 40  // characters of a row's name in a cell
	columnWidth  = 215 // pixels of a transaction's column, at least
	timeWidth    = 92
)

// timeline lays the witness out in time; nil where the drawing is left out too.
func (w *witness) timeline(c clock) *timeline {
	if len(w.txns) == 0 || len(w.txns) > maxDrawn {
		return nil
	}
	tl := &timeline{MinWidth: timeWidth + len(w.txns)*columnWidth}
	marks := w.marks()
	var events []*timelineEvent
	shifts := c.shift(w.txns)
	for i, t := range w.txns {
		tl.Columns = append(tl.Columns, timelineColumn{
			Name: w.name(t), ID: t.ID.String(), Program: w.programName(t), Who: who(t), Status: t.Status.String(),
			Aborted: t.Status == history.Aborted,
		})
		if t.ID.Run().Past() {
			events = append(events, w.pastEvents(t, i, shifts, marks[t.ID])...)
		} else {
			events = append(events, txnEvents(t, i, shifts[i], marks[t.ID])...)
		}
	}
	slices.SortStableFunc(events, func(a, b *timelineEvent) int { return cmp.Compare(a.start, b.start) })
	if len(events) == 0 {
		return nil
	}
	tl.Began = began(c, w.txns[0], events[0].start)
	tl.place(w, events, kept(events))
	return tl
}

// who says whose a transaction is, and at which level it ran.
func who(t *history.Txn) string {
	if t.ID.Run().Past() {
		return t.Runner.String()
	}
	return fmt.Sprintf("session %d, %s", t.Session, levelName(t.Level))
}

// pastEvents returns the events of a transaction that went past isotap. Of its times only bounds of its end are known:
// all of it is shown at one moment within these, on the side of the others' statements that the dependencies tell.
func (w *witness) pastEvents(t *history.Txn, column int, shifts []int64, marks map[uint32][]mark) []*timelineEvent {
	from := int64(0)
	if n := len(t.Stmts); n > 0 {
		from = t.Stmts[n-1].Start
	}
	from += shifts[column]
	to := max(from, t.End+shifts[column])
	at := to
	for i := range w.finding.Witness {
		if e := &w.finding.Witness[i]; e.From == t && e.ToStmt != nil && !e.To.ID.Run().Past() {
			at = min(at, e.ToStmt.Start+shifts[w.place[e.To.ID]]-1)
		}
	}
	for i := range w.finding.Witness {
		if e := &w.finding.Witness[i]; e.To == t && e.FromStmt != nil && !e.From.ID.Run().Past() {
			at = max(at, e.FromStmt.Start+shifts[w.place[e.From.ID]])
		}
	}
	at = min(max(at, from), to)
	var events []*timelineEvent
	for i := range t.Stmts {
		s := &t.Stmts[i]
		e := &timelineEvent{stmt: s, Marks: marks[s.Num], column: column, start: at, end: at}
		if e.ends = endsTxn(s); e.ends {
			e.Brief, e.Boundary = true, "about then, by the server's log"
		}
		events = append(events, e)
	}
	return events
}

// began says when a timeline starts.
func began(c clock, t *history.Txn, ns int64) string {
	text := duration(ns) + " into the run"
	if ns == 0 {
		text = "the run's start"
	}
	if at, ok := c.wall(t.ID, ns); ok {
		text += ", " + at.Format("2006-01-02 15:04:05.000 UTC")
	}
	return text
}

// marks collects, by transaction and statement, what the edges say about it.
func (w *witness) marks() map[history.TxnID]map[uint32][]mark {
	all := make(map[history.TxnID]map[uint32][]mark)
	add := func(t *history.Txn, s *history.Stmt, m mark) {
		if t == nil || s == nil {
			return
		}
		if all[t.ID] == nil {
			all[t.ID] = make(map[uint32][]mark)
		}
		all[t.ID][s.Num] = append(all[t.ID][s.Num], m)
	}
	for i := range w.finding.Witness {
		e := &w.finding.Witness[i]
		from, to := deeds(e.Kind)
		row := rowLabel(e.Row, timelineMark)
		add(e.From, e.FromStmt, mark{i + 1, e.Kind, from, row})
		add(e.To, e.ToStmt, mark{i + 1, e.Kind, to, row})
	}
	return all
}

// txnEvents returns a transaction's events in order, its times moved by shift.
func txnEvents(t *history.Txn, column int, shift int64, marks map[uint32][]mark) []*timelineEvent {
	var events []*timelineEvent
	add := func(e *timelineEvent, start, end int64) {
		e.column, e.start = column, start+shift
		// A transaction's own order holds even where its clock readings do not show it.
		if n := len(events); n > 0 {
			e.start = max(e.start, events[n-1].start)
		}
		e.end = max(end+shift, e.start)
		events = append(events, e)
	}
	if !t.Implicit && (len(t.Stmts) == 0 || t.Stmts[0].Kind != history.Begin) {
		add(&timelineEvent{Boundary: "begins", Brief: true}, t.Start, t.Start)
	}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		ends := i == len(t.Stmts)-1 && endsTxn(s)
		add(&timelineEvent{
			stmt: s, Boundary: boundary(t, ends), Marks: marks[s.Num],
			Brief: s.Kind == history.Begin || ends, ends: t.Implicit || ends,
		}, s.Start, s.End)
	}
	if n := len(t.Stmts); !t.Implicit && (n == 0 || !endsTxn(&t.Stmts[n-1])) {
		add(&timelineEvent{Boundary: ending(t.Status), Brief: true, ends: true}, t.End, t.End)
	}
	return events
}

func endsTxn(s *history.Stmt) bool { return s.Kind == history.Commit || s.Kind == history.Rollback }

func ending(s history.Status) string {
	switch s {
	case history.Committed:
		return "commits"
	case history.Aborted:
		return "aborts"
	}
	return "ends, outcome unknown"
}

// describe fills in what is shown of a statement.
func (e *timelineEvent) describe(w *witness) {
	s := e.stmt
	if s == nil {
		return
	}
	e.Text = clipStatement(w.text(s), timelineText)
	if s.End > s.Start {
		e.Took = duration(s.End - s.Start)
	}
	switch {
	case s.Error != (history.Error{}):
		e.Error = errorText(&s.Error)
	case s.Void:
		e.Error = "undone by ROLLBACK TO SAVEPOINT"
	case s.Kind == history.Select:
		e.Outcome = plural(int(s.Rows), "row")
	case s.Affected > 0:
		e.Outcome = number(int(s.Affected)) + " changed"
	}
	if s.Observation == history.Inexact || s.Observation == history.Opaque {
		e.Observed = s.Observation.String()
		if !s.Reason.IsZero() {
			e.Observed += ": " + clip(oneLine(s.Reason.String()), 60)
		}
	}
}

// boundary says what a statement does to its transaction where its text does not: a COMMIT that
// ends it speaks for itself unless it failed. Empty for most.
func boundary(t *history.Txn, ends bool) string {
	switch {
	case t.Implicit:
		return "autocommit"
	case ends && t.Status != history.Committed:
		return ending(t.Status)
	}
	return ""
}

func errorText(err *history.Error) string {
	code := err.SQLState
	if err.Code != 0 {
		code = fmt.Sprintf("%d (%s)", err.Code, err.SQLState)
	}
	return code + " " + clip(oneLine(err.Message), 160)
}

// kept chooses the events to show when there are too many: those at fault, the boundaries, and as
// many around them as there is room for.
func kept(events []*timelineEvent) []bool {
	keep := make([]bool, len(events))
	if len(events) <= timelineRows {
		for i := range keep {
			keep[i] = true
		}
		return keep
	}
	room := timelineRows
	around := func(distance int) {
		for i, e := range events {
			if len(e.Marks) == 0 && !e.Brief {
				continue
			}
			for j := max(0, i-distance); j <= min(len(events)-1, i+distance); j++ {
				if !keep[j] && (room > 0 || distance == 0) {
					keep[j] = true
					room--
				}
			}
		}
	}
	for distance := 0; distance <= 8 && room > 0; distance++ {
		around(distance)
	}
	return keep
}

// place puts the events into rows and lets each statement reach down to where it ended.
func (tl *timeline) place(w *witness, events []*timelineEvent, keep []bool) {
	origin := events[0].start
	var shown []*timelineEvent // the event of each row; nil for a gap
	for i, e := range events {
		switch {
		case keep[i]:
			e.describe(w)
			shown = append(shown, e)
			tl.Rows = append(tl.Rows, timelineRow{Offset: offset(e.start - origin)})
		case i > 0 && !keep[i-1]:
			tl.Rows[len(tl.Rows)-1].Gap++
			tl.Left++
		default:
			shown = append(shown, nil)
			tl.Rows = append(tl.Rows, timelineRow{Gap: 1})
			tl.Left++
		}
	}
	for r := range tl.Rows {
		tl.Rows[r].Cells = make([]timelineCell, len(tl.Columns))
	}
	for column := range tl.Columns {
		tl.fill(column, shown)
	}
}

func offset(ns int64) string {
	if ns == 0 {
		return "0"
	}
	return "+" + duration(ns)
}

// fill sets one column's cells.
func (tl *timeline) fill(column int, shown []*timelineEvent) {
	var own []int // the rows of the column's events
	for r, e := range shown {
		if e != nil && e.column == column {
			own = append(own, r)
		}
	}
	for i, r := range own {
		next := len(shown)
		if i+1 < len(own) {
			next = own[i+1]
		}
		e := shown[r]
		span := 1
		for r+span < next && (shown[r+span] == nil || shown[r+span].start < e.end) {
			span++
		}
		// A gap at the bottom of the span is not known to belong to it.
		for span > 1 && shown[r+span-1] == nil {
			span--
		}
		e.Waited = outlasts(e, shown[r+1:r+span])
		tl.Rows[r].Cells[column] = timelineCell{Event: e, Span: span, Open: true, First: i == 0, Last: i == len(own)-1}
		for j := 1; j < span; j++ {
			tl.Rows[r+j].Cells[column].Covered = true
		}
		if i+1 < len(own) {
			for j := r + span; j < next; j++ {
				tl.Rows[j].Cells[column].Open = true
			}
		}
	}
}

// outlasts reports whether a statement was still running when another transaction had ended.
func outlasts(e *timelineEvent, meanwhile []*timelineEvent) bool {
	return e.stmt != nil && slices.ContainsFunc(meanwhile, func(o *timelineEvent) bool {
		return o != nil && o.ends &&
			o.start < e.end
	})
}
