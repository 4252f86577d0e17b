//go:build linux

package main

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// A mutation makes what changes the bytes of one direction of a connection: down is from the server to the client. It
// gives nil where they stay as they are.
type mutation func(seed uint64, down bool) func(p []byte) []byte

// hostile are mutations of what the client says, or the server.
func (f *family) hostile(server bool) mutation {
	return func(seed uint64, down bool) func([]byte) []byte {
		if down != server {
			return nil
		}
		random := rand.New(rand.NewPCG(seed, 1))
		h := &hostilePeer{random: random, length: f.length, sparing: 1 + random.IntN(8)}
		// Half of them begin in the login, the others after it.
		if h.quiet = random.IntN(150); random.IntN(2) == 0 {
			h.quiet = 300 + random.IntN(4000)
		}
		return h.change
	}
}

// A hostilePeer changes what its connection says.
type hostilePeer struct {
	random  *rand.Rand
	quiet   int // bytes that it lets through before it begins
	sparing int // it changes one of so many pieces
	length  func(p []byte, n uint32)
	said    [][]byte // the last pieces, as they were
}

// maxFlood is how many bytes a peer sends in place of one piece.
const maxFlood = 24 << 20

// change returns what is sent in the place of a piece.
func (h *hostilePeer) change(p []byte) []byte {
	whole := slices.Clone(p)
	if h.said = append(h.said, whole); len(h.said) > 8 {
		h.said = h.said[1:]
	}
	if h.quiet -= len(p); h.quiet > 0 || h.random.IntN(h.sparing) > 0 {
		return p
	}
	p = slices.Clone(p)
	at := h.random.IntN(len(p))
	switch h.random.IntN(9) {
	case 0: // other bytes
		for range 1 + h.random.IntN(4) {
			p[h.random.IntN(len(p))] = byte(h.random.Uint32())
		}
		return p
	case 1: // a length that lies: by little, by much, of nothing
		h.length(p, []uint32{0, 1, 3, uint32(len(p)), uint32(len(p)) + 1, 1 << 16, 0xffffff, 1 << 30, 1<<31 - 1,
			1 << 31, 1<<32 - 1}[h.random.IntN(11)])
		return p
	case 2: // something in between
		return slices.Insert(p, at, h.noise(1+h.random.IntN(200))...)
	case 3: // something missing
		return slices.Delete(p, at, at+1+h.random.IntN(len(p)-at))
	case 4: // twice: an answer that nobody asked for, a statement in the middle of another
		return append(p, whole...)
	case 5: // what was said earlier
		return slices.Clone(h.said[h.random.IntN(len(h.said))])
	case 6: // without end
		return slices.Repeat(p, 1+h.random.IntN(maxFlood/len(p)))
	case 7: // nonsense
		return h.noise(1 + h.random.IntN(5000))
	}
	// A packet that is said to be long, and is.
	h.length(p, 0xffffff)
	return append(p, make([]byte, h.random.IntN(maxFlood))...)
}

func (h *hostilePeer) noise(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(h.random.Uint32())
	}
	return p
}

// mysqlLength has a packet at the beginning of p say that it has n bytes, and postgresLength a message.
func mysqlLength(p []byte, n uint32) {
	if len(p) >= 4 {
		p[0], p[1], p[2] = byte(n), byte(n>>8), byte(n>>16)
	}
}

func postgresLength(p []byte, n uint32) {
	switch {
	case len(p) >= 8 && p[0] == 0: // it has no type: the client's first one
		binary.BigEndian.PutUint32(p, n)
	case len(p) >= 5:
		binary.BigEndian.PutUint32(p[1:], n)
	}
}

// intruder is what somebody sends who has not logged in and does not mean to.
func (f *family) intruder(random *rand.Rand) []byte {
	h := &hostilePeer{random: random}
	switch random.IntN(7) {
	case 0:
		return h.noise(1 + random.IntN(5000))
	case 1:
		return []byte("GET / HTTP/1.1\r\nHost: database\r\n\r\n")
	case 2: // TLS, which nobody had agreed on
		return append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, h.noise(500)...)
	case 3: // requests for TLS, GSS and cancellation of PostgreSQL's clients, with more behind them
		return append([]byte{0, 0, 0, 8, 4, 0xd2, 0x16, byte(0x2e + random.IntN(3))}, h.noise(random.IntN(300))...)
	case 4:
		return nil
	case 5: // a message without end, by PostgreSQL's rules
		return append([]byte{0x3f, 0xff, 0xff, 0xff, 0, 3, 0, 0}, make([]byte, random.IntN(maxFlood))...)
	}
	// A login of as many packets as there may be, by MySQL's rules.
	var p []byte
	for n := byte(1); n <= 4; n++ {
		p = append(append(p, 0xff, 0xff, 0xff, n), make([]byte, 0xffffff)...)
	}
	return p
}
