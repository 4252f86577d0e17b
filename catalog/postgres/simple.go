package postgres

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Most tables that definitions touch are simple: nothing belongs to them but columns of the server's own types and
// common indexes. One question is all that has to be asked of these. It reports of every other relation that there is
// further to be read, by what the server itself goes by; then all is asked ([transaction.readScope]).

const (
	// simpleRelation is what [readSimple] has of pg_class c and pg_namespace n. Last comes whether there is further to
	// be read: of triggers, rules and heirs pg_class says that there may be any. A foreign key has triggers on both
	// sides, unless it is not enforced (PostgreSQL 18).
	simpleRelation = `c.oid, n.oid AS schema, n.nspname, c.relname, c.relkind, c.reltuples, c.relfilenode, c.relpersistence, c.relforcerowsecurity,
		c.relkind <> 'r' OR c.relrowsecurity OR c.relhasrules OR c.relhastriggers OR c.relhassubclass OR c.relispartition OR c.relam NOT IN (0, 2) AS further`

	// readSimple reads the relations that have one of the names that $1 (schemas) and $2 list, or the oids of $3, and
	// all of further ones (%s), with what the roles of $4 may do. The first column says of what a row is, the second
	// is the relation's oid. It reports whether there is a function of the names of $5. OFFSET 0 is as in
	// [readColumns].
	readSimple = `WITH named AS MATERIALIZED (
			SELECT ` + simpleRelation + ` FROM unnest($1::text[], $2::text[]) AS w (schema, name) JOIN pg_namespace n ON n.nspname = w.schema::name
				JOIN pg_class c ON c.relname = w.name::name AND c.relnamespace = n.oid WHERE ` + observed + ` AND c.oid <> ALL ($3::oid[])
			UNION ALL SELECT ` + simpleRelation + ` FROM unnest($3::oid[]) AS k (oid) JOIN pg_class c ON c.oid = k.oid
				JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + observed + `%s)
		SELECT 'relation', oid, nspname::text, relname::text, relkind::text, greatest(reltuples, 0)::bigint::text,
			relfilenode::text, relpersistence::text, relforcerowsecurity::text, (further OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = named.oid OFFSET 0)
				OR EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = named.oid AND k.contype = 'f' OFFSET 0))::text FROM named
		UNION ALL SELECT 'column', a.attrelid, a.attname::text, a.atttypid::text, format_type(a.atttypid, a.atttypmod), a.attcollation::text,
			a.attnum::text, a.attnotnull::text, (a.attgenerated <> '')::text,
			(a.atthasdef AND EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
				AND d.adbin::text ~ '` + tellingCall + `' OFFSET 0))::text
			FROM named JOIN pg_attribute a ON a.attrelid = named.oid AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT 'index', i.indrelid, x.relname::text, i.indkey::text, i.indnkeyatts::text, i.indclass::text, x.relam::text,
			i.indisprimary::text, (i.indisunique AND i.indpred IS NULL)::text, i.indimmediate::text
			FROM named JOIN pg_index i ON i.indrelid = named.oid AND i.indisvalid JOIN pg_class x ON x.oid = i.indexrelid
		UNION ALL SELECT 'right', named.oid, r.rolname::text, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM named CROSS JOIN pg_roles r
			WHERE r.rolname = ANY ($4::text[]) AND has_table_privilege(r.oid, named.oid, 'SELECT') AND has_schema_privilege(r.oid, named.schema, 'USAGE')
		UNION ALL (SELECT 'function', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM pg_proc p
			WHERE p.proname = ANY ($5::text[]::name[]) AND p.oid >= 16384 LIMIT 1)`

	// simpleSchemas are the relations of the schemas that $6 lists. They depend on these: pg_class has no index of
	// schemas. It is left out where there are none, for it takes the server longer than a table's columns.
	simpleSchemas = `
			UNION ALL SELECT ` + simpleRelation + ` FROM unnest(ARRAY(SELECT s.oid FROM pg_namespace s WHERE s.nspname = ANY ($6::text[]::name[]))) AS w (oid)
				CROSS JOIN LATERAL (SELECT d.objid, d.classid FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = w.oid OFFSET 0) d
				JOIN pg_class c ON c.oid = d.objid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE d.classid = 'pg_class'::regclass AND ` + observed + ` AND c.oid <> ALL ($3::oid[])`

	// readBuiltins reads what every database has alike.
	readBuiltins = `SELECT 'type', t.oid, t.typname::text, '' FROM pg_type t
			WHERE t.oid < 10000 AND t.typtype IN ('b', 'r', 'm') AND t.typnamespace = 'pg_catalog'::regnamespace
		UNION ALL SELECT 'collation', l.oid, l.collname::text, l.collisdeterministic::text FROM pg_collation l WHERE l.oid < 10000
		UNION ALL SELECT 'class', o.oid, '', '' FROM pg_opclass o WHERE o.oid < 16384 AND o.opcdefault`
)

// builtins are what comes with the server: names of types by oid, collations, and the operator classes that are their
// types' own. They are read once on each connection.
type builtins struct {
	types      map[string]string
	collations map[string]collation
	classes    map[string]bool
}

type collation struct{ name, deterministic string }

func builtinsOf(rows []row) *builtins {
	// No collation is one, as [readColumns] has it.
	b := &builtins{types: map[string]string{}, collations: map[string]collation{"0": {"", "t"}},
		classes: map[string]bool{}}
	for _, r := range rows {
		switch oid := r[1]; r[0] {
		case "type":
			b.types[oid] = r[2]
		case "collation":
			b.collations[oid] = collation{r[2], short(r[3])}
		case "class":
			b.classes[oid] = true
		}
	}
	return b
}

// short returns a boolean's text as the server writes it by itself: the parts of [readSimple] are all texts.
func short(boolean string) string { return boolean[:min(1, len(boolean))] }

// readSimple is [transaction.readScope] for relations that are simple. It reports whether all of them are: otherwise
// there is further to be read.
func (t *transaction) readSimple(names touchedNames, s *scope) (r *reading, simple bool, err error) {
	queries := []query{names.simple(s)}
	if s.allFunctions {
		queries = append(queries, s.functionsQuery())
	}
	asksBuiltins := t.conn.builtins == nil
	if asksBuiltins {
		queries = append(queries, query{purpose: "the server's own types", text: readBuiltins, columns: 4})
	}
	t.byIndexes()
	results, err := t.last(queries...)
	if err != nil {
		return nil, false, err
	}
	if asksBuiltins {
		t.conn.builtins = builtinsOf(results[len(results)-1])
	}
	parts := simpleParts{builtins: t.conn.builtins, columns: map[string]map[string]string{}}
	if s.allFunctions {
		parts.functions = results[1]
	}
	touched := make(map[uint32]bool)
	for _, oid := range names.known {
		touched[oid] = true
	}
	for _, row := range results[0] {
		if !parts.add(row, s.allFunctions) {
			return nil, false, nil
		}
		if row[0] == "relation" {
			touched[row.oid(1)] = true
		}
	}
	s.relations = slices.Sorted(maps.Keys(touched))
	return readingOf(parts.results(), s.roles), true, nil
}

// simple asks [readSimple]. It asks once for what is named by itself, and in a schema as a whole.
func (n touchedNames) simple(s *scope) query {
	var schemas, tables []string
	for i, schema := range n.schemas {
		if !slices.Contains(n.whole, schema) {
			schemas, tables = append(schemas, schema), append(tables, n.tables[i])
		}
	}
	known := slices.Compact(slices.Sorted(slices.Values(n.known)))
	q := query{purpose: "simple tables", columns: 10,
		args: []string{array(schemas), array(tables), numbers(known), array(s.roles), array(s.functions)}}
	further := ""
	if len(n.whole) > 0 {
		further, q.args = simpleSchemas, append(q.args, array(n.whole))
	}
	q.text = strings.Replace(readSimple, "%s", further, 1)
	return q
}

// simpleParts are the answers to a scope's queries, as the one to [readSimple] tells them.
type simpleParts struct {
	*builtins
	relations, attributes, indexed, rights, functions []row
	columns                                           map[string]map[string]string // names by relation and number
}

// add adds a row. It reports whether there is nothing further to be read because of it.
func (p *simpleParts) add(r row, allFunctions bool) bool {
	switch r[0] {
	case "relation":
		p.relations = append(p.relations,
			row{r[1], r[2], r[3], r[4], "f", short(r[8]), r[5], r[6], "heap", r[7]})
		return short(r[9]) == "f"
	case "column":
		return p.addColumn(r)
	case "index":
		return p.addIndex(r)
	case "right":
		p.rights = append(p.rights, row{r[2], r[1], "f"})
		return true
	}
	return allFunctions // these are read anyway
}

func (p *simpleParts) addColumn(r row) bool {
	kind, known := p.types[r[3]]
	collation, sorts := p.collations[r[5]]
	if !known || !sorts || isotapsTypes[r[2]] != "" {
		return false
	}
	if p.columns[r[1]] == nil {
		p.columns[r[1]] = map[string]string{}
	}
	p.columns[r[1]][r[6]] = r[2]
	p.attributes = append(p.attributes, row{r[1], r[2], kind, r[4], collation.name, short(r[7]), short(r[8]), r[6], "f",
		collation.deterministic, "", "f", short(r[9])})
	return true
}

// addIndex adds a row for each column of an index.
func (p *simpleParts) addIndex(r row) bool {
	classes := strings.Fields(r[5])
	if !slices.Contains(strings.Split(noDistances, ", "), r[6]) ||
		slices.ContainsFunc(classes, func(class string) bool { return !p.classes[class] }) {
		return false
	}
	keys, err := strconv.Atoi(r[4])
	if err != nil {
		return false
	}
	always := "f"
	if short(r[8]) == "t" && short(r[9]) == "t" {
		always = "t"
	}
	for i, number := range strings.Fields(r[3]) {
		isKey := "f"
		if i < keys {
			isKey = "t"
		}
		p.indexed = append(p.indexed, row{r[1], r[2], short(r[7]), short(r[8]), isKey, number, always, ""})
	}
	return true
}

// results returns the answers in the order of [scope.queries].
func (p *simpleParts) results() [][]row {
	slices.SortStableFunc(p.attributes, func(a, b row) int {
		m, _ := strconv.Atoi(a[7])
		n, _ := strconv.Atoi(b[7])
		return m - n
	})
	slices.SortStableFunc(p.indexed, func(a, b row) int { return strings.Compare(a[1], b[1]) })
	for _, r := range p.indexed {
		r[5] = p.columns[r[0]][r[5]]
	}
	return [][]row{p.relations, p.attributes, p.indexed, nil, nil, nil, nil, nil, nil, p.rights, p.functions}
}

// isSimple reports whether [readSimple] would have been enough to be asked.
func (r *reading) isSimple() bool {
	for oid, relation := range r.relations.all() {
		if !relation.isSimple() || r.parents[oid] != nil || r.actions[oid].delete || r.actions[oid].update != nil {
			return false
		}
	}
	return len(r.references) == 0
}

func (r *relation) isSimple() bool {
	none := events{}
	for i := range r.table.Columns {
		if strings.Contains(r.table.Columns[i].Type, ".") {
			return false
		}
	}
	return r.kind == "r" && !r.typed && r.onRow == none && r.onStatement == none && r.reads == nil && r.ours == nil &&
		!r.table.Rules && !r.table.RowSecurity && !r.table.OtherStorage
}
