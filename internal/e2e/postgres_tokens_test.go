package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/internal/truth"
)

// postgresTokens spells the statements of PostgreSQL. Some write unseen, where the server's log tells of it.
type postgresTokens struct{ merge, unseen bool }

func (postgresTokens) begin(level string) []string { return []string{"BEGIN ISOLATION LEVEL " + level} }

func (postgresTokens) read(r *rand.Rand, table string, n, id int) string {
	other := map[string]string{"a": "b", "b": "parts", "parts": "a"}[table]
	switch r.IntN(9) {
	case 7: // the row hangs on the first one of the other table, by an order in which others may be equal to it
		return fmt.Sprintf("SELECT x.hist || coalesce(';' || (SELECT y.hist FROM %s y WHERE y.id %s ORDER BY %s LIMIT 1), ''), ',%d.' "+
			"FROM %s x WHERE x.id = %d", other, oneOf(r, ">= x.id", "< 4", "= x.id"),
			oneOf(r, "y.hist DESC", "length(y.hist)", "y.hist, y.id"), n, table, id)
	case 8: // what a query in FROM, or of the WITH clause, finds by a subquery
		return fmt.Sprintf(oneOf(r, "SELECT d.hist, ',%[1]d.' FROM (SELECT x.id, x.hist FROM %[2]s x WHERE "+
			"(SELECT count(*) FROM %[3]s y WHERE y.id = -x.id) < 1) d JOIN (VALUES (1)) v (n) ON n < 2 WHERE d.id <= %[4]d",
			"SELECT DISTINCT d.hist || ';' || y.hist || ';' || y.hist, d.id, ',%[1]d.' FROM (SELECT x.id, x.hist FROM %[2]s x "+
				"WHERE x.id IN (SELECT z.id FROM %[3]s z)) d JOIN %[3]s y ON y.id = d.id WHERE d.id <= %[4]d",
			"WITH w AS MATERIALIZED (SELECT x.hist || ';' || (SELECT y.hist || ';' || y.hist FROM %[3]s y WHERE y.id = x.id) AS hist, x.id "+
				"FROM %[2]s x WHERE EXISTS (SELECT FROM %[3]s y WHERE y.id = x.id)) SELECT w.hist, ',%[1]d.' FROM w WHERE id <= %[4]d"), n, table, other, id)
	case 2: // no row that comes hangs on the other table's: the first arm of OR lets it pass
		return fmt.Sprintf("SELECT x.hist, ',%d.' FROM %s x WHERE x.id <= %d OR (SELECT count(*) FROM %s y WHERE y.id = x.id) > 5%s",
			n, table, id, other, oneOf(r, "", "", " FOR UPDATE"))
	case 3: // all rows but one hang on it
		return fmt.Sprintf("SELECT x.hist || coalesce(';' || CASE WHEN x.id = %d THEN NULL ELSE "+
			"(SELECT string_agg(y.hist, ';') FROM %s y WHERE y.id = x.id) END, ''), ',%d.' FROM %s x WHERE x.id <= %[1]d + 1", id, other, n, table)
	case 4: // the row that is joined hangs on what a subquery finds: both read it
		return fmt.Sprintf("SELECT x.hist || coalesce(';' || y.hist || ';' || y.hist, ''), ',%d.' FROM %s x LEFT JOIN %s y "+
			"ON y.id = (SELECT max(z.id) FROM %[3]s z WHERE z.id = x.id) WHERE x.id <= %d", n, table, other, id)
	case 0:
		return fmt.Sprintf("SELECT x.hist || ';' || y.hist, ',%d.' FROM %s x JOIN %s y ON y.id = x.id WHERE x.id <= %d%s",
			n, table, other, id, oneOf(r, "", "", " FOR UPDATE", " FOR SHARE OF y"))
	case 1:
		return fmt.Sprintf("SELECT x.hist || coalesce(';' || y.hist, ''), ',%d.' FROM %s x LEFT JOIN %s y ON y.id = x.id "+
			"WHERE x.id = %d%s", n, table, other, id, oneOf(r, "", " FOR UPDATE OF x"))
	}
	return readOneTable(r, table, n, id)
}

