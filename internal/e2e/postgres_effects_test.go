package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/serverlog"
)

// effectTables have their rows written by triggers, cascades, functions and procedures.
var effectTables = []string{
	"CREATE TABLE counter (id int PRIMARY KEY, v int NOT NULL DEFAULT 0, note text)",
	"INSERT INTO counter SELECT i, 0 FROM generate_series(1, 6) i",
	"CREATE TABLE loose (g int, v int)", "INSERT INTO loose SELECT i % 3, 0 FROM generate_series(1, 6) i",
	"CREATE TABLE kind (id int PRIMARY KEY, v int NOT NULL DEFAULT 0)",
	"INSERT INTO kind SELECT i FROM generate_series(1, 3) i",
	"CREATE TABLE item (id int PRIMARY KEY, v int DEFAULT 0, " +
		"kind int REFERENCES kind ON DELETE CASCADE ON UPDATE CASCADE)",
	"INSERT INTO item SELECT i, 0, i FROM generate_series(1, 3) i",
	"CREATE TABLE event (id serial PRIMARY KEY, counter int)",
	`CREATE FUNCTION touched() RETURNS trigger AS $$ BEGIN UPDATE counter SET v = v + 1 WHERE id = NEW.counter;
		RETURN NULL; END $$ LANGUAGE plpgsql`,
	"CREATE TRIGGER touching AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION touched()",
	`CREATE FUNCTION going() RETURNS trigger AS $$ BEGIN UPDATE counter SET v = v + 1 WHERE id = OLD.id;
		RETURN OLD; END $$ LANGUAGE plpgsql`,
	"CREATE TRIGGER going BEFORE DELETE ON item FOR EACH ROW EXECUTE FUNCTION going()",
	"CREATE FUNCTION touch(int) RETURNS void AS 'UPDATE counter SET v = v + 1 WHERE id = $1' LANGUAGE sql",
	`CREATE FUNCTION caught(a int, b int) RETURNS void AS $$ BEGIN BEGIN UPDATE counter SET v = v + 1 WHERE id = a;
		RAISE 'no'; EXCEPTION WHEN OTHERS THEN UPDATE counter SET v = v + 1 WHERE id = b; END; END $$ LANGUAGE plpgsql`,
	`CREATE FUNCTION rekey(a int) RETURNS void AS $$ BEGIN UPDATE counter SET id = id + 100 WHERE id = a;
		INSERT INTO counter VALUES (a); UPDATE counter SET id = a + 200 WHERE id = a + 100; DELETE FROM counter
		WHERE id = a + 200; END $$ LANGUAGE plpgsql`,
	`CREATE PROCEDURE long(a int) AS $$ BEGIN UPDATE counter SET v = v + 1, note = repeat('x', 3000) || random()
		WHERE id = a; UPDATE loose SET v = v + 1 WHERE g = a % 3; END $$ LANGUAGE plpgsql`,
	`CREATE PROCEDURE halves(a int) AS $$ BEGIN UPDATE counter SET v = v + 1 WHERE id = a; COMMIT;
		UPDATE counter SET v = v + 1 WHERE id = a % 6 + 1; END $$ LANGUAGE plpgsql`,
	"CREATE TABLE part (id int PRIMARY KEY, v int NOT NULL DEFAULT 0) PARTITION BY RANGE (id)",
	"CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (0) TO (10)",
	"CREATE TABLE part_high PARTITION OF part FOR VALUES FROM (10) TO (200) PARTITION BY LIST (id)",
	"CREATE TABLE part_odd PARTITION OF part_high FOR VALUES IN (11, 13, 15)",
	"CREATE TABLE part_even PARTITION OF part_high DEFAULT",
	"INSERT INTO part SELECT i FROM generate_series(1, 6) i",
	"CREATE TABLE part_spare (id int PRIMARY KEY, v int NOT NULL DEFAULT 0)", "INSERT INTO part_spare SELECT id FROM part",
	"CREATE TABLE shelf (region int, v int) PARTITION BY LIST (region)",
	"CREATE TABLE shelf_one PARTITION OF shelf FOR VALUES IN (1)", "CREATE TABLE shelf_rest PARTITION OF shelf DEFAULT",
	"INSERT INTO shelf SELECT i % 3, 0 FROM generate_series(1, 6) i",
}

