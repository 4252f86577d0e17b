package e2e

import "strings"

// returns is a RETURNING clause of t1, or none.
func (w *postgresWriter) returns() string {
	return w.oneOf("", "", "", " RETURNING *", " RETURNING id", " RETURNING a + 1 AS n, b", " RETURNING t1.*",
		" RETURNING (SELECT count(*) FROM t3), id")
}

func (w *postgresWriter) row1() string {
	return "(" + w.intOrNull() + ", " + w.str() + ", " + w.int() + ")"
}

func (w *postgresWriter) insert() string {
	switch w.n(9) {
	case 0, 1:
		return "INSERT INTO t1 (a, b, c) VALUES " + w.row1() + w.returns()
	case 2:
		return "INSERT INTO t1 (a, b, c) VALUES " + w.row1() + ", " + w.row1() + w.returns()
	case 3:
		return "INSERT INTO t2 VALUES (" + w.int() + ", " + w.str() + ", DEFAULT, NULL)" +
			w.maybe(3, " RETURNING k2, g")
	case 4:
		return "INSERT INTO t3 VALUES (" + w.intOrNull() + ", " + w.int() + ", 'ok'), (" + w.int() +
			", NULL, NULL)" + w.maybe(3, " RETURNING *")
	case 5:
		return "INSERT INTO t1 DEFAULT VALUES" + w.returns()
	case 6:
		return "INSERT INTO tu VALUES (" + w.uuid() + ", " + w.str() + ", " + w.int() + ")" + w.maybe(3, " RETURNING n")
	case 7:
		return "INSERT INTO public.t1 AS q (id, a) OVERRIDING " + w.oneOf("USER", "SYSTEM") + " VALUE VALUES (" +
			w.int() + ", " + w.intOrNull() + ")" + w.maybe(3, " RETURNING q.id")
	}
	return "INSERT INTO t1 VALUES (" + w.int() + ", " + w.intOrNull() + ", " + w.str() + ", 0.125)" + w.returns()
}

func (w *postgresWriter) upsert() string {
	switch w.n(8) {
	case 5, 6:
		return "INSERT INTO t1 (id, a, b) VALUES (" + w.int() + ", " + w.oneOf("7", "(SELECT max(v) + 50 FROM t2)",
			"CASE WHEN 1 > 2 THEN 3 ELSE (SELECT min(y) FROM t3) END") + ", " + w.str() + ") ON CONFLICT (id) DO UPDATE SET a = NULL, " +
			"c = CASE WHEN t1.b = " + w.str() + " OR (SELECT count(*) FROM t3) > 3 THEN " +
			"(SELECT max(v) FROM t2 WHERE k1 " + w.oneOf("= t1.id", "< t1.a", "<> EXCLUDED.id") + ") ELSE 1 END" +
			w.maybe(2, " WHERE t1.id = "+w.int()+" OR EXISTS (SELECT FROM t2 WHERE k1 = t1.id)") + w.returns()
	case 0:
		return "INSERT INTO t1 (id, a, b) VALUES (" + w.int() + ", " + w.int() + ", " + w.str() +
			") ON CONFLICT (id) DO UPDATE SET b = EXCLUDED.b, c = t1.c + 1" + w.returns()
	case 1:
		return "INSERT INTO t2 (k1, k2, v) VALUES (" + w.int() + ", 'a', 1), (1, 'b', " + w.int() +
			") ON CONFLICT ON CONSTRAINT t2_pkey DO UPDATE SET v = EXCLUDED.v + t2.v WHERE t2.v < 3" +
			w.maybe(3, " RETURNING *")
	case 2:
		return "INSERT INTO t1 (id, a) VALUES (" + w.int() + ", " + w.int() + ") ON CONFLICT DO NOTHING" + w.returns()
	case 3:
		return "INSERT INTO tu VALUES (" + w.uuid() +
			", 'u1', 9) ON CONFLICT (t) DO UPDATE SET id = EXCLUDED.id, n = tu.n + 1" + w.maybe(3, " RETURNING *")
	case 4:
		return "INSERT INTO pt VALUES (" + w.int() + ", " + w.str() +
			") ON CONFLICT (id) DO UPDATE SET n = pt.n || '!'" + w.maybe(3, " RETURNING *")
	}
	return "INSERT INTO tr VALUES (" + w.int() +
		", 1) ON CONFLICT (id) DO UPDATE SET v = tr.v + 1" + w.maybe(3, " RETURNING v")
}

