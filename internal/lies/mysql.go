package lies

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// A MySQLLie is the packets that answer a command, without their headers.
type MySQLLie func(deprecateEOF bool) [][]byte

// MySQLLies are lies by what they are.
var MySQLLies = map[string]MySQLLie{
	"no rows at all":      func(bool) [][]byte { return [][]byte{{0, 0, 0, 2, 0, 0, 0}} },
	"one column":          func(eof bool) [][]byte { return resultSet(1, eof) },
	"fifty columns":       func(eof bool) [][]byte { return resultSet(50, eof) },
	"a header alone":      func(bool) [][]byte { return [][]byte{{0}} },
	"half an error":       func(bool) [][]byte { return [][]byte{{0xff, 1}} },
	"empty packets":       func(bool) [][]byte { return [][]byte{{}, {}, {}} },
	"a row without cells": func(eof bool) [][]byte { s := resultSet(4, eof); s[len(s)-2] = []byte{}; return s },
	"2^40 columns":        func(bool) [][]byte { return [][]byte{{0xfe, 0, 0, 0, 0, 0, 1, 0, 0}} },
	"2^23 columns":        func(bool) [][]byte { return [][]byte{{0xfd, 0, 0, 0x80}} },
	"65,535 columns":      func(bool) [][]byte { return [][]byte{{0xfc, 0xff, 0xff}} },
	"a half column":       func(eof bool) [][]byte { s := resultSet(4, eof); s[2] = s[2][:5]; return s },
}

// resultSet is one of a row.
func resultSet(columns byte, deprecateEOF bool) [][]byte {
	column := []byte("\x03def\x00\x00\x00\x01x\x01x\x0c\x2d\x00\x0a\x00\x00\x00\xfd\x00\x00\x00\x00\x00")
	packets, row := [][]byte{{columns}}, []byte(nil)
	for range columns {
		packets, row = append(packets, column), append(row, 1, '1')
	}
	if deprecateEOF {
		return append(packets, row, []byte{0xfe, 0, 0, 2, 0, 0, 0})
	}
	eof := []byte{0xfe, 0, 0, 2, 0}
	return append(packets, eof, row, eof)
}

// MySQL relays to a server of the MySQL family. The answer of a number, to a query or a prepared statement's
// preparation or execution, is the lie. It knows no TLS and no compression.
func MySQL(t testing.TB, server string, at int, lie MySQLLie) *Relay {
	t.Helper()
	return start(t, server, at, func(r *Relay, client, server net.Conn) { r.mysql(client, server, lie) })
}

const (
	comQuery, comPrepare, comExecute = 0x03, 0x16, 0x17
	clientDeprecateEOF               = 1 << 24
)

func (r *Relay) mysql(client, server net.Conn, lie MySQLLie) {
	var offered atomic.Bool
	go func() {
		defer client.Close()
		greeting, err := readPacket(server)
		if err != nil {
			return
		}
		offered.Store(offersDeprecateEOF(greeting[4:]))
		if _, err := client.Write(greeting); err == nil {
			pass(client, server)
		}
	}()
	defer server.Close()
	deprecate, login := false, true
	for {
		packet, err := readPacket(client)
		if err != nil {
			return
		}
		if login && len(packet) > 8 {
			deprecate, login = offered.Load() && binary.LittleEndian.Uint32(packet[4:])&clientDeprecateEOF != 0, false
		}
		command := packet[3] == 0 && len(packet) > 4 && (packet[4] == comQuery || packet[4] == comPrepare ||
			packet[4] == comExecute)
		if !command || !r.next(string(packet[5:])) {
			if _, err := server.Write(packet); err != nil {
				return
			}
			continue
		}
		var answer []byte
		for i, p := range lie(deprecate) {
			answer = append(append(answer, byte(len(p)), byte(len(p)>>8), 0, byte(i+1)), p...)
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// offersDeprecateEOF reads the capabilities of a server's greeting.
func offersDeprecateEOF(greeting []byte) bool {
	version := 1
	for version < len(greeting) && greeting[version] != 0 {
		version++
	}
	upper := version + 1 + 4 + 8 + 1 + 2 + 1 + 2
	return upper+1 < len(greeting) && uint32(greeting[upper+1])<<24&clientDeprecateEOF != 0
}

// readPacket reads a packet with its header.
func readPacket(from io.Reader) ([]byte, error) {
	header := make([]byte, 4)
	if _, err := io.ReadFull(from, header); err != nil {
		return nil, err
	}
	n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	packet := append(header, make([]byte, n)...)
	_, err := io.ReadFull(from, packet[4:])
	return packet, err
}
