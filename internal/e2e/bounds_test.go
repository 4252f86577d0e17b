package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/testdb"
)

// The flood that a hostile client sends, and what isotap may take for it.
const (
	floodBytes = 250 << 20
	// floodMemory is several times what isotap holds of one packet of 16 MiB: as it came, joined, as text, as it goes
	// to the server, and what is garbage of that.
	floodMemory = 200 << 20
	// postgresFlood is less, since the server reads it to its end.
	postgresFlood  = 60 << 20
	postgresMemory = 40 << 20
)

// peakOf returns by how many bytes the heap grew while f ran.
func peakOf(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for tick := time.Tick(5 * time.Millisecond); ; {
			select {
			case <-done:
				return
			case <-tick:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
	})
	f()
	close(done)
	watch.Wait()
	return peak - before
}

// flood sends a head, and packets of total bytes in all, until the other side closes.
func flood(conn net.Conn, head, packet []byte, total int) {
	conn.SetWriteDeadline(time.Now().Add(testdb.Patience))
	if _, err := conn.Write(head); err != nil {
		return
	}
	for sent := 0; sent < total; sent += len(packet) {
		if _, err := conn.Write(packet); err != nil {
			return
		}
	}
}

// lastWords reads what is still to come of a connection.
func lastWords(conn net.Conn) string {
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	var b bytes.Buffer
	io.Copy(&b, io.LimitReader(conn, 1<<20))
	return b.String()
}

// TestFloodOfAMySQLClientIsBounded sends 400 MB where less is due, before and after the login.
func TestFloodOfAMySQLClientIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20)")
	address := b.srv.Addr().String()
	full := append([]byte{0xff, 0xff, 0xff, 1}, bytes.Repeat([]byte{'a'}, gomysql.MaxPayloadLen)...)
	loggedIn := func(t *testing.T) net.Conn {
		return dialRaw(t, address, b.database, gomysql.CLIENT_MULTI_STATEMENTS).conn
	}
	prepared := func(t *testing.T) (net.Conn, uint32) {
		c := dialRaw(t, address, b.database, 0)
		c.write(0, []byte("\x16UPDATE account SET owner = ? WHERE id = 1"))
		ok := c.read()
		id := binary.LittleEndian.Uint32(ok[5:])
		for range 2 { // the parameter's definition and its end
			c.read()
		}
		return c.conn, id
	}
	greeted := func(t *testing.T) net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Read(make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	command := func(payload string) []byte { // the first packet of a long command
		p := append([]byte{0xff, 0xff, 0xff, 0}, payload...)
		return append(p, bytes.Repeat([]byte{'a'}, gomysql.MaxPayloadLen-len(payload))...)
	}
	for _, test := range []struct {
		name string
		send func(t *testing.T) (net.Conn, []byte)
	}{
		{"login", func(t *testing.T) (net.Conn, []byte) {
			caps := binary.LittleEndian.AppendUint32(nil, gomysql.CLIENT_PROTOCOL_41|gomysql.CLIENT_SECURE_CONNECTION)
			return greeted(t), append(append([]byte{0xff, 0xff, 0xff, 1}, caps...),
				bytes.Repeat([]byte{'a'}, gomysql.MaxPayloadLen-4)...)
		}},
		{"change of user", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), command("\x11root\x00") }},
		{"query", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), command("\x03SELECT 1 -- ") }},
		{"prepare", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), command("\x16SELECT 1 -- ") }},
		{"ping", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), command("\x0e") }},
		{"execute", func(t *testing.T) (net.Conn, []byte) {
			conn, id := prepared(t)
			return conn, command("\x17" + string(binary.LittleEndian.AppendUint32(nil, id)) +
				"\x00\x01\x00\x00\x00\x00\x01\xfe\x00")
		}},
		{"long data", func(t *testing.T) (net.Conn, []byte) {
			conn, id := prepared(t)
			return conn, command("\x18" + string(binary.LittleEndian.AppendUint32(nil, id)) + "\x00\x00")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, head := test.send(t)
			var words string
			grew := peakOf(func() {
				var reading sync.WaitGroup
				reading.Go(func() { words = lastWords(conn) })
				flood(conn, head, full, floodBytes)
				reading.Wait()
			})
			t.Logf("the heap grew by %d MiB; the client read %q", grew>>20, words)
			if grew > floodMemory {
				t.Errorf("the heap grew by %d MiB", grew>>20)
			}
			if !strings.Contains(words, "#08S01Got a packet bigger than 'max_allowed_packet' bytes") {
				t.Errorf("the client read %q", words)
			}
		})
	}
}

