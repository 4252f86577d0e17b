// Package mysql rewrites statements of the MySQL protocol family, so that each reveals
// the row versions it read and wrote. It is pure: SQL text, the session's settings and a
// [Schema] go in, a [Plan] comes out.
//
// A statement passes two readers. A tolerant lexer of MariaDB's own rules (mysqltoken) cuts it into tokens; from
// these come the verb, what the statement means for the session (does it end the transaction? does
// it ask about the statement before it?), the literal-free shape, and every place where text is
// put in. TiDB's parser reads SELECT, INSERT, UPDATE and DELETE and says how they are built: which
// tables, which columns, what else they hold. Where the two do not see the same statement (the
// items of a select list do not begin at the same bytes, say), or the parser does not know the
// syntax, or touching the statement could change what it does, it stays as the client wrote it and
// its plan is opaque, with the reason. No statement makes [Rewriter.Plan] fail.
//
// What becomes of a statement:
//
//   - SELECT gets the identity columns of its base tables behind its last item, and so does each arm of
//     a UNION ALL. One that removes duplicates stays as it is and has a companion, which does not.
//   - INSERT and REPLACE ... VALUES or SET give each row an id made from the statement's tag and the
//     row's ordinal, and the tag as its first version. So do ... SELECT and LOAD DATA, where the server
//     counts the ordinals.
//   - UPDATE, and ON DUPLICATE KEY UPDATE, append their tag to the rows that they really change and
//     collect what was there before in session variables; see [CaptureInit], [CaptureRead] and
//     [ParseCapture]. So does UPDATE of joined tables where its assignments tell which rows change.
//   - DELETE returns the identities of the rows that it deleted, or collects them where the server has
//     no RETURNING.
//   - CREATE TABLE gains the auxiliary columns.
//
// Statements are spliced, never printed: apart from the inserted pieces, a plan is the client's text
// byte for byte. Inserted text is ASCII unless it names a table or column that is not.
//
// The files follow a statement's way.
//
//   - Known already? cache.go finds the plan by text, template.go makes it of one whose literals differ.
//     Both depend on the session's settings (session.go), its dialect and version (version.go).
//   - Reading: package mysqltoken cuts the text into tokens, statement.go asks for these; verb.go tells what the
//     statement is, transaction.go what it does to the transaction and the session, changed.go which tables DDL
//     changes, shape.go what is left without literals, beyond.go and beyondread.go which clauses are there that TiDB's
//     parser does not know.
//   - mysql.go decides, and takes a refusal (the reason for being opaque) from wherever it arises.
//   - Reads: select.go; sources.go finds the tables of a FROM clause, block.go and with.go pass the
//     identities of queries in it outwards, usage.go and functions.go look for what else the statement
//     holds, aggregate.go collects identities in arrays, into.go in
//     the variables of a SELECT ... INTO, setop.go and companion.go are for UNION, DISTINCT
//     and their kind.
//   - Writes: insert.go, insertselect.go and load.go make row ids, duplicate.go and update.go tag rows with
//     the capture of assign.go, tidbupdate.go does so on TiDB, delete.go and deletejoin.go collect what goes.
//   - ddl.go and tidb.go define the columns. On TiDB, which has no invisible ones, conceal.go, star.go and
//     natural.go keep them out of what the client's statement means, and setvar.go spells variables.
//   - splice.go puts the pieces into the text, hole.go fills them in when it is sent.
//   - In mode predicates choice.go finds the condition by which a statement chooses rows, and image.go has writes
//     collect the values that they leave.
//   - Afterwards the session reads with capture.go what was collected, and with conditionlist.go what SHOW
//     WARNINGS asks for.
//
// A [Rewriter] and a [Cache] are safe for concurrent use.
package mysql

import (
	"slices"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	parsermysql "github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the literals' types: the parser does not run without a driver

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/rewrite"
)

// maxParams is the number of placeholders that a prepared statement can have: COM_STMT_PREPARE's
// reply counts them in two bytes.
const maxParams = 65535

// Options change how statements are rewritten.
type Options struct {
	// StrictPlans leaves a SELECT alone when the wider select list could make the server choose
	// another plan, and with it another order, or other rows under LIMIT.
	StrictPlans bool
	// Predicates has writes collect images of the rows that they leave, and tells by which conditions statements
	// choose rows.
	Predicates bool
}

// A Rewriter plans statements. It is safe for concurrent use.
type Rewriter struct {
	schema  Schema
	options Options
	parsers sync.Pool // of *parser.Parser, which is not safe for concurrent use
}

// New returns a rewriter for the tables of schema.
func New(schema Schema, o Options) *Rewriter {
	r := &Rewriter{schema: schema, options: o}
	r.parsers.New = func() any { return parser.New() }
	return r
}

// Plan says how a statement is observed. It never fails: what cannot be rewritten is opaque, with
// the reason. The plan shares memory with text.
func (r *Rewriter) Plan(text string, s Session) *Plan {
	return r.decide(scan(text, s.ANSIQuotes, s.NoBackslashEscapes), &s).finish()
}

