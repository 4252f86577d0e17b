package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// visitors are clients that connect, ask something and leave, one connection after the other, until they are stopped.
// Every failure is an error of the test's.
type visitors struct {
	t      *testing.T
	served atomic.Int64
	all    sync.WaitGroup
	stop   context.CancelFunc
}

func visit(t *testing.T, url string) *visitors {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &visitors{t: t, stop: cancel}
	for range 4 {
		v.all.Go(func() {
			for ctx.Err() == nil {
				c, err := pgconn.Connect(t.Context(), url)
				if err != nil {
					t.Errorf("connect: %v", err)
					return
				}
				if _, err := c.Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
					t.Errorf("ask: %v", err)
				}
				c.Close(t.Context())
				v.served.Add(1)
			}
		})
	}
	return v
}

// await returns when so many more were served, however slow the machine is.
func (v *visitors) await(more int64) {
	v.t.Helper()
	enough := v.served.Load() + more
	for deadline := time.Now().Add(testdb.Patience); v.served.Load() < enough; time.Sleep(time.Millisecond) {
		if v.t.Failed() || time.Now().After(deadline) {
			v.t.Fatalf("%d connections were served, not %d", v.served.Load(), enough)
		}
	}
}

// end has them leave.
func (v *visitors) end() {
	v.stop()
	v.all.Wait()
}

// TestHandoverRefusesNoConnection has isotaps take over from each other on one address, the
// older from the newer too.
func TestHandoverRefusesNoConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	o := postgresOptions(t)
	o.ReusePort, o.Drain = true, testdb.Patience
	start := func(listen string) *proxyserver.Server {
		o.Listen, o.Recording = listen, filepath.Join(t.TempDir(), "rec")
		return startProxy(t, o)
	}
	first := start("127.0.0.1:0")
	address := first.Addr().String()
	clients := visit(t, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", o.Upstream.User,
		address, o.Upstream.Database))
	accepted := func(srv *proxyserver.Server) uint64 { return srv.Stats().Accepted }
	older := first
	for round := range 6 {
		newer := start(address)
		clients.await(10)
		leaves, stays := older, newer
		if round%3 == 2 {
			leaves, stays = newer, older
		}
		before := accepted(stays)
		if err := leaves.Stop(); err != nil {
			t.Error(err)
		}
		clients.await(10) // of which four may have been accepted before
		if accepted(stays) == before {
			t.Errorf("round %d: the one that stays got no client", round)
		}
		older = stays
	}
	clients.end()
}

// systemdService names the variable with the server and the recording of a process that serves on systemd's sockets.
const systemdService = "ISOTAP_TEST_SYSTEMD_SERVICE"

func init() {
	if upstream := os.Getenv(systemdService); upstream != "" {
		os.Exit(serveSystemd(upstream))
	}
}

// serveSystemd is such a process. It ends as isotap proxy does.
func serveSystemd(upstream string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	target, err := dsn.Parse(upstream)
	if err == nil {
		var srv *proxyserver.Server
		srv, err = proxyserver.Start(ctx, proxyserver.Options{Upstream: target, Listen: "systemd:clients",
			Recording: os.Getenv(systemdService + "_RECORDING"), Drain: time.Minute})
		if err == nil {
			fmt.Println("ready")
			err = srv.Wait()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestHandoverOfSystemdsSocketRefusesNoConnection restarts a process three times on a socket that stays open,
// with one recording.
func TestHandoverOfSystemdsSocketRefusesNoConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	file, err := socket.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o := postgresOptions(t)
	start := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), "sh", "-c", `LISTEN_PID=$$ exec "$0"`, os.Args[0])
		c.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=clients", systemdService+"="+o.Upstream.URL(),
			systemdService+"_RECORDING="+o.Recording)
		c.ExtraFiles, c.Stderr = []*os.File{file}, os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() })
		if _, err := out.Read(make([]byte, 6)); err != nil {
			t.Fatalf("the service does not begin: %v", err)
		}
		return c
	}
	service := start()
	clients := visit(t, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", o.Upstream.User,
		socket.Addr(), o.Upstream.Database))
	for range 3 {
		clients.await(10)
		service.Process.Signal(syscall.SIGTERM)
		if err := service.Wait(); err != nil {
			t.Errorf("the service ended with %v", err)
		}
		service = start()
	}
	clients.await(1)
	clients.end()
	service.Process.Signal(syscall.SIGTERM)
	if err := service.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}
