package postgres

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A relation is what the catalog says of one table or view by itself.
type relation struct {
	name  name
	kind  string        // pg_class.relkind
	table rewrite.Table // without what other relations make of it
	// onRow and onStatement are the events that triggers fire on.
	onRow, onStatement events
	numbers            []int  // pg_attribute.attnum of table.Columns
	tells              []bool // of table.Columns: equal values look the same
	unique             []unique
	filenode           uint32  // of the file that holds its rows; 0: none does
	query              *stored // of a view
	// stored are the names of all columns, and ours the defaults of those that are isotap's.
	stored []string
	ours   map[string]string
}

// events are a set of INSERT, UPDATE and DELETE.
type events struct{ insert, update, delete bool }

func (e events) or(f events) events {
	return events{e.insert || f.insert, e.update || f.update, e.delete || f.delete}
}

// actions are what foreign keys react to: updates of these columns, deletes.
type actions struct {
	update []string
	delete bool
}

// actionsOf reads a row of readActions.
func actionsOf(row row) (a actions) {
	if row[2] == "t" {
		a.update = []string{row[1]}
	}
	a.delete = row[3] == "t"
	return a
}

// or leaves both as they are.
func (a actions) or(b actions) actions {
	for _, column := range b.update {
		if !slices.Contains(a.update, column) {
			a.update = append(slices.Clip(a.update), column)
		}
	}
	a.delete = a.delete || b.delete
	return a
}

// A reading is the catalog's tables and views, or some of them, and how all of them are related.
type reading struct {
	relations map[uint32]*relation
	parents   map[uint32][]uint32
	// actions are what foreign keys do to other tables' rows when a row of this one is written.
	actions     map[uint32]actions
	fingerprint string
	rights      map[string]rights // of the roles asked about
	functions   map[string]sqlpostgres.FunctionKind
}

// readAll asks for everything, and what the roles may do.
func readAll(ctx context.Context, c *Conn, roles []string) (*reading, error) {
	return readWhere(ctx, c, "true", nil, roles, query{text: readFingerprint})
}

// readSome asks for the named tables and views, those that belong to them and those that had their names in
// before, and what the roles may do. It gives no fingerprint: other tables may have changed.
func readSome(ctx context.Context, c *Conn, tables []rewrite.TableName, before *reading, roles []string) (*reading, error) {
	var schemas, names, oids []string
	for _, t := range tables {
		schemas, names = append(schemas, t.Schema), append(names, t.Table)
	}
	for oid := range before.named(tables) {
		oids = append(oids, strconv.FormatUint(uint64(oid), 10))
	}
	return readWhere(ctx, c, named, []string{array(schemas), array(names), array(oids)}, roles)
}

// named gives the relations that have one of the names; one without a schema is a name in every schema.
func (r *reading) named(tables []rewrite.TableName) iter.Seq2[uint32, *relation] {
	wanted := make(map[name]bool, len(tables))
	for _, t := range tables {
		wanted[name{t.Schema, t.Table}] = true
	}
	return func(yield func(uint32, *relation) bool) {
		for oid, relation := range r.relations {
			if (wanted[relation.name] || wanted[name{table: relation.name.table}]) && !yield(oid, relation) {
				return
			}
		}
	}
}

// readWhere asks for what meets the condition on pg_class c, and last for a fingerprint if it is to.
func readWhere(ctx context.Context, c *Conn, condition string, args []string, roles []string, fingerprint ...query) (*reading, error) {
	r := &reading{relations: map[uint32]*relation{}, parents: map[uint32][]uint32{}, actions: map[uint32]actions{}}
	parts := []struct {
		query string
		add   func(*relation, row)
	}{
		{readColumns, addColumn},
		{readIndexes, addIndexPart},
		{readTriggers, addTrigger},
		{readRules, func(r *relation, _ row) { r.table.Rules = true }},
		{readViews, func(r *relation, row row) { r.query = storedOf(row[1]) }},
	}
	of := func(text string) query { return query{strings.Replace(text, "%s", condition, 1), args} }
	queries := []query{of(readRelations)}
	for _, p := range parts {
		queries = append(queries, of(p.query))
	}
	queries = append(queries, query{text: readParents}, query{text: readActions}, query{readRights, []string{array(roles)}}, query{text: readFunctions})
	queries = append(queries, fingerprint...)
	results, err := c.read(ctx, queries...)
	if err != nil {
		return nil, err
	}
	for _, row := range results[0] {
		r.addRelation(row)
	}
	results = results[1:]
	for i, p := range parts {
		for _, row := range results[i] {
			if relation := r.relations[row.oid(0)]; relation != nil {
				p.add(relation, row)
			}
		}
	}
	results = results[len(parts):]
	r.relate(results[0], results[1])
	r.rights, r.functions = rightsOf(roles, results[2]), functionsOf(results[3])
	if len(fingerprint) > 0 {
		r.fingerprint = results[4][0][0]
	}
	return r, nil
}

