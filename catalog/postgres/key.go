package postgres

import (
	"slices"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A unique is an index that no two rows have the same values in, at no moment: not one that is checked when a
// transaction ends, nor one of some rows.
type unique struct {
	index   string
	primary bool
	columns []string
}

func (r *relation) addUnique(index string, primary bool, column string) {
	if last := len(r.unique) - 1; last < 0 || r.unique[last].index != index {
		r.unique = append(r.unique, unique{index: index, primary: primary})
	}
	u := &r.unique[len(r.unique)-1]
	u.columns = append(u.columns, column)
}

// key returns the columns that tell the relation's own rows apart: the primary key's, or else those of the first
// unique index, by name, that can; nil where none does.
func (r *relation) key() []string {
	for _, primary := range []bool{true, false} {
		for _, u := range r.unique {
			if u.primary == primary && !slices.ContainsFunc(u.columns, r.isVague) {
				return u.columns
			}
		}
	}
	return nil
}

// isVague reports whether a column may be NULL, is an expression, or has equal values that look different.
func (r *relation) isVague(column string) bool {
	at := slices.IndexFunc(r.table.Columns, func(c sqlpostgres.Column) bool { return c.Name == column })
	return at < 0 || !r.table.Columns[at].NotNull || !r.tells[at]
}

// key returns the columns that tell the rows apart which a statement reaches through a table. Partitions go by the
// partitioned table's, for a row may move between them. An index is of one table: in a family of inheriting
// tables each must have the same.
func (b *builder) key(oid uint32, family []uint32) []string {
	if top := b.top(oid); top != nil {
		return top.key()
	}
	r := b.relations.get(oid)
	key := r.key()
	if r.kind == "p" {
		return key
	}
	for _, member := range family[1:] {
		if m := b.relations.get(member); m != nil && !slices.Equal(m.key(), key) {
			return nil
		}
	}
	return key
}
