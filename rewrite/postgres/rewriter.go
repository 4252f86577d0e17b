package postgres

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
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

// How much of a text is looked at: reading more takes longer than it is worth.
const (
	maxTokens = 200_000
	maxDepth  = 500 // of parentheses
)

// Plan says how the statements of a text are observed. It never fails: what cannot be rewritten is opaque,
// with the reason. The script shares memory with text.
func (r *Rewriter) Plan(text string, s Session) *Script {
	return r.decide(read(text, &s), s).script(nil)
}

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

// read cuts a text into statements.
func read(text string, s *Session) *draft {
	d := new(draft)
	d.read(text, s)
	return d
}

// read makes it the draft of another text, in the memory that it has.
func (d *draft) read(text string, s *Session) {
	toks, open := pgtoken.Scan(d.toks[:0], text, s.Backslashes)
	*d = draft{text: text, toks: toks, statements: split(d.statements[:0], text, toks),
		unreadable: s.unreadable(text, toks, open < 0),
		plain:      d.plain[:0], edits: d.edits[:0]}
}

// decide makes everything of a script but for the pieces.
func (r *Rewriter) decide(d *draft, s Session) *draft {
	reason := d.unreadable
	for i := range d.statements {
		pl := &planner{rewriter: r, session: s, st: &d.statements[i], plan: &Plan{}}
		d.take(pl, reason)
		if reason.IsZero() {
			reason = s.follow(pl.plan)
		}
	}
	return d
}

// take decides about one statement: without isotap's columns first, and then how it is observed.
func (d *draft) take(pl *planner, reason history.Reason) {
	written := pl.st
	var plain []edit
	if reason.IsZero() || reason == history.ReasonSeveralStatements { // these see the tables as they were, most likely
		concealed, edits, shows := pl.conceal()
		if plain = edits; concealed != nil {
			pl.st, pl.concealed = concealed, true
		}
		if shows {
			reason = cmp.Or(reason, history.ReasonVisible)
		}
	}
	pl.decide(written, reason)
	edits := pl.edits
	if len(plain) > 0 {
		start, _ := written.span()
		edits = moved(composed(moved(plain, -start), edits), start)
	}
	d.plans = append(d.plans, pl.plan)
	d.plain, d.edits = append(d.plain, plain...), append(d.edits, edits...)
	d.observes = d.observes || len(pl.edits) > 0
}

// follow changes the session to what it is after a statement of the text, for those behind it. It gives the
// reason why these cannot be looked at; empty when they can.
func (s *Session) follow(p *Plan) history.Reason {
	s.Create(p)
	s.Unsettle(p)
	switch {
	case p.Session.Changes, p.Schema.Changes && len(p.Schema.Changed) == 0:
		return history.ReasonSeveralStatements
	case p.Kind == history.Savepoint:
		s.Nested = true
	case p.Txn.Level != history.LevelUnknown:
		s.Serializable = p.Txn.Level == history.Serializable
	case p.Kind == history.Begin, p.Txn.Ends:
		s.Serializable = true // the session's default level is not known here
	}
	return history.Reason{}
}

// unreadable returns the reason why a text cannot be looked at more closely; empty when it can.
func (s *Session) unreadable(text string, toks []pgtoken.Token, whole bool) history.Reason {
	depth, deepest := 0, 0
	for _, t := range toks {
		if t.Kind != pgtoken.Mark {
			continue
		}
		switch text[t.Start] {
		case '(', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', ']':
			depth--
		}
	}
	switch {
	case !s.lexable(), (s.utf8() || s.Encoding == "SQL_ASCII") && !utf8.ValidString(text):
		return history.ReasonCharset // the server's error about an invalid character quotes the bytes behind it
	case !whole, strings.IndexByte(text, 0) >= 0:
		return history.ReasonUnparsable
	case len(toks) > maxTokens, deepest > maxDepth:
		return history.ReasonSize
	}
	return history.Reason{}
}

// lexable reports whether the bytes of ASCII stand for themselves wherever they occur in a text.
func (s *Session) lexable() bool {
	switch s.Encoding {
	case "SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030", "JOHAB":
		return false
	}
	return true
}

// utf8 reports whether names are spelled as the schema gives them.
func (s *Session) utf8() bool { return s.Encoding == "" || s.Encoding == "UTF8" }

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
	// concealed says that the text is not the client's any more: isotap's columns were taken out of it.
	concealed bool
	// whole is why all of the statement has to go as it is, whatever of it could be observed; empty: it need not.
	whole history.Reason
}

// A refusal is the reason why a statement is opaque, in the few words of [Plan].Reason.
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

// decide makes the plan, and the edits of the text, of a statement as the client wrote it. A reason given makes the
// statement opaque.
func (pl *planner) decide(written *statement, reason history.Reason) {
	p := pl.plan
	p.Shape, p.Args = written.shape()
	p.Origin = written.origin()
	p.Params = written.params()
	verb{pl.st, &pl.session, p}.classify()
	p.Session.Calls = !p.Session.Changes && pl.st.calls()
	p.Session.ReadsCursors = pl.st.readsCursors()
	switch {
	case p.Observation == history.Opaque:
	case !reason.IsZero() && (p.Observation == history.Exact || reason != history.ReasonSeveralStatements):
		opaque(p, reason)
	case p.Observation == history.Exact && pl.tellsItsText():
		opaque(p, history.ReasonOwnText)
	case p.Observation == history.Exact:
		err := pl.rewrite()
		if err == nil && !pl.whole.IsZero() {
			err = refusal(pl.whole)
		}
		if err != nil {
			opaque(p, reasonOf(err))
			pl.edits = nil
		}
	}
}

// opaque makes p the plan of a statement that goes as it is and is not observed.
func opaque(p *Plan, reason history.Reason) {
	p.Observation, p.Reason = history.Opaque, reason
	p.Result.Reply, p.Result.Sources = rewrite.Unchanged, nil
}

// lower makes the plan inexact; the first reason stays.
func (pl *planner) lower(reason history.Reason) {
	if pl.plan.Observation == history.Exact {
		pl.plan.Observation, pl.plan.Reason = history.Inexact, reason
	}
}

// nothing is the plan of a statement that reads and writes no row that could be observed.
func (pl *planner) nothing() {
	pl.plan.Observation = history.Nothing
}
