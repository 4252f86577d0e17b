package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// The names of a part that what names it sees otherwise, and of its columns.
const (
	partName      = "isotap_part_"
	partColumn    = "isotap_column_"
	partWritten   = rewrite.WrittenColumn
	partWrittenAs = " AS " + partWritten
)

// kindOf is what a statement of a WITH clause does that writes; Other: it does not.
func kindOf(query ast.Node) history.Kind {
	switch query.(type) {
	case *ast.InsertStmt:
		return history.Insert
	case *ast.UpdateStmt, *ast.MergeStmt:
		return history.Update
	case *ast.DeleteStmt:
		return history.Delete
	}
	return history.Other
}

// observe has a part tell what it writes. Names before it are those of its WITH clause that it sees.
func (p *part) observe(pl *planner, visible withNames) error {
	from := &statement{text: pl.st.text, toks: pl.st.toks[p.at.opening+1 : p.at.closing]}
	if from.is(0, "WITH") && pl.hidesNames(p.def.Ctequery) {
		return refusal(history.ReasonWith)
	}
	own := &planner{rewriter: pl.rewriter, session: pl.session, st: from, masked: pl.masked,
		ctes: slices.Clip(visible.reading), silent: visible.silent, shares: pl.shares,
		plan: &Plan{Statement: rewrite.Statement{Kind: kindOf(p.def.Ctequery), Observation: history.Exact}}, part: p}
	if own.session.Version >= 18 {
		own.versions = from.versionNames()
	}
	if err := own.write(p.def.Ctequery); err != nil {
		return err
	}
	start, end := from.span()
	query, err := parse(own.readable(spliced(from.text, start, end, own.sorted())))
	if err != nil {
		return err
	}
	if own.plan.Observation != history.Exact {
		pl.downgrade(own.plan.Reason)
	}
	p.query, p.calls, p.edits, p.sources, p.observed = query, own.plan.Session.Calls, own.edits,
		own.plan.Result.Sources, true
	for i := range p.sources {
		p.sources[i].Array, p.sources[i].Joint, p.sources[i].Kind = true, -1, own.plan.Kind
	}
	return nil
}

// hidesNames reports whether a part has a query of a WITH clause of its own that goes by the name of one of the
// statement's: what that name means would hang on where it stands.
func (pl *planner) hidesNames(query ast.Node) (hides bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		def, ok := n.(*ast.CommonTableExpr)
		hides = hides || ok && slices.Contains(pl.clause, def.Ctename)
		return !hides
	}, query)
	return hides || !whole
}

// within adds the array of identities to the rows of a part.
func (w *write) within(p *part) error {
	if err := w.id.key(&w.target); err != nil {
		return err
	}
	w.id.add(ItemLSN, logPosition)
	if w.returnsImages(w.target.table) && w.plan.Kind != history.Delete {
		w.id.add(ItemImageHex, "COALESCE(pg_catalog.encode(pg_catalog.convert_to("+w.image()+", 'UTF8'), 'hex'), '')")
	}
	texts := []string{textOf(w.id.items, w.id.definite())}
	w.plan.Result.Sources = append(w.plan.Result.Sources, w.id.source(&w.target))
	for i := range w.read {
		id, err := readIdentity(&w.read[i])
		if err != nil {
			return err
		}
		texts = append(texts, "CASE WHEN "+id.exprs[0]+" IS NOT NULL THEN "+textOf(id.items, id.exprs)+" END")
		w.plan.Result.Sources = append(w.plan.Result.Sources, id.source(&w.read[i]))
	}
	for _, s := range w.sights {
		text := s.text
		if s.nullable {
			text = "CASE WHEN " + s.exprs[0] + " IS NOT NULL THEN " + text + " END"
		}
		texts = append(texts, text)
		w.plan.Result.Sources = append(w.plan.Result.Sources, s.source)
	}
	names, known := w.outputNames()
	switch {
	case p.used && len(w.client) == 0: // an error
		return refusal(history.ReasonWith)
	case !known && (p.used || len(nodes(p.def.Aliascolnames)) > 0),
		len(nodes(p.def.Aliascolnames)) > len(names), len(names) >= maxTargets:
		return refusal(history.ReasonColumnNames)
	}
	p.names = names
	if p.types = w.outputTypes(); len(p.types) != len(names) || len(nodes(p.def.Aliascolnames)) > 0 {
		p.types = nil
	}
	lead := " RETURNING "
	if len(w.client) > 0 {
		lead = ", "
	}
	item := w.written(texts)
	w.insertSpelled(len(w.st.toks)-1, lead, item)
	return w.proven(item.in(w.st))
}

