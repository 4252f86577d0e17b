package postgres

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// A walker goes through the FROM clause of a block.
type walker struct {
	*reading
	sc      *scope
	rels    []*relation
	joined  bool // there are several relations
	filters bool // what is read of a relation may depend on the block around
	around  *ast.SelectStmt
	again   *ast.RangeVar // the name in the FROM clause of a subquery that a copy has; nil: it is in no such clause
}

// relations returns the relations of a block's FROM clause in the order of the text. What cannot be seen of them is
// missed.
func (r *reading) relations(b *ast.SelectStmt, sc *scope) ([]*relation, error) {
	from := nodes(b.FromClause)
	w := &walker{reading: r, sc: sc, around: b, joined: len(from) > 1, filters: b != r.tree || b.WhereClause != nil}
	for _, n := range from {
		_, join := bare(n).(*ast.JoinExpr)
		w.joined = w.joined || join
	}
	for _, n := range from {
		if err := w.walk(n, false); err != nil {
			return nil, err
		}
	}
	for i, rel := range w.rels {
		for _, other := range w.rels[:i] {
			if other.ref == rel.ref && rel.ref != "" && len(rel.sights)+len(other.sights) > 0 {
				if other.base == nil || rel.base == nil {
					return nil, refusal(history.ReasonSameName)
				}
				r.markUnseen(history.ReasonSameName) // of tables of two schemas
				rel.sights, other.sights = nil, nil
			}
		}
	}
	return w.rels, nil
}

// walk adds the relations of an item. Those on the optional side of an outer join are nullable.
func (w *walker) walk(n ast.Node, nullable bool) error {
	switch n := bare(n).(type) {
	case *ast.RangeVar:
		return w.name(n, nullable)
	case *ast.RangeSubselect:
		return w.derived(n, nullable)
	case *ast.JoinExpr:
		if n.Alias != nil {
			w.markUnseen(history.ReasonJoinAlias) // it hides the tables' names
			w.rels = append(w.rels, &relation{ref: n.Alias.AliasName, open: true})
			return nil
		}
		full := n.Jointype == ast.JOIN_FULL
		if err := w.walk(n.Larg, nullable || full || n.Jointype == ast.JOIN_RIGHT); err != nil {
			return err
		}
		return w.walk(n.Rarg, nullable || full || n.Jointype == ast.JOIN_LEFT)
	case *ast.RangeTableSample:
		return w.walk(n.Relation, nullable)
	case *ast.RangeFunction:
		w.rels = append(w.rels, &relation{ref: aliasOf(n.Alias), open: true})
	case *ast.RangeTableFunc:
		w.rels = append(w.rels, &relation{ref: aliasOf(n.Alias), open: true})
	case *ast.JsonTable:
		w.rels = append(w.rels, &relation{ref: aliasOf(n.Alias), open: true})
	default:
		return refusal(history.ReasonFromItem)
	}
	return nil
}

// passesBy reports whether a query is told otherwise: a copy tells of others alone, or of this.
func (w *walker) passesBy(rel *relation) bool {
	if i := slices.IndexFunc(w.aside, func(o *relation) bool { return o.ref == rel.ref }); i >= 0 && w.around == w.tree {
		rel.names, rel.open = w.aside[i].names, w.aside[i].open
		return true
	}
	return w.inPlace(w.around) && w.only != nil && !slices.Contains(w.only, rel.ref)
}

func aliasOf(a *ast.Alias) string {
	if a == nil {
		return ""
	}
	return a.AliasName
}

// name adds what a name means: a common table expression or a table.
func (w *walker) name(n *ast.RangeVar, nullable bool) error {
	if n.SchemaName == "" {
		if c := w.sc.find(n.RelName); c != nil {
			if rel := (&relation{node: n, ref: refOf(n), open: true}); w.passesBy(rel) {
				w.rels = append(w.rels, rel)
				return nil
			}
			return w.common(c, n, nullable)
		}
	}
	rel := &relation{node: n, ref: refOf(n), open: true}
	w.rels = append(w.rels, rel)
	t, reason := w.table(n)
	if t == nil {
		if reason == history.ReasonView {
			return w.view(rel, n, nullable)
		}
		if !reason.IsZero() {
			w.markUnseen(reason)
		}
		return nil
	}
	s, err := w.sourceOf(t, n)
	if err != nil {
		return err
	}
	rel.base, rel.open, rel.count, rel.counted = &s, false, len(s.names), true
	shown, err := sightOf(&s)
	if err != nil {
		w.markUnseen(reasonOf(err))
		return nil
	}
	shown.nullable = nullable
	rel.sights = []*sight{shown}
	return nil
}

