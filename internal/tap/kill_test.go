package tap

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// The environment of a process of this test binary that is a proxy, there to be killed.
const (
	doomedRecording  = "ISOTAP_TEST_DOOMED_RECORDING"
	doomedUpstream   = "ISOTAP_TEST_DOOMED_UPSTREAM"
	doomedDurability = "ISOTAP_TEST_DOOMED_DURABILITY"
)

// serveUntilKilled is that process. It prints where it listens, and does not outlive who started it.
func serveUntilKilled(dir string) int {
	err := func() error {
		target, err := catalog.ParseTarget(os.Getenv(doomedUpstream))
		if err != nil {
			return err
		}
		durability, err := recorder.ParseDurability(os.Getenv(doomedDurability))
		if err != nil {
			return err
		}
		t, err := Start(context.Background(), Options{Upstream: target, Listen: "127.0.0.1:0", Recording: dir, Durability: durability, Args: true})
		if err != nil {
			return err
		}
		fmt.Println(t.Addr())
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}()
	fmt.Println("ended:", err)
	return 1
}

// A doomed proxy runs in a process of its own.
type doomed struct {
	t       *testing.T
	process *exec.Cmd
	addr    string
	open    opener
}

// An opener opens a pool of a client's connections to an address, with parameters of its driver.
type opener func(address, parameters string) (*sql.DB, error)

func startDoomed(t *testing.T, target catalog.Target, open opener, dir string, durability recorder.Durability) *doomed {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), doomedRecording+"="+dir, doomedUpstream+"="+target.String(), doomedDurability+"="+durability.String())
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &doomed{t: t, process: cmd, open: open}
	t.Cleanup(func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	addr := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Fatalf("the proxy said %q, %v", line, err)
	}
	d.addr = addr
	return d
}

// openMySQL gives the opener of a database.
func openMySQL(database string) opener {
	return func(address, parameters string) (*sql.DB, error) {
		config, err := mysql.ParseDSN(fmt.Sprintf("root@tcp(%s)/%s?%s", address, database, parameters))
		if err != nil {
			return nil, err
		}
		config.Logger = &mysql.NopLogger{} // it would log each connection that the kill ends
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
}

// kill ends the proxy with SIGKILL.
func (d *doomed) kill() {
	d.t.Helper()
	if err := d.process.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	if err := d.process.Wait(); err == nil || d.process.ProcessState.Exited() {
		d.t.Fatalf("the proxy ended by itself: %v", d.process.ProcessState)
	}
}

// A work is a transaction that clients run again and again, each time with another marker.
type work struct {
	name       string
	parameters string // of the driver
	run        func(ctx context.Context, c *sql.Conn, slot int, marker string) error
	stmts      []stmtShape // as the recording must have it
}

// stmtShape is a statement's verb and what it did to how many rows.
type stmtShape struct {
	kind history.Kind
	op   history.Op
	rows int
}

const (
	asText   = "interpolateParams=true"
	prepared = "interpolateParams=false"
)

// sharedSlot is the row that all explicit transactions change.
const sharedSlot = 0

var works = []work{
	{"text INSERT", asText, one("INSERT INTO entry (marker) VALUES (?)"), []stmtShape{{history.Insert, history.InsertRow, 1}}},
	{"prepared INSERT", prepared, func(ctx context.Context, c *sql.Conn, _ int, marker string) error {
		_, err := c.ExecContext(ctx, "INSERT INTO entry (marker) VALUES (?), (?)", marker, marker)
		return err
	}, []stmtShape{{history.Insert, history.InsertRow, 2}}},
	{"text UPDATE", asText, updateSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"prepared UPDATE", prepared, updateSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"text transaction", asText, transact, transaction},
	{"prepared transaction", prepared, transact, transaction},
}

var transaction = []stmtShape{{kind: history.Begin}, {history.Select, history.Read, 1}, {history.Update, history.UpdateRow, 1},
	{history.Insert, history.InsertRow, 1}, {kind: history.Commit}}

func one(statement string) func(context.Context, *sql.Conn, int, string) error {
	return func(ctx context.Context, c *sql.Conn, _ int, marker string) error {
		_, err := c.ExecContext(ctx, statement, marker)
		return err
	}
}

func updateSlot(ctx context.Context, c *sql.Conn, slot int, marker string) error {
	_, err := c.ExecContext(ctx, "UPDATE slot SET marker = ? WHERE id = ?", marker, slot)
	return err
}

func transact(ctx context.Context, c *sql.Conn, _ int, marker string) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var was string
	if err := tx.QueryRowContext(ctx, "SELECT marker FROM slot WHERE id = ? FOR UPDATE", sharedSlot).Scan(&was); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE slot SET marker = ? WHERE id = ?", marker, sharedSlot); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO entry (marker) VALUES (?)", marker); err != nil {
		return err
	}
	return tx.Commit()
}