// TestStatementOfManyTokensIsBounded sends texts that a parser's tree would take gigabytes for.
func TestStatementOfManyTokensIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newBench(t, nil, "CREATE TABLE many (a INT) ENGINE=InnoDB")
	text := "INSERT INTO many (a) VALUES (1)" + strings.Repeat(",(1)", 2<<20)
	var err error
	if grew := peakOf(func() { _, err = b.through.Exec(text) }); err != nil || grew > floodMemory {
		t.Errorf("the heap grew by %d MiB for a text of %d: %v", grew>>20, len(text)>>20, err)
	}
	var n int
	if err := b.direct.QueryRow("SELECT COUNT(*) FROM many").Scan(&n); err != nil || n != 1+2<<20 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestClientThatDoesNotReadIsBounded sends queries ahead and reads none of their rows.
func TestClientThatDoesNotReadIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newBench(t, nil, account)
	c := dialRaw(t, b.srv.Addr().String(), b.database, 0)
	query := []byte("\x03SELECT REPEAT('a', 10000000) FROM account RIGHT JOIN (SELECT 1) q ON 1")
	packet := append([]byte{byte(len(query)), 0, 0, 0}, query...)
	grew := peakOf(func() {
		c.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
		for range floodBytes / len(packet) {
			if _, err := c.conn.Write(packet); err != nil {
				return
			}
		}
		t.Error("isotap took 400 MB of queries whose rows nobody reads")
	})
	if grew > floodMemory {
		t.Errorf("the heap grew by %d MiB", grew>>20)
	}
}

// TestFloodOfAPostgreSQLClientIsBounded sends 100 MB in a message of each kind, before and after the login.
func TestFloodOfAPostgreSQLClientIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newPostgresBench(t)
	address := b.srv.Addr().String()
	dial := func(t *testing.T) net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	loggedIn := func(t *testing.T) net.Conn {
		conn := dial(t)
		params := "user\x00postgres\x00database\x00postgres\x00\x00"
		startup := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(8+len(params))), 3<<16)
		if _, err := conn.Write(append(startup, params...)); err != nil {
			t.Fatal(err)
		}
		var seen []byte
		buf := make([]byte, 4096)
		for !bytes.HasSuffix(seen, []byte("Z\x00\x00\x00\x05I")) {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, buf[:n]...)
		}
		return conn
	}
	head := func(kind byte, begin string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, postgresFlood+4+uint32(len(begin))), begin...)
	}
	for _, test := range []struct {
		name string
		send func(t *testing.T) (net.Conn, []byte)
	}{
		{"startup", func(t *testing.T) (net.Conn, []byte) {
			return dial(t), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, postgresFlood+8), 3<<16)
		}},
		{"describe", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), head('D', "S") }},
		{"copy done", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), head('c', "") }},
		{"query", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), head('Q', "SELECT 1 --") }},
		{"parse", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), head('P', "\x00SELECT 1 --") }},
		{"bind", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), head('B', "\x00\x00") }},
		{"copy data", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), head('d', "") }},
		{"copy fail", func(t *testing.T) (net.Conn, []byte) { return loggedIn(t), head('f', "") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, head := test.send(t)
			var words string
			packet := bytes.Repeat([]byte{'a'}, 1<<20)
			grew := peakOf(func() {
				var reading sync.WaitGroup
				reading.Go(func() { words = lastWords(conn) })
				flood(conn, head, packet, postgresFlood)
				conn.(*net.TCPConn).CloseWrite()
				reading.Wait()
			})
			t.Logf("the heap grew by %d MiB; the client read %q", grew>>20, fmt.Sprintf("%.300s", words))
			if grew > postgresMemory {
				t.Errorf("the heap grew by %d MiB", grew>>20)
			}
		})
	}
}
