package postgres

import (
	"reflect"
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// The parts of a WITH clause that write run side by side with the statement that holds them, and what of their rows
// nobody asked for is computed when that has ended, from the last part to the first. Whoever reads a part before
// changes the order of the writes, and with it which of them meet each other. So the statement itself becomes a part,
// too, and a SELECT around all of them reads first that one to its end and then the others (ADR 42). It shows the
// statement's rows as they come, and what the parts tell with the first; where there is none, a row of NULLs stands
// for it that the client does not see.

// The names that the statement itself has as a part, its rows and what is shown of them.
const (
	mainName    = "isotap_main"
	mainRows    = "isotap_rows"
	presentName = rewrite.PresentColumn
	partsName   = rewrite.PartsColumn
)

// writesWithin reports whether a WITH clause has parts that write.
func writesWithin(with *ast.WithClause) bool {
	return with != nil && slices.ContainsFunc(nodes(with.Ctes), func(c ast.Node) bool {
		cte, ok := c.(*ast.CommonTableExpr)
		return ok && kindOf(cte.Ctequery) != history.Other
	})
}

// writingWith plans a statement with parts that write. One that writes itself is observed alone where its parts
// cannot be.
func (pl *planner) writingWith(tree ast.Stmt) error {
	q, err := pl.wrapped(tree)
	if err == nil {
		*pl.plan, pl.edits = *q.plan, q.edits
		return nil
	}
	if _, reads := tree.(*ast.SelectStmt); reads {
		return err
	}
	again, err := parse(pl.readable(pl.st.source()))
	if err != nil {
		return err
	}
	return pl.write(again)
}

// wrapped returns the plan of the statement within a SELECT. Where a query of its WITH clause turns out to be in the
// way, it is looked at anew with that as it is.
func (pl *planner) wrapped(tree ast.Stmt) (*planner, error) {
	inTheWay := make(map[string]bool)
	for {
		plan, q, kept := *pl.plan, *pl, len(inTheWay)
		q.plan, q.shares = &plan, &sharing{inTheWay: inTheWay}
		err := q.wrap(tree)
		if len(inTheWay) == kept {
			return &q, err
		}
		if tree, err = parse(pl.readable(pl.st.source())); err != nil {
			return nil, err
		}
	}
}

// wrap puts the statement into a SELECT that shows what its parts tell.
func (pl *planner) wrap(tree ast.Stmt) error {
	with := withOf(tree)
	if err := pl.st.reserved(); err != nil {
		return err
	}
	p := placer{statement: pl.st, queries: make(map[*ast.SelectStmt]querySpan)}
	if !pl.st.is(0, "WITH") || pl.versions.to > 0 {
		return refusal(history.ReasonWith)
	}
	first, err := p.with(with, 0, len(pl.st.toks))
	if err != nil {
		return err
	}
	kept := len(pl.shares.inTheWay)
	pl.shareQueries(tree, with, p)
	visible, err := pl.observeParts(tree, with, p.common)
	if err != nil {
		return err
	}
	main, err := pl.main(tree, first, visible)
	if err != nil {
		return err
	}
	if pl.shares.shown(with); len(pl.shares.inTheWay) > kept {
		return refusal(history.ReasonWith)
	}
	return pl.around(with, main, first)
}

// observeParts has the parts tell what they write, as far as they can. It gives the names that the statement sees.
func (pl *planner) observeParts(tree ast.Stmt, with *ast.WithClause, at []commonPlace) (visible withNames, err error) {
	seen, observed := make(map[string]bool), false
	pl.clause = namesOf(with)
	for i, c := range nodes(with.Ctes) {
		def, ok := c.(*ast.CommonTableExpr)
		if !ok || seen[def.Ctename] {
			return visible, refusal(history.ReasonWith)
		}
		seen[def.Ctename] = true
		if kindOf(def.Ctequery) == history.Other {
			visible.add(pl, def)
			continue
		}
		p := &part{def: def, at: at[i], number: len(pl.parts) + 1,
			used: mentions(tree, def.Ctename) > mentions(def.Ctequery, def.Ctename)}
		pl.parts = append(pl.parts, p)
		if with.Recursive {
			return visible, refusal(history.ReasonWith) // it may name what stands behind it
		}
		if mergeShowsRowOf(tree, def.Ctename) {
			return visible, refusal(history.ReasonWholeRow)
		}
		if err := p.observe(pl, visible); err != nil {
			pl.downgrade(reasonOf(err))
		}
		pl.share(def.Ctequery, visible)
		visible.silent = append(visible.silent, def.Ctename)
		observed = observed || p.observed
	}
	if !observed {
		return visible, refusal(pl.plan.Reason)
	}
	return visible, nil
}

// mergeShowsRowOf reports whether a MERGE may return whole rows of a part, joined with others. Beside a row that has
// none of these PostgreSQL 18 shows NULL, and of a query that reads the part a row of NULLs.
func mergeShowsRowOf(tree ast.Stmt, part string) (shows bool) {
	n, ok := tree.(*ast.MergeStmt)
	if !ok {
		return false
	}
	var refs []string
	whole := pgtree.Walk(func(n ast.Node) bool {
		if v, ok := n.(*ast.RangeVar); ok && v.RelName == part {
			refs = append(refs, part)
			if v.Alias != nil {
				refs = append(refs, v.Alias.AliasName)
			}
		}
		return true
	}, n.SourceRelation)
	return !pgtree.Walk(func(n ast.Node) bool {
		ref, ok := n.(*ast.ColumnRef)
		shows = shows || ok && len(fields(ref)) == 1 && slices.Contains(refs, fields(ref)[0])
		return true
	}, n.ReturningList) || !whole || shows
}

// namesOf returns the names of the expressions of a WITH clause.
func namesOf(with *ast.WithClause) (names []string) {
	for _, c := range nodes(with.Ctes) {
		if def, ok := c.(*ast.CommonTableExpr); ok {
			names = append(names, def.Ctename)
		}
	}
	return names
}

// add adds the name of a query.
func (v *withNames) add(pl *planner, def *ast.CommonTableExpr) {
	q := &planner{rewriter: pl.rewriter, session: pl.session, silent: v.silent, ctes: v.reading}
	query, ok := def.Ctequery.(*ast.SelectStmt)
	u, err := pl.inspect(&ast.SubLink{Subselect: query})
	if ok && err == nil && !u.function && !q.readsBeside(u) {
		v.silent = append(v.silent, def.Ctename)
	} else {
		v.reading = append(v.reading, def.Ctename)
	}
}

// share takes note of the queries of the WITH clause that a part reads: these must stay as they are.
func (pl *planner) share(query ast.Node, visible withNames) {
	for _, name := range visible.reading {
		if mentions(query, name) > 0 {
			pl.shared = append(pl.shared, name)
		}
	}
}

// main has the statement itself tell what it reads and writes, and returns it without its WITH clause as it goes
// upstream.
func (pl *planner) main(tree ast.Stmt, first int, visible withNames) (ast.Stmt, error) {
	pl.ctes, pl.silent = visible.reading, visible.silent
	if n, ok := tree.(*ast.SelectStmt); ok {
		return pl.mainRead(n)
	}
	whole := pl.st
	pl.st = &statement{text: whole.text, toks: whole.toks[first:]}
	defer func() { pl.st = whole }()
	start, end := pl.st.span()
	own, err := parse(pl.readable(pl.st.source()))
	if err != nil {
		return nil, err
	}
	if pl.session.Version >= 18 {
		pl.versions = pl.st.versionNames()
	}
	if pl.plan.Result.Tag, err = tagOf(own); err != nil {
		return nil, err
	}
	if err := pl.write(own); err != nil {
		return nil, err
	}
	written, err := parse(pl.readable(spliced(pl.st.text, start, end, pl.sorted())))
	pl.edits = append(pl.edits, pl.shares.edits...)
	pl.shares.shown(own)
	return written, err
}

// mainRead has a SELECT tell what it reads.
func (pl *planner) mainRead(n *ast.SelectStmt) (ast.Stmt, error) {
	pl.plan.Result.Tag = "SELECT "
	parts := *pl.plan
	if err := pl.selectRows(n); err != nil {
		pl.edits, pl.plan.Result.Sources = slices.Clone(pl.shares.edits), nil
		pl.downgrade(reasonOf(err))
		again, err := parse(pl.readable(pl.st.source()))
		if err != nil {
			return nil, err
		}
		n = again.(*ast.SelectStmt)
	}
	if pl.plan.Observation == history.Nothing {
		pl.plan.Observation, pl.plan.Reason = parts.Observation, parts.Reason
	}
	pl.plan.Result.Reply = rewrite.Trimmed
	main := *n
	main.WithClause = nil
	pl.shares.looked[&main] = pl.shares.looked[n]
	pl.shares.shown(&main)
	return &main, nil
}

// withoutParts leaves out of a statement the parts of its WITH clause that write: these are proven with what is put
// around the statement. It returns what puts them back.
func withoutParts(n *ast.SelectStmt) func() {
	left := make(map[*ast.CommonTableExpr]ast.Node)
	if n.WithClause != nil {
		for _, c := range nodes(n.WithClause.Ctes) {
			if def, ok := c.(*ast.CommonTableExpr); ok && kindOf(def.Ctequery) != history.Other {
				left[def] = def.Ctequery
				def.Ctequery = nil
			}
		}
	}
	return func() {
		for def, query := range left {
			def.Ctequery = query
		}
	}
}

// tagOf is what the command tag of a statement that writes begins with.
func tagOf(tree ast.Stmt) (string, error) {
	switch tree.(type) {
	case *ast.InsertStmt:
		return "INSERT 0 ", nil
	case *ast.UpdateStmt:
		return "UPDATE ", nil
	case *ast.DeleteStmt:
		return "DELETE ", nil
	case *ast.MergeStmt:
		return "MERGE ", nil
	}
	return "", refusal(history.ReasonUnparsable)
}

// around puts the statement, which begins at token first and goes upstream as main, into a SELECT, and proves that it
// is read as that.
func (pl *planner) around(with *ast.WithClause, main ast.Stmt, first int) error {
	const head, lead = mainName + " AS MATERIALIZED (", ", "
	tail := ") SELECT " + mainRows + ".*, " + pl.told() + " AS " + partsName +
		" FROM (SELECT 1) AS isotap_one LEFT JOIN (SELECT " + mainName +
		".*, true AS " + rewrite.PresentColumnOf(pl.plan.Result.Tag) + " FROM " + mainName + ") AS " + mainRows + " ON true"
	wanted, err := parse("WITH " + head + "SELECT 1" + tail)
	if err != nil {
		return err
	}
	outer := wanted.(*ast.SelectStmt)
	holds := outer.WithClause.Ctes.Items[0].(*ast.CommonTableExpr)
	holds.Ctequery = main
	if outer.WithClause.Ctes.Items, err = pl.partsOf(with); err != nil {
		return err
	}
	outer.WithClause.Ctes.Append(holds)
	start, end := pl.st.span()
	at := pl.st.toks[first].Start
	pl.edits = slices.Insert(pl.edits, 0, edit{start: at, end: at, text: lead + head}) // before what the statement gets
	pl.insertAfter(len(pl.st.toks)-1, tail)
	if !pl.session.utf8() && slices.ContainsFunc(pl.edits, func(e edit) bool { return !ascii(e.text) }) {
		return refusal(history.ReasonCharset) // the schema spells names in UTF-8
	}
	tree, err := parse(pl.readable(spliced(pl.st.text, start, end, pl.sorted())))
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(tree, wanted) {
		return refusal(history.ReasonUnparsable)
	}
	return nil
}

// told returns the expression for what all parts tell, the last one first, and adds it to the plan. It is computed with
// the first row, when the window functions have seen the last.
func (pl *planner) told() string {
	sources := []Source{{Present: true}}
	array := ""
	for _, p := range slices.Backward(pl.parts) {
		switch {
		case !p.observed:
		case array == "":
			array = p.all()
		default:
			array = "pg_catalog.array_cat(" + array + ", " + p.all() + ")"
		}
		sources = append(sources, p.sources...)
		pl.plan.Session.Calls = pl.plan.Session.Calls || p.calls
	}
	sources[1].Joint, sources[1].Whole = len(sources)-1, true
	pl.plan.Result.Sources = append(pl.plan.Result.Sources, sources...)
	return "CASE WHEN pg_catalog.count(*) OVER () OPERATOR(pg_catalog.>) 0 AND pg_catalog.row_number() OVER () " +
		"OPERATOR(pg_catalog.=) 1 THEN " + array + " END"
}

// partsOf returns the expressions of the WITH clause as they go upstream.
func (pl *planner) partsOf(with *ast.WithClause) (ctes []ast.Node, err error) {
	for _, c := range nodes(with.Ctes) {
		ctes = append(ctes, c)
		i := slices.IndexFunc(pl.parts, func(p *part) bool { return ast.Node(p.def) == c && p.observed })
		if i < 0 {
			continue
		}
		p := pl.parts[i]
		p.def.Ctequery = p.query
		under, err := p.hide(pl)
		if err != nil {
			return nil, err
		}
		if under != nil {
			ctes = append(ctes, under)
		}
		pl.edits = append(pl.edits, p.edits...)
	}
	return ctes, nil
}

// write plans a statement that writes.
func (pl *planner) write(tree ast.Node) error {
	switch n := tree.(type) {
	case *ast.InsertStmt:
		return pl.insert(n)
	case *ast.UpdateStmt:
		return pl.update(n)
	case *ast.DeleteStmt:
		return pl.deleteRows(n)
	case *ast.MergeStmt:
		return pl.merge(n)
	}
	return refusal(history.ReasonUnparsable)
}
