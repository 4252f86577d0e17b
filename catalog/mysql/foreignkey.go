package mysql

import (
	"slices"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A reference names a foreign key by its table and its own name.
type reference struct {
	child      name
	constraint string
}

// A foreignKey of table child acts on it when parent is written.
type foreignKey struct {
	reference
	parent                         name
	cascadesUpdate, cascadesDelete bool
	references                     []string // columns of parent; nil: not known which
}

func (r *reading) addForeignKey(child name, row row) {
	parent := r.cache.name(row[2], row[3])
	if r.only != nil && child != *r.only {
		return
	}
	r.foreignKeys = append(r.foreignKeys, foreignKey{reference: reference{child, row[6]}, parent: parent,
		cascadesUpdate: acts(row[4]), cascadesDelete: acts(row[5])})
}

func (r *reading) addReferenced(child name, row row) {
	k := reference{child, row[2]}
	r.references[k] = append(r.references[k], row[3])
}

// acts reports whether a foreign key's rule makes the server write rows of the child.
func acts(rule string) bool {
	switch rule {
	case "CASCADE", "SET NULL", "SET DEFAULT":
		return true
	}
	return false
}

// reactsTo returns the columns of the parent, nil if that is not known, updates of which the foreign key reacts to, as
// [sqlmysql.Table].CascadesUpdate has them.
func (k *foreignKey) reactsTo(parent *sqlmysql.Table) []string {
	computed := func(column string) bool {
		c := parent.Column(column)
		return c == nil || c.Generated
	}
	if parent == nil || len(k.references) == 0 || slices.ContainsFunc(k.references, computed) {
		return []string{""}
	}
	return k.references
}
