package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// TiDBVariable is the environment variable that names the TiDB server for the tests, as
// mysql://root@127.0.0.1:4000/.
const TiDBVariable = "ISOTAP_TEST_TIDB_URL"

// tidbProgram is the name of the server that "make tidb" builds, in isotap's cache directory; it ends
// with the commit of TiDB that it is made of.
const tidbProgram = "tidb-server-e4e814fdc0af"

// TiDBRound has all tests of a package run once more on TiDB. Those of others ask for the server of [TiDB].
var TiDBRound = Engine{"tidb", TiDBVariable}

// A TiDBServer is a TiDB server. Its user is root without a password, and it has no unix socket.
type TiDBServer struct{ *Server }

// sharedTiDB is the TiDB server that all tests of a process use.
var sharedTiDB struct {
	once   sync.Once
	server *TiDBServer
	err    error
}

// TiDB returns the TiDB server that the process's tests share: that of ISOTAP_TEST_TIDB_URL or, where "make
// tidb" has built one, a throw-away server started by the first call, which [Main] stops. nil: there is
// neither; say so with [NoTiDB] and skip the test.
func TiDB(tb TB) *TiDBServer {
	tb.Helper()
	if elsewhere() {
		tb.Skipf("this test is for TiDB, and ran there")
	}
	sharedTiDB.once.Do(func() {
		if address := os.Getenv(TiDBVariable); address != "" {
			sharedTiDB.server, sharedTiDB.err = namedTiDB(address)
		} else if HasTiDB() {
			sharedTiDB.server, sharedTiDB.err = StartTiDB(context.Background(), Options{})
		}
	})
	if sharedTiDB.err != nil {
		tb.Fatalf("this test needs a TiDB server: %v", sharedTiDB.err)
	}
	return sharedTiDB.server
}

// NoTiDB is what a test says that is skipped for lack of a server.
const NoTiDB = "needs a TiDB server: set " + TiDBVariable + ", or run make tidb once"

// namedTiDB returns the server at mysql://root@host:port/.
func namedTiDB(address string) (*TiDBServer, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User.Username() == "" {
		return nil, fmt.Errorf("%s is no server's URL: write mysql://root@127.0.0.1:4000/", TiDBVariable)
	}
	s, err := connect(u)
	if err != nil {
		return nil, err
	}
	return &TiDBServer{s}, nil
}

// ErrTiDBNotBuilt says that this machine has no TiDB server, and how it gets one.
var ErrTiDBNotBuilt = errors.New(`TiDB is not there: isotap starts one that was built of TiDB's Go module, its data in memory:
  make tidb        in isotap's source, some 10 minutes, once
or name one that runs: --upstream tidb://root@127.0.0.1:4000/`)

// HasTiDB reports whether "make tidb" has built a server.
func HasTiDB() bool {
	_, err := findTiDB()
	return err == nil
}

// findTiDB looks for the server that "make tidb" built.
func findTiDB() (programs, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	path := filepath.Join(cache, "isotap", tidbProgram)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return programs{}, ErrTiDBNotBuilt
	}
	return programs{server: path}, nil
}

// StartTiDB starts the server that "make tidb" built and waits until it answers. The caller ends it with Stop; ctx only
// bounds the start. Where it was not built the error wraps [ErrTiDBNotBuilt].
func StartTiDB(ctx context.Context, o Options) (*TiDBServer, error) {
	nothing := func(context.Context, installation) error { return nil }
	return begin(ctx, kind{engine: "TiDB", find: o.find(findTiDB), taken: "address already in use"}, nothing,
		func(ctx context.Context, at installation, port int) (*TiDBServer, error) {
			return launchTiDB(ctx, at, port, o.Args)
		})
}

func launchTiDB(ctx context.Context, at installation, port int, args []string) (*TiDBServer, error) {
	p, err := at.start(syscall.SIGKILL, append([]string{"-port", strconv.Itoa(port)}, args...)...)
	if err != nil {
		return nil, err
	}
	s := &TiDBServer{&Server{instance{dir: at.dir, process: p, host: "127.0.0.1", port: port, user: "root"}}}
	if err := s.awaitReady(ctx, s.config("tcp", s.Addr(), "")); err != nil {
		p.kill()
		return nil, err
	}
	return s, nil
}

// NewDatabase makes an empty database on the server and returns its name, which no other test of the
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
	db, err := s.DB(database)
	return closeAfter(tb, db, err)
}
