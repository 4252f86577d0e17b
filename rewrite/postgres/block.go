package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// A sight is what can be seen of the rows of one base table: expressions of a block, or in the place of its
// columns one array.
type sight struct {
	source Source
	exprs  []string
	types  []string // of the expressions, as CAST spells them
	// text is the identity as an array's element; empty where there are arrays already.
	text     string
	nullable bool // there may be no row
	certain  bool // a query passes it outwards with each of its rows
	carried  bool // a star at the end of the select list holds the columns
	names    []string
	single   bool // an array of one identity at most
	repeated bool // a join may show one array in many rows
	lookup   bool // the row is looked up by its key, beside the rows of a view
	// within is the query in a FROM clause of whose subquery it shows the rows; nil: it is of no subquery. spelled is
	// its expression there, and unbounded says that nothing there bounds the time that it takes.
	within    *ast.SelectStmt
	spelled   spelling
	unbounded bool
	// lifted is what is shown in the statement's own list, of columns that the query passes outwards for it.
	lifted *lifted
}

// A block is one SELECT without set operators.
type block struct {
	n       *ast.SelectStmt
	rels    []*relation
	outer   []*relation    // those of outer blocks that it can name, innermost first: what LATERAL refers to
	grouped bool           // its rows stand for several
	unique  bool           // DISTINCT, to become GROUP BY
	lateral bool           // it may be computed anew for each row of what stands before it
	fixed   history.Reason // why nothing can be added to its columns
	union   []*block       // those of a UNION, to become a grouping
	sights  []*sight
}

// A relation is an item of a FROM clause that has columns.
type relation struct {
	node ast.Node // what is barred when its columns are in the way
	ref  string   // the name that its columns are qualified by; may be empty
	// base is the table, if it is one that is observed.
	base   *source
	sights []*sight
	// names are those of a query's own columns; open says that there may be others.
	names []string
	open  bool
	// types are those of a part's that writes, where all are columns of tables; nil where they are not known.
	types []outputColumn
	// count is how many columns of the client's it surely has; counted says that there are no more.
	count   int
	counted bool
	added   int // columns of isotap's
	// keys are those of a grouping query's columns that it groups by, whole says that it gives one row.
	keys  []string
	whole bool
	// explicit says that the names of its columns are all in the text. hangs says that it is computed anew for each row
	// of what stands before it, by columns of that.
	explicit, hangs bool
}

// A scope is what names of tables may mean beside tables: the expressions of a WITH clause, as far as a query
// sees them, and those around it.
type scope struct {
	up     *scope
	common []*common
}

// A common is a common table expression. It is looked at when a FROM clause first names it, and changed once
// however often it is named: one that nothing names is not read.
type common struct {
	def       *ast.CommonTableExpr
	sc        *scope // what its own query sees
	recursive bool   // it names itself
	looking   bool
	known     bool
	once      bool // it is named once
	shows     []*sight
	as        relation // its columns
}

// has reports whether the relation may have a column of that name.
func (rel *relation) has(name string) bool {
	return rel.open || slices.Contains(rel.names, name) || rel.base != nil && rel.base.has(name)
}

// held returns the relations whose columns a star of the block's select list holds: the block's own, or, where its
// qualifier names none of these, one of a block around, whose columns a star of a LATERAL query shows.
func (b *block) held(star *ast.ColumnRef) []*relation {
	within := func(rels []*relation) []*relation {
		return slices.DeleteFunc(slices.Clone(rels), func(rel *relation) bool { return !rel.within(star) })
	}
	if own := within(b.rels); len(own) > 0 || len(fields(star)) == 1 {
		return own
	}
	if around := within(b.outer); len(around) > 0 {
		return around[:1]
	}
	return nil
}

// expands reports whether a star of the block's select list is of the block's own relations.
func (b *block) expands(star *ast.ColumnRef) bool {
	return len(fields(star)) == 1 || slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.within(star) })
}

// columns is how many columns the client's select list surely has.
func (b *block) columns() int {
	if slices.ContainsFunc(nodes(b.n.FromClause), merges) {
		return len(nodes(b.n.TargetList))
	}
	n := 0
	for _, item := range nodes(b.n.TargetList) {
		held := 0
		if ref := star(item); ref != nil {
			for _, rel := range b.held(ref) {
				held += rel.count
			}
		}
		n += max(held, 1)
	}
	return n
}

// counted reports whether the client's select list surely has no more columns than that.
func (b *block) counted() bool {
	return len(nodes(b.n.ValuesLists)) == 0 && !slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		ref := star(item)
		if ref == nil {
			return false
		}
		held := b.held(ref)
		return len(held) == 0 || slices.ContainsFunc(nodes(b.n.FromClause), merges) ||
			slices.ContainsFunc(held, func(rel *relation) bool { return !rel.counted })
	})
}

// within reports whether a star holds the relation's columns.
func (rel *relation) within(star *ast.ColumnRef) bool {
	names := fields(star)
	return len(names) == 1 || names[len(names)-2] == rel.ref
}

// outputs returns the names of the block's columns, as far as they are known; open says that there may be others.
func (b *block) outputs() (names []string, open bool) {
	if b.n.TargetList == nil || len(nodes(b.n.ValuesLists)) > 0 {
		return nil, true
	}
	for _, item := range nodes(b.n.TargetList) {
		if ref := star(item); ref != nil {
			held := b.held(ref)
			open = open || len(held) == 0
			for _, rel := range held {
				open = open || rel.open
				names = append(names, rel.columnNames()...)
			}
			continue
		}
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return nil, true
		}
		name := t.Name
		if ref, ok := bare(t.Val).(*ast.ColumnRef); ok && name == "" {
			all := fields(ref)
			name = all[len(all)-1]
		}
		open = open || name == "" // it has a name of the server's choice
		names = append(names, name)
	}
	return names, open
}

// columnNames are the names of the relation's columns that are known.
func (rel *relation) columnNames() []string {
	if rel.base != nil {
		return rel.base.names
	}
	return rel.names
}

// merges reports whether an item of a FROM clause joins columns of two tables to one.
func merges(item ast.Node) bool {
	j, ok := bare(item).(*ast.JoinExpr)
	return ok && (j.IsNatural || j.UsingClause != nil || merges(j.Larg) || merges(j.Rarg))
}

// beyond reports whether a clause may name a column by a position behind the client's own columns.
func beyond(clause *ast.NodeList, columns int) bool {
	for _, item := range nodes(clause) {
		if s, ok := item.(*ast.SortBy); ok {
			item = s.Node
		}
		if c, ok := bare(item).(*ast.A_Const); ok {
			if i, ok := c.Val.(*ast.Integer); ok && i.IVal > columns {
				return true
			}
		}
		if set, ok := item.(*ast.GroupingSet); ok && beyond(set.Content, columns) {
			return true
		}
	}
	return false
}