func (w *postgresWriter) insertSelect() string {
	switch w.n(5) {
	case 0:
		return "INSERT INTO t3 (x, y) SELECT id, a FROM t1 WHERE " + w.where1("t1")
	case 1:
		return "INSERT INTO t2 (k1, k2) SELECT id, coalesce(b, 'n') FROM t1 ORDER BY id ON CONFLICT DO NOTHING"
	case 2:
		return "INSERT INTO t3 TABLE t3" + w.maybe(3, " RETURNING x")
	case 3:
		return "INSERT INTO t3 (x) SELECT count(*) FROM t2 UNION SELECT " + w.int()
	}
	return "WITH s AS (SELECT id + 30 AS n FROM t1) INSERT INTO t1 (id, a) SELECT n, NULL FROM s" +
		w.maybe(2, " RETURNING id")
}

func (w *postgresWriter) update() string {
	switch w.n(13) {
	case 9:
		return "UPDATE t1 SET a = NULL, c = CASE " + w.oneOf("WHEN "+w.where1("t1"), "id WHEN "+w.int(), "a WHEN 10") +
			" THEN (SELECT max(v) FROM t2 WHERE k1 = t1.id) WHEN " + w.oneOf("1", "2") + " = 2 THEN 7 ELSE " +
			"(SELECT count(*) FROM t3 WHERE x = t1.a) END" + w.returns()
	case 10:
		return "UPDATE t1 SET b = " + w.str() + " WHERE " + w.where1("t1") + w.oneOf(" OR ", " OR NOT ", " AND NOT ") +
			"(id = " + w.int() + " OR EXISTS (SELECT FROM t2 WHERE k1 = t1.id AND k2 < t1.b))" + w.returns()
	case 11:
		return "DELETE FROM t1 WHERE COALESCE(a = " + w.int() + ", (SELECT max(v) FROM t2 WHERE k1 = t1.id) > 1) OR id = " +
			"(SELECT min(x) FROM t3)" + w.maybe(2, " RETURNING id, (SELECT count(*) FROM t2 WHERE k1 = t1.id)")
	case 12:
		return "UPDATE t3 SET y = 5 FROM t1 " + w.oneOf("JOIN", "LEFT JOIN") + " t2 ON k1 = id AND (k2 = 'a' OR EXISTS " +
			"(SELECT FROM tu WHERE tu.n > t2.v)) WHERE id = x" + w.maybe(2, " RETURNING t3.x, t2.v")
	case 0, 1:
		return "UPDATE t1 SET b = " + w.str() + " WHERE " + w.where1("t1") + w.returns()
	case 2:
		if w.n(2) == 0 { // a is unique: of several rows it hangs on their order on the pages whether it is once violated
			return "UPDATE t1 SET a = a + " + w.int() + " WHERE id = " + w.int() + w.returns()
		}
		return "UPDATE t1 SET c = c + " + w.int() + w.returns()
	case 3:
		return "UPDATE t1 AS q SET (b, c) = (" + w.str() + ", " + w.int() + ") WHERE " +
			w.where1("q") + w.maybe(3, " RETURNING q.*")
	case 4:
		return "UPDATE t2 SET v = DEFAULT, f = f + 1 WHERE k1 = " + w.int() + w.maybe(3, " RETURNING g")
	case 5:
		return "UPDATE t1 SET id = id + " + w.oneOf("0", "1", "100") + " WHERE id = " + w.int() + w.returns()
	case 6:
		return "UPDATE t3 SET y = " + w.int() + " WHERE x = " + w.int() + w.maybe(3, " RETURNING *")
	case 7:
		return "UPDATE t1 SET b = (SELECT max(k2) FROM t2 WHERE k1 = t1.id) WHERE " + w.where1("t1")
	}
	return "UPDATE tx SET ar[1] = " + w.int() + ", co.y = 'z' WHERE d = '2026-01-01'" + w.maybe(3, " RETURNING ar, co")
}