// effectStatements are what clients run: $a and $b stand for rows, $k for a kind.
var effectStatements = []string{
	"SELECT v FROM counter WHERE id IN ($a, $b)", "SELECT v FROM counter WHERE id = $a",
	"SELECT * FROM item WHERE id = $k",
	"SELECT sum(v) FROM counter", "SELECT v FROM loose WHERE g = $k",
	"SELECT k.v, i.v FROM kind k JOIN item i ON i.kind = k.id",
	"SELECT v FROM counter WHERE id = $a FOR UPDATE",
	"UPDATE counter SET v = v + 1 WHERE id = $a", "UPDATE loose SET v = v + 1 WHERE g = $k",
	"DELETE FROM counter WHERE id = $a",
	"INSERT INTO counter VALUES ($a) ON CONFLICT (id) DO UPDATE SET v = counter.v + 1",
	"INSERT INTO event (counter) VALUES ($a)", "SELECT touch($a)", "SELECT caught($a, $b)",
	"SELECT rekey($a)", "CALL long($a)",
	"DO $$ BEGIN UPDATE counter SET v = v + 1 WHERE id = $a; UPDATE counter SET v = v + 1 WHERE id = $b; END $$",
	"DO $$ BEGIN DELETE FROM counter WHERE id = $a; INSERT INTO counter VALUES ($a); END $$",
	"DO $$ BEGIN INSERT INTO counter VALUES (50 + $a); DELETE FROM counter WHERE id = 50 + $a; END $$",
	"DO $$ BEGIN MERGE INTO counter c USING (VALUES ($a)) n (id) ON c.id = n.id WHEN MATCHED THEN UPDATE SET v = v + 1 " +
		"WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id); END $$",
	"DELETE FROM kind WHERE id = $k", "INSERT INTO kind VALUES ($k) ON CONFLICT DO NOTHING",
	"UPDATE kind SET id = id + 10 WHERE id = $k", "UPDATE kind SET id = $k WHERE id = $k + 10",
	"INSERT INTO item VALUES ($k, 0, $k) ON CONFLICT DO NOTHING", "DELETE FROM item WHERE id = $k",
	"WITH a AS (UPDATE counter SET v = v + 1 WHERE id = $a RETURNING id) INSERT INTO event (counter) SELECT $b FROM a",
	"COPY event (counter) FROM STDIN", "COPY counter (id, v) FROM STDIN",
	"SAVEPOINT s", "ROLLBACK TO s", "RELEASE s",
	"SELECT v FROM part WHERE id IN ($a, $a + 10)", "SELECT v FROM part_low WHERE id = $a", "SELECT count(*) FROM shelf",
	"UPDATE part SET v = v + 1 WHERE id = $a", "UPDATE part SET v = v + 1 WHERE id = $a + 10",
	"UPDATE part_low SET v = v + 1 WHERE id = $a", "UPDATE part SET id = id + 10 WHERE id = $a",
	"UPDATE part SET id = id - 10 WHERE id = $a + 10", "DELETE FROM part WHERE id IN ($a, $b + 10)",
	"INSERT INTO part VALUES ($a) ON CONFLICT DO NOTHING", "UPDATE shelf SET region = $b WHERE region = $k",
	"DO $$ BEGIN UPDATE part SET v = v + 1 WHERE id IN ($a, $a + 10); END $$",
	"DO $$ BEGIN UPDATE part SET id = id + 10 WHERE id = $a; END $$",
	"DO $$ BEGIN UPDATE part SET id = id - 10, v = v + 1 WHERE id = $a + 10; UPDATE part SET v = v + 1 WHERE id = $a; END $$",
	"DO $$ BEGIN UPDATE shelf SET region = $b WHERE region = $k; END $$",
}

// effectDefinitions swap partitions and take them out and back: of a table that is taken out others see no rows, at
// SERIALIZABLE too.
var effectDefinitions = []string{
	"ALTER TABLE part DETACH PARTITION part_low; ALTER TABLE part ATTACH PARTITION part_spare FOR VALUES FROM (0) TO (10); " +
		"ALTER TABLE part_low RENAME TO z; ALTER TABLE part_spare RENAME TO part_low; ALTER TABLE z RENAME TO part_spare",
	"ALTER TABLE part_high DETACH PARTITION part_odd; ALTER TABLE part_high ATTACH PARTITION part_odd FOR VALUES IN (11, 13, 15)",
}

// effects runs one client's transactions: what the server refuses ends one. With definitions, some define tables.
func (b *postgresBench) effects(c *pgx.Conn, r *rand.Rand, txns int, definitions bool) {
	for range txns {
		block := r.IntN(4) > 0
		if block {
			b.exec(c, "BEGIN")
		}
		ok := true
		for range 1 + r.IntN(5) {
			text := effectStatements[r.IntN(len(effectStatements))]
			if definitions && r.IntN(30) == 0 {
				text = effectDefinitions[r.IntN(len(effectDefinitions))]
			}
			if !block && r.IntN(12) == 0 {
				text = "CALL halves($a)"
			}
			if ok = b.effect(c, r, text) == nil; !ok || !block {
				break
			}
		}
		switch {
		case block && ok && r.IntN(8) > 0:
			if _, err := c.Exec(b.t.Context(), "COMMIT"); err == nil {
				continue
			}
			fallthrough
		case block:
			b.exec(c, "ROLLBACK")
		}
	}
}

