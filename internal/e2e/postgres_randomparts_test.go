package e2e

import "strings"

// writingWith writes a statement with parts that write.
func (w *postgresWriter) writingWith() string {
	if w.n(8) == 0 {
		return "WITH s AS (SELECT id FROM t1 WHERE id < 3 FOR UPDATE) UPDATE t1 SET b = 'locked' FROM s " +
			"WHERE s.id = t1.id" + w.maybe(2, " RETURNING t1.id")
	}
	parts := []string{"d AS (" + w.namedPart() + ")"}
	if w.n(3) == 0 {
		parts = append(parts, w.oneOf("u AS (UPDATE t2 SET v = v + 1 WHERE k1 IN (SELECT id FROM d))",
			"u AS (INSERT INTO t3 (x) SELECT id + 100 FROM d RETURNING x)", "u AS ("+w.part()+")"))
	}
	if w.n(4) == 0 {
		parts = append([]string{w.oneOf("q AS (SELECT id, a FROM t1)", "q AS (SELECT 2 AS id)",
			"q AS MATERIALIZED (SELECT k1 AS id FROM t2)")}, parts...)
		parts = append(parts, w.oneOf("v AS (UPDATE kid SET q = 2 FROM q WHERE q.id = kid.id)",
			"v AS (DELETE FROM t3 USING q WHERE x = q.id RETURNING *)",
			"v AS (UPDATE t2 SET v = (SELECT max(id) FROM q) WHERE k1 IN (SELECT id FROM q))",
			"v AS (INSERT INTO t3 (x) VALUES ((SELECT min(id) FROM q)) RETURNING x, (SELECT count(*) FROM t2))"))
	}
	return "WITH " + strings.Join(parts, ", ") + " " + w.afterParts()
}

// namedPart writes a part that returns a column id and another.
func (w *postgresWriter) namedPart() string {
	switch w.n(12) {
	case 8:
		return "DELETE FROM t1 WHERE " + w.where1("t1") + w.oneOf(" AND ", " OR ") +
			"EXISTS (SELECT FROM t2 WHERE k1 = t1.id AND v > " + w.int() + ") RETURNING *"
	case 9:
		return "UPDATE t1 SET a = NULL, c = (SELECT max(v) FROM t2 WHERE k1 = t1.id) WHERE id " + w.oneOf("", "NOT ") +
			"IN (SELECT x FROM t3 WHERE x <= t1.a) RETURNING id, b"
	case 10:
		return "INSERT INTO t1 (a, b) SELECT k1 + 50, k2 FROM t2 WHERE v > " + w.int() + w.maybe(2, " ON CONFLICT DO NOTHING") +
			" RETURNING id, b"
	case 11:
		return "INSERT INTO t1 (a, b) SELECT k1 + 60, (SELECT max(b) FROM t1 WHERE id = x) FROM t2 JOIN t3 ON x = k1 RETURNING id, a"
	case 0:
		return "DELETE FROM t1 WHERE " + w.where1("t1") + " RETURNING *"
	case 1:
		return "UPDATE t1 SET b = " + w.str() + " WHERE " + w.where1("t1") + " RETURNING id, b"
	case 2:
		return "INSERT INTO t1 (a, b) VALUES (" + w.int() + ", 'part'), (" + w.int() + ", NULL)" +
			w.maybe(2, " ON CONFLICT (a) DO "+w.oneOf("NOTHING", "UPDATE SET b = excluded.b")) +
			" RETURNING id, upper(b)"
	case 3:
		return "UPDATE t2 SET v = v + " + w.int() + " RETURNING k1 AS id, v * 2"
	case 4:
		return "DELETE FROM pt WHERE id < " + w.int() + " RETURNING pt.*"
	case 5:
		return "UPDATE base SET n = 'part' RETURNING *"
	case 6:
		return "DELETE FROM t2 USING t1 WHERE t1.id = k1 RETURNING t1.*, k2"
	}
	return "INSERT INTO tr VALUES (" + w.int() + "0, 1) RETURNING *"
}

// part writes a part that nothing needs to name.
func (w *postgresWriter) part() string {
	return w.oneOf("DELETE FROM t3", "UPDATE t1 SET c = 9 WHERE id = 1", "INSERT INTO t3 (x) SELECT id + 200 FROM t1",
		"UPDATE pt SET id = id + 1 WHERE id = 1", "DELETE FROM par WHERE id = 2", "UPDATE rl SET v = 3",
		"UPDATE ruled SET v = 1", "INSERT INTO trlog VALUES ('x', 1)", "DELETE FROM nowhere", "UPDATE t2 SET v = NULL",
		"SELECT 1")
}

// afterParts writes what follows parts, of which d is one.
func (w *postgresWriter) afterParts() string {
	switch w.n(12) {
	case 0:
		return "INSERT INTO t3 (x) SELECT id + 100 FROM d" + w.maybe(2, " RETURNING x, y")
	case 1:
		return "INSERT INTO trlog (id) SELECT id FROM d" + w.maybe(2, " RETURNING *")
	case 2:
		return "SELECT * FROM d"
	case 3:
		w.s.ordered = true
		return "SELECT d.*, t2.f FROM d LEFT JOIN t2 ON k1 = d.id AND k2 = 'a' ORDER BY 1 " +
			w.oneOf("", "LIMIT 1", "OFFSET 1")
	case 4:
		return "UPDATE t1 SET c = " + w.int() + w.maybe(2, " FROM d WHERE d.id = t1.id") + w.maybe(2, " RETURNING t1.c")
	case 5:
		return "DELETE FROM t1 WHERE id " + w.oneOf("", "NOT ") + "IN (SELECT id FROM d)" +
			w.maybe(2, " RETURNING id, a")
	case 6:
		return "SELECT count(*), max(id) FROM d"
	case 7:
		return "SELECT id FROM d UNION " + w.maybe(2, "ALL ") + "SELECT k1 FROM t2"
	case 8:
		return "SELECT id, b FROM t1 WHERE " + w.where1("t1") + w.maybe(3, " FOR UPDATE")
	case 9:
		return "VALUES (1, " + w.int() + ")"
	case 10:
		return "INSERT INTO pt SELECT id FROM d" + w.maybe(2, " ON CONFLICT DO NOTHING") + w.maybe(2, " RETURNING *")
	}
	return "SELECT" + w.oneOf(" 1", "", " d FROM d", " row_to_json(d) FROM d", " nothing FROM d", " a.id FROM d a, d b")
}
