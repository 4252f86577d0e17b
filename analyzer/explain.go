package analyzer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// An explainer puts a finding into words.
type explainer struct {
	a      *Analyzer
	family dbms.Family // whose SQL the statements are
	f      *Finding
	g      *group
	txns   map[*history.Txn]int // by transaction: its place on the cycle, from 1
	// loaded are the witness's transactions, by index.
	loaded map[int32]*history.Txn
}

func (a *Analyzer) newExplainer(f *Finding, g *group) *explainer {
	t := &explainer{a: a, family: f.Family, f: f, g: g, txns: make(map[*history.Txn]int)}
	for i, txn := range f.Txns() {
		t.txns[txn] = i + 1
	}
	return t
}

// postgres reports whether the finding is about PostgreSQL.
func (t *explainer) postgres() bool {
	return t.family == dbms.PostgreSQLFamily
}

// family returns the family of the servers that the first of the transactions ran on.
func (a *Analyzer) family(txns ...*history.Txn) dbms.Family {
	for _, t := range txns {
		if t != nil {
			return a.engine(t.ID.Run()).Family()
		}
	}
	return dbms.MySQLFamily
}

// engine names the server's engine of a run.
func (a *Analyzer) engine(r history.Run) dbms.Engine {
	for i := range a.store.runs {
		if a.store.runs[i].info.Run == r {
			return a.store.runs[i].info.Server.Engine
		}
	}
	return ""
}

// name returns a transaction's name within the finding: T1, T2, ... in the order of the cycle.
func (t *explainer) name(txn *history.Txn) string {
	if txn == nil {
		return "an unknown transaction"
	}
	return fmt.Sprintf("T%d", t.txns[txn])
}

// explanation walks the witness, one sentence an edge, in Elle's manner.
func (t *explainer) explanation() []string {
	switch t.f.Anomaly {
	case G1a, G1b, DirtyUpdate, GarbageRead:
		return []string{t.explainRead(&t.f.Witness[0])}
	case IncompatibleOrder:
		return []string{t.explainConflict(&t.f.Witness[0])}
	case GSIa:
		return []string{t.explainInterference(&t.f.Witness[0])}
	case LostWrite:
		return []string{t.explainFork(&t.f.Witness[0])}
	case Internal, FutureRead:
		return []string{t.explainOwn(&t.f.Witness[0])}
	}
	introduced := make(map[*history.Txn]bool)
	who := func(txn *history.Txn) string {
		if introduced[txn] {
			return t.name(txn)
		}
		introduced[txn] = true
		return fmt.Sprintf("%s (%s)", t.name(txn), txn.ID)
	}
	var lines []string
	if t.f.Class == Unprotected {
		for i := range t.f.Witness {
			lines = append(lines, t.deed(&t.f.Witness[i], who)+".")
		}
		return lines
	}
	for i := range t.f.Witness {
		lines = append(lines, t.explainEdge(&t.f.Witness[i], who))
	}
	if n := len(lines); n > 0 {
		first := t.name(t.f.Witness[0].From)
		lines[n-1] = strings.TrimSuffix(lines[n-1], ".") + fmt.Sprintf(": a contradiction, %s would precede itself.",
			first)
	}
	return lines
}

func (t *explainer) explainEdge(e *Edge, who func(*history.Txn) string) string {
	return fmt.Sprintf("%s, so %s precedes %s.", t.deed(e, who), t.name(e.From), t.name(e.To))
}

// deed says what two transactions did that made a dependency.
func (t *explainer) deed(e *Edge, who func(*history.Txn) string) string {
	from, to, row := who(e.From), who(e.To), rowText(e.Row)
	switch e.Kind {
	case SO:
		return fmt.Sprintf("%s ended before %s began in the same session", from, to)
	case RQ:
		return fmt.Sprintf("%s and %s are of one request: %s", from, to, t.sameRequest(e))
	case RT:
		return fmt.Sprintf("%s had ended before %s began, %s earlier", from, to, time.Duration(e.To.Start-e.From.End))
	case RW:
		if e.NotFound {
			return fmt.Sprintf("%s looked for rows of %s with %s and did not find row %s; %s wrote version %s of it, "+
				"which %s, in %s",
				from, e.Row.Table, t.quote(e.FromStmt), e.Row.ID, to, e.Next, wouldFind(e), t.quote(e.ToStmt))
		}
		return fmt.Sprintf("%s read %s at version %s in %s; %s then %s in %s", from, row, e.Version, t.quote(e.FromStmt),
			to, overwrote(e), t.quote(e.ToStmt))
	case WW:
		return fmt.Sprintf("%s wrote version %s of %s in %s; %s then %s in %s", from, e.Version, row, t.quote(e.FromStmt),
			to, overwrote(e), t.quote(e.ToStmt))
	default:
		return fmt.Sprintf("%s wrote version %s of %s in %s, and %s %s in %s", from, e.Version, row, t.quote(e.FromStmt),
			to, t.observed(e), t.quote(e.ToStmt))
	}
}

