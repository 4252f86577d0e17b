package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/rewrite"
)

// A subject is a table as [Instrument] and [Strip] look at it, with all that inherit from it.
type subject struct {
	schema, table string
	kind          string // pg_class.relkind
	// reason says why the table, or one that inherits from it, cannot have isotap's columns, as the catalog
	// alone tells.
	reason    string
	ours      []string // isotap's columns that it has
	presets   int      // of these, those that have their default
	strangers bool     // it has others of their names
	holders   []*holder
}

// String returns schema.table, for people.
func (s *subject) String() string { return s.schema + "." + s.table }

// quoted returns the table's name for a statement.
func (s *subject) quoted() string { return quoted(s.schema) + "." + quoted(s.table) }

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// obstacle returns why the table cannot have isotap's columns; empty when it can.
func (s *subject) obstacle() string {
	switch {
	case s.kind == "v":
		return "a view: the tables behind it are instrumented"
	case s.kind == "m":
		return "a materialized view"
	case s.kind == "f":
		return "a foreign table"
	case s.strangers:
		return fmt.Sprintf("it has a column %s or %s that is not isotap's", rewrite.RowIDColumn, rewrite.WListColumn)
	}
	return s.reason
}

// top is the condition on pg_class c and pg_namespace n for relations that inherit from no other, in the schemas of
// $1, which stands for all where it is empty.
const top = observed + ` AND (cardinality($1::text[]) = 0 OR n.nspname = ANY ($1::text[]))
	AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)`

// families relates each such relation (root) to itself and to all that inherit from it (oid).
const families = `WITH RECURSIVE family (root, oid) AS (
		SELECT c.oid, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + top + `
		UNION
		SELECT f.root, i.inhrelid FROM pg_inherits i JOIN family f ON f.oid = i.inhparent) `

// The parts of a survey. The first column is the root's oid.
const (
	surveyTables = `SELECT c.oid, n.nspname, c.relname, c.relkind
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + top + ` ORDER BY n.nspname, c.relname`
	surveyColumns = `SELECT c.oid, a.attname, t.typname, (SELECT pg_get_expr(d.adbin, 0) FROM pg_attrdef d
			WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = '')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
		WHERE ` + top + ` AND ` + isIsotaps + ` AND NOT a.attisdropped`
	surveyRights = `SELECT c.oid, CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END,
			bool_or(acl.privilege_type = 'SELECT'), bool_or(acl.privilege_type = 'UPDATE')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid CROSS JOIN aclexplode(a.attacl) acl
		WHERE ` + top + ` AND NOT a.attisdropped AND NOT ` + isIsotaps + ` AND acl.privilege_type IN ('SELECT', 'UPDATE')
		GROUP BY 1, 2 ORDER BY 1, 2`
	surveyObstacles = families + `SELECT f.root, CASE
			WHEN c.relkind = 'f' THEN 'some of its rows are in a foreign table'
			WHEN c.reloftype <> 0 THEN 'it is a typed table'
			WHEN am.amname <> 'heap' THEN 'its access method is ' || am.amname
			WHEN EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
				THEN 'it belongs to an extension'
			WHEN EXISTS (SELECT FROM pg_publication_tables p WHERE p.schemaname = n.nspname AND p.tablename = c.relname)
				THEN 'it is published: its subscribers do not have isotap''s columns'
			ELSE 'its row type is used by ' || (SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
				FROM pg_depend d JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
				WHERE (t.oid = c.reltype OR t.typelem = c.reltype AND t.typlen = -1) AND d.deptype <> 'i' LIMIT 1) END
		FROM family f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_am am ON am.oid = c.relam`
	surveyTriggers = families + `SELECT f.root, g.tgname, l.lanname, p.proname, p.prosrc, pg_get_triggerdef(g.oid),
			g.tgnewtable IS NOT NULL OR g.tgoldtable IS NOT NULL
		FROM family f JOIN pg_trigger g ON g.tgrelid = f.oid AND NOT g.tgisinternal
		JOIN pg_proc p ON p.oid = g.tgfoid JOIN pg_language l ON l.oid = p.prolang ORDER BY g.tgname`
	surveyFunctions = families + `SELECT f.root, p.proname
		FROM family f JOIN pg_class c ON c.oid = f.oid AND c.relkind IN ('r', 'p')
		JOIN pg_proc p ON p.oid >= 16384 AND p.prosrc ~* '(select|all|distinct|,|\.)\s*\*'
			AND strpos(lower(p.prosrc), lower(c.relname)) > 0
		JOIN pg_language l ON l.oid = p.prolang AND l.lanname NOT IN ('c', 'internal') ORDER BY p.proname`
)