func (q postgresTokens) write(r *rand.Rand, table string, n, id int) (text string, shows bool) {
	insert := fmt.Sprintf("INSERT INTO %s AS x (id, hist) VALUES (%d, ',%d.%d')", table, id, n, id)
	if q.unseen && r.IntN(2) == 0 {
		return q.writeUnseen(r, table, n, id), false
	}
	kind := r.IntN(14)
	if kind == 1 && !q.merge {
		kind = 0
	}
	switch kind {
	case 0:
		return fmt.Sprintf("%s ON CONFLICT (id) DO UPDATE SET hist = x.hist || ',%d.%d' RETURNING hist", insert, n, id), true
	case 1:
		return fmt.Sprintf("MERGE INTO %s x USING (VALUES (%d)) AS v (id) ON x.id = v.id WHEN MATCHED THEN UPDATE SET "+
			"hist = x.hist || ',%d.%d' WHEN NOT MATCHED THEN INSERT (id, hist) VALUES (%d, ',%d.%d')",
			table, id, n, id, id, n, id), false
	case 12, 13:
		if table == "parts" {
			break
		}
		return q.writeBySubquery(r, table, n, id), true
	case 2:
		return insert, false
	case 3:
		return insert + " ON CONFLICT DO NOTHING", false
	case 4:
		return fmt.Sprintf("UPDATE %s x SET hist = x.hist || ',%d.' || x.id FROM side WHERE side.id = x.id", table, n), false
	case 5, 6:
		return fmt.Sprintf("UPDATE %s SET hist = hist || ',%d.' || id WHERE id >= %d RETURNING hist", table, n, id), true
	case 7:
		return fmt.Sprintf("UPDATE %s SET hist = hist || ',%d.' || id WHERE id = %d", table, n, id), false
	case 8:
		return fmt.Sprintf("WITH next AS (SELECT * FROM %s WHERE id >= %d ORDER BY id LIMIT 1 FOR UPDATE) UPDATE %[1]s x "+
			"SET hist = next.hist || ',%[3]d.' || x.id FROM next WHERE next.id = x.id RETURNING x.hist", table, id, n), true
	case 9:
		return fmt.Sprintf("UPDATE %s SET hist = hist || ',%d.' || id WHERE id = (SELECT id FROM %[1]s WHERE id >= %[3]d "+
			"ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING hist", table, n, id), true
	}
	return fmt.Sprintf("UPDATE %s SET hist = hist || ',%d.' || id WHERE id = %d RETURNING hist", table, n, id), true
}

