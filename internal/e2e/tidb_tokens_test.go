package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/internal/truth"
)

// tidbTokens spells the statements of a client of TiDB. An UPDATE is observed there where its text says what it stores:
// so a client puts its token behind what it saw of the row last, if that is still what the row has.
type tidbTokens struct {
	seen map[string]string // what a row had when the client saw it last, by table and key
}

func (q *tidbTokens) begin(level string) []string {
	level, optimistic := strings.CutSuffix(level, " OPTIMISTIC")
	mode := "PESSIMISTIC"
	if optimistic {
		mode = "OPTIMISTIC"
	}
	return []string{"SET TRANSACTION ISOLATION LEVEL " + level, "BEGIN " + mode}
}

func (q *tidbTokens) read(r *rand.Rand, table string, n, id int) string {
	where := oneOf(r, fmt.Sprintf(" WHERE id = %d", id), fmt.Sprintf(" WHERE id >= %d", id), "")
	return fmt.Sprintf("SELECT hist, ',%d.', id, '%s' FROM %s%s%s", n, table, table, where, oneOf(r, "", "", "", " FOR UPDATE"))
}

// saw takes in a row that a SELECT showed.
func (q *tidbTokens) saw(row []string) {
	if len(row) == 4 {
		q.seen[row[3]+row[2]] = row[0]
	}
}

func (q *tidbTokens) write(r *rand.Rand, table string, n, id int) (text string, shows bool) {
	if r.IntN(6) == 0 {
		return fmt.Sprintf("INSERT INTO %s (id, hist) VALUES (%d, ',%d.%d')", table, id, n, id), false
	}
	row := fmt.Sprint(table, id)
	old, ok := q.seen[row]
	if !ok {
		old = "0"
	}
	q.seen[row] = fmt.Sprintf("%s,%d.%d", old, n, id)
	return fmt.Sprintf("UPDATE %s SET hist = '%s' WHERE id = %d AND hist <> ',%d.' AND hist = '%s'", table, q.seen[row], id, n,
		old), false
}

func (q *tidbTokens) remove(table string, n, id int) (text string, shows bool) {
	return fmt.Sprintf("DELETE FROM %s WHERE id = %d AND hist <> ',%d.'", table, id, n), false
}

var tidbTokenTables = []string{
	"CREATE TABLE a (id INT PRIMARY KEY, hist VARCHAR(8000))", "CREATE TABLE b (id INT, hist VARCHAR(8000), KEY (id))",
	"CREATE TABLE planted (id INT PRIMARY KEY, hist VARCHAR(8000), v INT DEFAULT 0)",
	"CREATE TABLE parts (id INT PRIMARY KEY, hist VARCHAR(8000)) PARTITION BY RANGE (id) " +
		"(PARTITION low VALUES LESS THAN (3), PARTITION high VALUES LESS THAN MAXVALUE)",
	"INSERT INTO a VALUES (1, '0'), (2, '0'), (3, '0'), (4, '0'), (5, '0')", "INSERT INTO b SELECT * FROM a",
	"INSERT INTO parts SELECT * FROM a", "INSERT INTO planted (id, hist) SELECT * FROM a",
}

