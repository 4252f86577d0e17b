package postgres

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
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
	kind  string            // pg_class.relkind
	table sqlpostgres.Table // without what other relations make of it
	// onRow and onStatement are the events that triggers fire on.
	onRow, onStatement events
	numbers            []int  // pg_attribute.attnum of table.Columns
	tells              []bool // of table.Columns: equal values look the same
	unique             []unique
	filenode           uint32   // of the file that holds its rows; 0: none does
	query              *stored  // of a view
	reads              []uint32 // relations that the query of a view or a materialized view names
	typed              bool     // it has columns of types that the server does not bring along
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

// A reading is the catalog's tables and views, or some of them, and how these are related to others.
type reading struct {
	relations layers[uint32, *relation]
	parents   map[uint32][]uint32
	// actions are what foreign keys do to other tables' rows when a row of this one is written.
	actions    map[uint32]actions
	references map[reference]bool
	// prints are those of versions, by relation: what differs from them was changed since.
	prints map[uint32]print
	// unprinted are those that were read since: their prints tell nothing.
	unprinted map[uint32]bool
	rights    map[string]*rights // of the roles asked about
	functions map[string]sqlpostgres.FunctionKind
}

// A reference is that of a foreign key, from a table to another.
type reference struct{ from, to uint32 }

// A scope is what is read of the catalog: all of it, or what belongs to some relations and functions.
type scope struct {
	all                     bool
	relations               []uint32
	functions               []string
	roles                   []string // whose rights are read
	allRights, allFunctions bool
}

// readAll asks for everything, and what the roles may do.
func readAll(ctx context.Context, c *Conn, roles []string) (r *reading, err error) {
	err = c.transact(ctx, func(t *transaction) error {
		queries := scope{all: true, roles: roles}.queries()
		results, err := t.last(append(queries, askPrints)...)
		if err != nil {
			return err
		}
		r = readingOf(results, roles)
		r.prints = printsOf(results[len(queries)])
		return nil
	})
	return r, err
}

// queries are those that [readingOf] makes a reading of. Those of some relations need [noteTouched] before them.
func (s scope) queries() []query {
	of := func(q query, condition string) query {
		if s.all {
			condition = "true"
		}
		q.text = strings.Replace(q.text, "%s", condition, 1)
		return q
	}
	which := some
	if s.all {
		which = all
	}
	relations := func(q query) query {
		q.text = strings.Replace(q.text, "%s", which, 1)
		return q
	}
	queries := []query{relations(query{purpose: "the tables", text: readRelations, columns: 10})}
	for _, p := range parts {
		queries = append(queries, relations(p.query))
	}
	return append(queries,
		of(query{purpose: "what tables inherit from", text: readParents, columns: 2}, "c.inhrelid "+some),
		of(query{purpose: "what foreign keys do", text: readActions, columns: 4}, someReferred),
		of(query{purpose: "the foreign keys of tables", text: readReferences, columns: 2}, "("+someReferring+" OR "+
			someReferred+")"),
		s.rights(), s.functionsQuery())
}

// functionsQuery is the query about functions.
func (s scope) functionsQuery() query {
	which, args := someFunctions, []string{array(s.functions)}
	if s.all || s.allFunctions {
		which, args = "true", nil
	}
	return query{purpose: "the functions", columns: 2, text: strings.Replace(readFunctions, "%s", which, 1), args: args}
}

// askPrints asks what [printsOf] reads.
var askPrints = query{purpose: "the prints of relations", text: readPrints, columns: 3}

// rights is the query about what the roles may do.
func (s scope) rights() query {
	which := someRights
	if s.all || s.allRights {
		which = "true"
	}
	return query{purpose: "the rights of roles", columns: 3, text: strings.Replace(readRights, "%s", which, 1),
		args: []string{array(s.roles)}}
}

