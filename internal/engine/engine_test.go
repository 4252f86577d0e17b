package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
		"mariadb@10.11": "mariadb", "mariadb=/opt/mariadbd": "mariadb", "mysql@8.0=/opt/a=b": "mysql",
		"oracle": "", "mariadb=": "", "mariadb@": "", "@10": "", "=/opt": ""} {
		switch e, err := Find(name); {
		case want == "" && err == nil, want != "" && (err != nil || e.Name != want):
			t.Errorf("%s: %+v, %v", name, e, err)
		case want != "" && name != "postgresql" && e.String() != name:
			t.Errorf("%s: the engine is found by %q", name, e)
		}
	}
}

func TestEnginesAreHeldToTheirVersions(t *testing.T) {
	for _, c := range []struct {
		says, want string
		is         bool
	}{
		{"10.11.19-MariaDB", "", true}, {"10.11.19-MariaDB", "10.11", true}, {"10.11.19-MariaDB", "10.1", false},
		{"10.11.19", "10.11.19", true}, {"15.18 (Debian)", "15", true}, {"15.18 (Debian)", "5", false},
		{"8.0.11-TiDB-v8.4.0", "8.4", true}, {"8.0.11-TiDB-v8.4.0", "v8.4.0", true}, {"8.0.11-TiDB-v8.4.0", "8.0", false},
	} {
		if got := isVersion(c.says, c.want); got != c.is {
			t.Errorf("%s is %s: %v", c.says, c.want, got)
		}
	}
	if testing.Short() {
		return
	}
	e, err := Find("mariadb@9.9")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Start(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "not 9.9") {
		t.Errorf("%v, %v", s, err)
	}
}

// A program that is named is started, with what prepares its data beside it.
func TestNamedProgramIsStarted(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/usr/libexec") // where distributions have it
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		t.Skip(err)
	}
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // the server is another user's
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wrap(t, dir+"/bin/mariadb-install-db", install)
	wrap(t, dir+"/sbin/mariadbd", server+" --server-id=77")
	e, err := Find("mariadb=" + dir + "/sbin/mariadbd")
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Start(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	db, err := s.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id int
	if err := db.QueryRowContext(t.Context(), "SELECT @@server_id").Scan(&id); err != nil || id != 77 {
		t.Errorf("it is server %d, %v", id, err)
	}
	e, err = Find("mariadb=" + dir + "/none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), dir+"/none") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// wrap makes a script that runs a program with the script's arguments and one option behind them.
func wrap(t *testing.T, path, command string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	program, option, _ := strings.Cut(command, " ")
	text := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" %s\n", program, option)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
