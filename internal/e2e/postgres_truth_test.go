package e2e

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

var (
	truthSeed = flag.Int64("truth.seed", 7,
		"seed of the random sessions that are held against what PostgreSQL's rows tell")
	truthTransactions = flag.Int("truth.transactions", 40, "how many transactions each of these sessions runs")
)

// A truthClient runs random transactions whose statements have numbers, and whose every write adds its number
// to the row's own history. So the server itself says which version each statement saw.
type truthClient struct {
	frontend
	rng    *rand.Rand
	number func() int
	// met is by statement and row: the numbers of the writes that made the version it read or replaced, the
	// last one last.
	met map[int]map[string][]string
	// left are the rows that a statement wrote.
	left map[int]map[string]bool
}

var truthTables = []string{
	"CREATE TABLE one (id int PRIMARY KEY, hist text NOT NULL DEFAULT '0')",
	"CREATE TABLE two (a text, b uuid, hist text NOT NULL DEFAULT '0', PRIMARY KEY (a, b))",
	"CREATE TABLE parts (id bigint PRIMARY KEY, hist text NOT NULL DEFAULT '0') PARTITION BY RANGE (id)",
	"CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (3)",
	"CREATE TABLE high PARTITION OF parts DEFAULT",
	"CREATE VIEW one_seen AS SELECT hist, id FROM one WHERE id > 0",
	"CREATE VIEW two_seen AS SELECT * FROM two ORDER BY hist",
	"CREATE VIEW parts_seen AS SELECT p.id, p.hist FROM parts AS p JOIN (VALUES (true)) AS v (yes) ON yes",
	"INSERT INTO one SELECT g FROM generate_series(1, 5) g",
	`INSERT INTO two SELECT 'a,\b;' || g, ('00000000-0000-0000-0000-00000000000' || g)::uuid FROM generate_series(1, 3) g`,
	"INSERT INTO parts SELECT g FROM generate_series(1, 5) g",
}

// truthKeys give a row's id in a recording.
var truthKeys = map[string]string{"one": "id",
	"two": `replace(replace(replace(a, '\', '\\'), ',', '\,'), ';', '\;') || ',' || b`, "parts": "id"}

// TestRandomPostgreSQLStatementsAreRecordedTruly lets sessions at all levels run into each other, and holds
// what is recorded, after the versions have their tags, against what the rows themselves told each statement.
func TestRandomPostgreSQLStatementsAreRecordedTruly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	database := testdb.NewPostgreSQLDatabase(t)
	testdb.Exec(t, testdb.OpenPostgreSQL(t, database), truthTables...)
	dir := filepath.Join(t.TempDir(), "rec")
	srv := startPostgreSQLProxy(t, func(o *proxyserver.Options) { o.Recording, o.Args = dir, true })
	var mu sync.Mutex
	last := 0
	number := func() int {
		mu.Lock()
		defer mu.Unlock()
		last++
		return last
	}
	met, left := make(map[int]map[string][]string), make(map[int]map[string]bool)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			f, err := newFrontend(srv.Addr().String(), database)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			c := &truthClient{frontend: f, rng: rand.New(rand.NewPCG(uint64(*truthSeed), uint64(i))), number: number,
				met: make(map[int]map[string][]string), left: make(map[int]map[string]bool)}
			for range *truthTransactions {
				if err := c.transaction(); err != nil {
					t.Errorf("seed %d: %v", *truthSeed, err)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(met, c.met)
			maps.Copy(left, c.left)
		})
	}
	clients.Wait()
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	(&truthComparison{t: t, met: met, left: left}).compare(dir)
}

func (c *truthClient) transaction() error {
	if c.rng.IntN(4) == 0 {
		return c.statement()
	}
	level := []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}[c.rng.IntN(3)]
	if _, err := c.ask(texts("BEGIN ISOLATION LEVEL " + level)...); err != nil {
		return err
	}
	for range 1 + c.rng.IntN(5) {
		nested := c.rng.IntN(4) == 0
		if nested {
			if _, err := c.ask(texts("SAVEPOINT s")...); err != nil {
				return err
			}
		}
		if err := c.statement(); err != nil {
			return err
		}
		if nested {
			end := []string{"ROLLBACK TO s", "RELEASE s", "SELECT 1"}[c.rng.IntN(3)]
			if _, err := c.ask(texts(end)...); err != nil {
				return err
			}
		}
	}
	_, err := c.ask(texts([]string{"COMMIT", "COMMIT", "COMMIT", "ROLLBACK"}[c.rng.IntN(4)])...)
	return err
}