// numbers returns oids as an array's literal.
func numbers(oids []uint32) string {
	texts := make([]string, len(oids))
	for i, oid := range oids {
		texts[i] = strconv.FormatUint(uint64(oid), 10)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// numbersOf reads an array's literal.
func numbersOf(literal string) (oids []uint32, err error) {
	for text := range strings.SplitSeq(strings.Trim(literal, "{}"), ",") {
		if text == "" {
			continue
		}
		oid, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q where oids are", literal)
		}
		oids = append(oids, uint32(oid))
	}
	return oids, nil
}

// parts are the queries about what belongs to a relation, and what becomes of their rows.
var parts = []struct {
	query query
	add   func(*relation, row)
}{
	{query{purpose: "the columns of tables", text: readColumns, columns: 13}, addColumn},
	{query{purpose: "the indexes of tables", text: readIndexes, columns: 8}, addIndexPart},
	{query{purpose: "the triggers of tables", text: readTriggers, columns: 3}, addTrigger},
	{query{purpose: "the rules of tables", text: readRules, columns: 1},
		func(r *relation, _ row) { r.table.Rules = true }},
	{query{purpose: "the views' queries", text: readViews, columns: 2}, addView},
}

func readingOf(results [][]row, roles []string) *reading {
	r := &reading{relations: layers[uint32, *relation]{base: map[uint32]*relation{}}, parents: map[uint32][]uint32{},
		actions: map[uint32]actions{}, references: map[reference]bool{}}
	for _, row := range results[0] {
		r.addRelation(row)
	}
	results = results[1:]
	for i, p := range parts {
		for _, row := range results[i] {
			if relation := r.relations.get(row.oid(0)); relation != nil {
				p.add(relation, row)
			}
		}
	}
	results = results[len(parts):]
	r.relate(results[0], results[1])
	for _, row := range results[2] {
		r.references[reference{row.oid(0), row.oid(1)}] = true
	}
	r.rights, r.functions = rightsOf(roles, results[3]), functionsOf(results[4])
	return r
}

// A print is a sum over the rows that versions has of something.
type print struct{ rows, sum string }

func printsOf(rows []row) map[uint32]print {
	of := make(map[uint32]print, len(rows))
	for _, r := range rows {
		of[r.oid(0)] = print{r[1], r[2]}
	}
	return of
}

// total is the print of everything.
func total(prints map[uint32]print) print {
	var rows, sum, n big.Int
	add := func(to *big.Int, text string) {
		if _, ok := n.SetString(text, 10); ok {
			to.Add(to, &n)
		}
	}
	for _, p := range prints {
		add(&rows, p.rows)
		add(&sum, p.sum)
	}
	return print{rows.String(), sum.String()}
}

func (r *reading) addRelation(row row) {
	n := name{row[1], row[2]}
	rows, _ := strconv.ParseInt(row[6], 10, 64) // the server's number
	r.relations.base[row.oid(0)] = &relation{name: n, kind: row[3], table: sqlpostgres.Table{
		Table: rewrite.Table{Name: n.schema + "." + n.table, View: row[3] == "v"},
		OID:   row.oid(0), Rows: rows,
		Spelled:      pgx.Identifier{n.schema, n.table}.Sanitize(),
		Materialized: row[3] == "m", Foreign: row[3] == "f", Partitioned: row[3] == "p",
		RowSecurity: row[4] == "t", RowSecurityForced: row[5] == "t", OtherStorage: row[8] != "heap",
		Unlogged: row[9] == "u",
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
	kinds := map[string]sqlpostgres.FunctionKind{"t": sqlpostgres.TellingFunction, "r": sqlpostgres.FetchingFunction,
		"f": sqlpostgres.PlainFunction, "a": sqlpostgres.AggregateFunction, "": sqlpostgres.MixedFunction}
	of := make(map[string]sqlpostgres.FunctionKind, len(rows))
	for _, r := range rows {
		of[r[0]] = kinds[r[1]]
	}
	return of
}

func addColumn(r *relation, row row) {
	r.table.TellsText = r.table.TellsText || row[12] == "t"
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
	r.typed = r.typed || row[11] == "t"
	r.table.Columns = append(r.table.Columns, sqlpostgres.Column{
		Column: rewrite.Column{
			Name: row[1], Type: row[2], Full: row[3], Collation: row[4],
			NotNull: row[5] == "t", Generated: row[6] == "t",
		},
		Custom: row[11] == "t",
	})
}

func addIndexPart(r *relation, row row) {
	index, primary, column := row[1], row[2] == "t", row[5]
	if last := len(r.table.Indexes) - 1; last < 0 || r.table.Indexes[last].Name != index {
		r.table.Indexes = append(r.table.Indexes, sqlpostgres.Index{
			Index:  rewrite.Index{Name: index, Primary: primary, Unique: row[3] == "t"},
			Orders: operators(row[7]),
		})
	}
	i := &r.table.Indexes[len(r.table.Indexes)-1]
	i.Columns = append(i.Columns, column)
	if isKey, always := row[4] == "t", row[6] == "t"; always && isKey {
		r.addUnique(index, primary, column)
	}
}

// operators reads a list of names with blanks between them; nil where there are none.
func operators(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Fields(list)
}

// The bits of pg_trigger.tgtype, from the server's catalog/pg_trigger.h.
const (
	triggerRow    = 1 << 0
	triggerInsert = 1 << 2
	triggerDelete = 1 << 3
	triggerUpdate = 1 << 4
)

var telling = regexp.MustCompile(tellingCall)

func addView(r *relation, row row) {
	query := readTerm(row[1])
	r.reads = query.relations()
	if r.table.View { // a materialized view has rows of its own
		r.query, r.table.TellsText = storedOf(query), telling.MatchString(row[1])
	}
}

func addTrigger(r *relation, row row) {
	r.table.TellsText = r.table.TellsText || row[2] == "t"
	bits, _ := strconv.Atoi(row[1]) // the server's number
	on := events{bits&triggerInsert != 0, bits&triggerUpdate != 0, bits&triggerDelete != 0}
	if bits&triggerRow != 0 {
		r.onRow = r.onRow.or(on)
	} else {
		r.onStatement = r.onStatement.or(on)
	}
}

// over returns what is known when r was read anew: of the relations touched, and of functions; the rest is that of
// before.
func (r *reading) over(before *reading, touched map[uint32]bool, what *scope) *reading {
	next := &reading{parents: before.parents, actions: before.actions, references: before.references,
		prints:    before.prints,
		unprinted: map[uint32]bool{ofFunctions: true}}
	maps.Copy(next.unprinted, before.unprinted)
	maps.Copy(next.unprinted, touched)
	relations := before.relations.edit()
	for oid := range touched {
		relations.remove(oid)
	}
	for oid, relation := range r.relations.all() {
		relations.set(oid, relation)
	}
	next.relations = relations.done()
	next.parents = replaced(before.parents, r.parents, func(oid uint32) bool { return touched[oid] })
	next.actions = replaced(before.actions, r.actions, func(oid uint32) bool { return touched[oid] })
	next.references = replaced(before.references, r.references, func(f reference) bool {
		return touched[f.from] ||
			touched[f.to]
	})
	next.functions = r.functions
	if !what.allFunctions {
		next.functions = replaced(before.functions, r.functions,
			func(name string) bool { return slices.Contains(what.functions, name) })
	}
	return next
}

// replaced returns a map with what was read anew in the place of what it has of the keys that were: the same map where
// this is equal.
func replaced[K comparable, V any](before, read map[K]V, anew func(K) bool) map[K]V {
	if !differs(before, read, anew) {
		return before
	}
	next := maps.Clone(before)
	maps.DeleteFunc(next, func(k K, _ V) bool { return anew(k) })
	if next == nil {
		return read
	}
	maps.Copy(next, read)
	return next
}

// differs reports whether replaced has to make another map.
func differs[K comparable, V any](before, read map[K]V, anew func(K) bool) bool {
	for k, v := range read {
		if was, ok := before[k]; !ok || !reflect.DeepEqual(was, v) {
			return true
		}
	}
	for k := range before {
		if _, ok := read[k]; !ok && anew(k) {
			return true
		}
	}
	return false
}