// wouldFind says what the statement that did not find a row would have made of it.
func wouldFind(e *Edge) string {
	if e.Wide {
		return "matches what it asks of that table alone"
	}
	return "it would have found"
}

// observed returns what the second transaction of a wr did with the version.
func (t *explainer) observed(e *Edge) string {
	if e.NotFound {
		return "looked for it in vain"
	}
	if e.Kept {
		return "wrote the same values over it"
	}
	return "read it"
}

// overwrote says what the second transaction of a ww or rw did to the row.
func overwrote(e *Edge) string {
	if e.ToStmt != nil && e.ToStmt.Kind == history.Delete {
		return "deleted it"
	}
	return fmt.Sprintf("overwrote it with version %s", e.Next)
}

func (t *explainer) explainRead(e *Edge) string {
	saw := fmt.Sprintf("%s (%s) "+t.sawVerb(e)+" version %s of %s in %s", t.name(e.To), e.To.ID, e.Version,
		rowText(e.Row), t.quote(e.ToStmt))
	switch {
	case t.f.Anomaly == G1b:
		return fmt.Sprintf("%s; %s (%s) had written that in %s, and wrote the row once more before it ended.", saw,
			t.name(e.From), e.From.ID, t.quote(e.FromStmt))
	case t.f.Anomaly.base() == G1a && e.From.Status == history.Aborted:
		return fmt.Sprintf("%s; %s (%s) had written that in %s, and rolled back.", saw, t.name(e.From), e.From.ID,
			t.quote(e.FromStmt))
	case t.f.Anomaly.base() == G1a:
		return fmt.Sprintf("%s; %s (%s) had written that in %s, which failed or was undone by ROLLBACK TO SAVEPOINT.",
			saw, t.name(e.From), e.From.ID, t.quote(e.FromStmt))
	case e.From != nil:
		return fmt.Sprintf("%s; that version is the row's deletion by %s (%s) in %s.", saw, t.name(e.From), e.From.ID,
			t.quote(e.FromStmt))
	default:
		return fmt.Sprintf("%s; no transaction of run %s wrote that, and the run is recorded to its end.", saw,
			e.Version.Txn.Run())
	}
}

func (t *explainer) sawVerb(e *Edge) string {
	if e.NotFound {
		return "looked for a row in vain because of"
	}
	if t.f.Anomaly == DirtyUpdate {
		return "overwrote"
	}
	return "saw"
}

func (t *explainer) explainConflict(e *Edge) string {
	x, o := &t.g.conflict, t.a.order
	return fmt.Sprintf("%s (%s) wrote version %s of %s right after version %s, "+
		"but %s (%s) found it right after version %s in %s.",
		t.name(e.From), e.From.ID, e.Version, rowText(e.Row), o.historyTag(o.tagOf(x.pred)), t.name(e.To), e.To.ID,
		o.historyTag(o.tagOf(x.other)), t.quote(e.ToStmt))
}

func (t *explainer) explainFork(e *Edge) string {
	o := t.a.order
	replaced := o.historyTag(o.tagOf(o.pred(t.g.witness[0].version)))
	return fmt.Sprintf("%s (%s) replaced version %s of %s in %s, and %s (%s) replaced the same version in %s: "+
		"one of the two writes is lost.",
		t.name(e.From), e.From.ID, replaced, rowText(e.Row), t.quote(e.FromStmt), t.name(e.To), e.To.ID, t.quote(e.ToStmt))
}

func (t *explainer) explainOwn(e *Edge) string {
	who, row := fmt.Sprintf("%s (%s)", t.name(e.To), e.To.ID), rowText(e.Row)
	if t.f.Anomaly == FutureRead {
		return fmt.Sprintf("%s saw version %s of %s in %s, and wrote that version later, in %s.", who, e.Version, row,
			t.quote(e.ToStmt), t.quote(e.FromStmt))
	}
	own := t.a.order.historyTag(t.a.order.tagOf(t.g.conflict.version))
	return fmt.Sprintf("%s wrote version %s of %s in %s, and then saw version %s in %s.", who, own, row,
		t.quote(stmt(e.To, own.Stmt)), e.Version, t.quote(e.ToStmt))
}