func (w *postgresWriter) updateFrom() string {
	switch w.n(4) {
	case 0:
		return "UPDATE t1 SET c = v FROM t2 WHERE k1 = id AND k2 = 'a'" + w.maybe(2, " RETURNING t1.id, t2.v")
	case 1:
		return "UPDATE t1 SET b = d.m FROM (SELECT k1, max(k2) AS m FROM t2 GROUP BY k1) d WHERE d.k1 = id" +
			w.maybe(2, " RETURNING *")
	case 2:
		return "UPDATE t1 SET c = 5 FROM t1 AS o JOIN t3 ON x = o.id WHERE o.id = t1.id AND x = 2" +
			w.maybe(2, " RETURNING *")
	}
	return "UPDATE t2 SET v = s.n FROM (VALUES (1, 9), (2, 8)) AS s (k, n) WHERE s.k = k1" + w.maybe(2, " RETURNING k1")
}

func (w *postgresWriter) delete() string {
	switch w.n(5) {
	case 0:
		return "DELETE FROM t1 WHERE " + w.where1("t1") + w.returns()
	case 1:
		return "DELETE FROM t2 WHERE v = " + w.int() + w.maybe(3, " RETURNING *")
	case 2:
		return "DELETE FROM t3" + w.maybe(2, " WHERE x = "+w.oneOf("1", "2")) + w.maybe(3, " RETURNING *")
	case 3:
		return "DELETE FROM ONLY base AS z WHERE z.id = " + w.int() + w.maybe(3, " RETURNING z.n")
	}
	return "DELETE FROM tu WHERE id = " + w.uuid()
}

func (w *postgresWriter) deleteUsing() string {
	return "DELETE FROM t1 USING " + w.oneOf("t2 WHERE k1 = id AND v = 3", "t3 s WHERE s.x = t1.id",
		"(SELECT k1 FROM t2 GROUP BY k1) d WHERE d.k1 = id", "generate_series(1, 2) g WHERE g = id") +
		w.maybe(2, " RETURNING *")
}

func (w *postgresWriter) merge() string {
	returning := ""
	if w.major >= 17 {
		returning = w.oneOf("", " RETURNING t1.id", " RETURNING merge_action(), t1.*")
	}
	return "MERGE INTO t1 USING " + w.oneOf("t2 s ON s.k1 = t1.id AND s.k2 = 'a'",
		"(VALUES (1, 0), (9, 1)) AS s (k1, v) ON s.k1 = t1.id",
		"(SELECT k1, max(v) AS v FROM t2 GROUP BY k1) s ON s.k1 = t1.id",
		"(SELECT k1, v FROM t2 WHERE k2 = 'a') s ON s.k1 = t1.id") +
		" WHEN MATCHED AND s.v = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET c = s.v WHEN NOT MATCHED THEN " +
		w.oneOf("INSERT (id, a) VALUES (s.k1, s.v)", "DO NOTHING") + returning
}

func (w *postgresWriter) writeOdd() string {
	n := w.int()
	text := w.oneOf("UPDATE pt SET n = n || 'x' WHERE id < #", "UPDATE pt SET id = # WHERE id = 4",
		"DELETE FROM pt WHERE id = #", "INSERT INTO pt VALUES (#, 'new')", "INSERT INTO pt2 VALUES (#, 'new')",
		"UPDATE base SET n = 'x' WHERE id = #", "DELETE FROM base WHERE id = #",
		"INSERT INTO derived VALUES (#, 'd', 1)",
		"UPDATE tr SET v = # WHERE id < 3", "INSERT INTO tr VALUES (#, 4)", "UPDATE tr SET v = v",
		"DELETE FROM tr WHERE id = #",
		"DELETE FROM par WHERE id = #", "UPDATE par SET id = id + 10 WHERE id = #", "INSERT INTO kid VALUES (#, 1, 99)",
		"UPDATE kid SET p = #",
		"INSERT INTO v1 (id, a) VALUES (#, #)", "UPDATE v1 SET b = 'v' WHERE id = #", "DELETE FROM v1 WHERE id = #",
		"INSERT INTO ruled VALUES (#, 1)", "UPDATE ruled SET v = # WHERE id = 1",
		"INSERT INTO rl VALUES (#, 1)", "INSERT INTO t3 (x) SELECT id FROM v3 WHERE v > #",
		"UPDATE t3 SET y = v.v FROM v3 v WHERE v.id = x AND k2 = 'a'", "UPDATE rl SET v = #",
		"DELETE FROM rl WHERE v = #", "UPDATE def SET u = 3 - u", "INSERT INTO def VALUES (#, 1)",
		"INSERT INTO fresh VALUES (#, #)", "UPDATE fresh SET v = #",
		"TRUNCATE t3", "INSERT INTO tmp VALUES (#, #)", "UPDATE tmp SET id = id + #")
	text = strings.ReplaceAll(text, "#", n)
	if !strings.HasPrefix(text, "TRUNCATE") && !strings.Contains(text, "ruled") {
		text += w.maybe(3, " RETURNING *")
	}
	return text
}

