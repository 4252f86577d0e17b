package postgres

import "github.com/isotap/isotap/rewrite"

// kinds are tables, partitioned tables, views, materialized views and foreign tables.
const kinds = `c.relkind IN ('r', 'p', 'v', 'm', 'f')`

// observed is the condition on pg_class c and pg_namespace n for what the cache knows. Temporary tables are a
// session's own; no other session reaches them.
const observed = kinds + ` AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`

// named is the condition on pg_class c for the tables whose schemas and names $1 and $2 list, and for what
// belongs to them as partitions or by inheritance. No schema means any. $3 lists the oids that had these names
// before: they may have others.
const named = `c.oid = ANY (ARRAY(
	WITH RECURSIVE family AS (
		SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN unnest($1::text[], $2::text[]) AS wanted (schema, name) ON wanted.schema IN (n.nspname, '') AND wanted.name = c.relname
		UNION
		SELECT unnest($3::oid[])
		UNION
		SELECT i.inhrelid FROM pg_inherits i JOIN family ON family.oid = i.inhparent)
	SELECT oid FROM family))`

// isIsotaps is the condition on pg_attribute a for columns that have the names of isotap's.
const isIsotaps = `a.attname IN ('` + rewrite.RowIDColumn + `', '` + rewrite.WListColumn + `')`

