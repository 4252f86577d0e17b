package postgres

import "github.com/isotap/isotap/rewrite"

// kinds are tables, partitioned tables, views, materialized views and foreign tables.
const kinds = `c.relkind IN ('r', 'p', 'v', 'm', 'f')`

// observed is the condition on pg_class c and pg_namespace n for what the cache knows. Temporary tables are a
// session's own; no other session reaches them.
const observed = kinds + ` AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`

// touched are the oids that [noteTouched] left behind for the rest of its transaction: what is asked about them need
// not wait for the answer. referring are those of the foreign keys, and of the other constraints, that depend on them.
const (
	touched   = `current_setting('isotap.touched')::oid[]`
	referring = `current_setting('isotap.referring')::oid[]`
)

// noteTouched finds the oids of the relations that have one of the names that $1 (schemas) and $2 list, or one of the
// names of $3 in any schema; of those that $4 lists; and of what belongs to all these as partitions or by inheritance.
// Last come the tables that foreign keys of these refer to. Its row has them as an array, and beside it the constraints
// that depend on them: pg_constraint has no index on confrelid, but a foreign key depends on the columns that it refers
// to. Relation by relation the server looks up by indexes: with a join, it would go through all of the other side, and
// where OFFSET 0 did not keep conditions from each other, through the dependencies of all constraints. %s stands for a
// further query of oids, which is [ofSchemas] or empty.
const noteTouched = `WITH RECURSIVE family (oid) AS (
		(SELECT c.oid FROM unnest($1::text[], $2::text[]) AS w (schema, name) JOIN pg_namespace n ON n.nspname = w.schema::name
			JOIN pg_class c ON c.relname = w.name::name AND c.relnamespace = n.oid
		UNION ALL SELECT c.oid FROM unnest($3::text[]) AS w (name) JOIN pg_class c ON c.relname = w.name::name
		UNION ALL SELECT unnest($4::oid[])%s)
		UNION
		SELECT i.inhrelid FROM family CROSS JOIN LATERAL (SELECT h.inhrelid FROM pg_inherits h WHERE h.inhparent = family.oid OFFSET 0) i),
	touched (oid) AS MATERIALIZED (SELECT oid FROM family
		UNION ALL SELECT k.confrelid FROM family CROSS JOIN LATERAL (
			SELECT k.confrelid, k.contype FROM pg_constraint k WHERE k.conrelid = family.oid OFFSET 0) k WHERE k.contype = 'f')
	SELECT set_config('isotap.touched', ARRAY(SELECT oid FROM touched)::text, true),
		set_config('isotap.referring', ARRAY(SELECT d.objid FROM touched CROSS JOIN LATERAL (
			SELECT d.objid, d.classid FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = touched.oid OFFSET 0) d
			WHERE d.classid = 'pg_constraint'::regclass)::text, true)`

// ofSchemas finds the relations in the schemas that $5 lists. It is left out where there are none: the server would
// make room for as many as it expects.
const ofSchemas = `
		UNION ALL SELECT c.oid FROM pg_class c WHERE c.relnamespace = ANY (ARRAY(SELECT n.oid FROM pg_namespace n WHERE n.nspname = ANY ($5::text[]::name[])))`

// isIsotaps is the condition on pg_attribute a for columns that have the names of isotap's.
const isIsotaps = `a.attname IN ('` + rewrite.RowIDColumn + `', '` + rewrite.WListColumn + `')`

// noDistances are the access methods of which it is known that they give no rows by a distance: btree, hash, brin, gin.
const noDistances = `403, 405, 3580, 2742`

// Who tells the text of the statement that runs: a function by its source, which may be a body in SQL or a procedural
// language, and a stored expression by its calls of current_query and pg_stat_get_activity.
const (
	tellingSource = `current_query|pg_stat_activity|pg_stat_get_(backend_)?activity`
	tellingCall   = `:funcid (817|2022|1940) `
)

// namesOwn is the condition on pg_proc p for functions that give columns with names that begin as those do which isotap
// gives.
const namesOwn = `coalesce(array_to_string(p.proargnames, ' ') ~ '\m` + rewrite.NamePrefix + `', false) OR EXISTS (
		SELECT FROM pg_type y JOIN pg_attribute a ON a.attrelid = y.typrelid WHERE y.oid = p.prorettype AND y.typtype = 'c'
			AND starts_with(a.attname::text, '` + rewrite.NamePrefix + `') AND NOT ` + isIsotaps + `)`