// An ack is a transaction whose client was told that it committed.
type ack struct {
	marker string
	work   *work
	slot   int
	at     time.Time
}

// loadUntilKilled has one client for each work, kills the proxy some time after the first transaction,
// and gives what was acknowledged until then, and when the kill was.
func loadUntilKilled(t *testing.T, d *doomed, works []work, round int, after time.Duration) (acks []ack, killed time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	var clients sync.WaitGroup
	var mu sync.Mutex
	first := make(chan struct{})
	for i := range works {
		w, slot := &works[i], i+1
		clients.Go(func() {
			err := d.load(ctx, w, slot, round, func(marker string) {
				now := time.Now()
				mu.Lock()
				defer mu.Unlock()
				if acks = append(acks, ack{marker, w, slot, now}); len(acks) == 1 {
					close(first)
				}
			})
			if ctx.Err() != nil {
				t.Errorf("%s: the client did not notice the kill: %v", w.name, err)
			}
		})
	}
	select {
	case <-first:
	case <-ctx.Done():
		t.Error("no transaction committed")
	}
	time.Sleep(after)
	killed = time.Now()
	d.kill()
	clients.Wait()
	return acks, killed
}

// load runs transactions until one fails.
func (d *doomed) load(ctx context.Context, w *work, slot, round int, committed func(marker string)) error {
	db, err := d.open(d.addr, w.parameters)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 1; ; n++ {
		marker := fmt.Sprintf("m%d-%d-%d", round, slot, n)
		if err := w.run(ctx, c, slot, marker); err != nil {
			return err
		}
		committed(marker)
	}
}

// A held is what the server has, to hold a recording against: it says what is wrong with an access that an
// acknowledged transaction made by a statement.
type held interface {
	check(a *ack, st *history.Stmt, access int, tag history.Tag) error
}

// stored is what a server of the MySQL family has: the row ids of the slots, and of each entry its marker and its list.
type stored struct {
	slots   map[int]string
	entries map[string][2]string
}

func readStored(t *testing.T, db *sql.DB) stored {
	t.Helper()
	s := stored{slots: make(map[int]string), entries: make(map[string][2]string)}
	read := func(query string, take func(scan func(...any) error) error) {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			err = errors.Join(err, take(rows.Scan))
		}
		if err := errors.Join(err, rows.Err()); err != nil {
			t.Fatal(err)
		}
	}
	read("SELECT id, isotap_rowid FROM slot", func(scan func(...any) error) error {
		var id int
		var row string
		err := scan(&id, &row)
		s.slots[id] = row
		return err
	})
	read("SELECT isotap_rowid, marker, isotap_wlist FROM entry", func(scan func(...any) error) error {
		var row, marker, list string
		err := scan(&row, &marker, &list)
		s.entries[row] = [2]string{marker, list}
		return err
	})
	return s
}