// explainInterference says when the snapshot had been taken, and what committed after that.
func (t *explainer) explainInterference(e *Edge) string {
	d := &t.g.witness[0]
	from, to := &t.a.order.txns[d.from], &t.a.order.txns[d.to]
	i := slices.IndexFunc(e.To.Stmts, func(s history.Stmt) bool { return s.End == to.snapshot })
	who := func(txn *history.Txn) string { return fmt.Sprintf("%s (%s)", t.name(txn), txn.ID) }
	return fmt.Sprintf("%s had the answer to %s, which took its snapshot, %s before %s sent its last statement: "+
		"that one had not committed by then. And yet: %s.",
		who(e.To), t.quote(&e.To.Stmts[max(i, 0)]), time.Duration(from.ending-to.snapshot), who(e.From),
		t.deed(e, t.name))
}

// quote returns a statement as it was sent, as far as that is known.
func (t *explainer) quote(s *history.Stmt) string {
	if s == nil {
		return "a statement that was not recorded"
	}
	return "`" + text(t.family, s) + "`"
}

// text puts a statement's arguments back into its shape; where they are not all there it gives the
// shape.
func text(family dbms.Family, s *history.Stmt) string {
	if len(s.Args) == 0 {
		return s.Shape
	}
	values := sqltoken.Values(family, s.Shape)
	if len(values) != len(s.Args) {
		return s.Shape
	}
	return sqltoken.Fill(s.Shape, values, s.Args)
}

