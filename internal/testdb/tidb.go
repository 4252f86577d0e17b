package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// TiDBVariable is the environment variable that names the TiDB server for the tests, as
// mysql://root@127.0.0.1:4000/.
const TiDBVariable = "ISOTAP_TEST_TIDB_URL"

// tidbProgram is the name of the server that "make tidb" builds, in isotap's cache directory; it ends
// with the commit of TiDB that it is made of.
const tidbProgram = "tidb-server-e4e814fdc0af"

// A TiDBServer is where a TiDB server is. Its user is root without a password.
type TiDBServer struct {
	addr     string
	instance *instance // nil: somebody else's
}

// sharedTiDB is the TiDB server that all tests of a process use.
var sharedTiDB struct {
	once   sync.Once
	server *TiDBServer
	err    error
}

// TiDB gives the TiDB server that the process's tests share: that of ISOTAP_TEST_TIDB_URL or, where "make
// tidb" has built one, a throw-away server started by the first call, which [Main] stops. nil: there is
// neither; say so with [NoTiDB] and skip the test.
func TiDB(tb TB) *TiDBServer {
	tb.Helper()
	if elsewhere() {
		tb.Skipf("this test is for TiDB, and ran there")
	}
	sharedTiDB.once.Do(func() {
		if url := os.Getenv(TiDBVariable); url != "" {
			sharedTiDB.server, sharedTiDB.err = namedTiDB(url)
		} else if program := builtTiDB(); program != "" {
			sharedTiDB.server, sharedTiDB.err = startTiDB(context.Background(), program)
		}
	})
	if sharedTiDB.err != nil {
		tb.Fatalf("this test needs a TiDB server: %v", sharedTiDB.err)
	}
	return sharedTiDB.server
}

// NoTiDB is what a test says that is skipped for lack of a server.
const NoTiDB = "needs a TiDB server: set " + TiDBVariable + ", or run make tidb once"

// namedTiDB reads mysql://root@host:port/.
func namedTiDB(url string) (*TiDBServer, error) {
	_, addr, ok := strings.Cut(url, "://")
	addr = addr[strings.LastIndexByte(addr, '@')+1:]
	addr, _, _ = strings.Cut(addr, "/")
	if !ok || addr == "" {
		return nil, fmt.Errorf("%s is %q: write mysql://root@127.0.0.1:4000/", TiDBVariable, url)
	}
	return &TiDBServer{addr: addr}, nil
}

// builtTiDB gives the path of the server that "make tidb" built; empty when there is none.
func builtTiDB() string {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	path := filepath.Join(cache, "isotap", tidbProgram)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}
	return path
}

func startTiDB(ctx context.Context, program string) (*TiDBServer, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := makeDirectory(nil)
	if err != nil {
		return nil, err
	}
	s := &TiDBServer{addr: "127.0.0.1:" + strconv.Itoa(port), instance: &instance{dir: dir}}
	if err := s.start(ctx, program, port); err != nil {
		return nil, errors.Join(fmt.Errorf("starting TiDB: %w\n%s", err, logTail(dir)), s.stop())
	}
	return s, nil
}

func (s *TiDBServer) start(ctx context.Context, program string, port int) error {
	log, err := os.Create(logFile(s.instance.dir))
	if err != nil {
		return fmt.Errorf("making the server's log: %w", err)
	}
	defer log.Close() // the server has its own handle
	if s.instance.process, err = startProcess(nil, s.instance.dir, log, syscall.SIGKILL, program, "-port", strconv.Itoa(port)); err != nil {
		return err
	}
	return s.awaitReady(ctx)
}

// awaitReady returns once the server answers, or has ended, or ctx is done.
func (s *TiDBServer) awaitReady(ctx context.Context) error {
	c := s.config("")
	c.Logger = &mysql.NopLogger{} // the driver would log each connection that the server refuses
	db, err := open(c)
	if err != nil {
		return err
	}
	defer db.Close()
	return s.instance.process.await(ctx, db.PingContext)
}

// stop ends a server that this process started.
func (s *TiDBServer) stop() error {
	if s == nil || s.instance == nil {
		return nil
	}
	return s.instance.Stop()
}

// Addr is the server's TCP address, "host:port".
func (s *TiDBServer) Addr() string { return s.addr }

// URL is the server's address as isotap's --upstream takes it.
func (s *TiDBServer) URL() string { return "mysql://root@" + s.addr + "/" }

func (s *TiDBServer) config(database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", s.addr, database
	return c
}

// NewDatabase makes an empty database on the server and gives its name, which no other test of the
// process has. It stays until the server is stopped.
func (s *TiDBServer) NewDatabase(tb TB) string {
	tb.Helper()
	name := databaseName(tb.Name(), databases.Add(1))
	db := s.Open(tb, "")
	for _, statement := range []string{"DROP DATABASE IF EXISTS `" + name + "`", "CREATE DATABASE `" + name + "`"} {
		if _, err := db.Exec(statement); err != nil {
			tb.Fatalf("making a database for the test: %v", err)
		}
	}
	return name
}

// Open opens a pool of connections to a database of the server that is closed when the test ends.
func (s *TiDBServer) Open(tb TB, database string) *sql.DB {
	tb.Helper()
	db, err := open(s.config(database))
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}
