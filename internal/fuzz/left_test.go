package fuzz

import (
	"context"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// A hunt that is killed drops nothing. The next one in its directory does, but nothing of anybody else's.
func TestWhatAKilledHuntLeftIsDropped(t *testing.T) {
	ours := []string{"isotap_fuzz_aaaaaaaa", "isotap_fuzz_aaaaaaaa_2", "isotap_replay_bbbbbbbb_7"}
	others := []string{"isotap_fuzz", "isotap_fuzz_aaaaaaaa_mine", "isotap_fuzz_cccccccc"}
	for _, c := range []struct {
		engine, list string
		server       func(t *testing.T) (url string, admin *sql.DB)
	}{
		{"mariadb", "SELECT schema_name FROM information_schema.schemata", func(t *testing.T) (string, *sql.DB) {
			s := testdb.MariaDB(t)
			admin, err := s.DB("")
			if err != nil {
				t.Fatal(err)
			}
			return s.URL(), admin
		}},
		{"postgresql", "SELECT datname FROM pg_database UNION SELECT nspname FROM pg_namespace", func(t *testing.T) (string, *sql.DB) {
			s := testdb.PostgreSQL(t)
			admin, err := s.DB("")
			if err != nil {
				t.Fatal(err)
			}
			return s.URL(), admin
		}},
	} {
		t.Run(c.engine, func(t *testing.T) {
			url, admin := c.server(t)
			defer admin.Close()
			target, err := dsn.Parse(url)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Concat(ours, others) {
				kind := "DATABASE "
				if c.engine == "postgresql" && strings.HasPrefix(name, "isotap_replay") {
					kind = "SCHEMA "
				}
				if _, err := admin.Exec("CREATE " + kind + name); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { admin.ExecContext(context.Background(), "DROP "+kind+"IF EXISTS "+name) })
			}
			there := func() (names []string) {
				rows, err := admin.Query(c.list)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				for rows.Next() {
					var name string
					if err := rows.Scan(&name); err != nil {
						t.Fatal(err)
					}
					names = append(names, name)
				}
				return names
			}

			before := target.Database
			if c.engine == "postgresql" { // the next hunt has another database
				before, target.Database = "postgres", testdb.NewPostgreSQLDatabase(t)
			}
			s, err := runner.Open(t.Context(), target, runner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			dir := t.TempDir()
			killed := &fuzzer{Options: Options{Dir: dir}, runner: s, tally: newTally(s.Server, nil), made: []place{
				{At: target.Address, Database: before, Names: []string{"isotap_fuzz_aaaaaaaa", "isotap_replay_bbbbbbbb_"}},
				{At: "elsewhere:1", Names: []string{"isotap_fuzz_cccccccc"}}}}
			if err := killed.saveState(); err != nil {
				t.Fatal(err)
			}
			o := Options{Dir: dir, Rounds: 1, Seed: 1, Levels: []workload.Isolation{readCommitted}, Log: io.Discard,
				Profile: random.Profile{Transactions: 2, Tables: 1}}
			o.Progress = func(*Tally) {
				names := there()
				for _, name := range ours {
					if slices.Contains(names, name) {
						t.Errorf("%s is there while the next hunt is under way", name)
					}
				}
				state, err := ReadState(dir)
				if err != nil {
					t.Fatal(err)
				}
				if made := state.made; len(made) != 2 || made[1].At != target.Address {
					t.Errorf("the state says that databases are at %+v", made)
				}
				if _, err := Run(t.Context(), s, Options{Dir: dir, Rounds: 1}); err == nil || !strings.Contains(err.Error(), "under way") {
					t.Errorf("another hunt in the directory: %v", err)
				}
			}
			if _, err := Run(t.Context(), s, o); err != nil {
				t.Fatal(err)
			}
			names := there()
			for _, name := range others {
				if !slices.Contains(names, name) {
					t.Errorf("%s was dropped", name)
				}
			}
			text, err := os.ReadFile(filepath.Join(dir, stateName))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), target.Address) || !strings.Contains(string(text), "elsewhere:1") {
				t.Errorf("a hunt that has ended leaves as its state %s", text)
			}
		})
	}
}