// written spells the array of what a part tells with one of its rows: texts, and one of each source of the columns.
func (w *write) written(texts []string) (s spelling) {
	s.text("ARRAY[" + strings.Join(texts, ", "))
	var joint []column
	for _, c := range w.columns {
		if len(c.sources) > 1 {
			joint = append(joint, c)
			continue
		}
		s.text(", ")
		s = append(s, c.edits...)
		w.plan.Result.Sources = append(w.plan.Result.Sources, c.sources...)
	}
	s.text("]")
	for _, c := range joint {
		s.text(" OPERATOR(pg_catalog.||) COALESCE(")
		s = append(s, c.edits...)
		s.text(", pg_catalog.array_fill(NULL::pg_catalog.text, ARRAY[" + strconv.Itoa(len(c.sources)) + "]))")
		w.plan.Result.Sources = append(w.plan.Result.Sources, c.sources...)
	}
	s.text(partWrittenAs)
	return s
}

// definite returns the expressions with a text in the place of NULL, where there may be no such version.
func (id *identity) definite() []string {
	out := slices.Clone(id.exprs)
	for i, item := range id.items {
		switch item {
		case ItemTID, ItemXID, ItemNewTID, ItemNewXID, ItemTag, ItemNewTags:
			out[i] = "COALESCE((" + out[i] + ")::pg_catalog.text, '')"
		}
	}
	return out
}

// name returns the name by which the part goes upstream.
func (p *part) name() string {
	if !p.used {
		return quoted(p.def.Ctename)
	}
	return partName + strconv.Itoa(p.number)
}

// hide gives the part another name, and its own to a query that has no more than the columns that it returned.
func (p *part) hide(pl *planner) (under *ast.CommonTableExpr, err error) {
	if !p.used {
		return nil, nil
	}
	var columns []string
	for i := range p.names {
		columns = append(columns, partColumn+strconv.Itoa(i+1))
	}
	shown := slices.Clone(p.names)
	for i, alias := range nodes(p.def.Aliascolnames) {
		s, ok := alias.(*ast.String)
		if !ok {
			return nil, refusal(history.ReasonUnparsable)
		}
		shown[i] = s.SVal
	}
	list := strings.Join(columns, ", ")
	head := p.name() + " (" + list + ", " + partWritten + ")"
	query := quoted(p.def.Ctename) + " (" + listed(shown) + ") AS NOT MATERIALIZED (SELECT " + list + " FROM " +
		p.name() + ")"
	last := p.at.name
	if pl.st.mark(last+1, "(") {
		last = pl.st.closing(last + 1)
	}
	p.edits = append(p.edits, edit{start: pl.st.toks[p.at.name].Start, end: pl.st.toks[last].End, text: head})
	at := pl.st.toks[p.at.closing].End
	p.edits = append(p.edits, edit{start: at, end: at, text: ", " + query})
	wanted, err := parse("WITH " + head + " AS (SELECT 1), " + query + " SELECT 1")
	if err != nil {
		return nil, err
	}
	ctes := nodes(wanted.(*ast.SelectStmt).WithClause.Ctes)
	renamed := ctes[0].(*ast.CommonTableExpr)
	p.def.Ctename, p.def.Aliascolnames = renamed.Ctename, renamed.Aliascolnames
	return ctes[1].(*ast.CommonTableExpr), nil
}

// maxPart is how many bytes of identities a part tells at most.
const maxPart = 16 << 20

// all returns a query for what the part tells: an array of texts, one for each of its sources.
func (p *part) all() string {
	var texts []string
	for i, s := range p.sources {
		one := partWritten + "[" + strconv.Itoa(i+1) + "]"
		text := "pg_catalog.string_agg(" + one + ", '" + ElementSeparator + "')"
		if s.Beside && s.Whole { // the same with each row
			text = "pg_catalog.max(" + one + ")"
		}
		text += " FILTER (WHERE bytes OPERATOR(pg_catalog.<=) " + strconv.Itoa(maxPart) + ")"
		if i == 0 {
			text = "pg_catalog.concat_ws('" + ElementSeparator + "', " + text +
				", CASE WHEN pg_catalog.max(bytes) OPERATOR(pg_catalog.>) " + strconv.Itoa(maxPart) + " THEN '" +
				Lacking + "' END)"
		}
		texts = append(texts, text)
	}
	return "(SELECT ARRAY[" + strings.Join(texts, ", ") + "] FROM (SELECT " + partWritten +
		", pg_catalog.sum(pg_catalog.pg_column_size(" + partWritten +
		")) OVER (ROWS UNBOUNDED PRECEDING) AS bytes FROM " + p.name() + ") AS isotap_rows)"
}