// writeBySubquery returns a write that shows what it read of another table: an UPDATE with a subquery that reads by the
// row as it was, which the UPDATE changes, or as a part of a WITH clause that names a query before it, or has one of
// its own; or ON CONFLICT with subqueries in what it assigns and in its condition.
func (postgresTokens) writeBySubquery(r *rand.Rand, table string, n, id int) string {
	other := oneOf(r, map[string]string{"a": "b", "b": "a"}[table], "parts")
	switch r.IntN(10) {
	case 8: // what the query of an INSERT reads by a WITH clause of its own
		const with, insert = "WITH q AS (SELECT y.hist FROM %[3]s y WHERE y.id >= %[4]d) ", "INSERT INTO %[1]s (id, hist, seen) "
		return fmt.Sprintf(oneOf(r, with+insert, insert+with)+"SELECT %[4]d, ',%[2]d.%[4]d', string_agg(q.hist, ';') FROM q "+
			"ON CONFLICT DO NOTHING RETURNING hist || '|' || coalesce(seen, '')", table, n, other, id)
	case 9: // by subqueries, behind a LIMIT that leaves out no row
		return fmt.Sprintf("INSERT INTO %[1]s (id, hist, seen) SELECT %[4]d, ',%[2]d.%[4]d', (SELECT z.hist FROM %[3]s z WHERE z.id = y.id) "+
			"FROM %[3]s y WHERE y.id = %[4]d AND EXISTS (SELECT FROM %[3]s v WHERE v.id = y.id) LIMIT 3 "+
			"ON CONFLICT DO NOTHING RETURNING hist || '|' || seen || ';' || seen || ';' || seen", table, n, other, id)
	case 5: // one row hangs on the other table's, by the value that it has before
		return fmt.Sprintf("UPDATE %s x SET hist = hist || ',%d.' || id, seen = CASE id WHEN %[4]d THEN (SELECT "+
			"string_agg(y.hist, ';') FROM %[3]s y WHERE y.hist < x.hist) END WHERE id = %[4]d OR id < %[4]d AND "+
			"(SELECT count(*) FROM %[3]s y WHERE y.id <= x.id) > 9 RETURNING hist || '|' || coalesce(seen, '')", table, n, other, id)
	case 6: // what RETURNING reads
		return fmt.Sprintf("UPDATE %s x SET hist = hist || ',%d.' || id WHERE id = %d RETURNING hist || '|' || coalesce("+
			"(SELECT string_agg(y.hist, ';') FROM %s y WHERE y.id <= x.id), '')", table, n, id, other)
	case 3: // the part's column is changed, and its subquery goes by it
		return fmt.Sprintf("WITH u AS (UPDATE %s x SET hist = hist || ',%d.' || id, seen = (SELECT string_agg(y.hist, ';') "+
			"FROM %s y WHERE y.id %s AND y.hist < x.hist) WHERE id = %d RETURNING hist, seen) "+
			"SELECT hist || '|' || coalesce(seen, '') FROM u", table, n, other, oneOf(r, "= x.id", "<= x.id", "> 2"), id)
	case 4: // what an INSERT as a part reads
		return fmt.Sprintf("WITH u AS (INSERT INTO %[1]s (id, hist, seen) SELECT %[4]d, ',%[2]d.%[4]d', string_agg(y.hist, ';') "+
			"FROM %[3]s y WHERE y.id >= %[4]d ON CONFLICT DO NOTHING RETURNING hist, seen) "+
			"SELECT hist || '|' || coalesce(seen, '') FROM u", table, n, other, id)
	case 0:
		return fmt.Sprintf("WITH u AS (WITH q AS (SELECT y.id, y.hist FROM %[3]s y WHERE y.id >= %[4]d) UPDATE %[1]s x "+
			"SET hist = x.hist || ',%[2]d.' || x.id FROM q WHERE q.id = x.id RETURNING x.hist, q.hist AS beside) "+
			"SELECT hist || '|' || beside FROM u", table, n, other, id)
	case 1:
		return fmt.Sprintf("INSERT INTO %[1]s AS x (id, hist) VALUES (%[4]d, ',%[2]d.%[4]d') ON CONFLICT (id) DO UPDATE "+
			"SET hist = x.hist || ',%[2]d.%[4]d', seen = "+
			"(SELECT string_agg(y.hist || ';' || y.hist, ';') FROM %[3]s y WHERE y.id = x.id) "+
			"WHERE (SELECT count(*) FROM %[3]s z WHERE z.id = x.id) < 5 RETURNING hist || '|' || "+
			"CASE WHEN hist = ',%[2]d.%[4]d' THEN '' ELSE coalesce(seen, '') END", table, n, other, id)
	case 2:
		return fmt.Sprintf("WITH q AS (SELECT y.id, y.hist FROM %[3]s y WHERE y.id >= %[4]d), u AS (UPDATE %[1]s x "+
			"SET hist = x.hist || ',%[2]d.' || x.id FROM q WHERE q.id = x.id RETURNING x.hist, q.hist AS beside) "+
			"SELECT hist || '|' || beside FROM u", table, n, other, id)
	}
	return fmt.Sprintf("UPDATE %s x SET hist = hist || ',%d.' || id, seen = (SELECT string_agg(y.hist, ';') FROM %s y "+
		"WHERE y.id %s AND y.hist < %s) WHERE id = %d RETURNING hist || '|' || coalesce(seen, '')", table, n, other,
		oneOf(r, "= x.id", "<= x.id", "> 2"), oneOf(r, "x.hist", "x.hist", "'1'"), id)
}

