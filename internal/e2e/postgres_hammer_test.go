package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The load of TestHealthyPostgreSQLIsNotAccused: all that may fool the analysis.

// postgresLoadSetup is a hot table, and beside it what is written unseen (by functions, triggers, cascades),
// what has no key, and what has its rows in several places.
var postgresLoadSetup = []string{
	"CREATE TABLE hot (id int PRIMARY KEY, v int NOT NULL, g int NOT NULL, u int UNIQUE, pad text DEFAULT '')",
	"CREATE INDEX ON hot (g)",
	"CREATE TABLE child (id int PRIMARY KEY, hot int, v int NOT NULL DEFAULT 0)",
	"CREATE TABLE setter (id int PRIMARY KEY, u int)",
	"CREATE TABLE log (id serial PRIMARY KEY, hot int, v int)",
	"CREATE TABLE part (k int, id int, v int, PRIMARY KEY (k, id)) PARTITION BY RANGE (k)",
	"CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (MINVALUE) TO (25)",
	"CREATE TABLE part_high PARTITION OF part FOR VALUES FROM (25) TO (MAXVALUE)",
	"CREATE TABLE keyless (a int, b int)",
	"CREATE TABLE mother (id int PRIMARY KEY, v int)",
	"CREATE TABLE daughter (w int, PRIMARY KEY (id)) INHERITS (mother)",
	"CREATE TABLE watched (id int PRIMARY KEY, v int)",
	"CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, v int)",
	fillTable("hot (id, v, g, u)", "i, 0, i % 7, i"), fillTable("child (id, hot)", "i, i"), fillTable("setter", "i, i"),
	fillTable("part", "i, i, 0"),
	fillTable("keyless", "i, 0"), fillTable("mother", "i, 0"), fillTable("daughter", "i + 100, 0, 0"),
	fillTable("watched", "i, 0"), fillTable("unlogged", "i, 0"),
	"CREATE VIEW seen AS SELECT id, v FROM hot WHERE v < 1000000",
}

// postgresUnseenSetup adds what writes unseen.
var postgresUnseenSetup = []string{
	"ALTER TABLE child ADD FOREIGN KEY (hot) REFERENCES hot ON DELETE CASCADE ON UPDATE CASCADE",
	"ALTER TABLE setter ADD FOREIGN KEY (u) REFERENCES hot (u) ON DELETE SET NULL ON UPDATE SET NULL",
	"CREATE FUNCTION unseen(x int) RETURNS int LANGUAGE sql AS 'UPDATE hot SET v = v + 1000 WHERE id = x RETURNING v'",
	`CREATE FUNCTION guarded(x int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN
		FOR i IN 0..2 LOOP
			BEGIN
				UPDATE hot SET v = v + 1 WHERE id = x RETURNING v INTO n;
				IF n % 3 = i THEN RAISE division_by_zero; END IF;
			EXCEPTION WHEN division_by_zero THEN NULL; END;
		END LOOP;
		RETURN n; END $$`,
	"CREATE PROCEDURE halves(x int) LANGUAGE plpgsql AS $$ BEGIN UPDATE hot SET v = v + 1 WHERE id = x; COMMIT; " +
		"UPDATE hot SET v = v + 1 WHERE id = x; END $$",
	`CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		UPDATE hot SET v = v + 1 WHERE id = new.id;
		IF TG_WHEN = 'BEFORE' THEN new.v := new.v + 1; END IF;
		RETURN new; END $$`,
	"CREATE TRIGGER before_it BEFORE UPDATE ON watched FOR EACH ROW WHEN (old.id % 2 = 0) EXECUTE FUNCTION meddle()",
	"CREATE TRIGGER after_it AFTER INSERT OR UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION meddle()",
}

// fillTable gives a table as many rows as there are hot ones.
func fillTable(table, values string) string {
	return fmt.Sprintf("INSERT INTO %s SELECT %s FROM generate_series(0, %d) i", table, values, hotRows-1)
}

