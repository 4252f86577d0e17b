package testdb

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A second process, this test once more, starts a server and is then killed.
func TestServerDiesWithItsStarter(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const role = "ISOTAP_TESTDB_STARTER"
	t.Run("MariaDB", func(t *testing.T) {
		if os.Getenv(role) != "" {
			s := MariaDB(t)
			waitToBeKilled(s.Addr(), &s.instance)
			return
		}
		diesWithItsStarter(t, role)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		if os.Getenv(role) != "" {
			s := PostgreSQL(t)
			waitToBeKilled(s.Addr(), &s.instance)
			return
		}
		diesWithItsStarter(t, role)
	})
}

// waitToBeKilled is the second process.
func waitToBeKilled(addr string, i *instance) {
	fmt.Printf("started %s %s\n", addr, i.dir)
	<-i.Done() // our killer comes first
}

func diesWithItsStarter(t *testing.T, role string) {
	self := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	self.Env = append(os.Environ(), role+"=1")
	out, err := self.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Start(); err != nil {
		t.Fatal(err)
	}
	var addr, dir string
	lines := bufio.NewScanner(out)
	for addr == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "started "); ok {
			addr, dir, _ = strings.Cut(rest, " ")
		}
	}
	if err := self.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = self.Wait() // it was killed
	if addr == "" {
		t.Fatal("the second process started no server")
	}
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		// A directory that a live server writes to may refuse to go.
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
		} else if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the server outlived its starter")
}