// survey looks at the relations of the schemas, or of all, that inherit from no other.
func survey(ctx context.Context, c *Conn, schemas []string) ([]*subject, error) {
	parts := []struct {
		query query
		add   func(*subject, row)
	}{
		{query{purpose: "isotap's columns", text: surveyColumns, columns: 4}, (*subject).addColumn},
		{query{purpose: "the rights on columns", text: surveyRights, columns: 4}, func(s *subject, r row) {
			s.holders = append(s.holders, &holder{role: r[1], reads: r[2] == "t", updates: r[3] == "t"})
		}},
		{query{purpose: "what keeps columns from tables", text: surveyObstacles, columns: 2},
			func(s *subject, r row) { s.note(r[1]) }},
		{query{purpose: "the triggers of tables", text: surveyTriggers, columns: 7},
			func(s *subject, r row) { s.note(triggerObstacle(r)) }},
		{query{purpose: "the functions that name tables", text: surveyFunctions, columns: 2}, func(s *subject, r row) {
			s.note(fmt.Sprintf("the function %s names it, and takes all columns of something (*)", r[1]))
		}},
	}
	args := []string{array(schemas)}
	queries := []query{{purpose: "the tables", text: surveyTables, columns: 4, args: args}}
	for _, p := range parts {
		p.query.args = args
		queries = append(queries, p.query)
	}
	results, err := c.read(ctx, queries...)
	if err != nil {
		return nil, err
	}
	var subjects []*subject
	byOID := make(map[uint32]*subject)
	for _, r := range results[0] {
		s := &subject{schema: r[1], table: r[2], kind: r[3]}
		subjects = append(subjects, s)
		byOID[r.oid(0)] = s
	}
	for i, p := range parts {
		for _, r := range results[i+1] {
			if s := byOID[r.oid(0)]; s != nil {
				p.add(s, r)
			}
		}
	}
	return subjects, nil
}

// note keeps the first reason.
func (s *subject) note(reason string) {
	if s.reason == "" {
		s.reason = reason
	}
}

func (s *subject) addColumn(r row) {
	name, preset := r[1], r[3]
	if isotapsTypes[name] != r[2] {
		s.strangers = true
		return
	}
	s.ours = append(s.ours, name)
	if isPreset(name, preset) {
		s.presets++
	}
}

// instrumented reports whether nothing is left to do.
func (s *subject) instrumented() bool { return s.presets == len(isotapsTypes) }

// known are triggers of the server's own, and of what comes with it, that only set columns they are told.
var known = []string{"tsvector_update_trigger", "tsvector_update_trigger_column", "moddatetime", "autoinc",
	"insert_username", "lo_manage"}

// triggerObstacle returns why a trigger could fail, or do something else, if rows had more columns and UPDATEs changed
// one more; empty when it could not.
func triggerObstacle(r row) string {
	trigger, language, function, source, definition, transition := r[1], r[2], r[3], r[4], r[5], r[6] == "t"
	_, condition, _ := strings.Cut(definition, " WHEN ")
	switch {
	case slices.Contains(known, function):
		return ""
	case language != "plpgsql":
		return fmt.Sprintf("its trigger %s is written in %s: isotap does not know what it makes of whole rows", trigger,
			language)
	case transition, wholeRow(source), wholeRow(condition):
		return fmt.Sprintf("its trigger %s uses whole rows", trigger)
	}
	return ""
}

var (
	oldOrNew = regexp.MustCompile(`(?i)\b(?:old|new)\b(\s*\.\s*["a-z_])?`)
	returns  = regexp.MustCompile(`(?i)\breturn\s*\(?\s*$`)
)

// wholeRow reports whether a trigger's source may use OLD or NEW for more than single columns, or to return it.
func wholeRow(source string) bool {
	for _, m := range oldOrNew.FindAllStringSubmatchIndex(source, -1) {
		if m[2] < 0 && !returns.MatchString(source[:m[0]]) {
			return true
		}
	}
	return false
}
