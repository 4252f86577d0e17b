package e2e

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
)

// heapAfter returns by how many bytes the heap has grown when f is done, without garbage.
func heapAfter(f func()) int {
	heap := func() int {
		var m runtime.MemStats
		for range 2 { // what finalizers hold goes with the second
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	f()
	return heap() - before
}

// The long transaction of the tests below would take some 40 MiB.
const (
	txnMemory  = 1 << 20
	txnRounds  = 60
	mayBeTaken = 8 << 20
)

// longTxn is one round of a transaction that reads and writes 1,000 rows and sets savepoints.
var longTxn = []string{"SELECT id, v FROM hot", "UPDATE hot SET v = v + 1", "SAVEPOINT a",
	"SELECT v FROM hot WHERE id = 7", "UPDATE hot SET v = 0 WHERE id = 8",
	"ROLLBACK TO SAVEPOINT a"}

// TestLongTransactionTakesBoundedMemory reads and writes in one transaction, in each family, until it has long had its
// bound.
func TestLongTransactionTakesBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	bounded := func(predicates bool) func(*proxyserver.Options) {
		return func(o *proxyserver.Options) { o.TxnMemory, o.Predicates = txnMemory, predicates }
	}
	rows := "INSERT INTO hot VALUES (0, 0)" + func() string {
		var b strings.Builder
		for id := range 999 {
			b.WriteString(",(" + strconv.Itoa(id+1) + ", 0)")
		}
		return b.String()
	}()
	for _, predicates := range []bool{false, true} {
		name := map[bool]string{false: "items", true: "predicates"}[predicates]
		t.Run("mysql "+name, func(t *testing.T) {
			b := newBench(t, bounded(predicates), "CREATE TABLE hot (id INT PRIMARY KEY, v INT NOT NULL)")
			c := b.conn(b.through)
			b.exec(c, rows, "BEGIN")
			grew := heapAfter(func() {
				for range txnRounds {
					b.exec(c, longTxn...)
				}
			})
			b.exec(c, "COMMIT")
			holdLongTxn(t, grew, b.txns())
		})
		t.Run("postgresql "+name, func(t *testing.T) {
			b := newPostgresBench(t, "CREATE TABLE hot (id INT PRIMARY KEY, v INT NOT NULL)", rows)
			b.stop()
			b.start(bounded(predicates))
			c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			b.exec(c, "BEGIN")
			grew := heapAfter(func() {
				for range txnRounds {
					b.exec(c, longTxn...)
				}
			})
			b.exec(c, "COMMIT")
			b.stop()
			holdLongTxn(t, grew, txnsRecorded(t, b.recording))
		})
	}
}

func holdLongTxn(t *testing.T, grew int, txns []*history.Txn) {
	t.Helper()
	t.Logf("the heap grew by %d KiB", grew>>10)
	if grew > mayBeTaken {
		t.Errorf("the heap grew by %d MiB", grew>>20)
	}
	for _, txn := range txns {
		last := len(txn.Stmts) - 1
		if last < 2 || txn.Stmts[last].Kind != history.Commit {
			continue
		}
		rest := &txn.Stmts[last-1]
		if rest.Reason != history.ReasonTxnMemory || rest.Observation != history.Opaque ||
			rest.Rows < txnRounds*1000/2 {
			t.Errorf("before the COMMIT of %d statements stands %+v", last+1, rest)
		}
		for i := range txn.Stmts {
			if st := &txn.Stmts[i]; int(st.Num) != i+1 {
				t.Errorf("statement %d has the number %d", i, st.Num)
			}
		}
		return
	}
	t.Error("the transaction was not recorded")
}
