package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A relay is somebody else's proxy, which stands for what a proxy in C costs. Without its program the rest is
// measured all the same.
type relay struct {
	name string // of the path, and of the program
	// configure gives the text of a configuration that relays from one address to another.
	configure func(listen, server string) (string, error)
	// args is the command line, given the configuration's file.
	args func(config string) []string
}

// haproxy copies bytes and knows nothing of them.
var haproxy = relay{
	name: pathHAProxy,
	configure: func(listen, server string) (string, error) {
		return "global\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n" +
			"  timeout server 1h\n" +
			"listen db\n  bind " + listen + "\n  server db " + server + "\n", nil
	},
	args: func(config string) []string { return []string{"-db", "-f", config} },
}

// pgbouncer is a pool of sessions: each client has a server's session to itself for as long as it is there.
var pgbouncer = relay{name: pathPgBouncer, configure: configurePgBouncer,
	args: func(config string) []string { return []string{"-q", config} }}

func configurePgBouncer(listen, server string) (string, error) {
	var parts [4]string
	var errs [2]error
	parts[0], parts[1], errs[0] = net.SplitHostPort(server)
	parts[2], parts[3], errs[1] = net.SplitHostPort(listen)
	if err := errors.Join(errs[:]...); err != nil {
		return "", err
	}
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%s user=%s\n[pgbouncer]\nlisten_addr = %s\nlisten_port = %s\n",
		database, parts[0], parts[1], postgresqlUser, parts[2], parts[3])
	text += "unix_socket_dir =\nauth_type = any\npool_mode = session\nmax_client_conn = 1000\ndefault_pool_size = 100\n" +
		"server_tls_sslmode = disable\nlog_connections = 0\nlog_disconnections = 0\nlog_stats = 0\n"
	if os.Geteuid() == 0 {
		text += "user = nobody\n" // it refuses to be root
	}
	return text, nil
}

// findRelay looks for a relay's program in the PATH, and where Debian puts it, which is not in every user's.
func findRelay(name string) string {
	for _, name := range []string{name, "/usr/sbin/" + name} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	return ""
}

// startRelay starts a relay to the server and waits until it takes connections; nil when its program is not
// installed.
func (b *bench) startRelay(r relay) (*path, error) {
	program := findRelay(r.name)
	if program == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	address := l.Addr().String()
	l.Close()
	text, err := r.configure(address, b.target.Addr())
	config := filepath.Join(b.dir, r.name+".conf")
	if err == nil {
		err = os.WriteFile(config, []byte(text), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", r.name, err)
	}
	var said bytes.Buffer
	p := &path{name: r.name, address: address, relay: true, process: exec.Command(program, r.args(config)...),
		said: make(chan string, 1)}
	p.process.Stdout, p.process.Stderr = &said, &said
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.name, err)
	}
	p.said <- ""
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return p, c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.stop()
	return nil, fmt.Errorf("%s does not listen on %s: %s", r.name, address, said.Bytes())
}