func (w *postgresWriter) transaction() string {
	w.s.ordered = true
	return w.oneOf("BEGIN", "BEGIN", "START TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		"BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN TRANSACTION READ ONLY", "COMMIT", "COMMIT", "END", "ROLLBACK",
		"ABORT",
		"COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a",
		"ROLLBACK TO SAVEPOINT b", "RELEASE a", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		"SET LOCAL transaction_isolation = 'repeatable read'",
		"BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE", "SET CONSTRAINTS ALL IMMEDIATE")
}

func (w *postgresWriter) setting() string {
	return w.oneOf("SET search_path = pg_catalog, public", "SET search_path = pg_temp, public", "RESET search_path",
		"SET LOCAL search_path = public, pg_catalog", "SELECT set_config('search_path', 'public', false)",
		"SET default_transaction_isolation = 'serializable'", "RESET default_transaction_isolation",
		"SET standard_conforming_strings = "+w.oneOf("on", "off"), "SET client_encoding = "+
			w.oneOf("'LATIN1'", "'UTF8'"),
		"SET TimeZone = 'UTC'", "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		"RESET ALL", "DISCARD "+w.oneOf("ALL", "PLANS", "TEMP"), "SHOW search_path",
		"SELECT current_setting('search_path')",
		"SET extra_float_digits = 0", "SET bytea_output = 'escape'", "LISTEN here", "NOTIFY here, 'you'", "UNLISTEN *")
}

func (w *postgresWriter) cursor() string {
	return w.oneOf("DECLARE c CURSOR FOR SELECT id, b FROM t1 ORDER BY id",
		"DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT * FROM t2 ORDER BY k1, k2",
		"DECLARE u CURSOR FOR SELECT * FROM t1 WHERE id = 2 FOR UPDATE",
		"FETCH c", "FETCH 2 FROM c", "FETCH BACKWARD 1 FROM c", "MOVE c", "FETCH ALL FROM c", "FETCH u",
		"UPDATE t1 SET b = 'current' WHERE CURRENT OF u", "DELETE FROM t1 WHERE CURRENT OF u", "CLOSE c", "CLOSE ALL")
}

func (w *postgresWriter) sqlPrepared() string {
	return w.oneOf("PREPARE s (int) AS SELECT id, a FROM t1 WHERE id = $1",
		"PREPARE s AS UPDATE t1 SET b = 'prepared' WHERE id = $1", "EXECUTE s (1)", "EXECUTE s (2)",
		"EXECUTE s (1 + 1)", "EXECUTE s", "EXECUTE s ('x')", "EXECUTE s (1)",
		"PREPARE s AS SELECT * FROM v3 WHERE id = $1", "PREPARE s (int) AS INSERT INTO t3 (x) VALUES ($1) RETURNING x",
		"PREPARE s (int) AS SELECT count(*), max(b) FROM t1 WHERE id = $1",
		"PREPARE s (int) AS SELECT * FROM fresh WHERE v < $1", "EXECUTE s (5)", "EXECUTE a", "DEALLOCATE s",
		"DEALLOCATE a", "DEALLOCATE ALL",
		"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO t3 (x) VALUES (8)")
}

