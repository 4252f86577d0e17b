package engine

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

// What is missing on this machine is skipped, but for what is installed by package name: make tidb and ISOTAP_MYSQLD
// bring the rest.
func TestEnginesStartAndSayWhoTheyAre(t *testing.T) {
	family := map[string]dbms.Engine{"mariadb": dbms.MariaDB, "postgres": dbms.PostgreSQL,
		"mysql": dbms.MySQL, "tidb": dbms.TiDB}
	for _, e := range engines {
		t.Run(e.Name, func(t *testing.T) {
			var said bytes.Buffer
			s, err := e.Start(t.Context(), &said)
			if errors.Is(err, testdb.ErrTiDBNotBuilt) || errors.Is(err, testdb.ErrMySQLNotInstalled) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
			}()
			target, err := dsn.Parse(s.URL())
			if err != nil {
				t.Fatal(err)
			}
			who, err := Identify(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			if who.Engine != family[e.Name] || !strings.Contains(said.String(), "started "+e.title+" ") {
				t.Errorf("it is %+v, and said %q", who, said.String())
			}
		})
	}
}

func TestWhatIsMissingSaysHowItComesHere(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	for name, want := range map[string]string{"tidb": "make tidb", "mysql": "nothing/mysqld"} {
		e, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(testdb.MySQLVariable, "nothing/mysqld")
		if _, err := e.Start(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestEnginesAreFoundByTheirNames(t *testing.T) {
	for name, want := range map[string]string{"postgres": "postgres", "postgresql": "postgres", "mariadb": "mariadb",
		"oracle": ""} {
		switch e, err := Find(name); {
		case want == "" && err == nil, want != "" && (err != nil || e.Name != want):
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}