// writeUnseen returns a statement that writes without telling. One of its literals has its number behind an h, or a
// comment of where it comes from.
func (postgresTokens) writeUnseen(r *rand.Rand, table string, n, id int) string {
	switch r.IntN(10) {
	case 0:
		return fmt.Sprintf("DO 'BEGIN UPDATE %[2]s SET hist = hist || '',%[1]d.'' || id WHERE id >= %[3]d; END' "+
			"/*file='h%[1]d'*/", n, table, id)
	case 1:
		return fmt.Sprintf("DO 'BEGIN DELETE FROM %[2]s WHERE id = %[3]d; INSERT INTO %[2]s (id, hist) "+
			"VALUES (%[3]d, '',%[1]d.%[3]d''); END' /*file='h%[1]d'*/", n, table, id)
	case 2:
		return fmt.Sprintf("CALL hit('h%d', '%s', %d)", n, table, id)
	case 3:
		return fmt.Sprintf("SELECT hits('h%d', '%s', %d)", n, table, id)
	case 4:
		return fmt.Sprintf("COPY event (told, id) FROM STDIN (NULL 'h%d')\nh%[1]d %s\t%d\n", n, table, id)
	case 5:
		return fmt.Sprintf("DELETE FROM owner WHERE id = %d AND 'h%d' <> ''", id, n)
	case 6:
		return fmt.Sprintf("INSERT INTO owner VALUES (%d) ON CONFLICT DO NOTHING", id)
	}
	return fmt.Sprintf("INSERT INTO event (told, id) VALUES ('h%d %s', %d)", n, table, id)
}

func (postgresTokens) remove(table string, n, id int) (text string, shows bool) {
	return fmt.Sprintf("DELETE FROM %s WHERE id = %d AND hist <> ',%d.' RETURNING hist", table, id, n), true
}

// postgresTokenTables: side takes the place of the partition low, and low its.
var postgresTokenTables = []string{
	"CREATE TABLE a (id int PRIMARY KEY, hist text)", "CREATE TABLE b (id int PRIMARY KEY, hist text)",
	"CREATE TABLE planted (id int PRIMARY KEY, hist text)", "CREATE TABLE side (id int PRIMARY KEY, hist text)",
	"CREATE TABLE parts (id int PRIMARY KEY, hist text) PARTITION BY RANGE (id)",
	"CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (3)", "CREATE TABLE high PARTITION OF parts DEFAULT",
	"INSERT INTO a SELECT i, '0' FROM generate_series(1, 5) i", "INSERT INTO b SELECT * FROM a",
	"INSERT INTO parts SELECT * FROM a", "INSERT INTO planted SELECT * FROM a",
	"INSERT INTO side SELECT * FROM a WHERE id < 3", "ALTER TABLE a ADD seen text", "ALTER TABLE b ADD seen text",
}

// unseenTokenTables have a trigger, a function and a procedure that leave tokens. A row of b goes with its owner.
var unseenTokenTables = []string{
	"CREATE TABLE event (told text, id int)",
	`CREATE PROCEDURE hit(told text, target text, key int) LANGUAGE plpgsql AS $$ BEGIN
		EXECUTE format('UPDATE %I SET hist = hist || %L || id WHERE id = %s', target, ',' || substr(told, 2) || '.', key);
		END $$`,
	`CREATE FUNCTION hits(told text, target text, key int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
		CALL hit(told, target, key); END $$`,
	`CREATE FUNCTION hitting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		CALL hit(split_part(NEW.told, ' ', 1), split_part(NEW.told, ' ', 2), NEW.id); RETURN NULL; END $$`,
	"CREATE TRIGGER hitting AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION hitting()",
	"CREATE TABLE owner (id int PRIMARY KEY)", "INSERT INTO owner SELECT generate_series(1, 6)",
	"ALTER TABLE b ADD owner int GENERATED ALWAYS AS (id) STORED REFERENCES owner ON DELETE CASCADE",
}

// TestPostgreSQLIsHeldAgainstItsTokens holds what is said of random sessions against what their rows told: without the
// server's log, and with it.
func TestPostgreSQLIsHeldAgainstItsTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	holdAgainstTokens(t, false)
}

// TestUnseenPostgreSQLIsHeldAgainstItsTokens has transactions write unseen, too, in blocks and outside: by DO, COPY,
// triggers, procedures, functions and cascades.
func TestUnseenPostgreSQLIsHeldAgainstItsTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	holdAgainstTokens(t, true)
}