// sightOf is what can be seen of a table's rows.
func sightOf(s *source) (*sight, error) {
	id, err := readIdentity(s)
	if err != nil {
		return nil, err
	}
	out := &sight{source: id.source(s), exprs: id.exprs, text: textOf(id.items, id.exprs)}
	key := 0
	for _, item := range id.items {
		t := "pg_catalog.text"
		switch item {
		case ItemTable:
			t = "pg_catalog.oid"
		case ItemTID:
			t = "pg_catalog.tid"
		case ItemXID:
			t = "pg_catalog.xid"
		case ItemTag:
		case ItemKeyUUID:
			t = "pg_catalog.uuid"
			key++
		case ItemKeyHex:
			key++
		default:
			t = "pg_catalog." + s.table.Column(s.table.Key[key]).Type
			key++
		}
		out.types = append(out.types, t)
	}
	return out, nil
}

// textOf joins the values of items to one text, as an array's element has it.
func textOf(items []Item, exprs []string) string {
	var b strings.Builder
	b.WriteString("pg_catalog.concat_ws(';'")
	for i, e := range exprs {
		b.WriteString(", ")
		if items[i] != ItemKeyText {
			b.WriteString(e)
			continue
		}
		for range 3 {
			b.WriteString("pg_catalog.replace(")
		}
		b.WriteString(e + `, E'\\', E'\\\\'), ',', E'\\,'), ';', E'\\;')`)
	}
	return b.String() + ")"
}

// derived adds a query in the place of a table.
func (w *walker) derived(n *ast.RangeSubselect, nullable bool) error {
	rel := &relation{node: n, ref: aliasOf(n.Alias), open: true}
	w.rels = append(w.rels, rel)
	query, ok := n.Subquery.(*ast.SelectStmt)
	if reason := w.barred[n]; !reason.IsZero() || !ok {
		w.markUnseen(reason)
		return nil
	}
	if w.passesBy(rel) {
		return nil
	}
	if n.Alias != nil {
		w.ask(query, n.Alias.AliasName, nodes(n.Alias.ColNames), nullable)
	}
	if w.unasked(query, nullable) {
		w.unread = true
		w.markUnseen(history.ReasonPlan)
		return nil
	}
	if n.Lateral {
		w.lateral++
		defer func() { w.lateral-- }()
	}
	w.alone[query] = w.stands(n, query, nullable)
	blocks, err := w.lateralBlocks(n.Lateral, query)
	if err != nil {
		return err
	}
	rel.describe(blocks)
	rel.hangs = n.Lateral && !nullable && hangsOn(query, w.rels[:len(w.rels)-1])
	if n.Alias != nil {
		if err := renamed(rel, n.Alias.ColNames, blocks); err != nil {
			return &queryRefusal{n, reasonOf(err)}
		}
	}
	if reason := w.priced(all(blocks)); !reason.IsZero() && !w.isLast(n, blocks[0]) {
		return &queryRefusal{n, reason}
	}
	shows, err := w.outwards(blocks, all(blocks), n)
	if err != nil {
		return err
	}
	w.take(rel, shows, nullable)
	return nil
}

// hangsOn reports whether a LATERAL query of tables surely names columns of relations that stand before it. One with a
// query within, or of several, may read some rows for whatever row stands before it.
func hangsOn(query *ast.SelectStmt, before []*relation) bool {
	own, plain := make(map[string]bool), query.Op == ast.SETOP_NONE
	var qualifiers []string
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeSubselect:
			plain = false
		case *ast.RangeVar:
			own[n.RelName] = true
		case *ast.Alias:
			own[n.AliasName] = true
		case *ast.ColumnRef:
			if names := fields(n); len(names) == 2 {
				qualifiers = append(qualifiers, names[0])
			}
		}
		return plain
	}, query)
	return whole && plain && slices.ContainsFunc(qualifiers, func(name string) bool {
		return !own[name] && slices.ContainsFunc(before, func(rel *relation) bool { return rel.ref == name })
	})
}