// statement runs one that gives each row's table, key and history, that with its own number at the end where it
// writes, and notes them.
func (c *truthClient) statement() error {
	n := c.number()
	table := []string{"one", "one", "two", "parts"}[c.rng.IntN(4)]
	shows := fmt.Sprintf("'%s', %s, hist", table, strings.ReplaceAll(truthKeys[table], "hist", table+".hist"))
	id := 1 + c.rng.IntN(6)
	where := fmt.Sprintf("id = %d", id)
	if table == "two" {
		where = fmt.Sprintf("b = '00000000-0000-0000-0000-00000000000%d'", id)
	}
	if c.rng.IntN(6) == 0 {
		where = "true"
	}
	sql := ""
	switch c.rng.IntN(9) {
	case 0, 1, 2:
		lock := []string{"", "", "", " FOR UPDATE", " FOR SHARE"}[c.rng.IntN(5)]
		from := table
		if lock == "" && c.rng.IntN(3) == 0 {
			from += "_seen"
		}
		sql = fmt.Sprintf("SELECT %s, ',%d' FROM %s WHERE %s", shows, n, from, where) + lock
	case 3:
		sql = fmt.Sprintf("DELETE FROM %s WHERE %s AND length(hist) > 20 RETURNING %s, ',%d'", table, where, shows, n)
	case 4:
		if table != "two" {
			sql = fmt.Sprintf("INSERT INTO %s (id, hist) VALUES (%d, '0,%d') ON CONFLICT (id) DO UPDATE "+
				"SET hist = %s.hist || ',%d' RETURNING %s", table, id, n, table, n,
				strings.Replace(shows, ", hist", ", "+table+".hist", 1))
			break
		}
		fallthrough
	default:
		sql = fmt.Sprintf("UPDATE %s SET hist = hist || ',%d' WHERE %s RETURNING %s", table, n, where, shows)
	}
	if !strings.HasPrefix(sql, "SELECT") && c.rng.IntN(3) == 0 {
		sql = "WITH written AS (" + sql + ") SELECT * FROM written"
	}
	messages := texts(sql)
	if c.rng.IntN(2) == 0 {
		messages = []pgproto3.FrontendMessage{&pgproto3.Parse{Query: sql},
			&pgproto3.Bind{ResultFormatCodes: []int16{int16(c.rng.IntN(2))}}, &pgproto3.Execute{}, &pgproto3.Sync{}}
	}
	replies, err := c.ask(messages...)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", sql, err)
	}
	for _, r := range replies {
		if r[0] == 'E' {
			return err // what it showed before that may never have been
		}
	}
	c.met[n], c.left[n] = make(map[string][]string), make(map[string]bool)
	for _, r := range replies {
		c.note(n, r)
	}
	return err
}

// note takes what a row tells.
func (c *truthClient) note(n int, reply string) {
	if reply[0] != 'D' {
		return
	}
	var values []string
	for at := 3; at < len(reply); {
		size := int(binary.BigEndian.Uint32([]byte(reply[at:])))
		values = append(values, reply[at+4:at+4+size])
		at += 4 + size
	}
	if len(values) < 3 {
		return
	}
	key := values[1]
	if bytes := []byte(key); len(bytes) == 4 && bytes[0] == 0 {
		key = strconv.Itoa(int(binary.BigEndian.Uint32(bytes)))
	} else if len(bytes) == 8 && bytes[0] == 0 {
		key = strconv.Itoa(int(binary.BigEndian.Uint64(bytes)))
	}
	row := "public." + values[0] + "/" + key
	hist := strings.Split(values[2], ",")
	if own := strconv.Itoa(n); hist[len(hist)-1] == own {
		hist = hist[:len(hist)-1]
		c.left[n][row] = true
	}
	c.met[n][row] = hist
}

