package mysql

import (
	"slices"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
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

// dropEdits forgets what would observe the statement.
func (pl *planner) dropEdits() {
	pl.edits = slices.DeleteFunc(pl.edits, func(e edit) bool { return !e.plain })
}

// keepReply says how the reply is masked for the client, unless the statement was rewritten: it is masked also where
// the statement cannot be observed.
func (pl *planner) keepReply(r rewrite.Reply) {
	if pl.plan.Result.Reply == rewrite.Unchanged {
		pl.plan.Result.Reply = r
	}
}

// opaque makes p the plan of a statement that goes as it is and is not observed.
func opaque(p *Plan, reason history.Reason) {
	p.Observation, p.Reason = history.Opaque, reason
	p.Predicates = nil
	p.Upstream = Upstream{Plain: p.Upstream.Plain, Parts: p.Upstream.Parts}
	p.Result, p.Writes = Result{}, Writes{}
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

// A refusal is the reason why a statement is opaque: its plan gets it as its Reason.
type refusal history.Reason

func (r refusal) Error() string { return history.Reason(r).String() }

// reasonOf returns the reason in an error of the planner's, which are refusals.
func reasonOf(err error) history.Reason {
	if r, ok := err.(refusal); ok {
		return history.Reason(r)
	}
	return history.ReasonUnparsable
}

// downgrade makes the plan inexact; the first reason stays.
func (pl *planner) downgrade(reason history.Reason) {
	if pl.plan.Observation == history.Exact {
		pl.plan.Observation, pl.plan.Reason = history.Inexact, reason
	}
}

// table finds the table that a name means in this session, or the reason why isotap cannot observe it.
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

// An edit puts pieces in the place of text[start:end]; most edits replace nothing.
type edit struct {
	start, end int
	pieces     []Piece
	plain      bool // it belongs to Upstream.Plain too
}

// A span is a run of tokens [from, to); it is empty where a statement has no such part.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

// beyond is what the parser does not know of a write, and the lexer finds.
type beyond struct {
	rowAlias  span // MySQL: AS new or AS new(a, b), behind the rows of an INSERT
	returning span // MariaDB: RETURNING and its list
}

// A choice is the condition by which a statement chooses the rows of one table, all of which it tells. It is told
// by its tokens, [from, to): none where it chooses every row.
type choice struct {
	table, of, as string
	from, to      int
}