// postgresLoad are the statements of the load. @one and @two are hot rows, @few is a small number.
var postgresLoad = []string{
	"SELECT id, v FROM hot WHERE id = @one", "SELECT id, v FROM hot WHERE id = @one",
	"SELECT id, v FROM hot WHERE id IN (@one, @two)",
	"SELECT * FROM hot WHERE id = @one", "SELECT v FROM hot WHERE g = @few ORDER BY id",
	"SELECT h.v, c.v FROM hot h JOIN child c ON c.hot = h.id WHERE h.id = @one",
	"SELECT v FROM hot WHERE id = @one FOR UPDATE", "SELECT v FROM hot WHERE id = @one FOR NO KEY UPDATE",
	"SELECT v FROM hot WHERE id IN (@one, @two) FOR SHARE",
	"SELECT v FROM hot WHERE id = @one FOR KEY SHARE",
	"SELECT id FROM hot WHERE g = @few ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
	"SELECT v FROM hot WHERE id = @one FOR UPDATE NOWAIT",
	"UPDATE hot SET v = v + 1 WHERE id = @one", "UPDATE hot SET v = v + 1 WHERE id = @one",
	"UPDATE hot SET v = v + 1 WHERE id = @one RETURNING v, pad",
	"UPDATE hot SET v = @few WHERE id = @one", "UPDATE hot SET v = @few WHERE g = @few AND v < 50",
	"UPDATE hot SET v = h.v FROM hot h WHERE h.id = @two AND hot.id = @one",
	"UPDATE hot SET id = 50 WHERE id = @one", "UPDATE hot SET id = @one WHERE id = 50",
	"UPDATE hot SET u = @two WHERE id = @one",
	"UPDATE hot SET v = v / (v % 2) WHERE id IN (@one, @two)",
	"DELETE FROM hot WHERE id = @one", "DELETE FROM hot WHERE id = @one RETURNING *",
	"INSERT INTO hot VALUES (@one, 0, @one % 7, @one)", "INSERT INTO hot VALUES (@one, 0, @one % 7, @two)",
	"INSERT INTO hot VALUES (@one, 0, @one % 7, @one) ON CONFLICT (id) DO UPDATE SET v = hot.v + 1",
	"INSERT INTO hot VALUES (@one, 0, @one % 7, @two), (@two, 0, 1, @one) ON CONFLICT DO NOTHING",
	"DELETE FROM hot WHERE id = @one; INSERT INTO hot VALUES (@one, 7, @one % 7, @one)",
	"WITH gone AS (DELETE FROM log WHERE hot = @one RETURNING hot) UPDATE hot SET v = v + 1 WHERE id IN (SELECT hot FROM gone)",
	"WITH h AS (UPDATE hot SET v = v + 1 WHERE id = @one RETURNING id, v) INSERT INTO log (hot, v) SELECT id, v FROM h",
	"INSERT INTO log (hot, v) SELECT id, v FROM hot WHERE id IN (@one, @two)", "DELETE FROM log WHERE hot = @one",
	"SELECT DISTINCT g FROM hot WHERE id < @one", "SELECT g, sum(v), count(*) FROM hot GROUP BY g",
	"SELECT max(v) FROM hot",
	"SELECT v FROM hot WHERE id = @one UNION SELECT v FROM hot WHERE id = @two",
	"SELECT v FROM hot WHERE id = @one UNION ALL SELECT v FROM child WHERE id = @two",
	"SELECT v FROM hot h WHERE id = @one AND EXISTS (SELECT FROM child WHERE hot = h.id)",
	"SELECT v FROM seen WHERE id = @one", "UPDATE seen SET v = v + 1 WHERE id = @one",
	"SELECT v FROM hot WHERE id = @one; UPDATE child SET v = v + 1 WHERE hot = @one; SELECT v FROM hot WHERE id = @two",
	"SELECT * FROM part WHERE id = @one", "UPDATE part SET v = v + 1 WHERE id = @one",
	"UPDATE part SET k = @two WHERE id = @one", "DELETE FROM part WHERE id = @one",
	"INSERT INTO part VALUES (@one, @one, 0) ON CONFLICT (k, id) DO UPDATE SET v = part.v + 1",
	"SELECT v FROM part_low WHERE id = @one",
	"SELECT * FROM keyless WHERE a = @one", "UPDATE keyless SET b = b + 1 WHERE a = @one",
	"DELETE FROM keyless WHERE a = @one AND b > 3", "INSERT INTO keyless VALUES (@one, 0)",
	"SELECT * FROM mother WHERE id IN (@one, @one + 100)", "UPDATE mother SET v = v + 1 WHERE id IN (@one, @one + 100)",
	"UPDATE ONLY mother SET v = v + 1 WHERE id = @one",
	"UPDATE daughter SET v = v + 1 WHERE id = @one + 100", "UPDATE unlogged SET v = v + 1 WHERE id = @one",
	"SELECT v FROM unlogged WHERE id IN (@one, @two)",
	"SELECT c.v, s.u FROM child c JOIN setter s USING (id) WHERE id = @one",
	"UPDATE child SET v = v + 1 WHERE id = @one",
	"INSERT INTO child VALUES (@one, @two) ON CONFLICT (id) DO UPDATE SET hot = @two",
	"UPDATE setter SET u = @two WHERE id = @one",
	"COPY (SELECT v FROM hot WHERE id = @one) TO STDOUT", "TABLE log", "SELECT count(*) FROM log WHERE hot = @one",
}