// The parts of a reading. %s stands behind an oid of a relation, and says which are read. Where there is one, the first
// column is the table's oid.
const (
	readRelations = `SELECT c.oid, n.nspname, c.relname, c.relkind, c.relrowsecurity, c.relforcerowsecurity,
			greatest(c.reltuples, 0)::bigint, c.relfilenode, coalesce(am.amname, 'heap'), c.relpersistence
		FROM pg_class c LEFT JOIN pg_am am ON am.oid = c.relam AND c.relkind IN ('r', 'm') JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + observed + ` AND c.oid %s`
	// A domain's values travel as those of the type beneath it. OFFSET 0 keeps PostgreSQL 18 from going through the
	// defaults of all tables for those of one.
	readColumns = `SELECT a.attrelid, a.attname, CASE WHEN tn.nspname = 'pg_catalog' THEN t.typname ELSE tn.nspname || '.' || t.typname END,
			format_type(a.atttypid, a.atttypmod), coalesce(l.collname, ''), a.attnotnull, a.attgenerated <> '', a.attnum,
			t.typtype = 'e', coalesce(l.collisdeterministic, true),
			CASE WHEN ` + isIsotaps + ` AND a.attgenerated = '' THEN
				(SELECT pg_get_expr(d.adbin, 0) FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) END,
			a.atttypid <> t.oid OR t.typtype <> 'e' AND (t.oid >= 16384 OR t.typtype = 'c'),
			a.atthasdef AND EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
				AND d.adbin::text ~ '` + tellingCall + `' OFFSET 0)
		FROM pg_attribute a JOIN pg_type d ON d.oid = a.atttypid
		JOIN pg_type t ON t.oid = CASE WHEN d.typtype <> 'd' THEN d.oid ELSE (
			WITH RECURSIVE beneath AS (
				SELECT d.typbasetype AS oid
				UNION ALL
				SELECT u.typbasetype FROM beneath JOIN pg_type u ON u.oid = beneath.oid AND u.typtype = 'd')
			SELECT u.oid FROM beneath JOIN pg_type u ON u.oid = beneath.oid AND u.typtype <> 'd') END
		JOIN pg_namespace tn ON tn.oid = t.typnamespace
		LEFT JOIN pg_collation l ON l.oid = a.attcollation
		WHERE a.attrelid %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`
	// Operator classes that are their types' own take for equal what = does.
	readIndexes = `SELECT i.indrelid, x.relname, i.indisprimary, i.indisunique AND i.indpred IS NULL, k.place <= i.indnkeyatts, coalesce(a.attname, ''),
			i.indisunique AND i.indimmediate AND i.indpred IS NULL
				AND NOT EXISTS (SELECT FROM pg_opclass o WHERE o.oid = ANY (i.indclass::oid[]) AND NOT o.opcdefault),
			CASE WHEN x.relam NOT IN (` + noDistances + `) THEN (SELECT string_agg(DISTINCT p.oprname, ' ') FROM pg_opclass o
				JOIN pg_amop d ON d.amopfamily = o.opcfamily AND d.amoppurpose = 'o' JOIN pg_operator p ON p.oid = d.amopopr
				WHERE o.oid = ANY (i.indclass::oid[])) END
		FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
		CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
		WHERE i.indrelid %s AND i.indisvalid ORDER BY i.indrelid, x.relname, k.place`
	// Internal triggers belong to constraints, save those that before PostgreSQL 13 a partition has from its
	// parent.
	readTriggers = `SELECT DISTINCT t.tgrelid, t.tgtype, f.prosrc ~* '` + tellingSource + `'
		FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid LEFT JOIN pg_constraint k ON k.oid = t.tgconstraint
		WHERE t.tgrelid %s AND t.tgenabled <> 'D' AND (NOT t.tgisinternal OR t.tgconstraint = 0 OR k.contype = 't')`
	readRules = `SELECT DISTINCT r.ev_class FROM pg_rewrite r WHERE r.ev_class %s AND r.rulename <> '_RETURN' AND r.ev_enabled <> 'D'`
	// What a view does, or a materialized one did, is read as it is stored: a function that makes SQL of it would lock
	// its tables.
	readViews = `SELECT r.ev_class, r.ev_action FROM pg_rewrite r WHERE r.ev_class %s AND r.rulename = '_RETURN'`
	// An aggregate with a sort operator may be answered from an end of an index.
	readFunctions = `SELECT p.proname, CASE WHEN bool_or(p.prosrc ~* '` + tellingSource + `' OR ` + namesOwn + `) THEN 't'
			WHEN NOT bool_or(p.prokind = 'a') THEN CASE WHEN bool_or(p.prosrc ~* '\mfetch\M|cursor_to_xml') THEN 'r' ELSE 'f' END WHEN bool_and(p.prokind = 'a' AND a.aggsortop = 0) THEN 'a' ELSE '' END
		FROM pg_proc p LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid WHERE p.oid >= 16384 AND %s GROUP BY p.proname`
	readParents = `SELECT c.inhrelid, c.inhparent FROM pg_inherits c WHERE %s ORDER BY c.inhrelid, c.inhseqno`
	// What a generated column is changes with any other.
	readActions = `SELECT k.confrelid, CASE WHEN a.attgenerated = '' THEN a.attname ELSE '' END,
			bool_or(k.confupdtype IN ('c', 'n', 'd')), bool_or(k.confdeltype IN ('c', 'n', 'd'))
		FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)
		WHERE k.contype = 'f' AND (k.confupdtype IN ('c', 'n', 'd') OR k.confdeltype IN ('c', 'n', 'd')) AND %s GROUP BY 1, 2 ORDER BY 1, 2`
	readReferences = `SELECT k.conrelid, k.confrelid FROM pg_constraint k WHERE k.contype = 'f' AND %s`
)

// all and some say of an oid which relations are read: those that are observed, or those touched.
const (
	all  = `IN (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + observed + `)`
	some = `= ANY (` + touched + `)`
)