// lateralBlocks looks at a query in the FROM clause. A LATERAL one may name the relations that stand before it; any may
// name what the block itself may name around.
func (w *walker) lateralBlocks(lateral bool, query *ast.SelectStmt) ([]*block, error) {
	outer := w.outer
	defer func() { w.outer = outer }()
	if lateral {
		w.outer = append(slices.Clone(w.rels[:len(w.rels)-1]), outer...)
	}
	return w.query(query, w.sc)
}

// renamed takes the column names of an alias into account. Too many of them are an error as long as isotap
// adds no columns.
func renamed(rel *relation, aliases *ast.NodeList, blocks []*block) error {
	list := nodes(aliases)
	if len(list) == 0 || len(all(blocks)) == 0 {
		return nil
	}
	if len(list) > rel.count {
		return refusal(history.ReasonColumnNames)
	}
	rel.rename(list)
	return nil
}

// rename gives the relation's first columns other names.
func (rel *relation) rename(list []ast.Node) {
	rel.names, rel.keys = slices.Clone(rel.names), slices.Clone(rel.keys)
	for i, a := range list {
		s, ok := a.(*ast.String)
		switch {
		case !ok:
		case rel.open || i >= len(rel.names):
			rel.names = append(rel.names, s.SVal)
			rel.keys = nil
		default:
			for k := range rel.keys {
				if rel.keys[k] == rel.names[i] {
					rel.keys[k] = s.SVal
				}
			}
			rel.names[i] = s.SVal
		}
	}
}

// describe takes over a query's columns from its first block.
func (rel *relation) describe(blocks []*block) {
	b := blocks[0]
	rel.names, rel.open = b.outputs()
	rel.count, rel.counted, rel.explicit = b.columns(), b.counted(), b.explicit()
	if len(blocks) == 1 {
		rel.keys, rel.whole = b.keys(), b.oneRow()
	}
}

// outwards has the blocks of a query in a FROM clause show what they see under names of their own, and returns
// that with these names as expressions.
func (w *walker) outwards(blocks []*block, shown []*sight, node ast.Node) ([]*sight, error) {
	var out, added []*sight
	for _, s := range carriedFirst(shown) {
		seen := *s
		if !s.carried {
			s.names = nil
			for range s.exprs {
				w.reading.columns++
				s.names = append(s.names, rewrite.CarriedPrefix+strconv.Itoa(w.reading.columns))
			}
			added = append(added, s)
		}
		if s.source.Array && !s.carried && blocks[0].oneRow() {
			s.exprs = []string{"COALESCE(" + s.exprs[0] +
				", '{}'::pg_catalog.text[])"} // NULL is what a row has that did not come through
		}
		seen.names, seen.carried = s.names, false
		seen.nullable = s.nullable || len(blocks) > 1
		out = append(out, &seen)
	}
	return out, w.extend(blocks, added)
}

// take gives a relation what a query passes outwards, under the name that the query has here.
func (w *walker) take(rel *relation, shows []*sight, nullable bool) {
	if len(shows) == 0 {
		return
	}
	w.wide = append(w.wide, wideName{rel, rel.node})
	for _, s := range shows {
		if s.lifted != nil {
			rel.sights = append(rel.sights, s.above(rel.ref, w.st))
			rel.added += len(s.names)
			continue
		}
		here := *s
		here.exprs, here.spelled, here.nullable = nil, nil, s.nullable || nullable
		here.certain = !s.nullable && !s.source.Array && s.within == nil && s.lifted == nil
		for _, name := range s.names {
			if rel.ref != "" {
				name = quoted(rel.ref) + "." + name
			}
			here.exprs = append(here.exprs, name)
		}
		rel.added += len(here.exprs)
		switch {
		case here.single:
			here.text = here.exprs[0] + "[1]"
		case s.source.Marked:
			here.text = here.exprs[0]
		case s.within != nil:
			here.text = ""
			if !s.unbounded && !s.source.Whole {
				here.text = "pg_catalog.array_to_string(" + here.exprs[0] + ", '" + ElementSeparator + "')"
			}
		case here.source.Array:
			here.again(w.joined)
			here.source.Whole = here.source.Whole || rel.whole
		default:
			here.text = textOf(here.source.Physical.Items, here.exprs)
		}
		rel.sights = append(rel.sights, &here)
	}
}

