package shop

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A family is where the shop can be open.
type family struct {
	name     string
	open     func(tb testdb.TB, database string) *sql.DB
	database func(tb testdb.TB) string
	dsn      func(tb testdb.TB, database string) string
}

var families = []family{
	{"mysql", testdb.Open, testdb.NewDatabase,
		func(tb testdb.TB, database string) string { return testdb.MariaDB(tb).DSN(database) }},
	{"postgresql", testdb.OpenPostgreSQL, testdb.NewPostgreSQLDatabase,
		func(tb testdb.TB, database string) string { return testdb.PostgreSQL(tb).DSN(database) }},
}

// onEach runs a test for each family.
func onEach(t *testing.T, test func(t *testing.T, f family)) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { test(t, f) })
	}
}

// shop sets a shop up in a new database and returns its data source.
func (f family) shop(t *testing.T) string {
	t.Helper()
	name := f.database(t)
	if err := Setup(t.Context(), f.open(t, name)); err != nil {
		t.Fatal(err)
	}
	return f.dsn(t, name)
}

// withVariable sets a variable of MariaDB's sessions.
func withVariable(t *testing.T, dsn, name, value string) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.Params = map[string]string{name: value}
	return config.FormatDSN()
}

func run(t *testing.T, dsn string, config Config) Outcome {
	t.Helper()
	before := goleak.IgnoreCurrent()
	o, err := Run(t.Context(), dsn, config)
	if err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
	t.Log("\n" + o.String())
	for _, c := range o.Checks {
		if c.Got != c.Want {
			t.Errorf("%s: %d, want %d", c.Name, c.Got, c.Want)
		}
	}
	var turns int64
	for _, p := range o.Programs {
		turns += p.Committed + p.Declined
	}
	if want := config.Transactions; turns != int64(want) || o.Transactions != want {
		t.Errorf("%d turns, %d transactions, want %d", turns, o.Transactions, want)
	}
	return o
}

func TestMistakesShowAndTheRestIsRight(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, f family) {
		for seed := range uint64(2) {
			o := run(t, f.shop(t), Config{Seed: seed, Transactions: 800})
			if o.LostUnits() <= 0 {
				t.Errorf("seed %d: %d units lost", seed, o.LostUnits())
			}
			if o.OverLimit <= 0 || o.Overrun <= 0 {
				t.Errorf("seed %d: %d departments over their limit by %d", seed, o.OverLimit, o.Overrun)
			}
		}
	})
}

func TestSerializableForbidsBothMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, f family) {
		dsn := f.shop(t)
		if f.name == "mysql" {
			dsn = withVariable(t, dsn, "tx_isolation", "'SERIALIZABLE'")
		} else {
			dsn += "&default_transaction_isolation=serializable"
		}
		o := run(t, dsn, Config{Transactions: 800})
		if o.LostUnits() != 0 || o.OverLimit != 0 {
			t.Errorf("%d units lost, %d departments over their limit", o.LostUnits(), o.OverLimit)
		}
		var retried int64
		for _, p := range o.Programs {
			retried += p.Retried
		}
		if retried == 0 {
			t.Error("nothing was retried: the mistakes had no occasion")
		}
	})
}

func TestSnapshotIsolationForbidsOnlyTheLostUpdate(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, f family) {
		dsn := f.shop(t)
		if f.name == "mysql" {
			dsn = withVariable(t, dsn, "innodb_snapshot_isolation", "ON")
		} else {
			dsn += "&default_transaction_isolation=repeatable%20read"
		}
		o := run(t, dsn, Config{Transactions: 800})
		if o.LostUnits() != 0 {
			t.Errorf("%d units lost", o.LostUnits())
		}
		if o.OverLimit == 0 {
			t.Error("no department over its limit")
		}
	})
}

func TestMistakesShowWithFewAndWithManyClients(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, f family) {
		for _, tt := range []struct{ clients, programs int }{{minClients, 2}, {30, len(programs)}} {
			o := run(t, f.shop(t), Config{Clients: tt.clients, Transactions: tt.clients * 30})
			if len(o.Programs) != tt.programs || o.Clients != tt.clients {
				t.Errorf("%d clients ran %d programs, want %d and %d", o.Clients,
					len(o.Programs), tt.clients, tt.programs)
			}
			if o.LostUnits() <= 0 {
				t.Errorf("%d clients lost %d units", tt.clients, o.LostUnits())
			}
		}
	})
}

