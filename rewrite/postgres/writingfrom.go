package postgres

import (
	"errors"
	"reflect"
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// An UPDATE, a DELETE and a MERGE join their rows with those of a FROM or USING clause. What queries there, common
// table expressions and views are made of reaches RETURNING as it reaches the select list of a SELECT: by columns that
// they pass outwards (ADR 12), of the very rows that the server joined with the one written.

// A writing is a statement that writes as its FROM or USING clause, and the queries of its WITH clause, are looked at.
type writing struct {
	stmt ast.Stmt
	// query has the clauses of the statement that a SELECT has, too: WITH, RETURNING as its list, FROM or USING, WHERE.
	query *ast.SelectStmt
	from  string // the keyword before the tables; empty where there can be none
	// optional says that a row may be written with which none of the tables is joined.
	optional bool
}

// assigned returns the values that a statement gives to columns.
func assigned(s ast.Stmt) (values []ast.Node) {
	switch n := s.(type) {
	case *ast.UpdateStmt:
		return nodes(n.TargetList)
	case *ast.InsertStmt:
		values = append(values, nodes(n.SelectStmt.(*ast.SelectStmt).TargetList)...)
		for _, row := range nodes(n.SelectStmt.(*ast.SelectStmt).ValuesLists) {
			list, _ := row.(*ast.NodeList)
			for _, value := range nodes(list) {
				values = append(values, &ast.ResTarget{Val: value})
			}
		}
	}
	return values
}

// others returns what of the statement may hold queries beside its condition, the values and the WITH clause.
func (s writing) others() []ast.Node {
	var others []ast.Node
	if n, ok := s.stmt.(*ast.InsertStmt); ok {
		q := n.SelectStmt.(*ast.SelectStmt)
		others = append(others, n.OnConflictClause, q.SortClause, q.LimitCount, q.LimitOffset, q.WithClause)
	}
	return others
}

// readsFrom adds what the FROM or USING clause reads. Where it cannot be looked into, its tables are added.
func (w *write) readsFrom(s writing) {
	items := nodes(s.query.FromClause)
	w.from = s.query.FromClause
	if s.query.WithClause == nil && !slices.ContainsFunc(items, hasSubquery) && !slices.ContainsFunc(items, func(n ast.Node) bool {
		_, err := w.sourcesOf(n)
		return err != nil
	}) {
		w.addSources(items)
		return
	}
	barred, aside := w.kept(s.query.WithClause), w.flatsAside(s)
	for {
		w.edits, w.read, w.sights, w.rels, w.columns = nil, nil, nil, nil, nil
		r := newReading(w.planner, s.query, barred)
		r.stmt, r.aside = s.stmt, aside.rels
		err := w.look(r, s)
		var b *queryRefusal
		switch {
		case err == nil:
			if w.shares != nil {
				w.shares.saw(r)
			}
			w.columns = append(w.columns, aside.columns...)
			return
		case errors.As(err, &b) && len(barred) < maxBars && w.mayBar(b.node):
			barred[b.node] = b.reason
			continue
		}
		w.edits, w.read, w.sights, w.rels, w.columns, w.joined = nil, nil, nil, nil, nil, nil
		w.downgrade(reasonOf(err))
		w.addSources(items)
		return
	}
}

// look is one attempt to have the FROM or USING clause tell what it reads.
func (w *write) look(r *reading, s writing) error {
	after := 0
	if w.st.is(0, "WITH") {
		var err error
		if after, err = r.places.with(s.query.WithClause, 0, len(w.st.toks)); err != nil {
			return err
		}
	}
	if err := r.places.written(s, after); err != nil {
		return err
	}
	r.known[s.query] = true
	sc, err := r.enter(s.query.WithClause, w.seenByPart())
	if err != nil {
		return err
	}
	rels, err := r.relations(s.query, sc)
	if err != nil {
		return err
	}
	b := &block{n: s.query, rels: append([]*relation{{ref: w.target.ref, base: &w.target}}, rels...)}
	if w.merges { // a star has the source's columns first
		b.rels = append(slices.Clone(rels), b.rels[0])
	}
	if w.part != nil {
		err = w.starless(r, b)
	} else {
		err = r.starred(b)
	}
	if err != nil {
		return err
	}
	for _, rel := range rels {
		if rel.grouped() && !rel.whole && r.hides(b, rel) {
			r.markUnseen(history.ReasonGroupsLeftOut)
		}
		for _, shown := range rel.sights {
			shown.nullable = shown.nullable || s.optional
		}
		if err := (&block{sights: rel.sights}).passes(); err != nil {
			return err
		}
	}
	w.joined, w.provenAs, w.rels = r, s.stmt, rels
	if n, ok := s.stmt.(*ast.MergeStmt); ok {
		if w.looked, err = w.lookIntoMerge(sc, n); err != nil {
			return err
		}
	} else if w.looked, err = w.lookInto(sc, s.query.WhereClause, assigned(s.stmt), s.others()); err != nil {
		return err
	}
	if !w.looked && len(r.byCopies) > 0 {
		return &queryRefusal{r.byCopies[0].def, history.ReasonSubquery} // it would be computed by itself for nothing
	}
	if err := r.checkNames(); err != nil {
		return err
	}
	w.join(rels)
	if !r.unseen.IsZero() {
		w.downgrade(r.unseen)
	}
	return nil
}

// written places the queries in the FROM or USING clause of a statement that begins at a token.
func (p *placer) written(s writing, after int) error {
	if len(nodes(s.query.FromClause)) == 0 {
		return nil
	}
	at := after + 1
	if s.from == "USING" { // behind DELETE FROM and MERGE INTO
		at++
	}
	if at = p.find(at, s.from); at < 0 {
		return errUnplaced
	}
	for p.is(at-1, "DISTINCT") && s.from == "FROM" {
		if at = p.find(at+1, s.from); at < 0 {
			return errUnplaced
		}
	}
	ends := []string{"WHERE", "RETURNING"}
	if _, ok := s.stmt.(*ast.MergeStmt); ok {
		ends = []string{"WHEN"}
	}
	to := p.find(at+1, ends...)
	if to < 0 {
		to = len(p.toks)
	}
	var inner []*ast.RangeSubselect
	for _, item := range nodes(s.query.FromClause) {
		inner = queriesIn(item, inner)
	}
	rest, err := p.from(inner, at+1, to)
	if err == nil && len(rest) > 0 {
		return errUnplaced
	}
	return err
}

// starless refuses queries whose columns a star of a part's RETURNING clause takes: whoever names the part would see
// those added to them. Of a part that nothing names, nobody sees any.
func (w *write) starless(r *reading, b *block) error {
	for _, item := range nodes(b.n.TargetList) {
		ref := star(item)
		if ref == nil {
			continue
		}
		if !w.part.used {
			r.stars[ref] = true
			continue
		}
		for _, rel := range b.rels {
			if rel.base == nil && len(rel.sights) > 0 && rel.within(ref) {
				return &queryRefusal{rel.node, history.ReasonDerivedStar}
			}
		}
	}
	return nil
}

// join adds what relations show of their rows.
func (w *write) join(rels []*relation) {
	for _, rel := range rels {
		switch {
		case len(rel.sights) == 0:
		case rel.ref == w.target.ref:
			w.downgrade(history.ReasonSameName)
		case rel.base != nil && !rel.looksUp():
			w.read = append(w.read, *rel.base)
		default:
			for _, s := range rel.sights {
				if s.spelled == nil {
					w.sights = append(w.sights, s)
				} else { // it is computed in RETURNING
					w.columns = append(w.columns, column{edits: s.spelled, text: s.spelled.in(w.st), sources: []Source{s.source}})
				}
			}
		}
	}
	w.others = maxTargets // a star's columns are not looked for
}

// proven refuses the statement unless with its edits it is the client's, with items behind its RETURNING list and with
// what its queries pass outwards.
func (w *write) proven(added string) error {
	tree, err := w.planner.proven(w.client, added, returningList)
	if err != nil || w.joined == nil {
		return err
	}
	for _, change := range w.joined.changes {
		change()
	}
	if !reflect.DeepEqual(withOf(tree), withOf(w.provenAs)) || !reflect.DeepEqual(joinedBy(tree), joinedBy(w.provenAs)) {
		return refusal(history.ReasonUnparsable)
	}
	return nil
}

// joinedBy returns what an UPDATE, a DELETE or a MERGE is joined with: its FROM or USING clause.
func joinedBy(s ast.Stmt) *ast.NodeList {
	switch n := s.(type) {
	case *ast.UpdateStmt:
		return n.FromClause
	case *ast.DeleteStmt:
		return n.UsingClause
	case *ast.MergeStmt:
		return ast.NewNodeList(n.SourceRelation)
	}
	return nil
}
