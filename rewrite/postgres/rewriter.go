package postgres

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// How much of a text is looked at: reading more takes longer than it is worth.
const (
	maxTokens = 200_000
	maxDepth  = 500 // of parentheses
)

// Plan returns how the statements of a text are observed. It never fails: what cannot be rewritten is opaque,
// with the reason. The script shares memory with text.
func (r *Rewriter) Plan(text string, s Session) *Script {
	return r.decide(read(text, &s), s).script(nil)
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
		without, edits, shows := pl.mask()
		if plain = edits; without != nil {
			pl.st, pl.masked = without, true
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

// decide makes the plan, and the edits of the text, of a statement as the client wrote it. A reason given makes the
// statement opaque.
func (pl *planner) decide(written *statement, reason history.Reason) {
	p := pl.plan
	p.Shape, p.Args = written.shape()
	p.Text = written.written()
	p.Sender = written.sender()
	p.Params = written.params()
	verb{pl.st, &pl.session, p}.classify()
	if p.Schema.Change != nil && (pl.rewriter.options.Columns || !reason.IsZero()) {
		p.Schema.Change.Tells = nil // the server is told more than the client says, or names mean what is not known
	}
	p.Session.Calls = !p.Session.Changes && pl.st.calls()
	p.Session.ReadsCursors = pl.st.readsCursors()
	switch {
	case p.Observation == history.Opaque && p.copies() && reason.IsZero():
		pl.copied()
	case p.Observation == history.Opaque:
	case !reason.IsZero() && (p.Observation == history.Exact || reason != history.ReasonSeveralStatements):
		opaque(p, reason)
	case p.Observation == history.Exact && pl.tellsItsText():
		opaque(p, history.ReasonOwnText)
	case p.Observation == history.Exact:
		err := pl.rewrite()
		if err == nil {
			err = pl.showsSome()
		}
		if err == nil && !pl.whole.IsZero() {
			err = refusal(pl.whole)
		}
		if err != nil {
			opaque(p, reasonOf(err))
			pl.edits = nil
		}
	}
	p.NamedLocks = p.Observation == history.Nothing && pl.st.locksByName()
}

// rewrite decides what becomes of a statement that the verb alone does not settle. Its errors are refusals.
func (pl *planner) rewrite() error {
	if !pl.session.utf8() && !pl.plainNames() {
		return refusal(history.ReasonCharset)
	}
	declares := pl.plan.Session.Cursor != nil
	if declares {
		_, query := pl.st.declaration()
		pl.st = &statement{text: pl.st.text, toks: pl.st.toks[query:]}
	}
	if pl.session.Version >= 18 {
		pl.versions = pl.st.versionNames()
	}
	tree, err := parse(pl.readable(pl.st.source()))
	if err != nil {
		return err
	}
	wide := pl.wideConditions(tree) // planning may change the tree
	defer func() {
		if exact := pl.plan.Predicates; len(exact) > 0 {
			wide = insteadOf(&exact[0], wide)
		}
		pl.plan.Predicates = append(pl.plan.Predicates, wide...)
	}()
	if n, ok := tree.(*ast.SelectStmt); ok {
		pl.list = listOf(n)
	}
	if n, ok := tree.(*ast.SelectStmt); ok && declares {
		return pl.declare(n)
	} else if declares {
		return refusal(history.ReasonUnparsable)
	}
	if writesWithin(withOf(tree)) {
		return pl.writingWith(tree)
	}
	n, ok := tree.(*ast.SelectStmt)
	if !ok {
		return pl.write(tree)
	}
	if err := pl.selectRows(n); err != nil {
		return pl.readAside(err)
	}
	return pl.readAside(nil)
}
