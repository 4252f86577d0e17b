// Package comments_test tries each file that adds comments to statements with the libraries that it is made for.
package comments_test

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// required is set where each library has to be there, as "make hooks" does; without it those that are not are skipped.
var required = os.Getenv("ISOTAP_HOOKS") == "require"

// action is the name that a program gives to what it does.
const action = "accounts:deposit"

// A hook is a file that adds comments, and a program that makes one deposit with it: it reads a row in the line that
// READ marks, and writes it in the one that WRITE marks.
type hook struct {
	library string
	program string   // in testdata
	marks   string   // stands behind READ and WRITE
	needs   []string // exits with 0 where the library is there
	runs    []string // in a directory with the files and programs
	env     []string
	only    []dbms.Family // empty: all
	action  string        // empty: action
	// traced says that the program marks no lines: it prints the request that its statements are of.
	traced bool
}

const (
	hibernate = "/usr/share/java/hibernate3.jar:/usr/share/java/hibernate-commons-annotations.jar:" +
		"/usr/share/java/geronimo-jpa_2.0_spec.jar:/usr/share/java/geronimo-jta-1.2-spec.jar:/usr/share/java/dom4j.jar:" +
		"/usr/share/java/javassist.jar:/usr/share/java/commons-collections3.jar:/usr/share/java/antlr.jar:" +
		"/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar"
	jdbc = "/usr/share/java/postgresql.jar:/usr/share/java/mariadb-java-client.jar"
)

var (
	laravel = []string{"php", "-r", "exit((@include 'Illuminate/autoload.php') && " +
		"extension_loaded('pdo_pgsql') && extension_loaded('pdo_mysql') ? 0 : 1);"}
	rails = []string{"ruby", "-e", "require 'active_record'; require 'action_controller'; require 'pg'; require 'mysql2'"}
)

// prisma makes Prisma's client for the database and runs the program. What makes it asks for an engine for migrations
// first, which no client needs.
const prisma = `provider=mysql; case $DATABASE_URL in postgres:*) provider=postgresql; esac
sed -i "s/PROVIDER/$provider/" schema.prisma && cp /bin/true engine && echo '{}' >package.json &&
PRISMA_SCHEMA_ENGINE_BINARY=./engine node node_modules/prisma/build/index.js generate --schema schema.prisma &&
node node_program.mjs`