// outputNames returns the names of the columns that the client's RETURNING clause has; not known where they may be
// others.
func (w *write) outputNames() (names []string, known bool) {
	for _, item := range w.client {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return nil, false
		}
		if ref := star(item); ref != nil {
			more, ok := w.starNames(fields(ref))
			if !ok {
				return nil, false
			}
			names = append(names, more...)
			continue
		}
		name, ok := columnName(t)
		if !ok {
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

// outputTypes returns the columns that the client's RETURNING clause has, if all are columns of tables as they are.
func (w *write) outputTypes() (types []outputColumn) {
	b := &block{n: &ast.SelectStmt{FromClause: w.from}}
	for _, s := range append([]source{w.target}, w.read...) {
		b.rels = append(b.rels, &relation{ref: s.ref, base: &s})
	}
	for _, item := range w.client {
		t, ok := item.(*ast.ResTarget)
		if ref := star(item); !ok || w.merges || ref != nil && len(fields(ref)) == 1 && w.others != len(w.read) {
			return nil
		}
		more := b.columnsOf(t)
		if len(more) == 0 {
			return nil
		}
		types = append(types, more...)
	}
	return types
}

// starNames returns the columns of a star.
func (w *write) starNames(ref []string) (names []string, known bool) {
	tables := append([]source{w.target}, w.read...)
	if len(ref) == 1 {
		if w.merges {
			return nil, false
		}
		if w.others != len(w.read) {
			return w.namesInFrom()
		}
		for _, s := range tables {
			names = append(names, s.names...)
		}
		return names, true
	}
	if w.session.Version >= 18 && (ref[0] == w.versions.old || ref[0] == w.versions.new) &&
		!slices.ContainsFunc(tables, func(s source) bool { return w.versions.hide(s.ref) }) {
		return w.target.names, len(ref) == 2
	}
	i := slices.IndexFunc(tables, func(s source) bool { return s.ref == ref[0] })
	if i < 0 || len(ref) != 2 {
		return nil, false
	}
	return tables[i].names, true
}

// namesInFrom returns the columns of the target and of a FROM or USING clause of tables and calls of unnest, which give
// one column each. It reports whether they are known.
func (w *write) namesInFrom() (names []string, known bool) {
	names = slices.Clone(w.target.names)
	for _, item := range nodes(w.from) {
		switch item := item.(type) {
		case *ast.RangeVar:
			i := slices.IndexFunc(w.read, func(s source) bool { return s.ref == refOf(item) })
			if i < 0 {
				return nil, false
			}
			names = append(names, w.read[i].names...)
		case *ast.RangeFunction:
			name, ok := unnested(item)
			if !ok {
				return nil, false
			}
			names = append(names, name)
		default:
			return nil, false
		}
	}
	return names, w.joined == nil
}

// unnested returns the name of the column of a call of unnest that has one, since its array is of numbers, texts or
// UUIDs.
func unnested(f *ast.RangeFunction) (name string, ok bool) {
	functions := nodes(f.Functions)
	if f.Ordinality || f.ColDefList != nil || len(functions) != 1 || f.Alias == nil || len(nodes(f.Alias.ColNames)) != 1 {
		return "", false
	}
	if list, ok := functions[0].(*ast.NodeList); ok && len(nodes(list)) > 0 {
		functions = nodes(list)[:1]
	}
	call, ok := functions[0].(*ast.FuncCall)
	if !ok || lastName(call.Funcname) != "unnest" || len(nodes(call.Args)) != 1 {
		return "", false
	}
	cast, ok := bare(nodes(call.Args)[0]).(*ast.TypeCast)
	if !ok || cast.TypeName == nil || len(nodes(cast.TypeName.ArrayBounds)) == 0 ||
		!slices.Contains([]string{"int2", "int4", "int8", "text", "uuid"}, lastName(cast.TypeName.Names)) {
		return "", false
	}
	column, ok := nodes(f.Alias.ColNames)[0].(*ast.String)
	if !ok {
		return "", false
	}
	return column.SVal, true
}

// columnName is the name that the server gives to an item of a list ("FigureColname"), as far as it is the same in all
// versions.
func columnName(t *ast.ResTarget) (string, bool) {
	if t.Name != "" {
		return t.Name, true
	}
	switch n := bare(t.Val).(type) {
	case *ast.ColumnRef:
		all := fields(n)
		return all[len(all)-1], true
	case *ast.FuncCall:
		names := nodes(n.Funcname)
		last, ok := names[len(names)-1].(*ast.String)
		if !ok || n.Funcformat != ast.COERCE_EXPLICIT_CALL {
			return "", false
		}
		return last.SVal, true
	case *ast.A_Expr:
		return "?column?", n.Kind == ast.AEXPR_OP
	case *ast.A_Const:
		switch n.Val.(type) {
		case *ast.Integer, *ast.Float, *ast.String:
			return "?column?", true
		}
	case *ast.ParamRef:
		return "?column?", true
	case *ast.MergeSupportFunc:
		return "merge_action", true
	}
	return "", false
}

// columns returns the part's columns as a query in a FROM clause has them.
func (p *part) columns() relation {
	return relation{names: p.names, types: p.types, open: !p.observed, count: len(p.names), counted: p.observed}
}