// decide makes everything of a statement's plan but for the pieces.
func (r *Rewriter) decide(st *statement, s *Session) *planner {
	p := &Plan{}
	pl := &planner{rewriter: r, session: s, st: st, plan: p}
	p.Params = st.Placeholders
	p.Shape, p.Args = st.shape()
	p.Origin = st.origin()
	st.classify(p, s)
	if p.Result.Reply != rewrite.Unchanged && len(st.split()) == 1 {
		defer pl.keepReply(p.Result.Reply)
	}
	reason := st.refusal(s)
	pl.conceal(reason)
	if !reason.IsZero() {
		opaque(p, reason)
		if reason == history.ReasonSeveralStatements {
			p.Upstream.Parts = st.parts(s)
		}
		return pl
	}
	defer pl.substituteCounts()
	if p.Observation != history.Exact {
		pl.meetLocked()
		return pl // the verb alone settled it
	}
	if err := pl.rewrite(); err != nil {
		opaque(p, reasonOf(err))
		pl.dropEdits()
	}
	return pl
}

// dropEdits forgets what would observe the statement.
func (pl *planner) dropEdits() {
	pl.edits = slices.DeleteFunc(pl.edits, func(e edit) bool { return !e.plain })
}

// keepReply says how the reply is disguised to the client, unless the statement was rewritten: it is so
// too where the statement cannot be observed.
func (pl *planner) keepReply(r rewrite.Reply) {
	if pl.plan.Result.Reply == rewrite.Unchanged {
		pl.plan.Result.Reply = r
	}
}

// opaque makes p the plan of a statement that goes as it is and is not observed.
func opaque(p *Plan, reason history.Reason) {
	p.Observation, p.Reason = history.Opaque, reason
	p.Upstream.Pieces, p.Upstream.Hidden, p.Upstream.Copies, p.Result.Sources = nil, nil, nil, nil
	p.Result.Carried, p.Upstream.Deprecated, p.Result.Variables = 0, 0, 0
	p.Predicates, p.Writes.Images = nil, ImageSpec{}
	p.Result.Reply, p.Writes.Inserts, p.Upstream.ListsColumns, p.Writes.Captured, p.Upstream.MayHideLocks, p.Upstream.Substitutes = rewrite.Unchanged, 0, false, false,
		false, false
}

// A planner makes the plan of one statement.
type planner struct {
	rewriter *Rewriter
	session  *Session
	st       *statement
	plan     *Plan
	beyond   beyond
	into     span // SELECT ... INTO @a, @b
	edits    []edit
	nesting  nesting
	chosen   *choice // the condition by which the statement chooses rows; nil: it is not looked at
	literal  bool    // the plan rests on the values of literals

	read    bool // trees and failure are set
	trees   []ast.StmtNode
	failure error // why there are no trees
	// companion makes the companion of an opaque statement; nil when it has none.
	companion *planner
}

// A refusal is the reason why a statement is opaque, in the few words of [Plan].Reason.
type refusal history.Reason

func (r refusal) Error() string { return history.Reason(r).String() }

// reasonOf returns the reason in an error of the planner's, which are refusals.
func reasonOf(err error) history.Reason {
	if r, ok := err.(refusal); ok {
		return history.Reason(r)
	}
	return history.ReasonUnparsable
}

// rewrite decides what becomes of a statement that the verb alone does not settle. Its errors are
// refusals.
func (pl *planner) rewrite() error {
	if pl.plan.Kind == history.DDL {
		return pl.createTable()
	}
	if pl.st.is(0, "LOAD") {
		return pl.loadData()
	}
	node, err := pl.parse()
	if err != nil {
		return err
	}
	switch n := node.(type) {
	case *ast.SelectStmt:
		err := pl.selectRows(n)
		switch {
		case err == refusal(history.ReasonDistinct) && !pl.into.empty():
			return refusal(history.ReasonInto) // a companion would assign the variables
		case err == refusal(history.ReasonDistinct):
			pl.accompanyDistinct(n)
		}
		return err
	case *ast.SetOprStmt:
		if !pl.into.empty() {
			return refusal(history.ReasonInto)
		}
		return pl.setOperation(n)
	case *ast.InsertStmt:
		return pl.insert(n)
	case *ast.UpdateStmt:
		if pl.session.Dialect == TiDB {
			return pl.updateTiDB(n)
		}
		return pl.update(n)
	case *ast.DeleteStmt:
		return pl.deleteRows(n)
	}
	return refusal(history.ReasonUnparsable)
}

// parse returns the tree of the only statement in the text.
func (pl *planner) parse() (ast.StmtNode, error) {
	trees, err := pl.parseAll()
	if err != nil || len(trees) != 1 {
		return nil, refusal(history.ReasonUnparsable)
	}
	return trees[0], nil
}