func TestSecondRunCountsOnlyItsOwnEffects(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, f family) {
		dsn := f.shop(t)
		first := run(t, dsn, Config{Transactions: 800})
		second := run(t, dsn, Config{Transactions: 130, Seed: 1})
		if first.OverLimit+second.OverLimit > departments {
			t.Errorf("%d and %d departments over their limit, of %d", first.OverLimit, second.OverLimit, departments)
		}
		if second.UnitsSold >= first.UnitsSold || second.StockDecrease <= 0 || second.StockDecrease > second.UnitsSold {
			t.Errorf("second run: %d sold, stock fell by %d", second.UnitsSold, second.StockDecrease)
		}
	})
}

func TestProgressCountsEveryTransaction(t *testing.T) {
	var seen []int
	run(t, families[0].shop(t), Config{Transactions: 65, Progress: func(done, total int) {
		if total != 65 {
			t.Errorf("total %d", total)
		}
		seen = append(seen, done)
	}})
	for i, done := range seen {
		if done != i+1 {
			t.Fatalf("progress %v", seen)
		}
	}
	if len(seen) != 65 {
		t.Errorf("%d calls", len(seen))
	}
}

func TestRunSaysWhatItCannotDo(t *testing.T) {
	onEach(t, func(t *testing.T, f family) {
		empty, shop := f.dsn(t, f.database(t)), f.shop(t)
		nonsense, nobody := "nonsense", "root@tcp(127.0.0.1:1)/x"
		if f.name == "postgresql" {
			nonsense, nobody = "postgres://[", "postgres://postgres@127.0.0.1:1/x?sslmode=disable"
		}
		for _, tt := range []struct {
			name, dsn string
			config    Config
			want      string
		}{
			{"too few clients", shop, Config{Clients: 3}, "needs 4 clients"},
			{"too few transactions", shop, Config{Transactions: 5}, "5 transactions are too few for 13 clients"},
			{"no data source", nonsense, Config{}, "data source"},
			{"no tables", empty, Config{}, "before opening the shop"},
			{"nobody listens", nobody, Config{}, "before opening the shop"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if _, err := Run(t.Context(), tt.dsn, tt.config); err == nil ||
					!strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v does not say %q", err, tt.want)
				}
			})
		}
	})
}

func TestClientErrorEndsTheRun(t *testing.T) {
	onEach(t, func(t *testing.T, f family) {
		name := f.database(t)
		db := f.open(t, name)
		if err := Setup(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("DROP TABLE cart"); err != nil {
			t.Fatal(err)
		}
		before := goleak.IgnoreCurrent()
		_, err := Run(t.Context(), f.dsn(t, name), Config{})
		goleak.VerifyNone(t, before)
		var mysqlError *mysql.MySQLError
		var postgresqlError *pgconn.PgError
		missing := errors.As(err, &mysqlError) && mysqlError.Number == 1146 || errors.As(err, &postgresqlError) &&
			postgresqlError.Code == "42P01"
		if !missing || !strings.Contains(err.Error(), "cart") {
			t.Errorf("error %v", err)
		}
	})
}

func TestCancelledRunEnds(t *testing.T) {
	onEach(t, func(t *testing.T, f family) {
		dsn := f.shop(t)
		before := goleak.IgnoreCurrent()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := Run(ctx, dsn, Config{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		goleak.VerifyNone(t, before)
	})
}

func TestSetupDoesNotTouchTablesThatAreThere(t *testing.T) {
	onEach(t, func(t *testing.T, f family) {
		db := f.open(t, f.database(t))
		if _, err := db.Exec("CREATE TABLE account (precious INT)"); err != nil {
			t.Fatal(err)
		}
		if err := Setup(t.Context(), db); err == nil || !strings.Contains(err.Error(), "CREATE TABLE account") {
			t.Errorf("error %v", err)
		}
		if _, err := db.Exec("SELECT precious FROM account"); err != nil {
			t.Error(err)
		}
	})
}
