package e2e

import "strings"

func (w *postgresWriter) where1(t string) string {
	if w.n(8) == 0 {
		return t + ".a IS DISTINCT FROM " + w.int()
	}
	return w.conditionOn(t, w)
}

func (w *postgresWriter) simpleSelect() string {
	switch w.n(9) {
	case 0:
		w.s.ordered = true
		return "SELECT * FROM t1 WHERE " + w.where1("t1") + " ORDER BY id" +
			w.maybe(2, " LIMIT "+w.oneOf("1", "2 OFFSET 1", "ALL"))
	case 1:
		return "SELECT a, b FROM t1 WHERE " + w.where1("t1")
	case 2:
		return "SELECT /* note */ t2.*, 1 + v AS w FROM t2 WHERE v >= " + w.int()
	case 3:
		return "select * from only t3 where x = " + w.int() + " or y is null"
	case 4:
		return "(SELECT id, c FROM public.t1 AS q WHERE " + w.where1("q") + ")"
	case 5:
		return `SELECT "id", CASE WHEN a > ` + w.int() + " THEN 'big' ELSE b END FROM t1"
	case 6:
		w.s.ordered = true
		return "SELECT id, t FROM tu WHERE id >= " + w.uuid() + " ORDER BY t FETCH FIRST 2 ROWS ONLY"
	case 7:
		w.s.ordered = true
		return "SELECT k2, k1, f, g FROM t2 ORDER BY 2, 1"
	}
	return w.oneOf("TABLE t1", "SELECT FROM t1", "SELECT d, j, ar, by, co, ch FROM tx",
		"SELECT (co).x, (co).y, j -> 'a' FROM tx", w.wholeRow("SELECT t1 FROM t1"),
		w.wholeRow("SELECT row_to_json(t2) FROM t2"),
		"SELECT 1", "VALUES (1, 'x'), (2, 'y')", w.wholeRow("SELECT t1.*::text FROM t1"),
		"SELECT id AS ctid, a AS xmin FROM t1")
}