// summary says in one sentence what went wrong.
func (t *explainer) summary() string {
	e := &t.f.Witness[0]
	table, out := e.Row.Table, shapeOf(e.FromStmt)
	last := &t.f.Witness[len(t.f.Witness)-1]
	switch t.f.Anomaly {
	case LostUpdate:
		return fmt.Sprintf("A change of %s is lost: a transaction reads a row with %s and later writes it with %s, "+
			"over what %s of another did in between.", table, out, shapeOf(last.ToStmt), shapeOf(e.ToStmt))
	case StaleOverwrite:
		if e.NotFound {
			return fmt.Sprintf("A row of %s is set over what another request inserted: a request looks for it with %s, before %s of "+
				"another request, and in a later transaction sets it with %s.",
				table, out, shapeOf(e.ToStmt), shapeOf(t.f.Witness[1].ToStmt))
		}
		return fmt.Sprintf("A change of %s is lost between the transactions of a request: it reads a row with %s, and in a "+
			"later transaction writes it with %s, over what %s of another request did in between.",
			table, out, shapeOf(t.f.Witness[1].ToStmt), shapeOf(e.ToStmt))
	case SilentRevert:
		return fmt.Sprintf("A change of %s is taken back between two requests: one changes a row with %s, and another sets the "+
			"column back with %s, beside something else.", table, shapeOf(e.ToStmt), shapeOf(t.f.Witness[1].ToStmt))
	case StaleDecision:
		return fmt.Sprintf("A request takes away by what is no more: it reads a row of %s with %s, and in a later transaction takes "+
			"from it with %s, after %s of another request has left less.",
			table, out, shapeOf(t.f.Witness[1].ToStmt), shapeOf(e.ToStmt))
	case DoubleInsert:
		return fmt.Sprintf("Two requests insert one thing: each looks in %s with %s, finds none, and inserts it with %s in a "+
			"later transaction.", table, out, shapeOf(e.ToStmt))
	case DoubleSet:
		return fmt.Sprintf("Two requests make two rows one thing: each looks in %s with %s, finds none, and in a later transaction "+
			"sets a row to it with %s, or inserts one.", table, out, shapeOf(t.writtenOver()))
	case NonRepeatableRead:
		return fmt.Sprintf("A transaction reads one row twice and gets two versions: "+
			"it reads %s with %s before %s of another, and again with %s after it.",
			table, out, shapeOf(e.ToStmt), shapeOf(last.ToStmt))
	case DirtyUpdate:
		return fmt.Sprintf("A transaction builds on what never was: "+
			"it overwrites with %s a row of %s that %s wrote and that was rolled back.", shapeOf(e.ToStmt), table, out)
	case OTV:
		return fmt.Sprintf("A transaction sees what another did, and then something as it was before it: "+
			"it reads %s with %s after %s of the other, and later %s with %s as it was before %s.",
			last.Row.Table, shapeOf(last.ToStmt), shapeOf(last.FromStmt), table, out, shapeOf(e.ToStmt))
	case GMonotonic:
		return fmt.Sprintf("A transaction goes back in time: after %s, which met what came of %s of another, "+
			"it reads %s with %s as it was before that.", shapeOf(last.ToStmt), shapeOf(e.ToStmt), table, out)
	case Internal:
		return fmt.Sprintf("A transaction does not see its own write: "+
			"it reads with %s another version of a row of %s than it wrote before.", shapeOf(e.ToStmt), table)
	case FutureRead:
		return fmt.Sprintf("A transaction sees its own future: "+
			"it reads with %s the version of a row of %s that its %s wrote later.", shapeOf(e.ToStmt), table, out)
	case ReadSkew:
		return fmt.Sprintf("A transaction sees half of another: "+
			"it reads %s with %s before %s of the other, and %s with %s after it.",
			table, out, shapeOf(e.ToStmt), last.Row.Table, shapeOf(last.ToStmt))
	case ReadWriteSkew:
		return fmt.Sprintf("A transaction writes on top of what it has not seen: "+
			"it reads %s with %s before %s of another, and then writes %s with %s after it.",
			table, out, shapeOf(e.ToStmt), last.Row.Table, shapeOf(last.ToStmt))
	case WriteSkew:
		return fmt.Sprintf("Two transactions decide on what the other is changing: "+
			"one reads %s with %s while the other runs %s, and the other reads %s with %s while the first runs %s.",
			table, out, shapeOf(e.ToStmt), last.Row.Table, shapeOf(last.FromStmt), shapeOf(last.ToStmt))
	case Phantom:
		return fmt.Sprintf("A transaction sees what came of a row that it did not find: "+
			"it looks for rows of %s with %s before %s of another, and then goes by what that one did.",
			table, out, shapeOf(e.ToStmt))
	case PMP:
		return fmt.Sprintf("A transaction looks twice for the same rows and finds one more: "+
			"it looks for rows of %s with %s before %s of another, and with %s after it.",
			table, out, shapeOf(e.ToStmt), shapeOf(last.ToStmt))
	case PhantomSkew:
		return fmt.Sprintf("Two transactions decide on what is not there, and change it for each other: "+
			"one looks for rows of %s with %s while the other runs %s, "+
			"and the other goes by %s while the first runs %s.",
			table, out, shapeOf(e.ToStmt), shapeOf(last.FromStmt), shapeOf(last.ToStmt))
	case GSIa:
		return fmt.Sprintf("A transaction meets what its snapshot cannot hold: "+
			"with %s it depends on a row of %s that %s of another wrote, "+
			"which committed after the snapshot had been taken.", shapeOf(e.ToStmt), table, out)
	case G0:
		return fmt.Sprintf("Uncommitted writes of %s overwrite each other: %s and %s are interleaved.", table, out,
			shapeOf(e.ToStmt))
	case G1a:
		return fmt.Sprintf("A transaction sees with %s a row of %s that %s wrote and that was rolled back.",
			shapeOf(e.ToStmt), table, out)
	case G1b:
		return fmt.Sprintf("A transaction sees with %s a row of %s that %s wrote and its transaction then wrote again.",
			shapeOf(e.ToStmt), table, out)
	case GarbageRead:
		return fmt.Sprintf("A transaction sees with %s a version of a row of %s that nobody left there.",
			shapeOf(e.ToStmt), table)
	case IncompatibleOrder:
		return fmt.Sprintf("The versions of a row of %s have two orders: %s finds another one than %s left.", table,
			shapeOf(e.ToStmt), out)
	case LostWrite:
		return fmt.Sprintf("A write of %s is lost: %s and %s both replaced the same version of a row.", table, out,
			shapeOf(e.ToStmt))
	default:
		return t.summaryOfCycle()
	}
}

// summaryOfCycle is the summary of a cycle without a name of its own.
func (t *explainer) summaryOfCycle() string {
	var tables []string
	for i := range t.f.Witness {
		if table := t.f.Witness[i].Row.Table; table != "" && !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	}
	if n := len(tables); n > 4 {
		tables = append(tables[:3], fmt.Sprintf("%d other tables", n-3))
	}
	e := &t.f.Witness[0]
	return fmt.Sprintf("No serial order explains what %d transactions saw of %s, beginning with %s and %s (%s).",
		len(t.txns), strings.Join(tables, " and "), shapeOf(e.FromStmt), shapeOf(e.ToStmt), t.f.Anomaly)
}

func shapeOf(s *history.Stmt) string {
	if s == nil {
		return "a statement that was not recorded"
	}
	return "`" + s.Shape + "`"
}