// A truthComparison holds a recording against what the clients saw.
type truthComparison struct {
	t    *testing.T
	met  map[int]map[string][]string
	left map[int]map[string]bool
	tags map[history.Tag]int // the statements' numbers
}

func (c *truthComparison) compare(dir string) {
	txns := txnsRecorded(c.t, dir)
	r, err := recorder.Open(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	var sessions []history.Session
	for s, err := range r.Sessions(c.t.Context()) {
		if err != nil {
			c.t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	translated, err := pgversions.Translate(r.Runs(), sessions, txns)
	if err != nil {
		c.t.Fatal(err)
	}
	c.tags = make(map[history.Tag]int)
	for _, x := range translated {
		for i := range x.Stmts {
			if n, ok := numbered(&x.Stmts[i]); ok {
				c.tags[history.Tag{Txn: x.ID, Stmt: x.Stmts[i].Num}] = n
			}
		}
	}
	certain, statements := 0, 0
	for _, x := range translated {
		for i := range x.Stmts {
			st := &x.Stmts[i]
			n, ok := numbered(st)
			if met := c.met[n]; ok && met != nil && st.Observation == history.Exact {
				statements++
				certain += c.statement(x, st, n)
			}
		}
	}
	c.t.Logf("%d transactions, %d exact statements, %d certain accesses", len(txns), statements, certain)
	if statements < len(c.met)*9/10 {
		c.t.Errorf("only %d statements of %d are exact", statements, len(c.met))
	}
}

// same reports whether an access names the version that was seen. Of a transaction that wrote what cannot be told,
// the transaction is named; what a write replaced may be told as a version below, where one in between was
// not observed.
func (c *truthComparison) same(a *history.Access, met []string) bool {
	if a.Version.Txn != 0 && a.Version.Stmt == 0 {
		newest := met[len(met)-1]
		for tag, n := range c.tags {
			if strconv.Itoa(n) == newest {
				return tag.Txn == a.Version.Txn
			}
		}
		return false
	}
	got := strconv.Itoa(c.tags[a.Version])
	if a.Op == history.UpdateRow {
		return slices.Contains(met, got)
	}
	return got == met[len(met)-1]
}

// numbered returns a statement's number, which a literal ends in that begins with a comma or a zero.
func numbered(st *history.Stmt) (int, bool) {
	for _, arg := range st.Args {
		if found := numberedLiteral.FindStringSubmatch(arg); found != nil {
			n, err := strconv.Atoi(found[1])
			return n, err == nil
		}
	}
	return 0, false
}

var numberedLiteral = regexp.MustCompile(`^'?0?,(\d+)'?$`)

// statement compares one statement and returns the number of accesses that are certain.
func (c *truthComparison) statement(x *history.Txn, st *history.Stmt, n int) (certain int) {
	seen := make(map[string]bool)
	for i := range st.Accesses {
		a := &st.Accesses[i]
		row := a.Row.Table + "/" + a.Row.ID
		seen[row] = true
		met, ok := c.met[n][row]
		switch {
		case !ok:
			c.t.Errorf("statement %d (%s) is recorded with %v of %s, which it did not touch (%v)", n,
				st.Shape, a.Op, row, c.met[n])
		case (a.Op == history.UpdateRow || a.Op == history.InsertRow) != c.left[n][row]:
			c.t.Errorf("statement %d (%s): %v of %s", n, st.Shape, a.Op, row)
		}
		if a.Inexact || a.Op == history.InsertRow || a.Version.Txn.Run() == history.Unrecorded {
			continue
		}
		certain++
		if !c.same(a, met) {
			c.t.Errorf("statement %d (%s) of %v at %v: %v of %s met the version that %v made, recorded is %d (%v)", n,
				st.Shape, x.Status, x.Level, a.Op, row, met, c.tags[a.Version], a.Version)
		}
	}
	for row := range c.met[n] {
		if !seen[row] {
			c.t.Errorf("statement %d (%s) touched %s, which is not recorded", n, st.Shape, row)
		}
	}
	return certain
}