// postgresUnseenLoad are those that have rows written unseen.
var postgresUnseenLoad = []string{
	"SELECT unseen(@one)", "SELECT guarded(@one)", "SELECT id, unseen(id) FROM hot WHERE id = @one",
	"CALL halves(@one)",
	"DO 'BEGIN UPDATE hot SET v = v + 1 WHERE id = @one; DELETE FROM hot WHERE id = @two; " +
		"INSERT INTO hot VALUES (@two, 1, 1, @two); END'",
	"UPDATE watched SET v = v + 1 WHERE id = @one",
	"SELECT w.v, h.v FROM watched w JOIN hot h USING (id) WHERE id IN (@one, @two)",
	"INSERT INTO watched VALUES (@one, 0) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
}

// postgresMaintenance are the statements that move a table's rows about or empty it.
var postgresMaintenance = []string{
	"VACUUM hot", "VACUUM (FULL) hot", "VACUUM (FREEZE) child", "CLUSTER hot USING hot_pkey", "VACUUM (FULL) watched",
	"VACUUM", "ANALYZE hot", "VACUUM (FULL) keyless",
	"ALTER TABLE hot ALTER pad TYPE text USING pad || ''", "ALTER TABLE mother ALTER v TYPE bigint",
	"ALTER TABLE mother ALTER v TYPE int", "ALTER TABLE child ADD x int DEFAULT random() * 5",
	"ALTER TABLE child DROP x",
	"ALTER TABLE part DETACH PARTITION part_low",
	"ALTER TABLE part ATTACH PARTITION part_low FOR VALUES FROM (MINVALUE) TO (25)",
	"TRUNCATE log", "TRUNCATE child", fillTable("child (id, hot)", "i, NULL") + " ON CONFLICT DO NOTHING",
	fillTable("hot (id, v, g, u)", "i, 0, i % 7, i") + " ON CONFLICT DO NOTHING",
	fillTable("part", "i, i, 0") + " ON CONFLICT DO NOTHING", "ALTER TABLE watched ADD y text",
	"ALTER TABLE watched DROP y", "REINDEX TABLE hot",
	"BEGIN; ALTER TABLE hot ADD z int; UPDATE hot SET z = 1 WHERE id = @one; ROLLBACK",
	"BEGIN; TRUNCATE child; UPDATE hot SET v = 0 WHERE id = @one; COMMIT",
	"UPDATE hot SET v = v + 1 WHERE id = @one", "UPDATE child SET v = v + 1 WHERE id = @one",
	"DELETE FROM hot WHERE id = @one; INSERT INTO hot VALUES (@one, 7, @one % 7, @one)",
	"UPDATE watched SET v = v + 1 WHERE id = @one", "UPDATE keyless SET b = 0 WHERE a = @one",
	"UPDATE hot SET id = @two WHERE id = @one",
}

// A postgresHammer is a client of the load. What the server refuses is rolled back.
type postgresHammer struct {
	ctx      context.Context
	c        *pgx.Conn
	r        *rand.Rand
	level    string // empty: one after the other
	load     []string
	prepared chan string // names of transactions that any client may end
	name     string
	count    int  // of the transactions that it prepared
	binds    bool // statements have parameters
}

func (h *postgresHammer) exec(statement string) bool {
	_, err := h.c.Exec(h.ctx, statement)
	return err == nil
}

func (h *postgresHammer) pick(from []string) string { return from[h.r.IntN(len(from))] }

