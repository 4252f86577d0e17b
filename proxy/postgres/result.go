package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// resultInProgress is the statement whose result comes in. It is empty between results: nothing holds before set.
type resultInProgress struct {
	set     bool
	form    *form
	portal  *portal           // nil for a statement of a Query
	cursor  *portal           // that the statement reads; nil: none
	plan    *sqlpostgres.Plan // by which its rows are understood; nil: by none
	hidden  int               // columns at the end that the client does not see
	swallow bool              // the client gets no rows at all
	cut     []int             // columns of isotap's before the hidden ones, which the client does not see either
	wrong   bool              // its plan does not know of some of isotap's columns
	tag     string            // what the client's command tag begins with, by the description; empty: as the server's
	laid    bool              // its description has told that
	format  byte              // of the hidden columns
	rows    uint64
	started int64
}

// applyLayout has the rows of the statement whose result comes in read by a layout.
func (c *resultInProgress) applyLayout(l layout) {
	if !l.known {
		return
	}
	c.hidden, c.tag, c.laid = l.hidden, l.tag, true
	for _, at := range l.cut {
		if !slices.Contains(c.cut, at) {
			c.cut = append(slices.Clip(c.cut), at)
		}
	}
	if c.wrong = l.wrong; l.wrong {
		c.swallow = l.none
	}
	switch {
	case l.wrong && l.present > 0:
		c.plan = presentOnly(c.plan, l.present)
	case l.none, l.wrong && l.hidden == 0:
		c.plan = withoutSources(c.plan)
	}
}

// presentOnly returns the plan by which nothing is understood of a row but whether it is the client's, which the hidden
// column tells that is counted from 1.
func presentOnly(p *sqlpostgres.Plan, at int) *sqlpostgres.Plan {
	var q sqlpostgres.Plan
	if p != nil {
		q = *p
	}
	q.Result.Sources = slices.Repeat([]sqlpostgres.Source{{Array: true}}, at) // whose columns are passed over
	q.Result.Sources[at-1] = sqlpostgres.Source{Present: true}
	return &q
}

// doubt takes away what a statement has shown whose plan is wrong.
func (c *resultInProgress) doubt(st *history.Stmt) {
	if c.wrong {
		downgrade(st, history.Opaque, history.ReasonMisplanned)
		st.Accesses, st.TupleIDs, st.Images, st.Predicates = nil, nil, nil, nil
	}
}

// countRows puts down how many rows a statement gave the client, and by its tag how many it wrote.
func (c *resultInProgress) countRows(st *history.Stmt, tag string) {
	st.Rows = c.rows
	if c.plan != nil && counts(c.plan) {
		st.Affected = rowsOf(tag)
		if c.plan.ExactOfNone && st.Affected == 0 && st.Observation == history.Inexact && st.Reason == c.plan.Reason {
			st.Observation, st.Reason = history.Exact, history.Reason{}
		}
	}
	if c.swallow {
		st.Rows = 0
	}
}

