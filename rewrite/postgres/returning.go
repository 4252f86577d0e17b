package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// newWrite begins the rewriting of a statement with a target, a WITH and a RETURNING clause.
func (pl *planner) newWrite(target *ast.RangeVar, with *ast.WithClause, returning *ast.NodeList) (*write, error) {
	if with != nil {
		for _, c := range nodes(with.Ctes) {
			if cte, ok := c.(*ast.CommonTableExpr); ok {
				pl.ctes = append(pl.ctes, cte.Ctename)
			}
		}
	}
	t, err := pl.written(target)
	if err != nil {
		return nil, err
	}
	s, err := pl.sourceOf(t, target)
	if err != nil {
		return nil, err
	}
	return &write{planner: pl, target: s, client: nodes(returning), both: pl.session.Version >= 18 && !s.inherited() &&
		!s.tagged}, nil
}

// addSources adds the base tables of a FROM or USING clause. What they are made of otherwise is not observed, and
// makes the statement inexact.
func (w *write) addSources(from []ast.Node) {
	for _, n := range from {
		if w.others++; !plainTable(n) {
			w.others = maxTargets
		}
		found, err := w.sourcesOf(n)
		if err != nil {
			w.downgrade(reasonOf(err))
			continue
		}
		for _, s := range found {
			if s.ref == w.target.ref || slices.ContainsFunc(w.read, func(o source) bool { return o.ref == s.ref }) {
				w.downgrade(history.ReasonSameName)
				continue
			}
			w.read = append(w.read, s)
		}
	}
}

// plainTable reports whether an item of a FROM clause is one table.
func plainTable(n ast.Node) bool {
	_, ok := n.(*ast.RangeVar)
	return ok
}

// settle lowers the plan for what a statement does beside its own table accesses, and decides how versions
// are told apart once all tables are known.
func (w *write) settle(parts ...ast.Node) error { return w.settleBy(nil, nil, parts...) }

// settleBy is settle for a statement that chooses rows by a condition and makes assignments. It looks into the
// subqueries of these.
func (w *write) settleBy(where ast.Node, assignments *ast.NodeList, others ...ast.Node) error {
	parts := append(others, ast.NewNodeList(w.client...))
	u, err := w.inspect(append(slices.Clone(parts), where, assignments)...)
	if err != nil {
		return err
	}
	if w.joined == nil && !w.looked && !w.merges && w.readsBeside(u) {
		w.looked, _ = w.lookInto(nil, where, nodes(assignments), others)
	}
	if w.readsBeside(u) && !w.looked {
		w.downgrade(history.ReasonSubquery)
	}
	if u.function {
		w.downgrade(history.ReasonFunction)
	}
	for _, s := range append(w.read, w.target) {
		// Such a name would hide the versions.
		w.both = w.both && !w.versions.hide(s.ref)
	}
	return nil
}

// place adds what tells where a version is: of is a qualifier, and empty for the table's own name.
func (w *write) place(of string, place, xid Item) {
	if of == "" {
		of = quoted(w.target.ref)
	}
	w.id.add(place, of+".ctid")
	switch {
	case !w.target.table.Partitioned:
		w.id.add(xid, of+".xmin")
	case xid == ItemNewXID && !w.session.Nested:
		w.id.add(xid, w.session.transactionID())
	}
}

// transactionID is an expression for the id of the transaction: xmin of what it writes outside of
// subtransactions, where a partitioned table does not return that.
func (s *Session) transactionID() string {
	if s.Version >= 13 {
		return "pg_catalog.pg_current_xact_id()::pg_catalog.xid"
	}
	return "(pg_catalog.txid_current() OPERATOR(pg_catalog.&) 4294967295)::pg_catalog.text::pg_catalog.xid"
}

// told adds the id of the transaction where the server's log is read, and the rows do not have it. As it may be NULL, a
// part of a statement cannot tell it, whose identities are texts.
func (w *write) told() {
	if !w.session.Logged || w.part != nil {
		return
	}
	w.id.add(ItemTxnXID, w.session.AssignedXID())
}

// AssignedXID is an expression for the id that the transaction has, of type xid; NULL while it has none.
func (s *Session) AssignedXID() string {
	if s.Version >= 13 {
		return "pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.xid"
	}
	return "(pg_catalog.txid_current_if_assigned() OPERATOR(pg_catalog.&) 4294967295)::pg_catalog.text::pg_catalog.xid"
}

// left adds the version that a write of new rows leaves.
func (w *write) left() {
	if w.target.tagged {
		w.leftTags()
		return
	}
	w.id.table(&w.target)
	w.place("", ItemNewTID, ItemNewXID)
}

// replaced adds the version that a write replaces and the one that it leaves; before PostgreSQL 18 the latter
// only.
func (w *write) replaced() {
	if !w.both {
		w.left()
		return
	}
	w.id.table(&w.target)
	w.place(quoted(w.versions.old), ItemTID, ItemXID)
	w.place(quoted(w.versions.new), ItemNewTID, ItemNewXID)
}

// keyed says what becomes of the row's key, when it may change: an UPDATE without it, or of a table that has none,
// cannot tell which row it wrote unless it tells the version that it replaced, or its condition asks for one key.
func (w *write) keyed(assigned bool, where ast.Node) {
	key := w.target.table.Key
	switch {
	case w.target.tagged: // the row has its id for life
	case !w.both && (assigned || len(key) == 0):
		changes := w.keyChanges(where)
		if changes == "" {
			w.downgradeOfSome(history.ReasonKey)
			return
		}
		w.id.add(ItemOldKeyChanged, changes)
	case w.both && len(key) > 0 && (assigned || w.target.table.UpdateTrigger):
		var old, changed []string
		for _, k := range key {
			old = append(old, quoted(w.versions.old)+"."+quoted(k))
			changed = append(changed, quoted(w.versions.new)+"."+quoted(k))
		}
		w.id.add(ItemOldKeyChanged, "(ROW("+strings.Join(old, ", ")+") IS DISTINCT FROM ROW("+
			strings.Join(changed, ", ")+"))")
	}
}