// A view stays where it stands: what it is, who may read it and with whose rights it reads is the server's to know, at
// the moment when the statement runs. Beside each of its rows those of its tables are looked up by their keys, where it
// shows these: in the statement's own snapshot they are the ones that the view's row was made of (ADR 35).

// lookupName is that of a table whose rows are looked up.
const lookupName = "isotap_base"

// view adds a view, with what its rows tell of those that they are made of.
func (w *walker) view(rel *relation, n *ast.RangeVar, nullable bool) error {
	t, _ := w.lookup(n)
	s, err := sourceOf(t, n)
	if err != nil {
		return err
	}
	rel.base, rel.open, rel.count, rel.counted = &s, false, len(s.names), true
	if !t.OtherSources.IsZero() {
		w.markUnseen(t.OtherSources)
	}
	for i := range t.Bases {
		shown, err := w.lookUp(&s, &t.Bases[i])
		if err != nil {
			w.markUnseen(reasonOf(err))
			continue
		}
		shown.nullable = nullable
		rel.sights = append(rel.sights, shown)
	}
	return nil
}

// lookUp is what is seen of a table's row by looking it up beside a row of a view.
func (w *walker) lookUp(view *source, base *Base) (*sight, error) {
	if reason := w.waits(); !reason.IsZero() {
		return nil, refusal(reason)
	}
	name := &ast.RangeVar{SchemaName: base.Table.Schema, RelName: base.Table.Table, Inh: !base.Only,
		Alias: &ast.Alias{AliasName: lookupName}}
	t, reason := w.table(name)
	if t == nil {
		return nil, refusal(cmp.Or(reason, history.ReasonView))
	}
	if slices.ContainsFunc(w.indexesOf(t), w.orders) {
		return nil, refusal(history.ReasonPlan)
	}
	s, err := w.sourceOf(t, name)
	if err != nil {
		return nil, err
	}
	row, err := sightOf(&s)
	if err != nil {
		return nil, err
	}
	where, err := sameKey(&s, view, base.Key)
	if err != nil {
		return nil, err
	}
	only := ""
	if base.Only {
		only = "ONLY "
	}
	query := "(SELECT " + row.text + " FROM " + only + quoted(base.Table.Schema) + "." + quoted(base.Table.Table) +
		" AS " + lookupName + " WHERE " + where + ")"
	return &sight{source: Source{Table: row.source.Table, Array: true, Physical: row.source.Physical},
		exprs: []string{"ARRAY" + query}, types: []string{"pg_catalog.text[]"}, text: query, single: true,
		lookup: true}, nil
}

// waits returns the reason why looking up would not be of the same moment as the view's rows are, or would lock more.
func (w *walker) waits() history.Reason {
	if w.session.Serializable {
		return history.ReasonPlan // the pages of the keys' indexes
	}
	for i := range w.st.toks {
		if w.st.is(i, "FOR") {
			return history.ReasonLockedView // having waited for a row, the server goes on with a later version of it
		}
	}
	return history.Reason{}
}

// sameKey is the condition that a row of a table has the key that a view's row shows in some columns.
func sameKey(s, view *source, columns []string) (string, error) {
	if len(columns) != len(s.table.Key) {
		return "", refusal(history.ReasonView)
	}
	var all []string
	for i, column := range s.table.Key {
		here, err := s.column(column)
		if err != nil {
			return "", err
		}
		shown, err := view.column(columns[i])
		if err != nil {
			return "", err
		}
		all = append(all, s.columnOf(here)+" OPERATOR(pg_catalog.=) "+view.columnOf(shown))
	}
	return strings.Join(all, " AND "), nil
}

// looksUp reports whether rows are looked up beside those of the relation, and of the views in it.
func (rel *relation) looksUp() bool {
	return slices.ContainsFunc(rel.sights, func(s *sight) bool { return s.lookup })
}

// looksUp reports so of the block's relations: what their views do to make a row is not known.
func (b *block) looksUp() bool { return slices.ContainsFunc(b.rels, (*relation).looksUp) }
