package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// A statement is one statement of a text: the tokens that belong to it, without the semicolon behind it.
type statement struct {
	text string // the whole text, which the tokens' places count in
	toks []pgtoken.Token
}

// span is the statement's place in the text: from its first token to the end of its last.
func (st *statement) span() (start, end int) {
	return st.toks[0].Start, st.toks[len(st.toks)-1].End
}

// source returns the statement as the client wrote it.
func (st *statement) source() string {
	start, end := st.span()
	return st.text[start:end]
}

// tok returns the text of token i; empty where there is none.
func (st *statement) tok(i int) string {
	if i < 0 || i >= len(st.toks) {
		return ""
	}
	return st.text[st.toks[i].Start:st.toks[i].End]
}

// is reports whether token i is one of the keywords, given in upper case. A name in quotes is none.
func (st *statement) is(i int, keywords ...string) bool {
	if i < 0 || i >= len(st.toks) || st.toks[i].Kind != pgtoken.Word {
		return false
	}
	t := st.tok(i)
	for _, k := range keywords {
		if len(k) == len(t) && strings.EqualFold(k, t) {
			return true
		}
	}
	return false
}

// mark reports whether token i is the given punctuation.
func (st *statement) mark(i int, s string) bool {
	return i >= 0 && i < len(st.toks) && st.toks[i].Kind == pgtoken.Mark && st.tok(i) == s
}

// sign reports whether token i is the given operator.
func (st *statement) sign(i int, s string) bool {
	return i >= 0 && i < len(st.toks) && st.toks[i].Kind == pgtoken.Operator && st.tok(i) == s
}

// find returns the first token from i on that is one of the keywords and stands outside of parentheses and
// brackets opened behind i; -1 where there is none. A keyword that is a name (behind a dot or AS) is passed over.
func (st *statement) find(i int, keywords ...string) int {
	depth := 0
	for ; i < len(st.toks); i++ {
		switch {
		case st.mark(i, "("), st.mark(i, "["):
			depth++
		case st.mark(i, ")"), st.mark(i, "]"):
			if depth--; depth < 0 {
				return -1
			}
		case depth == 0 && st.is(i, keywords...) && !st.mark(i-1, ".") && !st.is(i-1, "AS"):
			return i
		}
	}
	return -1
}

// has reports whether one of the keywords occurs from token i on outside of parentheses.
func (st *statement) has(i int, keywords ...string) bool { return st.find(i, keywords...) >= 0 }