func (w *postgresWriter) join() string {
	join := w.oneOf("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
	switch w.n(10) {
	case 8, 9:
		return w.lateral()
	case 0:
		return "SELECT * FROM t1 " + join + " t2 ON t2.k1 = t1.id"
	case 1:
		return "SELECT p.id, q.id FROM t1 p " + w.oneOf("JOIN", "LEFT JOIN") +
			" t1 q ON q.a > p.a WHERE " + w.where1("p")
	case 2:
		return "SELECT t1.b, t3.* FROM t1, t3 WHERE t1.id = t3.x"
	case 3:
		return "SELECT k1, k2, x FROM t2 " + join + " t3 ON x = k1"
	case 4:
		return "SELECT * FROM base NATURAL JOIN t1"
	case 5:
		return "SELECT * FROM par p " + join + " kid k USING (id)"
	case 6:
		if w.n(2) == 0 {
			return "SELECT t1.id, t2.k2, t3.y FROM t1 " + join + " (t2 JOIN t3 ON x = k1 AND EXISTS (SELECT FROM tu WHERE n > v)) ON k1 = id " +
				"AND 0 < (SELECT count(*) FROM kid)"
		}
		return "SELECT j.* FROM (t1 " + join + " t2 ON k1 = id) AS j"
	}
	return "SELECT t1.id, l.s FROM t1 " + w.oneOf(", LATERAL", "CROSS JOIN LATERAL", "LEFT JOIN LATERAL") +
		" (SELECT k2 AS s FROM t2 WHERE k1 = t1.id) l" + w.maybe(2, " ON true")
}

// lateral writes a join with a query that shows columns of what stands around it, by stars too: such a star stands for
// the columns that the relation has there.
func (w *postgresWriter) lateral() string {
	with := w.oneOf("", "WITH q AS (SELECT id, b FROM t1) ",
		"WITH q AS MATERIALIZED (SELECT k1 AS id, max(v) AS b FROM t2 GROUP BY k1) ")
	left := w.oneOf("t1", "kid", "(SELECT id, b FROM t1)", "(SELECT id FROM t1 WHERE "+w.where1("t1")+")",
		"(SELECT * FROM t1)", "(SELECT p.id, q.* FROM t1 p JOIN t2 q ON q.k1 = p.id)")
	if with != "" {
		left = w.oneOf("q", "(SELECT * FROM q)")
	}
	list := w.oneOf("l.*", "l.*, r.k2", "r.v, l.*", "l.*, r.*", "l.id, (l.*)::text IS NULL AS n")
	inner := "SELECT " + list + " FROM t2 r" + w.maybe(2, " WHERE r.k1 = l.id") + w.maybe(4, " ORDER BY k1, k2 LIMIT 1")
	switch w.n(5) {
	case 0:
		inner = "SELECT i.* FROM LATERAL (" + inner + ") i"
	case 1:
		inner = "SELECT i.* FROM (SELECT x FROM t3) o, LATERAL (" +
			strings.Replace(inner, "SELECT ", "SELECT o.*, ", 1) + ") i"
	case 2:
		inner = "SELECT l.* UNION ALL SELECT l.*"
	}
	return with + "SELECT " + w.oneOf("s.*", "*", "s.*, l.id", "l.*, s.*", "count(*)", "s.id") + " FROM " + left +
		" l " +
		w.oneOf(", LATERAL ("+inner+") s", "CROSS JOIN LATERAL ("+inner+") s",
			"LEFT JOIN LATERAL ("+inner+") s ON true")
}

func (w *postgresWriter) aggregate() string {
	switch w.n(8) {
	case 0:
		return "SELECT count(*), sum(a), max(b) FROM t1 WHERE " + w.where1("t1")
	case 1:
		return "SELECT k1, count(*), min(v) FROM t2 GROUP BY k1"
	case 2:
		return "SELECT b, sum(c) AS s FROM t1 GROUP BY b HAVING sum(c) > " + w.int()
	case 3:
		return "SELECT count(DISTINCT x), count(*) FILTER (WHERE y > 1) FROM t3"
	case 4:
		return "SELECT t1.b, count(k1) FROM t1 LEFT JOIN t2 ON k1 = id GROUP BY t1.b"
	case 5:
		return "SELECT string_agg(b, ',' ORDER BY id), array_agg(a ORDER BY a) FROM t1"
	case 6:
		return "SELECT id, b, count(*) FROM t1 GROUP BY id"
	}
	w.s.ordered = true
	return "SELECT k1, sum(v) FROM t2 GROUP BY k1 ORDER BY k1 LIMIT 1"
}

func (w *postgresWriter) grouping() string {
	return w.oneOf("SELECT k1, k2, count(*), grouping(k1) FROM t2 GROUP BY ROLLUP (k1, k2)",
		"SELECT x, e, sum(y) FROM t3 GROUP BY GROUPING SETS ((x), (e), ())",
		"SELECT k1, count(*) FROM t2 GROUP BY CUBE (k1)", "SELECT 1 FROM t3 HAVING count(*) > 1",
		"SELECT b FROM t1 GROUP BY b", "SELECT count(*) FROM pt",
		"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FROM t3", "SELECT max(id) FROM base",
		"SELECT count(*) FROM v1", "SELECT sum(n) FROM v2",
		"SELECT count(*), max(k2) FROM v3", "SELECT n, count(*) FROM v4 GROUP BY n", "SELECT min(parent) FROM v5",
		"SELECT max(q) FROM v6")
}

func (w *postgresWriter) distinct() string {
	switch w.n(5) {
	case 0:
		return "SELECT DISTINCT b FROM t1 WHERE " + w.where1("t1")
	case 1:
		return "SELECT DISTINCT x, e FROM t3"
	case 2:
		w.s.ordered = true
		return "SELECT DISTINCT ON (b) b, id FROM t1 ORDER BY b, id"
	case 3:
		w.s.ordered = true
		return "SELECT DISTINCT k1 FROM t2 ORDER BY k1 LIMIT 1"
	}
	return "SELECT count(*) FROM (SELECT DISTINCT b FROM t1) d"
}

func (w *postgresWriter) setOperation() string {
	op := w.oneOf("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL")
	switch w.n(4) {
	case 0:
		return "SELECT id FROM t1 WHERE " + w.where1("t1") + " " + op + " SELECT k1 FROM t2"
	case 1:
		return "(SELECT a, b FROM t1) " + op + " (SELECT k1, k2 FROM t2 WHERE v > " + w.int() + ")"
	case 2:
		return "TABLE t3 " + op + " TABLE t3"
	}
	w.s.ordered = true
	return "SELECT id FROM t1 " + op + " SELECT x FROM t3 WHERE x IS NOT NULL ORDER BY 1"
}

func (w *postgresWriter) derived() string {
	switch w.n(5) {
	case 0:
		return "SELECT * FROM (SELECT id, a FROM t1 WHERE " + w.where1("t1") + ") AS d"
	case 1:
		return "SELECT d.k1, t1.b FROM (SELECT k1, max(v) AS m FROM t2 GROUP BY k1) d JOIN t1 ON t1.id = d.k1"
	case 2:
		return "SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS d (n, m) JOIN t1 ON n = id"
	case 3:
		return "SELECT d.* FROM (SELECT * FROM t1 ORDER BY id LIMIT 2) d, t3"
	}
	return "SELECT * FROM (SELECT * FROM (SELECT k1, k2 FROM t2) AS i (p, q) WHERE p = " + w.int() + ") AS o (r)"
}

func (w *postgresWriter) with() string {
	switch w.n(5) {
	case 0:
		return "WITH q AS (SELECT id, b FROM t1) SELECT * FROM q WHERE id > " + w.int()
	case 1:
		return "WITH q (n, m) AS (SELECT k1, v FROM t2), r AS MATERIALIZED (SELECT x FROM t3) SELECT q.*, r.x " +
			"FROM q LEFT JOIN r ON r.x = q.n"
	case 2:
		return "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n, b FROM r LEFT JOIN t1 ON id = n"
	case 3:
		return "WITH t1 AS (SELECT 5 AS id) SELECT * FROM t1"
	}
	return "WITH RECURSIVE r AS (SELECT id, p FROM kid WHERE id = 1 UNION SELECT k.id, k.p FROM kid k JOIN r " +
		"ON k.p = r.id) SELECT * FROM r"
}

func (w *postgresWriter) subquery() string {
	switch w.n(18) {
	case 17:
		inner := "SELECT id, b FROM t1 WHERE " + w.oneOf("EXISTS (SELECT FROM t2 WHERE k1 = t1.id)", "a IN (SELECT x FROM t3)",
			"id > (SELECT min(v) FROM t2) OR a IN (SELECT v FROM t2 WHERE k1 = t1.id)")
		return w.oneOf("SELECT count(*) FROM ("+inner+") q", "SELECT q.b, e FROM ("+inner+") q JOIN t3 ON x = q.id",
			"SELECT q.*, e FROM ("+inner+" ORDER BY id LIMIT 3) q LEFT JOIN t3 ON x = q.id",
			"WITH q AS MATERIALIZED ("+inner+") SELECT * FROM q", "WITH q AS ("+inner+") SELECT q.id, k2 FROM q JOIN t2 ON k1 = q.id",
			"WITH q AS ("+inner+") SELECT q.id, p.id FROM q JOIN q p ON p.id >= q.id", "SELECT DISTINCT q.b FROM ("+inner+") q")
	case 16:
		return "SELECT id, (SELECT " + w.oneOf("v", "k2", "row_to_json(t2)", "k2::text") + " FROM t2 " +
			w.oneOf("", "JOIN t3 ON x = k1 ") + w.maybe(2, "WHERE k1 = t1.id ") + "ORDER BY " +
			w.oneOf("t2.v DESC", "v, k2", "k2", "t2.k2 DESC NULLS LAST, f") + " LIMIT 1) FROM t1"
	case 12:
		return "SELECT id, b FROM t1 WHERE " + w.oneOf("id", "a", "NOT id") + " IN (SELECT k1 FROM t2 " +
			w.oneOf("UNION", "UNION ALL", "INTERSECT", "EXCEPT") + " " + w.oneOf("SELECT x FROM t3", "SELECT "+w.int(),
			"(SELECT x FROM t3 WHERE y > t1.a)") + ")"
	case 13:
		return "SELECT id, (SELECT " + w.oneOf("json_agg(q)", "count(*)", "max(v)") + " FROM (SELECT v, k2 FROM t2 " +
			w.oneOf("", "LEFT JOIN t3 ON x = k1 ", "JOIN t3 ON x = k1 ") + "WHERE k1 = t1.id" +
			w.maybe(3, " ORDER BY k1, k2") + ") q) FROM t1"
	case 14:
		return "SELECT (SELECT max(v) FROM t2 WHERE k1 = t1.id) AS n, count(*), max(b) FROM t1 GROUP BY " +
			w.oneOf("n", "1", "1, b", "(SELECT count(*) FROM t3 WHERE x = t1.id), 1")
	case 15:
		return "SELECT k1, (SELECT max(b) FROM t1 WHERE id = k1), sum((SELECT count(*) FROM t3 WHERE x = v)), " +
			"(SELECT count(*) FROM t3) FROM t2 GROUP BY k1"
	case 10:
		return "SELECT id, CASE " + w.oneOf("a", "id + 1", "(SELECT max(v) FROM t2 WHERE k1 = t1.id)") + " WHEN " + w.int() +
			" THEN (SELECT count(*) FROM t3 WHERE x = t1.id) WHEN 2 THEN 7 ELSE (SELECT max(k2) FROM t2 WHERE v = t1.a)::int END FROM t1"
	case 11:
		return "SELECT id FROM t1 WHERE " + w.where1("t1") + " OR EXISTS (SELECT 1 WHERE b IS NULL OR a > " +
			"(SELECT max(v) FROM t2 WHERE k1 = t1.id AND v < (SELECT max(y) FROM t3)))"
	case 6:
		return "SELECT * FROM t1 WHERE " + w.where1("t1") + w.oneOf(" OR ", " OR NOT ") + "EXISTS (SELECT FROM t2 WHERE k1 = t1.id)" +
			w.maybe(3, " OR a IN (SELECT x FROM t3)")
	case 7:
		return "SELECT id, CASE WHEN " + w.where1("t1") + " THEN (SELECT max(v) FROM t2 WHERE k1 = t1.id) WHEN b IS NULL THEN 7 " +
			"ELSE (SELECT count(*) FROM t3) END AS n FROM t1"
	case 8:
		return "SELECT COALESCE(c, (SELECT max(v) FROM t2 WHERE k1 = t1.id), " + w.int() + "), b FROM t1 WHERE a = " + w.int() +
			" OR (c IS NULL AND id >= ALL (SELECT x FROM t3 WHERE x IS NOT NULL))"
	case 9:
		return w.oneOf("SELECT count(*), max(b) FROM t1", "SELECT DISTINCT b FROM t1") + " WHERE NOT (a = " + w.int() +
			" AND NOT EXISTS (SELECT FROM t2 WHERE k1 = t1.id))"
	case 0:
		return "SELECT * FROM t1 WHERE id IN (SELECT k1 FROM t2 WHERE v > " + w.int() + ")"
	case 1:
		return "SELECT id, (SELECT count(*) FROM t2 WHERE k1 = t1.id) AS n FROM t1"
	case 2:
		return "SELECT k1 FROM t2 WHERE EXISTS (SELECT * FROM t3 WHERE x = k1)"
	case 3:
		return "SELECT max(id) FROM t1 WHERE a = (SELECT max(a) FROM t1)"
	case 4:
		return "SELECT (SELECT t1.b FROM t2 LIMIT 1), ARRAY(SELECT x FROM t3 WHERE x = t1.id) FROM t1"
	}
	return "SELECT (SELECT count(t1.a)) FROM t1"
}

func (w *postgresWriter) window() string {
	return w.oneOf("SELECT id, row_number() OVER (ORDER BY id) AS rn, sum(a) OVER (PARTITION BY b) FROM t1",
		"SELECT id, lag(a) OVER w FROM t1 WINDOW w AS (ORDER BY id) ORDER BY id",
		"SELECT b, count(*), rank() OVER (ORDER BY b) FROM t1 GROUP BY b")
}

func (w *postgresWriter) special() string {
	switch w.n(6) {
	case 0:
		return "SELECT generate_series(1, id), b FROM t1 WHERE id < 3"
	case 1:
		return "SELECT noting(id) FROM t1 WHERE id < 3 ORDER BY id"
	case 2:
		return "SELECT * FROM rows_of(" + w.int() + ")" + w.maybe(2, " WITH ORDINALITY") + w.maybe(2, " AS r (q)")
	case 3:
		return "SELECT t1.id, r FROM t1, unnest(ARRAY[1, 2]) r"
	case 4:
		return "SELECT * FROM ROWS FROM (generate_series(1, 2), rows_of(3)) AS f (a, b), t3"
	}
	return "SELECT writes(" + w.int() + ")" + w.maybe(2, " FROM t1 WHERE id = 1")
}

func (w *postgresWriter) oddTables() string {
	return w.oneOf("SELECT * FROM pt", "SELECT n FROM pt WHERE id = 4", "SELECT * FROM base", "SELECT * FROM ONLY base",
		"SELECT b.n, d.m FROM base b JOIN derived d USING (id)",
		"SELECT * FROM v1", "SELECT id FROM v1 WHERE a > 10", "SELECT * FROM v2", "SELECT * FROM mv",
		"SELECT * FROM rl", "SELECT * FROM ruled", "SELECT * FROM pt2, tr",
		"SELECT * FROM v3", "SELECT id, v FROM v3 WHERE k2 = 'a'", "SELECT v.b, v.*::text FROM v4 v",
		"SELECT v5 FROM v5", "SELECT w.x FROM v5 w (x)", "SELECT * FROM v1 NATURAL JOIN v3",
		"SELECT t1.b, v6.* FROM t1 LEFT JOIN v6 USING (id)", "TABLE vf", "SELECT v, id FROM vf",
		"SELECT DISTINCT a FROM v4", "SELECT id FROM v1 UNION SELECT parent FROM v5",
		"WITH q AS (SELECT * FROM v3) SELECT id FROM q",
		"SELECT v1.id FROM t1, LATERAL (SELECT * FROM v1 WHERE v1.id > t1.a) v1", "SELECT row_to_json(v) FROM v1 v",
		"SELECT relname FROM pg_class WHERE relname = 't1'",
		"SELECT table_name FROM information_schema.tables WHERE table_name = 't2'", "SELECT * FROM tmp",
		"SELECT * FROM fresh",
		"EXPLAIN (COSTS OFF, VERBOSE) SELECT 1", "SELECT tableoid::regclass, * FROM base",
		"SELECT * FROM t1 TABLESAMPLE BERNOULLI (100)", "SHOW transaction_isolation")
}

func (w *postgresWriter) locking() string {
	lock := w.oneOf(" FOR UPDATE", " FOR NO KEY UPDATE", " FOR SHARE", " FOR KEY SHARE",
		" FOR UPDATE NOWAIT", " FOR SHARE SKIP LOCKED")
	switch w.n(4) {
	case 0:
		return "SELECT a, b FROM t1 WHERE " + w.where1("t1") + lock
	case 1:
		return "SELECT * FROM t1 JOIN t2 ON k1 = id" + lock + w.maybe(2, " OF t2")
	case 2:
		return "SELECT id FROM pt" + lock
	}
	return "SELECT id FROM v1" + lock
}

// wholeRow returns a text that shows a row as one value; another one where rows have isotap's columns, which it would
// show.
func (w *postgresWriter) wholeRow(text string) string {
	if w.columns {
		return "TABLE t1"
	}
	return text
}