// parseAll returns the trees of the statements in the text.
func (pl *planner) parseAll() ([]ast.StmtNode, error) {
	if !pl.read {
		pl.read = true
		pl.beyond = pl.st.beyondParser(pl.session)
		text := pl.st.without(pl.st.parserText(), pl.beyond.rowAlias, pl.beyond.returning)
		pl.into = pl.st.intoVariables(pl.session)
		text = pl.st.without(pl.st.beyondRead(pl.session).known(pl.st, text), pl.into)
		windows := pl.session.Dialect == TiDB
		pl.trees, pl.failure = pl.rewriter.trees(text, pl.session, windows)
		if pl.failure != nil && !windows && pl.st.mayHaveWindows() {
			pl.trees, pl.failure = pl.rewriter.trees(text, pl.session, true)
		}
	}
	return pl.trees, pl.failure
}

// trees returns the trees of the statements in a text. Where window functions are known, MariaDB's
// unreserved words (rank, groups, ...) are reserved.
func (r *Rewriter) trees(text string, s *Session, windows bool) (nodes []ast.StmtNode, err error) {
	p := r.parsers.Get().(*parser.Parser)
	defer rewrite.Turn(len(text))()
	p.SetMariaDB(s.Dialect != TiDB)
	p.EnableWindowFunc(windows)
	p.SetStrictDoubleTypeCheck(false)
	p.SetSQLMode(s.parserMode())
	whole := guard.Whole(func() { nodes, _, err = p.ParseSQL(text) })
	if !whole { // the parser is in an unknown state and must not come back to the pool
		return nil, refusal(history.ReasonUnparsable)
	}
	nodes = slices.Clone(nodes) // the slice is the parser's, who takes it for the next text
	r.parsers.Put(p)
	return nodes, err
}

// lower makes the plan inexact; the first reason stays.
func (pl *planner) lower(reason history.Reason) {
	if pl.plan.Observation == history.Exact {
		pl.plan.Observation, pl.plan.Reason = history.Inexact, reason
	}
}

// table finds the table that a name means in this session, or says why isotap cannot observe it.
func (pl *planner) table(name *ast.TableName) (*Table, history.Reason) {
	schema := name.Schema.O
	if schema == "" {
		schema = pl.session.Schema
	}
	if pl.session.hasTempTable(schema, name.Name.O) {
		return nil, history.ReasonTemporaryTable
	}
	t := pl.rewriter.schema.Table(schema, name.Name.O)
	switch {
	case t == nil:
		return nil, history.ReasonUnknownTable
	case t.View:
		return nil, history.ReasonView
	case t.Temporary:
		return nil, history.ReasonTemporaryTable
	case !t.Instrumented:
		return nil, history.ReasonNotInstrumented
	}
	return t, history.Reason{}
}

// onlyTable returns the one base table of an INSERT, UPDATE or DELETE; several is the reason to refuse
// when there are more.
func onlyTable(refs *ast.TableRefsClause, several history.Reason) (*ast.TableName, error) {
	if refs == nil || refs.TableRefs == nil || refs.TableRefs.Right != nil {
		return nil, refusal(several)
	}
	source, ok := refs.TableRefs.Left.(*ast.TableSource)
	if !ok {
		return nil, refusal(several)
	}
	name, ok := source.Source.(*ast.TableName)
	if !ok {
		return nil, refusal(several)
	}
	return name, nil
}

// target finds the instrumented table that a statement writes.
func (pl *planner) target(refs *ast.TableRefsClause, several history.Reason) (*Table, error) {
	name, err := onlyTable(refs, several)
	if err != nil {
		return nil, err
	}
	return pl.named(name)
}

// named finds the instrumented table of that name, which the statement writes.
func (pl *planner) named(name *ast.TableName) (*Table, error) {
	t, reason := pl.table(name)
	if t == nil {
		return nil, refusal(reason)
	}
	pl.plan.Target = t.Name
	if pl.st.mentions(rewrite.RowIDColumn) || pl.st.mentions(rewrite.WListColumn) {
		return nil, refusal(history.ReasonOwnColumn)
	}
	return t, nil
}

// parserMode returns the part of sql_mode that TiDB's parser understands.
func (s *Session) parserMode() parsermysql.SQLMode {
	var m parsermysql.SQLMode
	if s.ANSIQuotes {
		m |= parsermysql.ModeANSIQuotes
	}
	if s.NoBackslashEscapes {
		m |= parsermysql.ModeNoBackslashEscapes
	}
	if s.PipesAsConcat {
		m |= parsermysql.ModePipesAsConcat
	}
	return m
}

// quoted returns an identifier between backticks.
func quoted(name string) string {
	b := make([]byte, 0, len(name)+2)
	b = append(b, '`')
	for i := range len(name) {
		if name[i] == '`' {
			b = append(b, '`')
		}
		b = append(b, name[i])
	}
	return string(append(b, '`'))
}

// unquoted returns the name that an identifier, quoted or not, stands for.
func unquoted(ident string) string {
	if len(ident) < 2 || ident[0] != '`' && ident[0] != '"' {
		return ident
	}
	q := ident[:1]
	return strings.ReplaceAll(ident[1:len(ident)-1], q+q, q)
}

// checkSpelling refuses names that the session's character set would spell in other bytes than
// UTF-8, which is what the schema gives.
func (pl *planner) checkSpelling(names ...string) error {
	for _, n := range names {
		if !ascii(n) && !pl.session.utf8() {
			return refusal(history.ReasonCharset)
		}
	}
	return nil
}