// The parts of a reading. %s stands for a further condition on pg_class c. Where
// there is one, the first column is the table's oid.
const (
	readRelations = `SELECT c.oid, n.nspname, c.relname, c.relkind, c.relrowsecurity, c.relforcerowsecurity,
			greatest(c.reltuples, 0)::bigint, c.relfilenode, coalesce(am.amname, 'heap'), c.relpersistence
		FROM pg_class c LEFT JOIN pg_am am ON am.oid = c.relam AND c.relkind IN ('r', 'm') JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + observed + ` AND %s`
	// A domain's values travel as those of the type beneath it.
	readColumns = `WITH RECURSIVE base AS (
			SELECT oid, oid AS type FROM pg_type WHERE typtype <> 'd'
			UNION ALL
			SELECT d.oid, base.type FROM pg_type d JOIN base ON d.typtype = 'd' AND d.typbasetype = base.oid)
		SELECT c.oid, a.attname, CASE WHEN tn.nspname = 'pg_catalog' THEN t.typname ELSE tn.nspname || '.' || t.typname END,
			format_type(a.atttypid, a.atttypmod), coalesce(l.collname, ''), a.attnotnull, a.attgenerated <> '', a.attnum,
			t.typtype = 'e', coalesce(l.collisdeterministic, true),
			CASE WHEN ` + isIsotaps + ` AND a.attgenerated = '' THEN
				(SELECT pg_get_expr(d.adbin, 0) FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) END,
			a.atttypid <> t.oid OR t.typtype <> 'e' AND (t.oid >= 16384 OR t.typtype = 'c')
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN base ON base.oid = a.atttypid JOIN pg_type t ON t.oid = base.type JOIN pg_namespace tn ON tn.oid = t.typnamespace
		LEFT JOIN pg_collation l ON l.oid = a.attcollation
		WHERE ` + observed + ` AND a.attnum > 0 AND NOT a.attisdropped AND %s ORDER BY c.oid, a.attnum`
	// Operator classes that are their types' own take for equal what = does.
	readIndexes = `SELECT c.oid, x.relname, i.indisprimary, i.indisunique AND i.indpred IS NULL, k.place <= i.indnkeyatts, coalesce(a.attname, ''),
			i.indisunique AND i.indimmediate AND i.indpred IS NULL
				AND NOT EXISTS (SELECT FROM pg_opclass o WHERE o.oid = ANY (i.indclass::oid[]) AND NOT o.opcdefault)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_class x ON x.oid = i.indexrelid
		CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum AND k.attnum > 0
		WHERE ` + observed + ` AND i.indisvalid AND %s ORDER BY c.oid, x.relname, k.place`
	// Internal triggers belong to constraints, save those that before PostgreSQL 13 a partition has from its
	// parent.
	readTriggers = `SELECT DISTINCT c.oid, t.tgtype
		FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_constraint k ON k.oid = t.tgconstraint
		WHERE ` + observed + ` AND t.tgenabled <> 'D' AND (NOT t.tgisinternal OR t.tgconstraint = 0 OR k.contype = 't') AND %s`
	readRules = `SELECT DISTINCT c.oid
		FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + observed + ` AND r.rulename <> '_RETURN' AND r.ev_enabled <> 'D' AND %s`
	// What a view does is read as it is stored: a function that makes SQL of it would lock its tables.
	readViews = `SELECT c.oid, r.ev_action
		FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + observed + ` AND c.relkind = 'v' AND r.rulename = '_RETURN' AND %s`
	// An aggregate with a sort operator may be answered from an end of an index.
	readFunctions = `SELECT p.proname, CASE WHEN NOT bool_or(p.prokind = 'a') THEN 'f' WHEN bool_and(p.prokind = 'a' AND a.aggsortop = 0) THEN 'a' ELSE '' END
		FROM pg_proc p LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid WHERE p.oid >= 16384 GROUP BY p.proname`
	readParents = `SELECT inhrelid, inhparent FROM pg_inherits ORDER BY inhrelid, inhseqno`
	// What a generated column is changes with any other.
	readActions = `SELECT k.confrelid, CASE WHEN a.attgenerated = '' THEN a.attname ELSE '' END,
			bool_or(k.confupdtype IN ('c', 'n', 'd')), bool_or(k.confdeltype IN ('c', 'n', 'd'))
		FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)
		WHERE k.contype = 'f' AND (k.confupdtype IN ('c', 'n', 'd') OR k.confdeltype IN ('c', 'n', 'd')) GROUP BY 1, 2 ORDER BY 1, 2`
)

// readFingerprint gives a text that differs whenever a reading would. A row of a system catalog that changed
// has another xmin; what vacuuming and analysing note in one, they write in place. Of this the number of a table's
// rows matters where it is large, by its magnitude.
const readFingerprint = `WITH observed AS (
		SELECT c.oid, c.xmin, c.reltuples FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + observed + `),
	versions (kind, oid, xmin) AS (
		SELECT 1, oid, xmin FROM observed
		UNION ALL SELECT 2, o.oid, a.xmin FROM pg_attribute a JOIN observed o ON o.oid = a.attrelid WHERE a.attnum > 0
		UNION ALL SELECT 3, o.oid, i.xmin FROM pg_index i JOIN observed o ON o.oid = i.indrelid
		UNION ALL SELECT 4, t.oid, t.xmin FROM pg_trigger t
		UNION ALL SELECT 5, r.oid, r.xmin FROM pg_rewrite r WHERE r.oid >= 16384
		UNION ALL SELECT 6, inhrelid, xmin FROM pg_inherits
		UNION ALL SELECT 7, oid, xmin FROM pg_constraint WHERE oid >= 16384
		UNION ALL SELECT 8, oid, xmin FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%temp\_%'
		UNION ALL SELECT 9, member, xmin FROM pg_auth_members
		UNION ALL SELECT 10, oid, xmin FROM pg_proc WHERE oid >= 16384
		UNION ALL SELECT 11, oid, length(reltuples::bigint::text)::text::xid FROM observed WHERE reltuples >= 10000)
	SELECT (SELECT count(*) || ' ' || sum(hashtextextended(xmin::text, kind * 4294967296 + oid::bigint)) FROM versions) || ' ' ||
		(SELECT count(*) || ' ' || coalesce(sum(hashtextextended(rolname || rolsuper || rolinherit || rolbypassrls, oid::bigint)), 0) FROM pg_roles)`

// readRights gives the tables that the roles of $1 may read every column of, by their full names and without row
// security between: its rules are those of check_enable_rls in the server's source. Last it says whether the role may write
// isotap_wlist there.
const readRights = `SELECT r.rolname, c.oid, EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped
		AND a.attname = '` + rewrite.WListColumn + `' AND has_column_privilege(r.oid, c.oid, a.attnum, 'UPDATE'))
	FROM pg_roles r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE r.rolname = ANY ($1::text[]) AND ` + observed + ` AND has_table_privilege(r.oid, c.oid, 'SELECT') AND has_schema_privilege(r.oid, n.oid, 'USAGE')
	AND (NOT c.relrowsecurity OR r.rolsuper OR r.rolbypassrls OR NOT c.relforcerowsecurity AND pg_has_role(r.oid, c.relowner, 'USAGE'))`