// statement runs one of the statements, with parameters or as a text.
func (h *postgresHammer) statement(from []string) bool {
	text := h.pick(from)
	values := pgx.NamedArgs{"one": h.r.IntN(hotRows), "two": h.r.IntN(hotRows), "few": h.r.IntN(7)}
	var err error
	if h.binds && !strings.Contains(text, ";") && !strings.HasPrefix(text, "COPY") && h.r.IntN(3) > 0 {
		_, err = h.c.Exec(h.ctx, text, values)
	} else {
		for name, value := range values {
			text = strings.ReplaceAll(text, "@"+name, fmt.Sprint(value))
		}
		_, err = h.c.Exec(h.ctx, text, pgx.QueryExecModeSimpleProtocol)
	}
	return err == nil
}

// run runs transactions until the time is over.
func (h *postgresHammer) run() {
	for h.ctx.Err() == nil && !h.c.IsClosed() {
		if h.level == "" {
			scope := h.pick([]string{"SET default_transaction_isolation = '",
				"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "})
			level := h.pick([]string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"})
			if scope[len(scope)-1] == '\'' {
				level = strings.ToLower(level) + "'"
			}
			h.exec(scope + level)
		}
		switch h.r.IntN(12) {
		case 0, 1:
			h.statement(h.load)
		case 2:
			h.endOther()
		case 3:
			h.copyIn()
		default:
			h.transaction()
		}
	}
}

// transaction runs a few statements in a transaction, some below savepoints. The first error ends it, unless it
// can go back to a savepoint.
func (h *postgresHammer) transaction() {
	begin := []string{"BEGIN", "BEGIN", "BEGIN", "START TRANSACTION READ ONLY", "BEGIN READ ONLY DEFERRABLE"}
	if h.level == "" {
		begin = append(begin, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
			"BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	}
	ok := h.exec(h.pick(begin))
	for n := 1 + h.r.IntN(5); ok && n > 0; n-- {
		ok = h.statement(h.load)
		if ok && h.r.IntN(7) == 0 {
			ok = h.below("a", 2)
		}
	}
	switch {
	case !ok || h.r.IntN(7) == 0:
		h.exec("ROLLBACK")
	case h.r.IntN(12) == 0:
		h.prepare()
	case h.r.IntN(5) == 0:
		h.exec("COMMIT AND CHAIN")
		if h.exec(h.pick([]string{"SELECT 1", "EXPLAIN SELECT v FROM hot", "SHOW work_mem"})) { // some take the snapshot
			time.Sleep(10 * time.Millisecond)
		}
		h.statement(h.load)
		h.exec("COMMIT")
	default:
		h.exec("COMMIT")
	}
}

// below runs statements below a savepoint, which it releases or goes back to; some below another one.
func (h *postgresHammer) below(name string, deep int) bool {
	if !h.exec("SAVEPOINT " + name) {
		return false
	}
	ok := true
	for range 2 {
		ok = ok && h.statement(h.load)
	}
	if ok && deep > 0 && h.r.IntN(2) == 0 {
		ok = h.below(h.pick([]string{"a", "b"}), deep-1)
	}
	if ok && h.r.IntN(2) == 0 {
		return h.exec("RELEASE " + name)
	}
	return h.exec("ROLLBACK TO " + name)
}

// prepare leaves the transaction for any client to end.
func (h *postgresHammer) prepare() {
	h.count++
	name := fmt.Sprintf("%s-%d", h.name, h.count)
	if !h.exec("PREPARE TRANSACTION '" + name + "'") {
		h.exec("ROLLBACK")
		return
	}
	select {
	case h.prepared <- name:
	default:
		h.exec("COMMIT PREPARED '" + name + "'")
	}
}

// endOther ends a transaction that some client prepared.
func (h *postgresHammer) endOther() {
	select {
	case name := <-h.prepared:
		h.exec(h.pick([]string{"COMMIT", "COMMIT", "ROLLBACK"}) + " PREPARED '" + name + "'")
	default:
	}
}

// copyIn inserts rows by COPY.
func (h *postgresHammer) copyIn() {
	rows := [][]any{{h.r.IntN(hotRows), 1}, {h.r.IntN(hotRows), 2}}
	h.c.CopyFrom(h.ctx, pgx.Identifier{"log"}, []string{"hot", "v"}, pgx.CopyFromRows(rows))
}

// maintain moves the tables about until the time is over.
func (h *postgresHammer) maintain() {
	for h.ctx.Err() == nil && !h.c.IsClosed() {
		h.statement(h.load)
		h.exec("ROLLBACK")
		time.Sleep(time.Duration(h.r.IntN(40)) * time.Millisecond)
	}
}