// closing returns the token that closes what token i opens; -1 where none does.
func (st *statement) closing(i int) int {
	depth := 0
	for ; i < len(st.toks); i++ {
		switch {
		case st.mark(i, "("), st.mark(i, "["):
			depth++
		case st.mark(i, ")"), st.mark(i, "]"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// ident returns the name that token i stands for: folded and cut as the server does it, and whether it is one.
func (st *statement) ident(i int) (string, bool) {
	if i < 0 || i >= len(st.toks) {
		return "", false
	}
	switch t := st.tok(i); st.toks[i].Kind {
	case pgtoken.Word:
		return truncated(folded(t)), true
	case pgtoken.Name:
		if t[0] != '"' || len(t) < 2 {
			return "", false // U&"..."
		}
		return truncated(strings.ReplaceAll(t[1:len(t)-1], `""`, `"`)), true
	}
	return "", false
}

// value returns what a plain string or word stands for, and whether token i is one.
func (st *statement) value(i int) (string, bool) {
	if i >= 0 && i < len(st.toks) && st.toks[i].Kind == pgtoken.String {
		t := st.tok(i)
		if t[0] != '\'' || len(t) < 2 || strings.Contains(t, `\`) {
			return "", false
		}
		return strings.ReplaceAll(t[1:len(t)-1], "''", "'"), true
	}
	return st.ident(i)
}

// maxName is the number of bytes that the server keeps of a name (NAMEDATALEN - 1).
const maxName = 63

// truncated cuts a name where the server does, at a whole character.
func truncated(s string) string {
	if len(s) <= maxName {
		return s
	}
	n := maxName
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// folded puts the ASCII letters of a name into lower case.
func folded(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// quoted returns a name between double quotes.
func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// split appends the statements of a text; empty ones are none.
func split(out []statement, text string, toks []pgtoken.Token) []statement {
	from, depth, atomic := 0, 0, 0
	all := statement{text: text, toks: toks}
	cut := func(to int) {
		if from < to {
			out = append(out, statement{text: text, toks: toks[from:to]})
		}
		from, depth, atomic = to+1, 0, 0
	}
	for i := range toks {
		switch {
		case all.mark(i, "("):
			depth++
		case all.mark(i, ")"):
			depth--
		case all.is(i, "BEGIN") && all.is(i+1, "ATOMIC") && all.is(from, "CREATE"):
			atomic++
		case atomic > 0 && all.is(i, "CASE"):
			atomic++
		case atomic > 0 && all.is(i, "END"):
			atomic--
		case depth <= 0 && atomic == 0 && all.mark(i, ";"):
			cut(i)
		}
	}
	cut(len(toks))
	return out
}

// listed returns names as a list of columns.
func listed(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = quoted(name)
	}
	return strings.Join(texts, ", ")
}

// classify is one long table of verbs. A statement whose Observation is Exact afterwards needs a closer look;
// Nothing and Opaque are final.
func (v verb) classify() {
	switch {
	case v.mark(0, "("), v.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE"):
		v.query()
	case v.is(0, "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"),
		v.is(0, "PREPARE") && v.is(1, "TRANSACTION"):
		v.transaction()
	case v.is(0, "SET"):
		v.set()
	case v.is(0, "RESET", "DISCARD"):
		v.reset()
	case v.is(0, "CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "REINDEX", "CLUSTER", "REFRESH",
		"IMPORT", "SECURITY", "REASSIGN", "REPACK"):
		v.ddl()
	case v.is(0, "CALL"):
		// A procedure may commit, and begin the next transaction.
		v.p.Kind, v.p.Txn.Ends, v.p.Txn.MayRestart = history.Call, true, true
		v.anything(history.ReasonCall)
	case v.is(0, "DO"):
		v.p.Kind, v.p.Txn.Ends, v.p.Txn.MayRestart = history.Call, true, true
		v.anything(history.ReasonDoBlock)
	case v.is(0, "COPY"):
		v.copy()
	case v.is(0, "EXPLAIN"):
		v.explain()
		v.within()
	case v.is(0, "EXECUTE"):
		v.executes()
	case v.is(0, "DECLARE", "FETCH", "MOVE", "CLOSE"):
		v.cursor()
	case v.is(0, "PREPARE"):
		v.prepares()
	case v.is(0, "DEALLOCATE", "SHOW", "LISTEN", "UNLISTEN", "NOTIFY", "LOCK", "CHECKPOINT", "LOAD",
		"VACUUM", "ANALYZE", "ANALYSE", "WAIT"):
		// They read and write no rows. VACUUM moves none either, but for VACUUM FULL.
		v.p.Schema.Changes = v.is(0, "VACUUM") && v.mentions("FULL")
	default:
		v.anything(history.ReasonUnparsable)
	}
}

// A verb makes of one statement's first words what they alone can tell.
type verb struct {
	*statement
	session *Session
	p       *Plan
}

func (v verb) opaque(reason history.Reason) { v.p.Observation, v.p.Reason = history.Opaque, reason }

// anything is what a statement gets that may do anything to the session and its tables.
func (v verb) anything(reason history.Reason) {
	v.opaque(reason)
	v.p.Session.Changes, v.p.Schema.Changes = true, true
}

// mentions reports whether one of the keywords occurs anywhere in the statement.
func (v verb) mentions(keywords ...string) bool {
	for i := range v.toks {
		if v.is(i, keywords...) {
			return true
		}
	}
	return false
}

// query classifies what reads and writes rows.
func (v verb) query() {
	first := 0
	for v.mark(first, "(") {
		first++
	}
	with := v.is(first, "WITH")
	if with {
		first = v.find(first, verbs...)
	}
	switch {
	case v.is(first, "SELECT", "VALUES", "TABLE"):
		v.p.Kind, v.p.Locking = history.Select, v.locking()
	case v.is(first, "INSERT"):
		v.p.Kind = history.Insert
	case v.is(first, "UPDATE", "MERGE"):
		v.p.Kind = history.Update
	case v.is(first, "DELETE"):
		v.p.Kind = history.Delete
	default: // WITH ... (SELECT ...)
		v.p.Kind, v.p.Locking = history.Select, v.locking()
	}
	if part := v.writingPart(); with && v.p.Kind == history.Select && part != history.Other {
		v.p.Kind = part // whoever reads the recording must not take it for a read
	}
	v.p.Observation = history.Exact
	v.p.Session.Changes = v.callsSettings()
	if into := v.find(first, "INTO"); into >= 0 && v.is(first, "SELECT") {
		v.p.Kind, v.p.Schema.Changes = history.DDL, true
		v.opaque(history.ReasonSelectInto)
		v.into(into)
	}
}

// verbs begin what reads and writes rows, behind a WITH clause.
var verbs = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "TABLE"}

// writingPart is what the first statement in parentheses does that may write; Other: there is none.
func (v verb) writingPart() history.Kind {
	for i := range v.toks {
		within := v.mark(i-1, "(")
		if within && v.is(i, "WITH") { // a clause of its own
			i = v.find(i, verbs...)
		}
		switch {
		case !within, i < 0:
		case v.is(i, "INSERT") && v.is(i+1, "INTO"):
			return history.Insert
		case v.is(i, "UPDATE", "MERGE"):
			return history.Update
		case v.is(i, "DELETE") && v.is(i+1, "FROM"):
			return history.Delete
		}
	}
	return history.Other
}

// into classifies the table that SELECT INTO creates.
func (v verb) into(i int) {
	for i++; v.is(i, "TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "UNLOGGED", "TABLE"); i++ {
		v.p.Session.Changes = v.p.Session.Changes || v.is(i, "TEMP", "TEMPORARY")
	}
	n, _ := v.tableName(i)
	if v.p.Session.Changes {
		v.p.Schema.CreatesTemp = []rewrite.TableName{{Table: n.Table}}
	}
	v.p.Schema.Changed = []rewrite.TableName{n}
	v.p.Schema.Change = &rewrite.SchemaChange{Made: v.p.Schema.Changed}
}

// locking finds the strongest locking clause.
func (v verb) locking() history.Locking {
	l := history.NoLock
	for i := range v.toks {
		switch {
		case !v.is(i, "FOR"):
		case v.is(i+1, "UPDATE"), v.is(i+1, "NO") && v.is(i+2, "KEY") && v.is(i+3, "UPDATE"):
			l = history.LockUpdate
		case v.is(i+1, "SHARE"), v.is(i+1, "KEY") && v.is(i+2, "SHARE"):
			l = max(l, history.LockShare)
		}
	}
	return l
}

// callsSettings reports whether the statement does what changes settings as SET does: by a function, or in the
// view whose rows they are.
func (v verb) callsSettings() bool {
	for i := range v.toks {
		n, ok := v.ident(i)
		if ok && (n == "set_config" && v.mark(i+1, "(") || n == "pg_settings" && v.p.Kind == history.Update) {
			return true
		}
	}
	return false
}

// copy classifies COPY, of which only a table's name and the direction count.
func (v verb) copy() {
	v.p.Kind = history.Select
	if v.has(1, "FROM") {
		v.p.Kind = history.Insert
	}
	v.opaque(history.ReasonCopy)
}

// explain classifies EXPLAIN, which runs its statement only if it is to analyze it.
func (v verb) explain() {
	if v.is(1, "ANALYZE", "ANALYSE") || v.is(1, "VERBOSE") && v.is(2, "ANALYZE", "ANALYSE") {
		v.analyze()
		return
	}
	if !v.mark(1, "(") {
		return
	}
	for i := 2; i < len(v.toks) && !v.mark(i, ")"); i++ {
		if v.is(i, "ANALYZE", "ANALYSE") { // ANALYZE off runs nothing: at worst it is counted as not observed
			v.analyze()
			return
		}
	}
}

// analyze is what EXPLAIN gets that runs its statement.
func (v verb) analyze() {
	v.opaque(history.ReasonExplainAnalyze)
	v.p.Schema.Changes = v.mentions("CREATE")
}

// tableName reads a name, qualified or not, at token i, and returns the token behind it.
func (v verb) tableName(i int) (rewrite.TableName, int) {
	first, ok := v.ident(i)
	if !ok {
		return rewrite.TableName{}, i
	}
	if !v.mark(i+1, ".") {
		return rewrite.TableName{Table: first}, i + 1
	}
	second, ok := v.ident(i + 2)
	if !ok {
		return rewrite.TableName{}, i
	}
	if strings.EqualFold(first, TemporarySchema) {
		first = ""
	}
	return rewrite.TableName{Schema: first, Table: second}, i + 3
}

// added returns what the edit puts into a text. A copy shares no memory with the place that it was taken from.
func (e *edit) added(text string) string {
	if e.from < e.to {
		return strings.Clone(text[e.from:e.to])
	}
	return e.text
}

// insertAfter puts text right behind token i, with a blank behind it where it would run into what follows.
func (pl *planner) insertAfter(i int, s string) {
	at := pl.st.toks[i].End
	if at < len(pl.st.text) {
		switch c := pl.st.text[at]; {
		case pgtoken.IsSpace(c), c == ';', c == ')', c == ',':
		default:
			s += " "
		}
	}
	pl.edits = append(pl.edits, edit{start: at, end: at, text: s})
}

// pieces returns text[from:to] with its edits.
func pieces(text string, from, to int, edits []edit) []string {
	out := make([]string, 0, 2*len(edits)+1)
	for _, e := range edits {
		if from < e.start {
			out = append(out, text[from:e.start])
		}
		if added := e.added(text); added != "" {
			out = append(out, added)
		}
		from = e.end
	}
	if from < to {
		out = append(out, text[from:to])
	}
	return out
}

// spliced returns text[from:to] with its edits, as one text.
func spliced(text string, from, to int, edits []edit) string {
	return strings.Join(pieces(text, from, to, edits), "")
}

// sorted returns the planner's edits in the order of their places.
func (pl *planner) sorted() []edit {
	slices.SortStableFunc(pl.edits, func(a, b edit) int { return a.start - b.start })
	return pl.edits
}

// script makes the edits of all statements the pieces of a script, after a model or none.
func (d *draft) script(model *Script) *Script {
	s := &Script{Statements: d.plans, text: d.text, model: model}
	if d.observes {
		s.splice(d.edits)
	}
	if len(d.plain) > 0 {
		s.Plain = &Script{Statements: d.plans, text: d.text}
		if model != nil {
			s.Plain.model = model.Plain
		}
		s.Plain.splice(d.plain)
	}
	return s
}

// plainNames reports whether all names are of ASCII.
func (pl *planner) plainNames() bool {
	for i, t := range pl.st.toks {
		if (t.Kind == pgtoken.Word || t.Kind == pgtoken.Name) && !ascii(pl.st.tok(i)) {
			return false
		}
	}
	return true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// readable returns the statement's text, with what was added behind its last token, as the grammar reads it: where
// backslashes escape in plain strings, those that have one become strings of as many letters. The others stay, whatever
// stands beside them: a statement and what is added to it may be read apart.
func (pl *planner) readable(text string) string {
	text = pl.versions.hidden(text)
	if !pl.session.Backslashes || !strings.Contains(text, `\`) {
		return text
	}
	toks, _ := pgtoken.Scan(nil, text, true)
	b := []byte(text)
	for _, t := range toks {
		if t.Kind != pgtoken.String || text[t.Start] != '\'' || !strings.Contains(text[t.Start:t.End], `\`) {
			continue
		}
		for i := t.Start + 1; i < t.End-1; i++ {
			b[i] = 'x'
		}
		if text[t.End-2] == '\\' {
			b[t.End-2] = '\\' // a pattern of LIKE may fail then
		}
	}
	return string(b)
}

// parse returns the tree of the only statement in a text. It never shares a tree.
func parse(text string) (tree ast.Stmt, err error) {
	defer rewrite.ParseSlot(len(text))()
	trees, err := pgtree.Parse(text)
	if err != nil || len(trees) != 1 {
		return nil, refusal(history.ReasonUnparsable)
	}
	return trees[0], nil
}

// nodes returns the items of a list that may be missing.
func nodes(l *ast.NodeList) []ast.Node {
	if l == nil {
		return nil
	}
	return l.Items
}

// clausesOf returns the clauses that may stand in a statement that reads or writes rows: WITH, and the list of
// RETURNING, which a SELECT does not have.
func clausesOf(s ast.Stmt) (with *ast.WithClause, returning *ast.NodeList) {
	switch n := s.(type) {
	case *ast.SelectStmt:
		return n.WithClause, nil
	case *ast.InsertStmt:
		return n.WithClause, n.ReturningList
	case *ast.UpdateStmt:
		return n.WithClause, n.ReturningList
	case *ast.DeleteStmt:
		return n.WithClause, n.ReturningList
	case *ast.MergeStmt:
		return n.WithClause, n.ReturningList
	}
	return nil, nil
}

// withOf returns the WITH clause of a statement; nil where it has none.
func withOf(s ast.Stmt) *ast.WithClause {
	with, _ := clausesOf(s)
	return with
}

// returningList returns the list of a statement's RETURNING; nil where it has none.
func returningList(s ast.Stmt) *ast.NodeList {
	_, list := clausesOf(s)
	return list
}

// bare takes the parentheses off an expression or a join.
func bare(n ast.Node) ast.Node {
	for {
		p, ok := n.(*ast.ParenExpr)
		if !ok {
			return n
		}
		n = p.Expr
	}
}

// A querySpan is where one SELECT, VALUES, TABLE or set operation stands in the text: the tokens [from, to), without
// parentheses around it and its WITH clause. What follows the last query of a set operation may be the operation's own.
type querySpan struct {
	from, to int
	listEnd  int // the last token of a SELECT's list, or of what stands before an empty one
	operator int // the token between the sides of a set operation
}

// A placer finds queries of the tree in the text. It goes by the tokens alone: what it finds is proven by
// the changed statement's tree (see [reading.prove]).
type placer struct {
	*statement
	queries map[*ast.SelectStmt]querySpan
	// common are the expressions of the last WITH clause that was read.
	common []commonPlace
	steps  int
}

// maxOperators is how many set operators of one statement are looked at: the text is read anew for each.
const maxOperators = 500

var errUnplaced = refusal(history.ReasonUnparsable)

// place finds a query that is the tokens [from, to), and those in its WITH and FROM clauses.
func (p *placer) place(n *ast.SelectStmt, from, to int) error {
	for {
		switch {
		case from >= to:
			return errUnplaced
		case p.is(from, "WITH"):
			after, err := p.with(n.WithClause, from, to)
			if err != nil {
				return err
			}
			from = after
			continue
		case p.mark(from, "("):
			closing := p.closing(from)
			if closing < 0 || closing >= to {
				return errUnplaced
			}
			if p.operator(closing+1, to) < 0 {
				from, to = from+1, closing // what follows the parenthesis belongs to the query in it
				continue
			}
		}
		break
	}
	if n.Op != ast.SETOP_NONE {
		return p.operands(n, from, to)
	}
	return p.simple(n, from, to)
}

// operator returns the set operator that binds least among those in [from, to) outside of parentheses, of
// several the last; -1 where there is none.
func (p *placer) operator(from, to int) int {
	weak, strong := -1, -1
	for i := from; i < to; i++ {
		if i = p.findIn(i, to, "UNION", "EXCEPT", "INTERSECT"); i < 0 {
			break
		}
		if p.is(i, "INTERSECT") {
			strong = i
		} else {
			weak = i
		}
	}
	if weak >= 0 {
		return weak
	}
	return strong
}

// findIn is as find, before token to.
func (p *placer) findIn(i, to int, keywords ...string) int {
	if i = p.find(i, keywords...); i >= to {
		return -1
	}
	return i
}

// operands places both sides of a set operation.
func (p *placer) operands(n *ast.SelectStmt, from, to int) error {
	if p.steps++; p.steps > maxOperators {
		return refusal(history.ReasonSize)
	}
	at := p.operator(from, to)
	if at < 0 || n.Larg == nil || n.Rarg == nil {
		return errUnplaced
	}
	p.queries[n] = querySpan{from: from, to: to, operator: at}
	if err := p.place(n.Larg, from, at); err != nil {
		return err
	}
	at++
	if p.is(at, "ALL", "DISTINCT") {
		at++
	}
	return p.place(n.Rarg, at, to)
}

// lastOperand returns the last token of a set operation's last query.
func (p *placer) lastOperand(at querySpan) int {
	i := at.operator + 1
	if p.is(i, "ALL", "DISTINCT") {
		i++
	}
	if p.mark(i, "(") {
		return p.closing(i)
	}
	if end := p.findIn(i, at.to, "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"); end >= 0 {
		return end - 1
	}
	return at.to - 1
}

// with places the queries of a WITH clause at token i, and returns the token behind the clause.
func (p *placer) with(clause *ast.WithClause, i, to int) (int, error) {
	if clause == nil {
		return 0, errUnplaced
	}
	if i++; p.is(i, "RECURSIVE") {
		i++
	}
	var common []commonPlace
	defer func() { p.common = common }()
	for k, item := range nodes(clause.Ctes) {
		cte, ok := item.(*ast.CommonTableExpr)
		if !ok || cte.SearchClause != nil || cte.CycleClause != nil {
			return 0, refusal(history.ReasonWith)
		}
		if k > 0 {
			if !p.mark(i, ",") {
				return 0, errUnplaced
			}
			i++
		}
		name := i
		if i++; p.mark(i, "(") {
			i = p.closing(i) + 1
		}
		for p.is(i, "AS", "NOT", "MATERIALIZED") {
			i++
		}
		closing := p.closing(i)
		if !p.mark(i, "(") || closing < 0 || closing >= to {
			return 0, errUnplaced
		}
		if query, ok := cte.Ctequery.(*ast.SelectStmt); ok {
			if err := p.place(query, i+1, closing); err != nil {
				return 0, err
			}
		}
		common = append(common, commonPlace{name, i, closing})
		i = closing + 1
	}
	return i, nil
}

// simple places a query that is no set operation.
func (p *placer) simple(n *ast.SelectStmt, from, to int) error {
	at := querySpan{from: from, to: to, listEnd: from}
	if p.is(from, "TABLE", "VALUES") {
		p.queries[n] = at
		return nil
	}
	if !p.is(from, "SELECT") {
		return errUnplaced
	}
	next := p.clause(from+1, to)
	at.listEnd = next - 1
	p.queries[n] = at
	if !p.is(next, "FROM") || next >= to {
		return nil
	}
	var inner []*ast.RangeSubselect
	for _, item := range nodes(n.FromClause) {
		inner = queriesIn(item, inner)
	}
	rest, err := p.from(inner, next+1, p.clause(next+1, to))
	if err == nil && len(rest) > 0 {
		return errUnplaced
	}
	return err
}

// clause returns the first token from i on at which the next clause of a query begins; to where none does.
func (p *placer) clause(i, to int) int {
	for ; ; i++ {
		i = p.findIn(i, to, "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR",
			"INTO")
		switch {
		case i < 0:
			return to
		case p.is(i-1, "DISTINCT"), p.is(i-1, "WITHIN"), p.is(i-1, "ROWS"): // IS DISTINCT FROM, WITHIN GROUP, ROWS FROM
		default:
			return i
		}
	}
}

// from places the queries that stand in the place of tables in [i, to), and returns those that are left over.
func (p *placer) from(inner []*ast.RangeSubselect, i, to int) ([]*ast.RangeSubselect, error) {
	table := true // a table may stand here
	for ; i < to && len(inner) > 0; i++ {
		if !p.mark(i, "(") && !p.mark(i, "[") {
			table = p.mark(i, ",") || p.is(i, "JOIN") || table && p.is(i, "LATERAL")
			continue
		}
		closing := p.closing(i)
		if closing < 0 || closing > to {
			return nil, errUnplaced
		}
		var err error
		switch {
		case !table:
		case p.query(i+1, closing):
			err = p.place(inner[0].Subquery.(*ast.SelectStmt), i+1, closing)
			inner = inner[1:]
		default:
			inner, err = p.from(inner, i+1, closing)
		}
		if err != nil {
			return nil, err
		}
		i, table = closing, false
	}
	return inner, nil
}

// query reports whether the tokens in parentheses are a query rather than joined tables.
func (p *placer) query(i, to int) bool {
	for p.mark(i, "(") {
		closing := p.closing(i)
		if closing < 0 || closing >= to {
			return false
		}
		if closing+1 < to && !p.is(closing+1, "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH",
			"FOR") {
			return false
		}
		i, to = i+1, closing
	}
	return p.is(i, "SELECT", "WITH", "VALUES", "TABLE")
}

// queriesIn returns the queries that stand in the place of tables in an item of a FROM clause, in the order of
// the text.
func queriesIn(item ast.Node, found []*ast.RangeSubselect) []*ast.RangeSubselect {
	switch n := bare(item).(type) {
	case *ast.RangeSubselect:
		if _, ok := n.Subquery.(*ast.SelectStmt); ok {
			return append(found, n)
		}
	case *ast.JoinExpr:
		return queriesIn(n.Rarg, queriesIn(n.Larg, found))
	}
	return found
}
