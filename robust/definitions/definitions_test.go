package definitions_test

import (
	"context"
	"database/sql"
	"runtime"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/lies"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/robust/definitions"
	"github.com/isotap/isotap/robust/footprint"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A server is one of either family, with a database of its own.
type server struct {
	target  dsn.Target
	db      *sql.DB
	trigger []string // makes one for shop
}

func servers(t *testing.T, f func(*testing.T, server)) {
	open := func(t *testing.T, url string, db *sql.DB, trigger ...string) {
		target, err := dsn.Parse(url)
		require.NoError(t, err)
		f(t, server{target, db, trigger})
	}
	t.Run("mariadb", func(t *testing.T) {
		database := testdb.NewDatabase(t)
		open(t, testdb.MariaDB(t).URL()+database, testdb.Open(t, database),
			"CREATE TRIGGER audit BEFORE UPDATE ON shop FOR EACH ROW SET NEW.owner = 1")
	})
	t.Run("postgresql", func(t *testing.T) {
		database := testdb.NewPostgreSQLDatabase(t)
		open(t, testdb.PostgreSQL(t).DSN(database), testdb.OpenPostgreSQL(t, database),
			"CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
			"CREATE TRIGGER audit BEFORE UPDATE ON shop FOR EACH ROW WHEN (NEW.id > 1) EXECUTE PROCEDURE note()")
	})
}

var setup = []string{
	"CREATE TABLE shop (id INT PRIMARY KEY, owner INT NOT NULL, town VARCHAR(20) DEFAULT 'secret')",
	"CREATE UNIQUE INDEX shop_owner ON shop (owner)",
	"CREATE TABLE item (no INT NOT NULL, shop INT NOT NULL, label VARCHAR(20), PRIMARY KEY (shop, no), " +
		"FOREIGN KEY (shop) REFERENCES shop (id) ON DELETE CASCADE)",
	"CREATE VIEW wares AS SELECT no FROM item WHERE label = 'x'",
	"CREATE VIEW more AS SELECT count(*) AS n FROM wares JOIN shop ON town = 'y'",
}

func TestWhatIsReadIsWhatFootprintsNeed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	servers(t, func(t *testing.T, s server) {
		for _, statement := range append(setup, s.trigger...) {
			_, err := s.db.Exec(statement)
			require.NoError(t, err, statement)
		}
		for _, views := range []definitions.Views{definitions.AsWritten, definitions.AsUsed} {
			tables, err := definitions.Tables(t.Context(), s.target, views)
			require.NoError(t, err)
			text := definitions.Text(tables)
			require.NotContains(t, text, "secret")
			family := s.target.Family
			schema, remarks, err := footprint.ReadSchema(family, text)
			require.NoError(t, err)
			require.Empty(t, remarks, text)
			shop, item := schema.Table("", "shop"), schema.Table("", "item")
			require.Equal(t, [][]string{{"id"}, {"owner"}}, shop.Keys)
			require.True(t, shop.Column("town").Text)
			require.True(t, shop.Triggers)
			require.False(t, item.Triggers)
			require.Equal(t, [][]string{{"shop", "no"}}, item.Keys)
			require.Len(t, schema.Functions(), 1)
			require.True(t, item.References[0].OnDelete)

			fp, err := footprint.Of(family, "SELECT n FROM more", schema)
			require.NoError(t, err, text)
			used := make(map[string][]string)
			for _, step := range fp.Steps {
				for _, a := range step.Either {
					used[a.Table.Name] = append(used[a.Table.Name],
						append(a.Read.Attributes(), a.PRead.Attributes()...)...)
				}
			}
			require.Contains(t, used["item"], "label", text)
			require.Contains(t, used["shop"], "town", text)
			require.NotContains(t, used["shop"], "owner", text)
		}
	})
}

func TestReadingWaitsForNobodysLock(t *testing.T) {
	servers(t, func(t *testing.T, s server) {
		if s.target.Family != dbms.PostgreSQLFamily {
			return // where definitions that are being changed have no state in between
		}
		for _, statement := range append(setup, s.trigger...) {
			_, err := s.db.Exec(statement)
			require.NoError(t, err, statement)
		}
		tx, err := s.db.Begin()
		require.NoError(t, err)
		defer tx.Rollback()
		_, err = tx.Exec("LOCK TABLE shop, item, wares, more IN ACCESS EXCLUSIVE MODE")
		require.NoError(t, err)
		tables, err := definitions.Tables(t.Context(), s.target, definitions.AsUsed)
		require.NoError(t, err)
		require.Len(t, tables, 4)
	})
}

// TestLengthOfAnAnswerIsNotBelieved has a PostgreSQL server claim in each of its answers in turn that a row is 900 MiB
// long, and send little of it.
func TestLengthOfAnAnswerIsNotBelieved(t *testing.T) {
	database := testdb.NewPostgreSQLDatabase(t)
	for _, statement := range setup {
		_, err := testdb.OpenPostgreSQL(t, database).Exec(statement)
		require.NoError(t, err, statement)
	}
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(database))
	require.NoError(t, err)
	address, lied := target.Address, 0
	for at := 1; ; at++ {
		relay := lies.PostgreSQL(t, address, at, func(m []byte) []byte {
			if m[0] != 'D' {
				return m
			}
			lied++
			return append([]byte{'D', 0x38, 0, 0, 0}, m[5:]...)
		})
		target.Address = relay.Addr
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		_, err := definitions.Tables(ctx, target, definitions.AsUsed)
		cancel()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
			t.Errorf("for answer %d isotap took %d MiB", at, took>>20)
		}
		if _, more := relay.Lied(); !more {
			require.NoError(t, err)
			break
		}
	}
	require.Greater(t, lied, 2, "the answers that had rows")
}