// effect runs one statement, for rows of its own.
func (b *postgresBench) effect(c *pgx.Conn, r *rand.Rand, text string) error {
	one, two, kind := fmt.Sprint(1+r.IntN(6)), fmt.Sprint(1+r.IntN(6)), fmt.Sprint(1+r.IntN(3))
	text = strings.NewReplacer("$a", one, "$b", two, "$k", kind).Replace(text)
	if strings.HasPrefix(text, "COPY") {
		row := one + "\n"
		if strings.Contains(text, "(id, v)") {
			row = one + "\t0\n"
		}
		_, err := c.PgConn().CopyFrom(b.t.Context(), strings.NewReader(row), text)
		return err
	}
	if strings.HasPrefix(text, "ALTER") {
		for definition := range strings.SplitSeq(text, "; ") {
			if _, err := c.Exec(b.t.Context(), definition); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := c.Exec(b.t.Context(), text)
	return err
}

// TestUnseenWritersAreNotAccused has clients whose transactions write unseen in all the ways that there are, by
// savepoints that are taken back, keys that change, rows made again and tables without keys: one client alone, and
// several at SERIALIZABLE, have no anomaly, with conditions watched or without.
func TestUnseenWritersAreNotAccused(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	eachTokenRun(t, []string{"serial", "SERIALIZABLE"}, func(t *testing.T, level string, seed uint64) {
		b := startLoggedBench(t, func(o *proxyserver.Options) {
			o.ServerLog, o.Predicates = serverlog.Require, seed%2 == 1
		}, effectTables...)
		clients, isolation := 4, "serializable"
		if level == "serial" {
			clients, isolation = 1, "read committed"
		}
		var all sync.WaitGroup
		for n := range clients {
			c := b.connect(b.through(), postgresModes[n], "default_transaction_isolation", isolation,
				"deadlock_timeout", "20ms")
			all.Go(func() { b.effects(c, rand.New(rand.NewPCG(seed, uint64(n))), *tokenTxns, level == "serial") })
		}
		all.Wait()
		r := b.undisputed()
		for _, f := range r.Findings {
			t.Errorf("%s %s of %s\n%s", f.Class, f.Anomaly, transactionsOf(f), f.Explanation)
		}
		if r.Coverage.Log.Told == 0 {
			t.Errorf("no unseen write was told: %+v", r.Coverage.Log)
		}
		t.Logf("%+v, %d reads of unseen origin", r.Coverage.Log, r.Coverage.UnseenOrigins)
	})
}

// TestKeysThatChangedUnseenAccuseNobody has a row get another key unseen, a second row the first one's key, and the
// first one written again: one client after the other, there is no anomaly.
func TestKeysThatChangedUnseenAccuseNobody(t *testing.T) {
	for _, past := range []bool{false, true} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("past isotap %t, and back %t", past, back), func(t *testing.T) {
				b := newLoggedBench(t, serverlog.Require, effectTables...)
				c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
				writer := c
				if past {
					writer = b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
				}
				b.exec(c, "SELECT v FROM kind WHERE id = 2")
				b.exec(writer, "BEGIN", "DO 'BEGIN UPDATE kind SET id = 12 WHERE id = 2; END'", "COMMIT")
				b.exec(c, "INSERT INTO kind VALUES (2)")
				if back {
					b.exec(c, "DELETE FROM kind WHERE id = 2")
				}
				b.exec(writer, "BEGIN", "DO 'BEGIN UPDATE kind SET v = v + 1 WHERE id = 12; END'", "COMMIT")
				if back {
					b.exec(writer, "BEGIN", "DO 'BEGIN UPDATE kind SET id = 2 WHERE id = 12; END'", "COMMIT")
				}
				b.exec(c, "SELECT v FROM kind WHERE id = 2")
				for _, f := range b.undisputed().Findings {
					t.Errorf("%s %s of %s", f.Class, f.Anomaly, transactionsOf(f))
				}
				b.watch.holdWatched(t, b.watched, true)
			})
		}
	}
}

