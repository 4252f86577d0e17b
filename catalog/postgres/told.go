package postgres

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// What a plain definition makes of a table its text tells ([rewrite.TableDefinition]). Such a table stays pending, and
// is read as all others are; but until then nobody waits for that, since [Cache.Table] has what was told. The reading
// is right where both differ.

// A told table is one that was made since the current snapshot, by definitions that tell all of it. It is never
// changed once it is stored.
type told struct {
	role    string // who made it
	columns []rewrite.Column
	indexes []rewrite.Index
	table   *sqlpostgres.Table
}

// addsNothing reports whether the server's definitions are what their texts say: nothing is there that reacts to them
// or stands for what they leave out.
func (r *reading) addsNothing() bool { return r.prints != nil && r.prints[ofAdditions] == print{} }

// tell returns the table that a definition tells, once it was carried out; nil where that is not certain. It is to be
// asked before the definition's own names are pending.
func (p *pending) tell(s *snapshot, d *rewrite.TableDefinition) *told {
	n := name{d.Table.Schema, d.Table.Table}
	before := p.told[n]
	switch {
	case p.any || !s.read.addsNothing():
		return nil
	case d.Creates && before == nil && (s.tables.get(n) == nil || p.touches(n)):
		before = &told{role: d.Role, columns: d.Columns}
	case d.Creates || before == nil:
		return nil // it is another table than isotap takes it for, or one that the server has described
	}
	next := *before
	if d.Index != nil && !next.add(*d.Index) {
		return nil
	}
	if d.Role != "" && d.Role != next.role {
		return nil
	}
	next.table = next.describe(n)
	return &next
}

// add adds an index. It reports whether it is one of the columns.
func (t *told) add(x rewrite.Index) bool {
	columns := slices.Clone(t.columns)
	for _, name := range x.Columns {
		c := rewrite.ColumnNamed(columns, name)
		if c == nil {
			return false
		}
		c.NotNull = c.NotNull || x.Primary
	}
	t.columns, t.indexes = columns, append(slices.Clip(t.indexes), x)
	return true
}

// describe returns the table as the answer to [readSimple] would have it, but for its oid.
func (t *told) describe(n name) *sqlpostgres.Table {
	const oid = "1"
	flag := map[bool]string{true: "t", false: "f"}
	parts := simpleParts{columns: map[string]map[string]string{oid: {}}}
	parts.relations = []row{{oid, n.schema, n.table, "r", "f", "f", "0", "0", "heap", "p"}}
	numbers := make(map[string]string, len(t.columns))
	for i, c := range t.columns {
		number := strconv.Itoa(i + 1)
		numbers[c.Name], parts.columns[oid][number] = number, c.Name
		parts.attributes = append(parts.attributes, row{oid, c.Name, c.Type, c.Full, c.Collation, flag[c.NotNull], "f",
			number, "f", "t", "", "f", "f"})
	}
	for _, x := range t.indexes {
		for _, column := range x.Columns {
			parts.indexed = append(parts.indexed, row{oid, x.Name, flag[x.Primary], flag[x.Unique], "t", numbers[column],
				flag[x.Unique], ""})
		}
	}
	described := readingOf(parts.results(), nil).tables()[n]
	described.OID, described.MadeBy = 0, t.role
	return described
}

// untell forgets what was told of tables of a name, in which a schema or a table that is empty stands for any.
func (p *pending) untell(n name) {
	switch {
	case len(p.told) == 0:
	case n.schema != "" && n.table != "":
		delete(p.told, n)
	default:
		maps.DeleteFunc(p.told, func(t name, _ *told) bool {
			return (n.schema == "" || n.schema == t.schema) && (n.table == "" || n.table == t.table)
		})
	}
}

// tells returns what was told of a table; nil: nothing was. A nil pending has none.
func (p *pending) tells(n name) *sqlpostgres.Table {
	if p != nil {
		if t := p.told[n]; t != nil {
			return t.table
		}
	}
	return nil
}

// isTold reports whether all that is pending was told.
func (p *pending) isTold() bool {
	return p != nil && !p.any && !p.functions && len(p.tables) == len(p.told) // of which all are among these
}

// untold returns the tables that are no longer told in p, and were.
func (p *pending) untold(before map[name]*told) (tables []*told) {
	for n, t := range before {
		if p.told[n] == nil {
			tables = append(tables, t)
		}
	}
	return tables
}

// named returns the tables told that a change may name.
func (p *pending) named(ch *rewrite.SchemaChange) (tables []*told) {
	for n, t := range p.told {
		if slices.ContainsFunc(slices.Concat(ch.Made, ch.Named), func(is rewrite.TableName) bool {
			return is.Table == n.table && (is.Schema == "" || is.Schema == n.schema)
		}) {
			tables = append(tables, t)
		}
	}
	return tables
}

// misled reports whether a snapshot in which all of p was read has another table than was told, or one that who made it
// may not read.
func (p *pending) misled(s *snapshot) bool {
	if p == nil {
		return false
	}
	for n, t := range p.told {
		is := s.tables.get(n)
		if is == nil {
			return true
		}
		like := *is
		like.OID, like.MadeBy, like.Rows = 0, t.role, 0
		if known, asked := s.rights[t.role]; asked && !known.of(is.OID).reads || !reflect.DeepEqual(&like, t.table) {
			return true
		}
	}
	return false
}