// rowsOf reads the number at the end of a command's tag.
func rowsOf(tag string) uint64 {
	i := len(tag)
	for i > 0 && tag[i-1] >= '0' && tag[i-1] <= '9' {
		i--
	}
	n, err := strconv.ParseUint(tag[i:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// counts reports whether the command tag counts rows that the statement wrote.
func counts(p *sqlpostgres.Plan) bool {
	switch p.Kind {
	case history.Insert, history.Update, history.Delete:
		return p.Result.Tag != selectTag
	}
	return false
}

// withoutSources returns the plan by which nothing is understood of a statement's rows.
func withoutSources(p *sqlpostgres.Plan) *sqlpostgres.Plan {
	if p == nil || len(p.Result.Sources) == 0 {
		return p
	}
	q := *p
	q.Result.Sources = nil
	return &q
}

// executes returns the plan by which rows of an EXECUTE are understood: of what it runs no more is known than whether a
// row is the client's, and what the tag begins with.
func executes(p, runs *sqlpostgres.Plan) *sqlpostgres.Plan {
	if p == nil || runs.Result.Tag == "" {
		return withoutSources(p)
	}
	q, before := p, 0
	for i := range runs.Result.Sources {
		source := &runs.Result.Sources[i]
		if before += source.Columns(); source.Present {
			q = presentOnly(p, before)
			q.Result.Tag = runs.Result.Tag
			break
		}
	}
	return q
}

// selectTag begins the tag of a statement that reads, and whose parts write.
const selectTag = "SELECT "

// writes reports whether a source of a plan is the table that the statement writes: only writes know where they
// stand in the write-ahead log.
func writes(source *sqlpostgres.Source) bool {
	if source.Physical == nil {
		return false
	}
	for _, item := range source.Physical.Items {
		if item == sqlpostgres.ItemLSN {
			return true
		}
	}
	return false
}

// fetch has the result that begins understood as that of the cursor that is read; query says that the statement came in
// a Query.
func (c *resultInProgress) fetch(n namespace, query bool) {
	if c.portal != nil && c.portal.cursor != nil {
		c.cursor = c.portal // Execute of the cursor itself
		return
	}
	if c.cursor = n.read(c.plan); c.cursor == nil ||
		c.plan.Session.Cursor.Verb == sqlpostgres.MoveCursor {
		return
	}
	p := c.cursor
	c.plan, c.hidden = p.plan, p.form.hidden(p.form.plan(0))
	c.applyLayout(p.layout)
	if query && p.cursor.binary {
		c.format = 1
	}
}

// wraps returns what the command tag of the statement begins with whose result comes in, if it went within a SELECT:
// as its description has it, and where there is none at hand, its plan. Otherwise it is empty.
func (c *resultInProgress) wraps() string {
	switch {
	case c.hidden == 0:
		return ""
	case c.laid:
		return c.tag
	case c.plan != nil:
		return c.plan.Result.Tag
	}
	return ""
}

// retagged returns the end of a result as the client's statement has it. absent says that all that came is the row that
// stands for none: the result is at its end.
func (c *resultInProgress) retagged(m message, absent bool) message {
	begins := c.wraps()
	if begins == "" || m.kind == msgPortalSuspended && !absent {
		return m
	}
	var rows uint64
	if tag := string(bytes.TrimSuffix(m.body, []byte{0})); !absent {
		rows = rowsOf(tag)
	}
	body := append([]byte(begins+strconv.FormatUint(rows, 10)), 0)
	return message{kind: msgCommandComplete, body: body, raw: appendMessage(nil, msgCommandComplete, body...)}
}

// trims reports whether rows of the statement whose result comes in are changed.
func (c *resultInProgress) trims() bool { return c.hidden > 0 || len(c.cut) > 0 }

// A layout is where columns of isotap's stand in a result.
type layout struct {
	hidden int   // at its end, as the plan has it
	cut    []int // before these
	wrong  bool  // the plan does not know of some
	none   bool  // there are no others, unlike what the plan has
	known  bool  // it was read off a description
	// present is which of the hidden ones tells whether a row is the client's, counted from 1; 0: none.
	present int
	// tag is what the client's command tag begins with, by the name of that one.
	tag string
}

// ofFields has a layout say which of its hidden columns tells whether a row is the client's.
func (l layout) ofFields(fields []pgproto3.FieldDescription) layout {
	for i, f := range fields[max(len(fields)-l.hidden, 0):] {
		if tag, ok := rewrite.TagOfPresent(string(f.Name)); ok {
			l.present, l.tag = i+1, tag
			break
		}
	}
	return l
}

// A descriptionReader reads bodies of RowDescription messages, one after the other, into the same memory. It keeps
// nothing of a body.
type descriptionReader struct{ last pgproto3.RowDescription }

// maxDescribed is how many fields a reader keeps the memory for.
const maxDescribed = 64

// read returns the fields of a description; none where it cannot be read. Call forget once they were looked at.
func (r *descriptionReader) read(body []byte) []pgproto3.FieldDescription {
	if r.last.Decode(body) != nil {
		return nil
	}
	return r.last.Fields
}

// forget lets go of the body: the names of fields are parts of it.
func (r *descriptionReader) forget() {
	if cap(r.last.Fields) > maxDescribed {
		r.last.Fields = nil
	}
	clear(r.last.Fields)
}

// What a result has of the client's own by its plan.
type clientColumns int

const (
	anyColumns  clientColumns = iota // SELECT * of a table may have none
	noColumns                        // a write without RETURNING
	someColumns                      // a write with it, and most SELECTs
)

// columnsOf returns what a plan knows of the client's columns.
func columnsOf(p *sqlpostgres.Plan) clientColumns {
	switch {
	case p.Result.Reply == rewrite.Returning:
		return noColumns
	case counts(p), p.Result.HasColumn:
		return someColumns
	}
	return anyColumns
}

// layout returns where columns of isotap's stand in a result that by its plan has so many of them at its end, and such
// columns of the client's.
func (r *descriptionReader) layout(body []byte, hidden int, others clientColumns) layout {
	defer r.forget()
	l := layout{hidden: hidden, known: true}
	fields := r.read(body)
	atEnd := 0
	var ours []int
	for i := range fields {
		if !rewrite.IsColumn(string(fields[i].Name)) {
			continue
		}
		if ours = append(ours, i); i >= len(fields)-hidden {
			atEnd++
		}
	}
	l.cut = ours[:len(ours)-atEnd]
	l.wrong = len(l.cut) > 0 || atEnd < hidden || others == noColumns && len(fields) != hidden ||
		others == someColumns && len(fields) == hidden
	switch {
	case l.wrong && len(ours) == len(fields):
		return layout{hidden: len(fields), known: true, wrong: true, none: true}.ofFields(fields)
	case atEnd < hidden: // the client's own stand among them: nothing is where the plan has it
		return layout{cut: ours, known: true, wrong: true}
	}
	return l.ofFields(fields)
}

// unplanned returns the layout of a result that by its plan has no column of isotap's, or of which there is no plan: it
// has those of a statement that stands elsewhere in the text than isotap took it to stand. They come last, and have the
// numbers from 1 on, or names that isotap alone gives.
func (r *descriptionReader) unplanned(body []byte) layout {
	defer r.forget()
	fields := r.read(body)
	n, sure := 0, false
	for i := range fields {
		switch name := string(fields[i].Name); {
		case name == rewrite.NamePrefix+"1":
			n, sure = 1, true
		case rewrite.IsColumn(name):
			_, present := rewrite.TagOfPresent(name)
			n, sure = n+1, sure || present || name == rewrite.PartsColumn
		default:
			n, sure = 0, false
		}
	}
	if !sure || n < minReturned {
		return layout{known: true}
	}
	return layout{hidden: n, known: true, wrong: true, none: n == len(fields)}.ofFields(fields)
}

// minReturned is how many columns a statement gets at least: where a row is, and which version of it.
const minReturned = 2

// exposed returns the places of isotap's columns among the visible columns of a description, which has hidden ones
// behind them.
func (r *descriptionReader) exposed(body []byte, hidden int) (places []int) {
	defer r.forget()
	fields := r.read(body)
	for i := range max(len(fields)-hidden, 0) {
		switch name, oid := string(fields[i].Name), fields[i].DataTypeOID; {
		case name == rewrite.RowIDColumn && oid == oidUUID, name == rewrite.WListColumn && oid == oidBytea:
			places = append(places, i)
		}
	}
	return places
}

// skipField passes over a field of a description, skipValue over a value of a row.
func skipField(r *reader) {
	r.cString()
	r.bytes(fieldBytes)
}

func skipValue(r *reader) {
	if n := int32(r.uint32()); n > 0 {
		r.bytes(int(n))
	}
}

// fieldBytes is how long a field of a RowDescription is behind its name.
const fieldBytes = 4 + 2 + 4 + 2 + 4 + 2

// trimDescription passes a RowDescription on without its last fields, and without those that are cut.
func (s *Session) trimDescription(x *pendingReply, m message, hidden int, cut []int) error {
	r := reader{b: m.body}
	visible := r.uint16() - hidden
	if visible < 0 {
		return fmt.Errorf("%w: %d fields where isotap alone asked for %d", errUnexpected, visible+hidden, hidden)
	}
	for range visible {
		skipField(&r)
	}
	if r.err != nil {
		return fmt.Errorf("parse a description: %w", r.err)
	}
	if len(cut) > 0 {
		s.forwardWithout(x, m, visible, cut, skipField)
	} else {
		s.forwardCut(x, m, visible, r.pos)
	}
	return nil
}

// forwardCut passes on what a message says of its first columns, which ends at byte end of its body.
func (s *Session) forwardCut(x *pendingReply, m message, columns, end int) {
	if x.silent {
		return
	}
	b, start := beginMessage(s.toClient, m.kind)
	b = binary.BigEndian.AppendUint16(b, uint16(columns))
	s.toClient = endMessage(append(b, m.body[2:end]...), start)
}

// trimRow takes the identities out of a row, and passes on the rest of it.
func (s *Session) trimRow(x *pendingReply, m message) error {
	c := &s.result
	r := reader{b: m.body}
	visible := r.uint16() - c.hidden
	if visible < 0 {
		return fmt.Errorf("%w: a row of %d values where isotap alone asked for %d", errUnexpected, visible+c.hidden,
			c.hidden)
	}
	for range visible {
		skipValue(&r)
	}
	end := r.pos
	if c.hidden > 0 {
		s.seen.row(&r, c.plan, c.format)
	}
	switch {
	case r.err != nil:
		return fmt.Errorf("parse a row: %w", r.err)
	case s.seen.absent:
		c.rows--
	case c.swallow:
	case len(c.cut) > 0:
		s.forwardWithout(x, m, visible, c.cut, skipValue)
	default:
		s.forwardCut(x, m, visible, end)
	}
	return nil
}

// findHiddenFields looks for hidden columns in the result of a statement that was sent as the client wrote it.
func (s *Session) findHiddenFields(c *resultInProgress, description []byte) {
	switch {
	case c.cursor != nil:
		s.compare(c, description)
		return
	case c.hidden > 0:
		return
	}
	runs := s.names.confirmed.executed(c.plan)
	if runs != nil {
		c.hidden = runs.hidden(runs.plan(0))
	} else {
		c.hidden = s.names.hiddenFields(c.plan, description)
	}
	if c.hidden == 0 {
		return
	}
	c.swallow = len(description) > 1 && c.hidden == int(binary.BigEndian.Uint16(description))
	if runs != nil {
		c.plan = executes(c.plan, runs.plan(0))
	} else {
		c.plan = withoutSources(c.plan)
	}
}

// compare takes a result for an unobserved one where its description lacks hidden columns of the cursor that is read:
// a function may have opened another one under its name.
func (s *Session) compare(c *resultInProgress, description []byte) {
	if c.hidden == 0 { // a column so named is the client's own
		return
	}
	if n := s.names.hiddenFields(c.plan, description); n != c.hidden {
		c.hidden, c.cursor, c.plan = n, nil,
			&sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Opaque,
				Reason: history.ReasonCursor, Shape: c.plan.Shape}}
	}
}

// named returns an error about a form that names a SELECT as one that names the client's statement, which went within
// it for its parts that write: "cannot execute SELECT in a read-only transaction".
func named(x *pendingReply, f *form, m message, e *serverError) message {
	if f == nil || e.code != sqlstateReadOnlyTransaction {
		return m
	}
	p := f.plan(x.at)
	if p == nil || f.hidden(p) == 0 || p.Result.Tag == "" {
		return m
	}
	verb, _, _ := strings.Cut(p.Result.Tag, " ")
	text := strings.Replace(e.message, "SELECT", verb, 1)
	return withText(m, e, text)
}

// defend returns the layout of a result that was described, and sees to it that its plan is used no more if it is
// wrong.
func (s *Session) defend(f *form, plan *sqlpostgres.Plan, description []byte, hidden int) layout {
	var l layout
	switch {
	case f == nil || !f.rewritten:
		if hidden == 0 {
			return l
		}
		l = s.descriptions.layout(description, hidden, anyColumns)
	case plan != nil && (hidden > 0 || plan.Result.Reply != rewrite.Unchanged):
		l = s.descriptions.layout(description, hidden, columnsOf(plan))
	case f.namesOurs:
		return l
	default:
		l = s.descriptions.unplanned(description)
	}
	if !l.wrong {
		s.clear(f)
		return l
	}
	s.events = append(s.events, session.Event{Misplanned: true})
	s.misplanned(f, plan)
	return l
}

// misplanned sees to it that a plan is used no more, nor any other of its text: it may be that of another statement of
// it.
func (s *Session) misplanned(f *form, plan *sqlpostgres.Plan) {
	plans := []*sqlpostgres.Plan{plan}
	if f != nil && len(f.statements()) > 1 {
		plans = f.statements()
	}
	for _, p := range plans {
		if runs := s.names.confirmed.executed(p); runs != nil {
			p = runs.plan(0) // it is not the EXECUTE that was planned wrong
		}
		if p != nil && s.planner != nil && s.planner.Misplanned(p.Shape) {
			s.note("a statement was planned wrong, and goes unobserved from now on; the client did not see the columns "+
				"that isotap added: %s", p.Shape)
		}
	}
}

// A form is a text as it went upstream.
type form struct {
	script    *sqlpostgres.Script // nil: nothing is known of the text
	rewritten bool                // the script's pieces went upstream, not the client's text
	reason    history.Reason      // why they did not, where they would have been there
	namesOurs bool                // the text may name a column of isotap's
	bare      bool                // the client's text went, for the server has refused the plain one
	// runs is the prepared statement of isotap's own that an EXECUTE runs, and instead the one that the client named.
	runs, instead string
}

// upstream is the script whose pieces went upstream; nil where the client's own text did.
func (f *form) upstream() *sqlpostgres.Script {
	switch {
	case f.script == nil, f.bare:
		return nil
	case f.rewritten:
		return f.script
	}
	return f.script.Plain
}

// hidden is the number of columns that the form adds to a statement's result, under its plan.
func (f *form) hidden(plan *sqlpostgres.Plan) int {
	if !f.rewritten || plan == nil {
		return 0
	}
	return plan.HiddenColumns()
}

// plan is the plan of the statement at that place in the text; nil where there is none.
func (f *form) plan(at int) *sqlpostgres.Plan {
	if f.script == nil || at >= len(f.script.Statements) {
		return nil
	}
	return f.script.Statements[at]
}

// statements are the plans of the text's statements.
func (f *form) statements() []*sqlpostgres.Plan {
	if f.script == nil {
		return nil
	}
	return f.script.Statements
}

// Where tables carry isotap's columns, what the rewriter cannot read (what a function returns, a table that the
// transaction itself has changed) may give the client all of a table's columns. Isotap's are taken out of such
// results by their names and types.

// exposes reports whether the rows of a text may have columns of isotap's that the client did not name.
func (s *Session) exposes(f *form) bool {
	return f != nil && !f.namesOurs && s.planner != nil && s.planner.Exposes()
}

// forwardWithout passes on what a message says of its first columns but for some; skip passes over a column.
func (s *Session) forwardWithout(x *pendingReply, m message, columns int, cut []int, skip func(*reader)) {
	if x.silent {
		return
	}
	b, start := beginMessage(s.toClient, m.kind)
	b = binary.BigEndian.AppendUint16(b, uint16(columns-len(cut)))
	r := reader{b: m.body, pos: 2}
	for i := range columns {
		from := r.pos
		if skip(&r); !slices.Contains(cut, i) {
			b = append(b, m.body[from:r.pos]...)
		}
	}
	s.toClient = endMessage(b, start)
}

// mustDescribe reports whether a Bind must wait for a description of its statement: it has a format code for each
// column, and its rows may have columns of isotap's between them.
func (s *Session) mustDescribe(m message) bool {
	if m.kind != msgBind || m.more > 0 || s.pipeline.skipping || s.txn.status == txnFailed || s.planner == nil ||
		!s.planner.Exposes() {
		s.describing = false
		return false
	}
	b, err := readBind(m.body, false)
	st := s.names.speculative.statements[b.statement]
	switch {
	case err != nil, len(b.codes) <= 2, st == nil, st.shown, !s.unfolded(&st.form):
	case s.describing && !s.pipeline.idle():
		return true
	case !st.described:
		st.described, s.describing = true, true
		s.expect(pendingReply{kind: pendingDescribeStatement, own: true, silent: true, name: b.statement})
		s.toServer = appendMessage(appendNamed(s.toServer, msgDescribe, ofStatement, b.statement), msgFlush)
		s.pipeline.flush()
		return true
	}
	s.describing = false
	return false
}

// unfolded reports whether a form's rows may have columns of isotap's that the client does not see.
func (s *Session) unfolded(f *form) bool {
	plan := f.plan(0)
	if !s.exposes(f) || plan == nil || plan.Observation != history.Opaque && !plan.Schema.Open {
		return false
	}
	switch plan.Kind {
	case history.Select, history.Insert, history.Update, history.Delete:
		return true
	}
	return false
}

// describePortalFirst has the server describe a portal that may show isotap's columns, or whose plan no description has
// borne out yet, and that the client has not asked about, before its rows come.
func (s *Session) describePortalFirst(name string, p *portal) {
	shown, _ := s.names.speculative.shownForm(&p.form, p.form.plan(0))
	exposes := p.of != nil && !p.of.asked && !p.of.shown && s.unfolded(&p.form)
	if unseen := s.txn.status != txnFailed && !p.describesRows() && !s.isBorneOut(shown); !p.sent &&
		(exposes || unseen) {
		s.expect(pendingReply{kind: pendingDescribePortal, own: true, silent: true, name: name})
		s.toServer = appendNamed(s.toServer, msgDescribe, ofPortal, name)
	}
}

// tags is isotap_rowid and isotap_wlist as the server prints them among the values of a row, cut or not: the list
// begins with the upper bytes of a transaction's id.
var tags = regexp.MustCompile(`, [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}, \\x0000[0-9a-f]{28,}(?:\.\.\.)?`)

// hints is a hint that the client could mean a column of isotap's.
var hints = regexp.MustCompile(`\x00H[^\x00]*\b(?:` + rewrite.RowIDColumn + `|` + rewrite.WListColumn + `)\b[^\x00]*`)

// rowPrinters are the routines of the server's source that print the row which fails.
var rowPrinters = []string{"ExecConstraints", "ReportNotNullViolationError", "ExecPartitionCheckEmitError",
	"ExecWithCheckOptions"}

// withoutTags takes isotap's columns out of an error that prints a row ("Failing row contains (...)") or hints at them.
// What the client's own values look like is left alone.
func (s *Session) withoutTags(m message) message {
	if s.planner == nil || !s.planner.Exposes() || !tags.Match(m.body) && !hints.Match(m.body) {
		return m
	}
	e, err := readError(m.body)
	body := m.body
	switch {
	case err != nil:
	case slices.Contains(rowPrinters, e.routine):
		body = withoutRowTags(body)
	case e.code == sqlstateUndefinedColumn:
		body = hints.ReplaceAll(body, nil)
	}
	return message{kind: m.kind, body: body, raw: appendMessage(nil, m.kind, body...)}
}

// withoutRowTags takes the tags out of the row that an error prints: it has them once, behind the client's columns, but
// for those that were added later.
func withoutRowTags(body []byte) []byte {
	from := bytes.Index(body, []byte{0, fieldDetail}) + 1
	if from == 0 {
		return body
	}
	detail := body[from : from+bytes.IndexByte(body[from:], 0)]
	all := tags.FindAllIndex(detail, -1)
	if len(all) == 0 {
		return body
	}
	last := all[len(all)-1]
	return slices.Concat(body[:from+last[0]], body[from+last[1]:])
}

// describedCut returns the columns to be taken out of a description, and out of the rows of the statement that it is
// of.
func (s *Session) describedCut(x *pendingReply, description []byte, hidden int) []int {
	f := x.formIn(s.names.confirmed)
	if !s.exposes(f) || len(description) < 2 {
		return nil
	}
	cut := s.descriptions.exposed(description, hidden)
	st := s.names.confirmed.statements[x.name]
	if x.kind == pendingDescribePortal {
		if p := s.names.confirmed.portals[x.name]; p != nil {
			st = p.of
		}
	}
	if st != nil {
		st.cut, st.shown = cut, true
	}
	return cut
}

// The last line of defense: whatever a plan says, no column that isotap has named reaches the client. Where a
// description has one that the plan does not count among those to be hidden, the plan is wrong. The column is taken out
// of the description and out of the rows, and statements of that shape go as the client wrote them from then on, in all
// sessions.

// clear notes that a script shows nothing but what its plan has.
func (s *Session) clear(f *form) {
	if f != nil && f.upstream() != nil {
		s.scripts.clear(f.upstream())
	}
}

// isCleared reports whether rows of the form can be told from isotap's columns by its plan: it gives none of these, or
// the session has seen a description of its result.
func (s *Session) isCleared(f *form) bool {
	if f == nil || !f.rewritten {
		return true
	}
	if plan := f.plan(0); plan == nil || plan.Result.Reply != rewrite.Trimmed {
		return true
	}
	return s.scripts.isCleared(f.upstream())
}

// isBorneOut reports whether the session has seen a description of what a form shows, whatever its plan says, or the
// form is the client's own text.
func (s *Session) isBorneOut(f *form) bool {
	return f == nil || !f.rewritten || s.scripts.isCleared(f.upstream())
}

// laidOut returns the layout of the rows that a Describe is about, and keeps it for them.
func (s *Session) laidOut(x *pendingReply, f *form, plan *sqlpostgres.Plan, description []byte, hidden int) layout {
	shown, by := s.names.confirmed.shownForm(f, plan)
	l := s.defend(shown, by, description, hidden)
	if !l.known {
		return l
	}
	if st := s.names.confirmed.statements[x.name]; x.kind == pendingDescribeStatement && st != nil && x.form == nil {
		st.layout = l
	}
	if p := s.names.confirmed.portals[x.name]; x.kind == pendingDescribePortal && p != nil {
		p.layout = l
	}
	if c := s.names.confirmed.read(plan); c != nil {
		c.layout = l
	}
	return l
}