func (w *postgresWriter) failing() string {
	return w.oneOf("SELECT nothing FROM t1", "SELECT * FROM nowhere", "SELEC 1", "SELECT 'é', nothing FROM t1",
		"SELECT 1 / (a - 10) FROM t1 WHERE a = 10", "INSERT INTO t1 (id) VALUES (1) RETURNING id",
		"INSERT INTO t2 (v) VALUES (NULL)",
		"UPDATE t2 SET v = NULL", "UPDATE t1 SET id = 2 WHERE id = 1",
		"INSERT INTO tu VALUES ('00000000-0000-0000-0000-000000000009', 'x', 500)", "INSERT INTO kid VALUES (9, 77)",
		"UPDATE t2 SET g = 1", "INSERT INTO t1 VALUES ('x')",
		"SELECT id FROM t1 WHERE id = 'x'", "SELECT id, id FROM t1 GROUP BY b", "UPDATE t1 SET nothing = 1",
		"INSERT INTO t1 (id, id) VALUES (1, 2)", "UPDATE t1 SET b = 'é' WHERE nothing",
		"DELETE FROM t1 RETURNING nothing",
		"SELECT 1; 2", "INSERT INTO t1 VALUES (90, 90) ON CONFLICT (b) DO NOTHING",
		"DO $$BEGIN RAISE EXCEPTION 'é %', 1; END$$", "SELECT ctid FROM v1", "", "UPDATE t1 SET a = 1 RETURNING old_id",
		"SELECT * FROM t1 LIMIT -1")
}

func (w *postgresWriter) definition() string {
	return w.oneOf("CREATE TEMP TABLE tmp (id int PRIMARY KEY, v int)", "CREATE TEMP TABLE t1 (id int, temporary text)",
		"DROP TABLE pg_temp.t1", "DROP TABLE tmp", "CREATE TEMP TABLE tmp ON COMMIT DROP AS SELECT id, a FROM t1",
		"ALTER TABLE fresh ADD w int DEFAULT 5", "ALTER TABLE fresh DROP COLUMN IF EXISTS v",
		"ALTER TABLE fresh DROP CONSTRAINT fresh_pkey", "ALTER TABLE fresh RENAME TO stale",
		"ALTER TABLE stale RENAME TO fresh", "DROP TABLE fresh",
		"CREATE TABLE fresh (id text PRIMARY KEY, v int)", "SELECT id, b INTO TEMP tmp FROM t1",
		"CREATE TEMP VIEW t2 AS SELECT 1 AS k1", "ALTER TABLE fresh ALTER id TYPE text",
		"ALTER TABLE fresh RENAME COLUMN id TO key",
		"CREATE OR REPLACE VIEW vf AS SELECT k1 AS id, v FROM t2", "CREATE OR REPLACE VIEW vf AS SELECT id, v FROM tr",
		"DROP VIEW vf", "CREATE VIEW vf AS SELECT id, v FROM fresh", "ALTER VIEW vf RENAME TO vg",
		"CREATE TEMP VIEW vf AS SELECT id FROM t1")
}

func (w *postgresWriter) calling() string {
	return w.oneOf("CALL proc(1)", "CALL commits(2)", "DO $$BEGIN UPDATE t1 SET c = 3 WHERE id = 3; END$$",
		"DO $$BEGIN UPDATE t1 SET c = 3 WHERE id = 3; COMMIT; INSERT INTO t3 (x) VALUES (3); ROLLBACK; END$$",
		"SELECT noting(1)", "SELECT writes(2)", "LOCK TABLE t1", "VACUUM t3", "ANALYZE t3", "CALL gives(4)", "CALL gives(0);",
		"CALL gives()", "CALL nowhere(1)", "CALL proc($1)", "CALL gives(4", "/* one */ CALL gives(-4) -- two",
		"DO $$BEGIN INSERT INTO kid VALUES (77, NULL, 999); END$$", "COPY t1 (id FROM STDIN", "COPY kid (id, q) TO STDOUT;",
		"DO LANGUAGE plpgsql $$BEGIN RAISE NOTICE 'é'; RAISE NOTICE 'two'; END$$", "EXPLAIN ANALYZE VERBOSE nonsense",
		"SELECT writes(1), $1", "SELECT 1/0, writes(1)", "SELECT writes(1) FROM rows_of(3)",
		"DO $$BEGIN BEGIN COMMIT; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; END; END$$")
}

func (w *postgresWriter) role() string {
	return w.oneOf("SET ROLE mirror_clerk", "SET ROLE mirror_clerk", "RESET ROLE", "SET LOCAL ROLE mirror_clerk",
		"SELECT id FROM t1 WHERE id = 1", "SELECT id, a FROM t1 ORDER BY id", "UPDATE t1 SET b = 'clerk'",
		"INSERT INTO t1 (a) VALUES (77)", "UPDATE rl SET v = 5", "INSERT INTO t3 (x) VALUES (9)", "DELETE FROM t3")
}