func (r *reading) addRelation(row row) {
	n := name{row[1], row[2]}
	rows, _ := strconv.ParseInt(row[6], 10, 64) // the server's number
	r.relations[row.oid(0)] = &relation{name: n, kind: row[3], table: rewrite.Table{
		Name: n.schema + "." + n.table, OID: row.oid(0), Rows: rows, Spelled: pgx.Identifier{n.schema, n.table}.Sanitize(),
		View: row[3] == "v", Materialized: row[3] == "m", Foreign: row[3] == "f", Partitioned: row[3] == "p",
		RowSecurity: row[4] == "t", RowSecurityForced: row[5] == "t", OtherStorage: row[8] != "heap", Unlogged: row[9] == "u",
	}, filenode: row.oid(7)}
}

// relate takes in inheritance and foreign keys.
func (r *reading) relate(parents, reactions []row) {
	for _, row := range parents {
		r.parents[row.oid(0)] = append(r.parents[row.oid(0)], row.oid(1))
	}
	for _, row := range reactions {
		r.actions[row.oid(0)] = r.actions[row.oid(0)].or(actionsOf(row))
	}
}

// functionsOf sorts the rows of readFunctions by name.
func functionsOf(rows []row) map[string]sqlpostgres.FunctionKind {
	kinds := map[string]sqlpostgres.FunctionKind{"f": sqlpostgres.PlainFunction, "a": sqlpostgres.AggregateFunction, "": sqlpostgres.MixedFunction}
	of := make(map[string]sqlpostgres.FunctionKind, len(rows))
	for _, r := range rows {
		of[r[0]] = kinds[r[1]]
	}
	return of
}

func addColumn(r *relation, row row) {
	r.stored = append(r.stored, row[1])
	if isotapsTypes[row[1]] == row[2] {
		if r.ours == nil {
			r.ours = make(map[string]string)
		}
		r.ours[row[1]] = row[10]
		return
	}
	number, _ := strconv.Atoi(row[7]) // the server's number
	r.numbers = append(r.numbers, number)
	r.tells = append(r.tells, (row[8] == "t" || sqlpostgres.Tells(row[2])) && row[9] == "t")
	r.table.Columns = append(r.table.Columns, rewrite.Column{
		Name: row[1], Type: row[2], Full: row[3], Collation: row[4], NotNull: row[5] == "t", Generated: row[6] == "t", Custom: row[11] == "t"})
}

func addIndexPart(r *relation, row row) {
	index, primary, column := row[1], row[2] == "t", row[5]
	if last := len(r.table.Indexes) - 1; last < 0 || r.table.Indexes[last].Name != index {
		r.table.Indexes = append(r.table.Indexes, rewrite.Index{Name: index, Primary: primary, Unique: row[3] == "t"})
	}
	i := &r.table.Indexes[len(r.table.Indexes)-1]
	i.Columns = append(i.Columns, column)
	if isKey, always := row[4] == "t", row[6] == "t"; always && isKey {
		r.addUnique(index, primary, column)
	}
}

// The bits of pg_trigger.tgtype, from the server's catalog/pg_trigger.h.
const (
	triggerRow    = 1 << 0
	triggerInsert = 1 << 2
	triggerDelete = 1 << 3
	triggerUpdate = 1 << 4
)

func addTrigger(r *relation, row row) {
	bits, _ := strconv.Atoi(row[1]) // the server's number
	on := events{bits&triggerInsert != 0, bits&triggerUpdate != 0, bits&triggerDelete != 0}
	if bits&triggerRow != 0 {
		r.onRow = r.onRow.or(on)
	} else {
		r.onStatement = r.onStatement.or(on)
	}
}

// over gives what is known when r was read anew of the tables, and the rest of before.
func (r *reading) over(before *reading, tables []rewrite.TableName) *reading {
	next := &reading{relations: maps.Clone(before.relations), parents: r.parents, actions: r.actions, rights: r.rights, functions: r.functions}
	for oid := range before.named(tables) {
		delete(next.relations, oid)
	}
	maps.Copy(next.relations, r.relations)
	return next
}