// TestTiDBIsHeldAgainstItsTokens holds what is said of random sessions against what their rows told, at all levels that
// TiDB has.
func TestTiDBIsHeldAgainstItsTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	eachTokenRun(t, []string{"READ COMMITTED", "READ COMMITTED OPTIMISTIC", "REPEATABLE READ", "REPEATABLE READ OPTIMISTIC"},
		func(t *testing.T, level string, seed uint64) {
			var watch liveWatch
			b := newTiDBBench(t, func(o *proxyserver.Options) { watch.set(o); o.Predicates = seed%2 == 0 }, tidbTokenTables...)
			r := &tokenRun{t: t, log: truth.NewLog(), told: fmt.Sprintf("seed %d at %s", seed, level)}
			d := &tidbDisturber{bench: b, Rand: rand.New(rand.NewPCG(seed, 99)), run: r, through: b.conn(b.through),
				past: b.conn(testdb.TiDB(t).Open(t, b.database)), other: b.conn(b.through)}
			play := &tokenPlay{disturb: d.disturb}
			for i := range tokenClients {
				conn, q := b.conn(b.through), &tidbTokens{seen: make(map[string]string)}
				b.exec(conn, "SET innodb_lock_wait_timeout = 1")
				play.clients = append(play.clients, &tokenClient{Rand: rand.New(rand.NewPCG(seed, uint64(i))), log: r.log,
					level: level, sql: q, again: func() { conn.ExecContext(context.Background(), "ROLLBACK") },
					ask: func(ctx context.Context, text string) ([]string, error) { return q.ask(ctx, conn, text) }})
			}
			play.run(t.Context())
			for _, table := range []string{"a", "b", "parts", "planted"} {
				shown, err := mysqlAsk(t.Context(), d.past, "SELECT hist FROM "+table)
				if err != nil {
					t.Fatal(err)
				}
				r.log.Found(chains(shown))
			}
			b.stop()
			r.hold(b.recording)
			r.holdWatched(&watch, b.srv.Watched())
		})
}

// ask is mysqlAsk for a client that remembers its rows.
func (q *tidbTokens) ask(ctx context.Context, c *sql.Conn, text string) (shown []string, err error) {
	if !strings.HasPrefix(text, "SELECT") {
		_, err := c.ExecContext(ctx, text)
		return nil, err
	}
	rows, err := c.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row := make([]string, 4)
		if err := rows.Scan(&row[0], &row[1], &row[2], &row[3]); err != nil {
			return nil, err
		}
		q.saw(row)
		shown = append(shown, row[0])
	}
	return shown, rows.Err()
}

// A tidbDisturber does to tables what clients do not. It ends nobody's session: TiDB's in-memory server can crash over
// that.
type tidbDisturber struct {
	*bench
	*rand.Rand
	run                  *tokenRun
	through, other, past *sql.Conn
	wide                 bool
}

func (d *tidbDisturber) disturb(ctx context.Context, step int) {
	table, id := []string{"a", "b", "parts"}[d.IntN(3)], 1+d.IntN(6)
	switch d.IntN(12) {
	case 0:
		column := "ADD COLUMN more INT"
		if d.wide {
			column = "DROP COLUMN more"
		}
		if _, err := d.through.ExecContext(ctx, "ALTER TABLE b "+column); err == nil {
			d.wide = !d.wide
		}
	case 1, 2: // rows that somebody makes past isotap have an identity, and no writer
		d.past.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (id, hist) VALUES (%d, ',F%d.%d')", table, id, step, id))
	case 3, 4:
		d.past.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, id))
	default:
		d.plant(ctx, id)
	}
}

// plant loses an update.
func (d *tidbDisturber) plant(ctx context.Context, id int) {
	try := func(c *sql.Conn, texts ...string) bool {
		for _, text := range texts {
			n := d.run.log.Number()
			shown, err := mysqlAsk(ctx, c, strings.ReplaceAll(text, "N", fmt.Sprint(n)))
			if err != nil {
				return false
			}
			if strings.HasPrefix(text, "SELECT") {
				d.run.log.Saw(n, chains(shown))
			}
		}
		return true
	}
	read := fmt.Sprintf("SELECT hist, ',N.' FROM planted WHERE id = %d", id%5+1)
	write := fmt.Sprintf("UPDATE planted SET v = v + 1 WHERE id = %d", id%5+1)
	if try(d.through, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN PESSIMISTIC", read) &&
		try(d.other, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN PESSIMISTIC", read, write, "COMMIT") &&
		try(d.through, write, "COMMIT") {
		d.run.planted++
		return
	}
	d.through.ExecContext(ctx, "ROLLBACK")
	d.other.ExecContext(ctx, "ROLLBACK")
}