func holdAgainstTokens(t *testing.T, unseen bool) {
	tables := postgresTokenTables
	if unseen {
		tables = slices.Concat(tables, unseenTokenTables)
	}
	eachTokenRun(t, []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "mixed"},
		func(t *testing.T, level string, seed uint64) {
			b := startPostgresBench(t, tapMode{}, tables...)
			r := &tokenRun{t: t, log: truth.NewLog(), told: fmt.Sprintf("seed %d at %s", seed, level),
				serializable: level == "SERIALIZABLE"}
			r.log.Continued = true
			d := &postgresDisturber{postgresBench: b, Rand: rand.New(rand.NewPCG(seed, 99)), run: r, still: unseen}
			d.settings = []string{"lock_timeout", "300ms", "statement_timeout", "2s", "deadlock_timeout", "20ms"}
			if r.serializable {
				d.settings = append(d.settings, "default_transaction_isolation", level)
			}
			d.past = b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol, d.settings...)
			d.through, d.other = d.dial(t.Context(), 0), d.dial(t.Context(), 1)
			var version int
			if err := d.past.QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
				t.Fatal(err)
			}
			play := &tokenPlay{disturb: d.disturb}
			conns := make([]*pgx.Conn, tokenClients)
			for i := range conns {
				c := &tokenClient{Rand: rand.New(rand.NewPCG(seed, uint64(i))), log: r.log, level: level,
					sql: postgresTokens{merge: version >= 150000, unseen: unseen}, alone: unseen}
				c.again = func() {
					hangUp(conns[i])
					conns[i] = d.dial(t.Context(), i)
				}
				c.ask = func(ctx context.Context, text string) ([]string, error) { return postgresAsk(ctx, conns[i], text) }
				c.again()
				play.clients = append(play.clients, c)
			}
			play.run(t.Context())
			for _, table := range []string{"a", "b", "parts", "side", "planted"} {
				shown, err := postgresAsk(t.Context(), d.past, "SELECT hist FROM "+table)
				if err != nil {
					t.Fatal(err)
				}
				r.log.Found(chains(shown))
			}
			for _, c := range append(conns, d.through, d.other) {
				hangUp(c)
			}
			logged := b.analyze()
			r.hold(b.recording)
			r.holdWatched(&b.watch, b.watched)
			verdicts := make(map[truth.Verdict]int)
			r.holdFindings(logged, verdicts)
			if unseen {
				r.holdUnseen(b.recording, logged)
			}
			t.Logf("%s: %d lost updates planted; with the server's log %d findings, dependencies %v; disturbances %v", r.told,
				r.planted, len(logged.Findings), verdicts, d.done)
		})
}

func hangUp(c *pgx.Conn) {
	if c != nil {
		c.Close(context.Background())
	}
}

// postgresAsk returns the first column of what a statement shows.
func postgresAsk(ctx context.Context, c *pgx.Conn, text string) (shown []string, err error) {
	if c == nil || c.IsClosed() {
		return nil, errGone
	}
	if copying, rows, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "COPY") {
		_, err := c.PgConn().CopyFrom(ctx, strings.NewReader(rows), copying)
		return nil, err
	}
	rows, err := c.Query(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		shown = append(shown, string(rows.RawValues()[0]))
	}
	return shown, rows.Err()
}

// A postgresDisturber does to tables and sessions what clients do not.
type postgresDisturber struct {
	*postgresBench
	*rand.Rand
	run                  *tokenRun
	settings             []string
	through, other, past *pgx.Conn
	wide                 bool
	// still says that tables keep their names and files: of others the server's log tells less.
	still bool
	done  [8]int // how often each disturbance succeeded
}

// dial connects through isotap, in the mode of a client; nil where that fails.
func (d *postgresDisturber) dial(ctx context.Context, client int) *pgx.Conn {
	c, err := pgx.ConnectConfig(ctx, d.config(d.postgresBench.through(), postgresModes[client], d.settings...))
	if err != nil {
		return nil
	}
	return c
}

// try runs statements up to the first that fails.
func (d *postgresDisturber) try(ctx context.Context, c *pgx.Conn, texts ...string) bool {
	for _, s := range texts {
		if _, err := postgresAsk(ctx, c, s); err != nil {
			postgresAsk(ctx, c, "ROLLBACK")
			return false
		}
	}
	return true
}