func hooks() []hook {
	all := []hook{
		{library: "Django", program: "django_program.py", needs: python("django, psycopg2, MySQLdb"),
			runs: []string{interpreter, "django_program.py"}},
		{library: "SQLAlchemy", program: "sqlalchemy_program.py", needs: python("sqlalchemy, psycopg2, pymysql"),
			runs: []string{interpreter, "sqlalchemy_program.py"}},
		{library: "psycopg 2", program: "psycopg_program.py", needs: python("psycopg2"), env: []string{"PSYCOPG=2"},
			runs: []string{interpreter, "psycopg_program.py"}, only: []dbms.Family{dbms.PostgreSQLFamily}},
		{library: "psycopg 3", program: "psycopg_program.py", needs: python("psycopg"), env: []string{"PSYCOPG=3"},
			runs: []string{interpreter, "psycopg_program.py"}, only: []dbms.Family{dbms.PostgreSQLFamily}},
		{library: "Eloquent", program: "laravel_program.php", runs: []string{"php", "laravel_program.php"}, needs: laravel},
		{library: "Laravel", program: "laravel_program.php", runs: []string{"php", "laravel_program.php"}, needs: laravel,
			env: []string{"LIBRARY=laravel"}, action: "AccountController@deposit"},
		{library: "Active Record", program: "activerecord_program.rb", runs: []string{"ruby", "activerecord_program.rb"},
			needs: rails},
		{library: "Rails", program: "activerecord_program.rb", runs: []string{"ruby", "activerecord_program.rb"},
			needs: rails, env: []string{"LIBRARY=rails"}, action: "accounts#show"},
		{library: "JDBC", program: "JdbcProgram.java", needs: java(jdbc),
			runs: []string{"sh", "-c", "javac -cp " + jdbc + " SqlComments.java JdbcProgram.java && " +
				"java -cp .:" + jdbc + " JdbcProgram"}},
		{library: "Hibernate", program: "HibernateProgram.java", needs: java(jdbc + ":" + hibernate),
			runs: []string{"sh", "-c", "javac -cp " + jdbc + ":" + hibernate + " *.java && java " +
				"--add-opens java.base/java.lang=ALL-UNNAMED -cp .:" + jdbc + ":" + hibernate + " HibernateProgram"}},
	}
	for _, library := range []string{"gorm", "pgx"} {
		h := hook{library: library, program: "goprogram/main.go", marks: " " + library, env: []string{"LIBRARY=" + library},
			needs: []string{"sh", "-c", `test -n "$ISOTAP_HOOKS"`}, // it has modules of its own
			runs:  []string{"sh", "-c", "cd goprogram && go run ."}}
		if library == "pgx" {
			h.only = []dbms.Family{dbms.PostgreSQLFamily}
		}
		all = append(all, h)
	}
	for library, only := range map[string][]dbms.Family{"pg": {dbms.PostgreSQLFamily}, "mysql2": {dbms.MySQLFamily},
		"typeorm": nil, "knex": nil, "sequelize": nil, "prisma": nil} {
		h := hook{library: library, program: "node_program.mjs", marks: " " + library, only: only,
			needs: []string{"sh", "-c", "test -d node_modules/" + library},
			runs:  []string{"node", "node_program.mjs"}, env: []string{"LIBRARY=" + library}}
		if library == "prisma" {
			h.runs = []string{"sh", "-c", prisma}
		}
		all = append(all, h)
	}
	return append(all, hook{library: "OpenTelemetry", program: "otel_program.mjs", traced: true,
		needs: []string{"sh", "-c", "test -d node_modules/@opentelemetry/sdk-trace-node"}, runs: []string{"node", "otel_program.mjs"}})
}

// interpreter is Python's that has the libraries.
var interpreter = cmp.Or(os.Getenv("PYTHON"), "python3")

func python(modules string) []string { return []string{interpreter, "-c", "import " + modules} }

func java(path string) []string {
	return []string{"sh", "-c", "javac -version && test -f " + strings.ReplaceAll(path, ":", " && test -f ")}
}

// What each library sends says who sends it, and from where, and isotap reads it so.
func TestLibrariesSayWhoSendsWhat(t *testing.T) {
	for _, h := range hooks() {
		t.Run(h.library, func(t *testing.T) {
			if out, err := h.command(t, stage(t), h.needs).CombinedOutput(); err != nil {
				if required {
					t.Fatalf("%s is not there: %v\n%s", h.library, err, out)
				}
				t.Skipf("%s is not there (make hooks installs it)", h.library)
			}
			for family, made := range map[dbms.Family]func(*testing.T) string{
				dbms.MySQLFamily: mysql, dbms.PostgreSQLFamily: postgresql} {
				if len(h.only) == 0 || slices.Contains(h.only, family) {
					t.Run(family.String(), func(t *testing.T) { h.isRead(t, stage(t), made(t)) })
				}
			}
		})
	}
}

// mysql makes a database with an account, and returns its address.
func mysql(t *testing.T) string {
	name := testdb.NewDatabase(t)
	testdb.Exec(t, testdb.Open(t, name), "CREATE TABLE account (id INT PRIMARY KEY, balance INT)",
		"INSERT INTO account VALUES (1, 100)")
	return testdb.Current(t).URL() + name
}

// postgresql does so on PostgreSQL.
func postgresql(t *testing.T) string {
	name := testdb.NewPostgreSQLDatabase(t)
	testdb.Exec(t, testdb.OpenPostgreSQL(t, name), "CREATE TABLE account (id INT PRIMARY KEY, balance INT)",
		"INSERT INTO account VALUES (1, 100)")
	return testdb.PostgreSQL(t).URL() + name
}

