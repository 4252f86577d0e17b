package postgres

import (
	"strings"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
	"github.com/multigres/multigres/go/common/parser/ast"
)

// Options change how statements are rewritten.
type Options struct {
	// StrictPlans leaves a SELECT alone when the wider select list could make the server choose another
	// plan, and with it another order, or other rows under LIMIT.
	StrictPlans bool
	// CollectFor bounds the time, from when a statement was sent, in which its aggregates collect identities. 0: two
	// seconds.
	CollectFor time.Duration
	// Columns has rows known by isotap's columns in the tables that carry them, and puts these into CREATE TABLE.
	Columns bool
	// WListBytes is how long the lists of tables created by clients may grow; 0: without bound.
	WListBytes int
	// Predicates has writes show the rows that they leave, and tells by which conditions statements choose rows.
	Predicates bool
}

// A Rewriter plans statements. It is safe for concurrent use.
type Rewriter struct {
	schema  Schema
	options Options
}

// New returns a rewriter for the tables of schema.
func New(schema Schema, o Options) *Rewriter { return &Rewriter{schema: schema, options: o} }

// exposes reports whether any table may have columns of isotap's: CREATE TABLE may be giving them to the first one.
func (r *Rewriter) exposes() bool { return r.options.Columns || r.schema.Exposes() }

// A draft is a text on its way to a script.
type draft struct {
	text       string
	toks       []pgtoken.Token
	statements []statement
	unreadable history.Reason // why the text cannot be looked at more closely
	plans      []*Plan
	// plain are the edits that hide isotap's columns, edits all of them; observes says that there are others.
	plain, edits []edit
	observes     bool
}

// A planner makes the plan of one statement.
type planner struct {
	rewriter *Rewriter
	session  Session
	st       *statement
	plan     *Plan
	edits    []edit
	ctes     []string // names that WITH gives to queries
	silent   []string // those of them whose rows are no rows of tables: they were just written, or made
	// parts are the statements of the WITH clause that write, shared the names of its queries that these read.
	parts  []*part
	shared []string
	// part is the one that the statement is; nil: it stands for itself.
	part     *part
	versions versionNames
	// tags are the lists of assignments that a tag was put before, as the client wrote them.
	tags [][]ast.Node
	// of is the query of which the statement tells what it reads, in its place: by one array. Nil: it is the client's.
	of *ast.SelectStmt
	// masked says that the text is not the client's any more: isotap's columns were taken out of it.
	masked bool
	// whole is why all of the statement has to go as it is, whatever of it could be observed; empty: it need not.
	whole history.Reason
}

// A refusal is the reason why a statement is opaque: its plan gets it as its Reason.
type refusal history.Reason

func (r refusal) Error() string { return history.Reason(r).String() }

// reasonOf returns the reason in an error of the planner's, which are refusals and bars.
func reasonOf(err error) history.Reason {
	switch err := err.(type) {
	case refusal:
		return history.Reason(err)
	case *bar:
		return err.reason
	}
	return history.ReasonUnparsable
}

// opaque makes p the plan of a statement that goes as it is and is not observed.
func opaque(p *Plan, reason history.Reason) {
	p.Observation, p.Reason = history.Opaque, reason
	p.Result.Reply, p.Result.Sources = rewrite.Unchanged, nil
}

// downgrade makes the plan inexact; the first reason stays.
func (pl *planner) downgrade(reason history.Reason) {
	if pl.plan.Observation == history.Exact {
		pl.plan.Observation, pl.plan.Reason = history.Inexact, reason
	}
}

// nothing is the plan of a statement that reads and writes no row that could be observed.
func (pl *planner) nothing() {
	pl.plan.Observation = history.Nothing
}

// A bar says that a query must stay as it is.
type bar struct {
	node   ast.Node
	reason history.Reason
}

func (b *bar) Error() string { return b.reason.String() }

// A part is a statement of a WITH clause that writes. Its rows get one more column, an array of the identities that
// each of them has. What names the part must not see that column: it gets a query under the part's name.
type part struct {
	def      *ast.CommonTableExpr
	at       commonPlace
	number   int
	used     bool // the statement names it
	observed bool
	// names are those of the columns that it gives to what names it.
	names []string
	// query is the part as it goes upstream, calls what its plan says of that.
	query   ast.Stmt
	calls   bool
	edits   []edit
	sources []Source
}

// An edit puts text in the place of the client's bytes from start to end; most edits replace nothing.
type edit struct {
	start, end int
	text       string
	// What is put there instead of text is a copy of the client's bytes [from, to), if there are any.
	from, to int
}

// A commonPlace is where a common table expression stands: its name, and the parentheses around its statement.
type commonPlace struct{ name, opening, closing int }

// withNames are those of a WITH clause that a statement sees: of queries that read tables, and of all others.
type withNames struct{ reading, silent []string }

// reserved refuses names that could mean a column of isotap's.
func (st *statement) reserved() error {
	for i := range st.toks {
		if n, ok := st.ident(i); ok && strings.HasPrefix(n, rewrite.NamePrefix) {
			return refusal(history.ReasonOwnName)
		}
	}
	return nil
}