// TestKeysOfRowsThatWereThereAccuseNobody has a row written unseen that later gets another one's key, when that one was
// given a new key: one client after the other, there is no anomaly.
func TestKeysOfRowsThatWereThereAccuseNobody(t *testing.T) {
	for _, past := range []bool{false, true} {
		t.Run(fmt.Sprintf("past isotap %t", past), func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Require, append(slices.Clone(effectTables), "INSERT INTO kind VALUES (12)")...)
			c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			writer := c
			if past {
				writer = b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
			}
			b.exec(writer, "DO 'BEGIN UPDATE kind SET v = v + 1 WHERE id IN (12, 3); END'")
			b.exec(c, "BEGIN", "SELECT v FROM kind WHERE id = 2", "SELECT v FROM kind WHERE id = 3", "COMMIT")
			b.exec(writer, "DO 'BEGIN UPDATE kind SET id = 22 WHERE id = 2; END'")
			b.exec(c, "SELECT v FROM kind WHERE id = 22")
			b.exec(writer, "DO 'BEGIN UPDATE kind SET id = 2 WHERE id = 12; END'")
			b.exec(c, "SELECT v FROM kind WHERE id = 2")
			for _, f := range b.undisputed().Findings {
				t.Errorf("%s %s of %s", f.Class, f.Anomaly, transactionsOf(f))
			}
		})
	}
}

// TestSkewsByUnseenWritesAreNamed has one transaction read a row that another one's unseen write is to change, and the
// other way around.
func TestSkewsByUnseenWritesAreNamed(t *testing.T) {
	const counter, item = "SELECT v FROM counter WHERE id = 1", "SELECT v FROM item WHERE id = 1"
	for _, tt := range []struct{ name, read, write string }{
		{"a trigger", counter, "INSERT INTO event (counter) VALUES (1)"},
		{"ON DELETE CASCADE", item, "DELETE FROM kind WHERE id = 1"},
		{"ON UPDATE CASCADE", item, "UPDATE kind SET id = 9 WHERE id = 1"},
		{"a trigger of a cascade", counter, "DELETE FROM kind WHERE id = 1"},
		{"an exception that was caught", counter, "SELECT caught(2, 1)"},
		{"DO", counter, "DO 'BEGIN DELETE FROM counter WHERE id = 1; END'"},
		{"CALL", counter, "CALL long(1)"},
		{"a trigger of COPY", counter, "COPY event (counter) FROM STDIN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Require, effectTables...)
			x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			b.exec(x, "BEGIN ISOLATION LEVEL REPEATABLE READ", tt.read)
			b.exec(y, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT v FROM counter WHERE id = 6")
			b.write(y, tt.write, "1\n")
			b.exec(x, "UPDATE counter SET v = 5 WHERE id = 6", "COMMIT")
			b.exec(y, "COMMIT")
			r := b.undisputed()
			if len(r.Findings) != 1 || countOf(t, r, analyzer.WriteSkew) != 1 || r.Coverage.Log.Told == 0 {
				t.Fatalf("%d findings, %+v", len(r.Findings), r.Coverage.Log)
			}
			if told := transactionsOf(r.Findings[0]); !strings.Contains(told, "unseen, from the log") {
				t.Errorf("the write is not named: %s", told)
			}
		})
	}
}

// write runs a statement, which gets its rows if it is a COPY.
func (b *postgresBench) write(c *pgx.Conn, text, rows string) {
	b.t.Helper()
	if !strings.HasPrefix(text, "COPY") {
		b.exec(c, text)
		return
	}
	if _, err := c.PgConn().CopyFrom(b.t.Context(), strings.NewReader(rows), text); err != nil {
		b.t.Fatal(err)
	}
}

// TestReadSkewOverCopiedRowsIsNamed has a transaction see the rows that another one's COPY made, and a row as it was
// before that one wrote it.
func TestReadSkewOverCopiedRowsIsNamed(t *testing.T) {
	b := newLoggedBench(t, serverlog.Require, effectTables...)
	x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	b.exec(x, "BEGIN", "SELECT v FROM counter WHERE id = 1")
	b.exec(y, "BEGIN", "UPDATE counter SET v = 1 WHERE id = 1")
	b.write(y, "COPY counter (id, v) FROM STDIN", "7\t1\n8\t1\n")
	b.exec(y, "COMMIT")
	b.exec(x, "SELECT v FROM counter WHERE id = 7", "COMMIT")
	r := b.undisputed()
	if len(r.Findings) == 0 || r.Coverage.Log.Told == 0 || r.Coverage.UnseenOrigins != 0 {
		t.Fatalf("%d findings, %+v, %d reads of unseen origin", len(r.Findings), r.Coverage.Log, r.Coverage.UnseenOrigins)
	}
	for _, f := range r.Findings {
		if f.Class != analyzer.Hazard {
			t.Errorf("%s %s", f.Class, f.Anomaly)
		}
		t.Logf("%s: %s", f.Anomaly, transactionsOf(f))
	}
}