// updates lowers the plan for what an update of the target by these assignments brings about elsewhere.
func (w *write) updates(assignments []ast.Node) {
	if w.target.table.UpdateTrigger {
		w.triggers()
	}
	if anyAssigned(assignments, w.target.table.CascadesFrom) {
		w.cascades()
	}
}

// deletes is as updates.
func (w *write) deletes() {
	if w.target.table.DeleteTrigger {
		w.triggers()
	}
	if w.target.table.CascadesDelete {
		w.cascades()
	}
}

// inserts is as updates.
func (w *write) inserts() {
	if w.target.table.InsertTrigger {
		w.triggers()
	}
}

// cascades lowers the plan for what foreign keys change along with the target's rows. The server's log has it, but for
// tables that are not in it; it does not have what triggers of these tables read.
func (w *write) cascades() {
	if w.target.table.CascadeTriggers {
		w.triggers()
	}
	if w.target.table.CascadeUnlogged {
		w.downgrade(history.ReasonCascadeUnlogged)
	}
	w.downgradeOfSome(history.ReasonCascade)
}

// triggers lowers the plan for what triggers may do.
func (w *write) triggers() {
	w.downgrade(history.ReasonTrigger)
	w.plan.Session.Calls = !w.plan.Session.Changes
}

// assigns reports whether one of the assignments is to a column of the target's key.
func (w *write) assigns(assignments []ast.Node) bool {
	return anyAssigned(assignments, func(column string) bool { return slices.Contains(w.target.table.Key, column) })
}

// anyAssigned reports whether one of the assignments is to a column that is such a one, or to what is not known.
func anyAssigned(assignments []ast.Node, such func(column string) bool) bool {
	return slices.ContainsFunc(assignments, func(a ast.Node) bool {
		target, ok := a.(*ast.ResTarget)
		return !ok || such(target.Name)
	})
}

// returning appends the identities to the client's RETURNING clause, or adds one.
func (w *write) returning() error {
	if w.part != nil {
		return w.within(w.part)
	}
	if err := w.id.key(&w.target); err != nil {
		return err
	}
	w.id.add(ItemLSN, logPosition)
	if w.returnsImages(w.target.table) && w.plan.Kind != history.Delete {
		w.id.add(ItemImage, w.image())
	}
	exprs, width := w.id.exprs, len(w.client)+len(w.target.names)
	sights := carriedFirst(w.sights)
	for len(sights) > 0 && sights[0].carried {
		width += len(sights[0].exprs)
		w.plan.Result.Sources = append(w.plan.Result.Sources, sights[0].source)
		sights = sights[1:]
	}
	w.plan.Result.Sources = append(w.plan.Result.Sources, w.id.source(&w.target))
	for i := range w.read {
		s := &w.read[i]
		id, err := readIdentity(s)
		if err != nil {
			return err
		}
		exprs = append(exprs, id.exprs...)
		width += len(s.names)
		w.plan.Result.Sources = append(w.plan.Result.Sources, id.source(s))
	}
	for _, s := range sights {
		exprs = append(exprs, s.exprs...)
		w.plan.Result.Sources = append(w.plan.Result.Sources, s.source)
	}
	if width+len(exprs)+len(w.columns) > maxTargets {
		return refusal(history.ReasonColumns)
	}
	lead := " RETURNING "
	w.plan.Result.Reply = rewrite.Returning
	if len(w.client) > 0 { // the client gets some of the columns: isotap's are known by their names
		if err := w.st.reserved(); err != nil {
			return err
		}
		lead = ", "
		w.plan.Result.Reply = rewrite.Trimmed
	}
	name := func(i int) string { return " AS " + rewrite.NamePrefix + strconv.Itoa(i+1) }
	named := make([]string, len(exprs))
	for i, e := range exprs {
		named[i] = e + name(i)
	}
	added := strings.Join(named, ", ")
	w.insertAfter(len(w.st.toks)-1, lead+added)
	at := w.st.toks[len(w.st.toks)-1].End
	for i, c := range w.columns {
		added += ", " + c.text + name(len(exprs)+i)
		w.edits = append(w.edits, edit{start: at, end: at, text: ", "})
		for _, e := range append(slices.Clone(c.edits), edit{text: name(len(exprs) + i)}) {
			e.start, e.end = at, at
			w.edits = append(w.edits, e)
		}
		w.plan.Result.Sources = append(w.plan.Result.Sources, c.sources...)
	}
	if w.isPlain() && ascii(added) {
		return nil
	}
	return w.proven(added)
}

// isPlain reports whether RETURNING and what stands behind it is all that the statement gets, behind the parenthesis
// that closes the last row of VALUES. The grammar has no other place for it there, so it needs no proof, which takes
// two thirds of the time that such a statement is planned in.
func (w *write) isPlain() bool {
	last := len(w.st.toks) - 1
	return w.values && w.part == nil && len(w.edits) == 1 && w.edits[0].start == w.st.toks[last].End &&
		w.edits[0].end == w.edits[0].start && w.st.mark(last, ")") && len(w.tags) == 0 && len(w.columns) == 0 &&
		len(w.read) == 0
}
