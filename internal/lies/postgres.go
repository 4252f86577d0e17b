package lies

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// A PostgresLie rewrites the messages of an answer, each with its type and length before it; nil leaves one out.
type PostgresLie func(message []byte) []byte

// PostgresLies are lies by what they are.
var PostgresLies = map[string]PostgresLie{
	"a column less": func(m []byte) []byte {
		switch m[0] {
		case 'T':
			return withoutLastField(m)
		case 'D':
			return withoutLastCell(m)
		}
		return m
	},
	"rows of a column less": only('D', withoutLastCell),
	"no result":             func([]byte) []byte { return nil },
	"no rows":               only('D', func([]byte) []byte { return nil }),
	"strange values": only('D', func(m []byte) []byte {
		n := binary.BigEndian.Uint16(m[5:])
		row := binary.BigEndian.AppendUint16(nil, n)
		for range n {
			row = append(row, 0, 0, 0, 1, '1')
		}
		return message('D', row)
	}),
	"a row that is cut off": only('D', func(m []byte) []byte { return message('D', m[5:len(m)/2+3]) }),
	"nothing in messages":   func(m []byte) []byte { return message(m[0], nil) },
}

func only(kind byte, lie PostgresLie) PostgresLie {
	return func(m []byte) []byte {
		if m[0] == kind {
			return lie(m)
		}
		return m
	}
}

func message(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// withoutLastField cuts a RowDescription.
func withoutLastField(m []byte) []byte {
	n := binary.BigEndian.Uint16(m[5:])
	if n == 0 {
		return m
	}
	body, at := binary.BigEndian.AppendUint16(nil, n-1), 7
	for range n - 1 {
		end := at
		for m[end] != 0 {
			end++
		}
		end += 1 + 18
		body, at = append(body, m[at:end]...), end
	}
	return message('T', body)
}

// withoutLastCell cuts a DataRow.
func withoutLastCell(m []byte) []byte {
	n := binary.BigEndian.Uint16(m[5:])
	if n == 0 {
		return m
	}
	body, at := binary.BigEndian.AppendUint16(nil, n-1), 7
	for range n - 1 {
		end := at + 4
		if size := int32(binary.BigEndian.Uint32(m[at:])); size > 0 {
			end += int(size)
		}
		body, at = append(body, m[at:end]...), end
	}
	return message('D', body)
}

// PostgreSQL relays to a PostgreSQL server. The answer of a number, to what was bound in the extended protocol, is the
// lie. It offers no TLS.
func PostgreSQL(t testing.TB, server string, at int, lie PostgresLie) *Relay {
	t.Helper()
	return start(t, server, at, func(r *Relay, client, server net.Conn) { r.postgres(client, server, lie) })
}

const sslRequest, gssRequest = 80877103, 80877104

func (r *Relay) postgres(client, server net.Conn, lie PostgresLie) {
	for {
		head := make([]byte, 8)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		if code := binary.BigEndian.Uint32(head[4:]); code == sslRequest || code == gssRequest {
			if _, err := client.Write([]byte{'N'}); err != nil {
				return
			}
			continue
		}
		if _, err := server.Write(head); err != nil {
			return
		}
		break
	}
	go pass(server, client)
	defer client.Close()
	lying := false
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		m := append(head, make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
		if _, err := io.ReadFull(server, m[5:]); err != nil {
			return
		}
		switch m[0] {
		case '2': // BindComplete
			lying = r.next("")
		case 'Z', '1', 'E', 'N', 'S': // what is no part of an answer
			lying = false
		}
		if ends := m[0] == 'C'; lying {
			m, lying = lie(m), !ends
		}
		if _, err := client.Write(m); err != nil {
			return
		}
	}
}