// check says what is wrong with the record of an acknowledged transaction.
func (a *ack) check(t *history.Txn, s held) error {
	if t.Status != history.Committed {
		return fmt.Errorf("it is recorded as %v", t.Status)
	}
	if len(t.Stmts) != len(a.work.stmts) {
		return fmt.Errorf("%d statements of %d are recorded", len(t.Stmts), len(a.work.stmts))
	}
	for i, want := range a.work.stmts {
		st := &t.Stmts[i]
		if st.Kind != want.kind || len(st.Accesses) != want.rows || st.Void || st.Error.Code != 0 {
			return fmt.Errorf("statement %d, a %v of %d rows, is recorded as %+v", i+1, want.kind, want.rows, *st)
		}
		if want.rows > 0 && st.Observation != history.Exact {
			return fmt.Errorf("statement %d is %v: %s", i+1, st.Observation, st.Reason)
		}
		for j := range st.Accesses {
			if got := &st.Accesses[j]; got.Op != want.op {
				return fmt.Errorf("statement %d: %v of row %s, not %v", i+1, got.Op, got.Row.ID, want.op)
			}
			if err := s.check(a, st, j, history.Tag{Txn: t.ID, Stmt: st.Num}); err != nil {
				return fmt.Errorf("statement %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// changes is the slot that the transaction changes.
func (a *ack) changes() int {
	if len(a.work.stmts) > 1 {
		return sharedSlot
	}
	return a.slot
}

func (s stored) check(a *ack, st *history.Stmt, access int, tag history.Tag) error {
	got := &st.Accesses[access]
	if got.Op == history.InsertRow {
		if want := [2]string{a.marker, tag.String()}; s.entries[got.Row.ID] != want {
			return fmt.Errorf("the server has %q as row %s, not %q", s.entries[got.Row.ID], got.Row.ID, want)
		}
		return nil
	}
	if want := s.slots[a.changes()]; got.Row.ID != want {
		return fmt.Errorf("%v of row %s, not %s", got.Op, got.Row.ID, want)
	}
	return nil
}

// recordedTxns reads a recording and gives its transactions by their marker.
func recordedTxns(t *testing.T, dir string) (map[string]*history.Txn, []history.Info) {
	t.Helper()
	r, err := recorder.Open(dir)
	if err != nil {
		t.Fatalf("open the recording of a killed proxy: %v", err)
	}
	defer r.Close()
	byMarker := make(map[string]*history.Txn)
	for txn, err := range r.Txns(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, marker := range markers(txn) {
			if other := byMarker[marker]; other != nil {
				t.Fatalf("transactions %v and %v both have %s", other.ID, txn.ID, marker)
			}
			byMarker[marker] = txn
		}
	}
	return byMarker, r.Runs()
}

// markers are the distinct markers among a transaction's arguments.
func markers(t *history.Txn) []string {
	var found []string
	for _, s := range t.Stmts {
		for _, arg := range s.Args {
			if m := strings.Trim(arg, "'"); strings.HasPrefix(m, "m") && !slices.Contains(found, m) {
				found = append(found, m)
			}
		}
	}
	return found
}

// doomedTables makes the tables of the load, and gives a direct connection to them.
func doomedTables(t *testing.T) (catalog.Target, *sql.DB) {
	t.Helper()
	database := testdb.NewDatabase(t)
	db := testdb.Open(t, database)
	statements := []string{"CREATE TABLE slot (id INT PRIMARY KEY, marker VARCHAR(40) NOT NULL)",
		"CREATE TABLE entry (id INT AUTO_INCREMENT PRIMARY KEY, marker VARCHAR(40) NOT NULL)"}
	for slot := range len(works) + 1 {
		statements = append(statements, fmt.Sprintf("INSERT INTO slot VALUES (%d, '')", slot))
	}
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return instrument(t, database), db
}

func TestKilledProxyHasRecordedEveryAcknowledgedTransaction(t *testing.T) {
	target, db := doomedTables(t)
	killAgainAndAgain(t, target, openMySQL(target.Database), works, func() held { return readStored(t, db) })
}

func TestKilledRelaxedProxyLosesNoMoreThanItsBound(t *testing.T) {
	target, db := doomedTables(t)
	killRelaxed(t, target, openMySQL(target.Database), works, func() held { return readStored(t, db) })
}