// stage returns a directory with all files and programs, beside the packages of Node.js if these are there.
func stage(t *testing.T) string {
	dir := t.TempDir()
	for from, to := range map[string]string{".": ".", "testdata": ".", "testdata/goprogram": "goprogram",
		"sqlcomments": "goprogram/sqlcomments"} {
		copyFiles(t, from, filepath.Join(dir, to))
	}
	if modules := os.Getenv("ISOTAP_NODE_MODULES"); modules != "" {
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copyFiles copies the files of a directory, except for its tests.
func copyFiles(t *testing.T, from, to string) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (h *hook) command(t *testing.T, dir string, args []string, env ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), args[0], args[1:]...)
	c.Dir = dir
	c.Env = append(append(os.Environ(), h.env...), env...)
	return c
}

// isRead runs the program through isotap, and looks at what was recorded.
func (h *hook) isRead(t *testing.T, dir, upstream string) {
	target, err := dsn.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join(t.TempDir(), "recording")
	srv, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: recording, Drain: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	through, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	through.Host = srv.Addr().String()
	out, ran := h.command(t, dir, h.runs, "DATABASE_URL="+through.String()).CombinedOutput()
	if err := srv.Stop(); err != nil {
		t.Error(err)
	}
	if ran != nil {
		t.Fatalf("%v\n%s", ran, out)
	}
	_, txns, err := analysis.Resolved(t.Context(), recording)
	if err != nil {
		t.Fatal(err)
	}
	if h.traced {
		ofOneRequest(t, txns, strings.TrimSpace(string(out)))
	} else {
		h.holds(t, txns)
	}
}

// ofOneRequest looks whether what reads and what writes the account are of the request named.
func ofOneRequest(t *testing.T, txns []*history.Txn, request string) {
	var verbs []string
	for _, txn := range txns {
		for _, s := range txn.Stmts {
			if !strings.Contains(s.Shape, "account") {
				continue
			}
			verb, _, _ := strings.Cut(s.Shape, " ")
			verbs = append(verbs, verb)
			if s.Sender.Request != request {
				t.Errorf("%s: from %+v; the trace is %q", s.Shape, s.Sender, request)
			}
		}
	}
	if !slices.Equal(verbs, []string{"SELECT", "UPDATE"}) || request == "" {
		t.Errorf("recorded were %v of %q", verbs, request)
	}
}

// holds looks whether what reads and what writes the account have their places. A library may read a row once more
// before it writes it.
func (h *hook) holds(t *testing.T, txns []*history.Txn) {
	read, write := h.place(t, "READ"), h.place(t, "WRITE")
	seen := make(map[string]bool)
	for _, txn := range txns {
		for _, s := range txn.Stmts {
			verb, _, _ := strings.Cut(strings.ToUpper(s.Shape), " ")
			if !strings.Contains(s.Shape, "account") || verb != "SELECT" && verb != "UPDATE" {
				continue
			}
			at := s.Sender.Place
			seen[verb+" "+at] = true
			if at != write && (at != read || verb == "UPDATE") || s.Sender.Action != cmp.Or(h.action, action) {
				t.Errorf("%s: from %+v; the lines are %s and %s", s.Shape, s.Sender, read, write)
			}
		}
	}
	if !seen["SELECT "+read] || !seen["UPDATE "+write] {
		t.Errorf("recorded were %v; the lines are %s and %s", seen, read, write)
	}
}

// place returns where in the program a mark is.
func (h *hook) place(t *testing.T, mark string) string {
	text, err := os.ReadFile(filepath.Join("testdata", h.program))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasSuffix(line, mark+h.marks) {
			return h.program + ":" + strconv.Itoa(i+1)
		}
	}
	t.Fatalf("%s has no mark %s%s", h.program, mark, h.marks)
	return ""
}
