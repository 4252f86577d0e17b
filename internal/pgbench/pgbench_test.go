package pgbench

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

const summary = `pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: script.sql
scaling factor: 1
query mode: prepared
number of clients: 16
number of threads: 2
maximum number of tries: 1
number of transactions per client: 20
number of transactions actually processed: 310/320
number of failed transactions: 10 (3.125%)
number of serialization failures: 9 (2.812%)
number of deadlock failures: 1 (0.312%)
latency average = 1.207 ms (including failures)
initial connection time = 12.300 ms
tps = 1640.124000 (without initial connection time)
`

func TestSummaryIsRead(t *testing.T) {
	got, err := parse([]byte(summary))
	if want := (Result{Transactions: 310, Serialization: 9, Deadlocks: 1, Rate: 1640.124}); err != nil || got != want {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
	for name, out := range map[string]string{
		"no summary":      "pgbench: error: connection to server failed\n",
		"a lost client":   "pgbench: error: client 3 script 0 aborted in command 4 query 0: ERROR:  no\n" + summary,
		"unknown failure": strings.Replace(summary, "failed transactions: 10", "failed transactions: 11", 1),
	} {
		if r, err := parse([]byte(out)); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(out)) {
			t.Errorf("%s: read %+v, %v", name, r, err)
		}
	}
}

func TestLogGivesTheLatenciesOfCommittedTransactions(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]string{
		"log.77":   "0 1 900 0 1700000000 5\n0 2 serialization 0 1700000000 6\n0 3 100 0 1700000000 7\n",
		"log.77.1": "1 1 300 0 1700000000 5\n1 2 deadlock 0 1700000000 6\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readLog(dir)
	if err != nil || len(got) != 3 || median(got) != 300*time.Microsecond {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestRunAccountsForEveryTransaction(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	path, o := setUp(t)
	db := testdb.OpenPostgreSQL(t, o.Database)
	for _, o.Protocol = range Protocols {
		for _, o.Script = range []string{TPCBLike, SimpleUpdate, SelectOnly} {
			if err := Tidy(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), path, o)
			if err != nil || r.Transactions != o.Clients*o.Transactions || r.Failed() != 0 || r.Rate <= 0 ||
				r.Median <= 0 {
				t.Errorf("%s, %s: %+v, %v", o.Script, o.Protocol, r, err)
			}
			want := r.Transactions
			if o.Script == SelectOnly {
				want = 0
			}
			if n, err := Written(t.Context(), db); err != nil || n != want {
				t.Errorf("%s, %s: the history has %d rows of %d, %v", o.Script, o.Protocol, n, want, err)
			}
		}
	}
}

func TestRunCountsSerializationFailures(t *testing.T) {
	path, o := setUp(t)
	o.Script, o.Settings, o.Protocol = TPCBLike, "-c default_transaction_isolation=serializable", "simple"
	r, err := Run(t.Context(), path, o)
	if err != nil || r.Serialization == 0 || r.Transactions+r.Failed() != o.Clients*o.Transactions {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRunFailsWithTheClientThatDoes(t *testing.T) {
	path, o := setUp(t)
	o.Protocol = "simple"
	o.File = filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(o.File, []byte("SELECT 1/(1 - :client_id);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Run(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("%+v, %v", r, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Address = l.Addr().String()
	l.Close()
	if r, err := Run(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server: %+v, %v", r, err)
	}
}

// setUp makes pgbench's tables and returns how to run four clients on them.
func setUp(t *testing.T) (path string, o Options) {
	t.Helper()
	path, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	o = Options{Address: testdb.PostgreSQL(t).Addr(), User: "postgres", Database: testdb.NewPostgreSQLDatabase(t),
		Clients: 4, Transactions: 20}
	if err := Init(t.Context(), path, o, 1); err != nil {
		t.Fatal(err)
	}
	return path, o
}
