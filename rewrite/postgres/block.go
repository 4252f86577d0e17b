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
	carried  bool // a star at the end of the select list holds the columns
	names    []string
	single   bool // an array of one identity at most
	repeated bool // a join may show one array in many rows
	lookup   bool // the row is looked up by its key, beside the rows of a view
}

// A block is one SELECT without set operators.
type block struct {
	n       *ast.SelectStmt
	rels    []*relation
	outer   []*relation    // those of the blocks around that it can name, innermost first: what a LATERAL query refers to
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
	// count is how many columns of the client's it surely has; counted says that there are no more.
	count   int
	counted bool
	added   int // columns of isotap's
	// keys are those of a grouping query's columns that it groups by, whole says that it gives one row.
	keys  []string
	whole bool
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