// The conditions of other queries for the relations touched.
const (
	someReferred  = `k.oid = ANY (` + referring + `)`
	someReferring = `k.conrelid ` + some
	someFunctions = `p.proname = ANY ($1::text[]::name[])`
	someRights    = `c.oid ` + some
)

// versions relates each relation that a reading rests on (rel) to the rows of the system catalogs that tell of it. A
// row of these that changed has another xmin; what vacuuming and analyzing note in one, they write in place. Of this
// the number of a table's rows matters where it is large, by its magnitude. What roles may do is under ofRoles,
// functions under ofFunctions.
const versions = `WITH observed AS (
		SELECT c.oid, c.xmin, c.reltuples, n.oid AS schema, n.xmin AS schemas FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + observed + `),
	versions (rel, kind, oid, was) AS (
		SELECT oid, 1, oid, xmin::text FROM observed
		UNION ALL SELECT o.oid, 2, o.oid, a.xmin::text FROM pg_attribute a JOIN observed o ON o.oid = a.attrelid WHERE a.attnum > 0
		UNION ALL SELECT o.oid, 3, o.oid, i.xmin::text FROM pg_index i JOIN observed o ON o.oid = i.indrelid
		UNION ALL SELECT t.tgrelid, 4, t.oid, t.xmin::text FROM pg_trigger t
		UNION ALL SELECT r.ev_class, 5, r.oid, r.xmin::text FROM pg_rewrite r WHERE r.oid >= 16384
		UNION ALL SELECT inhrelid, 6, inhrelid, xmin::text FROM pg_inherits
		UNION ALL SELECT conrelid, 7, oid, xmin::text FROM pg_constraint WHERE oid >= 16384 AND conrelid <> 0
		UNION ALL SELECT confrelid, 8, oid, xmin::text FROM pg_constraint WHERE oid >= 16384 AND confrelid <> 0
		UNION ALL SELECT oid, 9, schema, schemas::text FROM observed
		UNION ALL SELECT oid, 10, oid, length(reltuples::bigint::text)::text FROM observed WHERE reltuples >= 10000
		UNION ALL SELECT o.oid, 14, a.attnum, t.xmin::text || '.' || n.xmin::text || '.' || coalesce(b.xmin::text, '')
			FROM pg_attribute a JOIN observed o ON o.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
			LEFT JOIN pg_type b ON b.oid = t.typbasetype WHERE a.attnum > 0 AND a.atttypid >= 16384
		UNION ALL SELECT 0, 11, member, xmin::text FROM pg_auth_members
		UNION ALL SELECT 0, 12, oid, rolname || rolsuper || rolinherit || rolbypassrls FROM pg_roles
		UNION ALL SELECT 1, 13, oid, xmin::text FROM pg_proc WHERE oid >= 16384
		UNION ALL SELECT 2, 15, oid, xmin::text FROM pg_event_trigger
		UNION ALL SELECT 2, 16, oid, xmin::text FROM pg_default_acl
		UNION ALL SELECT 2, 17, oid, xmin::text FROM pg_am WHERE oid >= 16384)
	SELECT `

// What in versions belongs to no relation.
const (
	ofRoles     = 0
	ofFunctions = 1
	ofAdditions = 2 // what may have definitions do more than they say
)

const (
	count = `count(*), sum(hashtextextended(was, kind * 4294967296 + oid::bigint)) FROM versions`
	// readFingerprint gives what differs whenever a reading would, readPrints the same of each relation: the sums of
	// these.
	readFingerprint = versions + count
	readPrints      = versions + `rel, ` + count + ` GROUP BY rel`
)

// readRights returns the tables that the roles of $1 may read every column of, by their full names and without row
// security between: its rules are those of check_enable_rls in the server's source. Last it reports whether the role
// may write isotap_wlist there.
const readRights = `SELECT r.rolname, c.oid, EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped
		AND a.attname = '` + rewrite.WListColumn + `' AND has_column_privilege(r.oid, c.oid, a.attnum, 'UPDATE'))
	FROM pg_roles r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE r.rolname = ANY ($1::text[]) AND ` + observed + ` AND has_table_privilege(r.oid, c.oid, 'SELECT') AND %s AND has_schema_privilege(r.oid, n.oid, 'USAGE')
	AND (NOT c.relrowsecurity OR r.rolsuper OR r.rolbypassrls OR NOT c.relforcerowsecurity AND pg_has_role(r.oid, c.relowner, 'USAGE'))`