func (d *postgresDisturber) disturb(ctx context.Context, step int) {
	kind := d.IntN(10)
	if kind >= len(d.done) {
		kind = len(d.done) - 1
	}
	if d.still && kind < 2 {
		kind = 2
	}
	table, id := oneOf(d.Rand, "a", "b", "parts"), 1+d.IntN(6)
	var done bool
	switch kind {
	case 0:
		done = d.try(ctx, d.through, "BEGIN", "ALTER TABLE a RENAME TO z", "ALTER TABLE b RENAME TO a",
			"ALTER TABLE z RENAME TO b", "COMMIT")
	case 1:
		done = d.try(ctx, d.through, "BEGIN", "ALTER TABLE parts DETACH PARTITION low",
			"ALTER TABLE parts ATTACH PARTITION side FOR VALUES FROM (0) TO (3)", "ALTER TABLE low RENAME TO z",
			"ALTER TABLE side RENAME TO low", "ALTER TABLE z RENAME TO side", "COMMIT")
	case 2:
		done = d.define(ctx)
	case 3:
		done = d.try(ctx, d.past, fmt.Sprintf("INSERT INTO %s (id, hist) VALUES (%d, ',F%d.%d')", table, id, step, id))
	case 4:
		done = d.try(ctx, d.past, fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, id))
	case 5:
		done = d.try(ctx, d.past, "BEGIN",
			fmt.Sprintf("UPDATE %s SET hist = hist || ',F%d.' || id WHERE id = %d", table, step, id),
			"SAVEPOINT s", fmt.Sprintf("UPDATE %s SET hist = hist || ',G%d.' || id WHERE id > %d", table, step, id),
			oneOf(d.Rand, "RELEASE s", "ROLLBACK TO s"), oneOf(d.Rand, "COMMIT", "COMMIT", "ROLLBACK"))
	case 6:
		// Only who runs something: whoever connects is let in.
		done = d.try(ctx, d.past, "SELECT "+oneOf(d.Rand, "pg_cancel_backend", "pg_terminate_backend")+"(pid) "+
			"FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "+
			"AND backend_type = 'client backend' AND xact_start "+
			"IS NOT NULL ORDER BY random() LIMIT 1")
	case 7:
		done = d.plant(ctx)
	}
	if done {
		d.done[kind]++
	}
	if d.through == nil || d.through.IsClosed() || d.other == nil || d.other.IsClosed() {
		d.renew(ctx)
	}
}

// define changes columns and indexes, or writes a table anew. TRUNCATE is not among it, nor an ALTER that writes anew:
// older snapshots see what they did (PostgreSQL's manual, 13.6), at SERIALIZABLE, too.
func (d *postgresDisturber) define(ctx context.Context) bool {
	if d.IntN(2) == 0 {
		if d.still {
			return d.try(ctx, d.through, oneOf(d.Rand, "CREATE INDEX IF NOT EXISTS more ON a (hist)", "DROP INDEX IF EXISTS more"))
		}
		return d.try(ctx, d.through, oneOf(d.Rand, "CREATE INDEX IF NOT EXISTS more ON a (hist)", "DROP INDEX IF EXISTS more",
			"VACUUM FULL b", "CLUSTER a USING a_pkey", "ALTER TABLE parts SET (fillfactor = 50)"))
	}
	column := map[bool]string{false: "ADD COLUMN more int", true: "DROP COLUMN more"}[d.wide]
	done := d.try(ctx, d.through, "BEGIN", "ALTER TABLE b "+column, "ALTER TABLE a "+column, "COMMIT")
	if done {
		d.wide = !d.wide
	}
	return done
}

// plant loses an update.
func (d *postgresDisturber) plant(ctx context.Context) bool {
	if d.run.serializable {
		return false
	}
	log, id := d.run.log, 1+d.IntN(5)
	read := func(c *pgx.Conn) bool {
		n := log.Number()
		shown, err := postgresAsk(ctx, c, fmt.Sprintf("SELECT hist, ',%d.' FROM planted WHERE id = %d", n, id))
		log.Saw(n, chains(shown))
		return err == nil
	}
	write := func(c *pgx.Conn) bool {
		_, err := postgresAsk(ctx, c, fmt.Sprintf("UPDATE planted SET hist = hist || ',%d.' || id WHERE id = %d",
			log.Number(), id))
		return err == nil
	}
	const begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
	if !d.try(ctx, d.through, begin) || !d.try(ctx, d.other, begin) || !read(d.through) || !read(d.other) ||
		!write(d.other) || !d.try(ctx, d.other, "COMMIT") || !write(d.through) || !d.try(ctx, d.through, "COMMIT") {
		d.renew(ctx)
		return false
	}
	d.run.planted++
	return true
}

// renew gives the disturber other connections.
func (d *postgresDisturber) renew(ctx context.Context) {
	for i, c := range []**pgx.Conn{&d.through, &d.other} {
		hangUp(*c)
		*c = d.dial(ctx, i)
	}
}
