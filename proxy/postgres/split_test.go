package postgres

import (
	"bytes"
	"encoding/json"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
)

// A turn is what one side sent.
type turn struct {
	server bool
	bytes  []byte
}

// A conversation drives a session against a real server, and keeps what either side sent. Having no socket,
// the session needs no more than this to run.
type conversation struct {
	t       *testing.T
	session *Session
	server  net.Conn
	turns   []turn
	ahead   []byte // of the client's, that the session does not take yet
}

func newTestSession(planner Planner) *Session {
	var n uint32
	cfg := Config{Prepared: &txnstate.Prepared{}, Options: session.Options{ID: 1, Args: true, NextTxn: func() history.TxnID {
		n++
		return history.MakeTxnID(7, n)
	}}}
	if planner != nil {
		cfg.Planners = func(string) Planner { return planner }
	}
	return NewSession(cfg)
}

// say sends a step of the client and lets the server answer until nothing is owed.
func (c *conversation) say(s step) {
	c.t.Helper()
	var b []byte
	for _, m := range s.send {
		var err error
		if b, err = m.Encode(b); err != nil {
			c.t.Fatal(err)
		}
	}
	c.turns = append(c.turns, turn{bytes: b})
	c.ahead = append(c.ahead, b...)
	buf := make([]byte, 1<<16)
	for {
		c.offer()
		_, toServer := c.session.Output()
		if _, err := c.server.Write(toServer); err != nil {
			c.t.Fatal(err)
		}
		if s := c.session; s.phase == phaseReady && len(c.ahead) == 0 && s.held.raw == nil &&
			(s.pipeline.due == 0 || s.pipeline.copyIn.active()) {
			return
		}
		c.server.SetReadDeadline(time.Now().Add(testdb.Patience))
		n, err := c.server.Read(buf)
		if err != nil {
			c.t.Fatalf("the server in phase %d: %v", c.session.phase, err)
		}
		c.turns = append(c.turns, turn{server: true, bytes: bytes.Clone(buf[:n])})
		if err := c.session.FromServer(0, buf[:n]); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *conversation) offer() {
	c.t.Helper()
	n, err := c.session.FromClient(0, c.ahead)
	if err != nil {
		c.t.Fatal(err)
	}
	c.ahead = c.ahead[n:]
	if c.session.Upgrade() == session.ServerDial {
		c.session.Upgraded(0, nil, nil)
	}
}

// replayTurns has a new session take the turns in pieces of the given size, and returns all that it answered.
func replayTurns(t *testing.T, planner Planner, turns []turn, size int) (toClient, toServer []byte, events string) {
	t.Helper()
	c := conversation{t: t, session: newTestSession(planner)}
	var all []session.Event
	take := func() {
		client, server := c.session.Output()
		toClient, toServer = append(toClient, client...), append(toServer, server...)
		all = append(all, c.session.Events()...)
	}
	for _, turn := range turns {
		for rest := turn.bytes; len(rest) > 0; {
			piece := bytes.Clone(rest[:min(size, len(rest))])
			rest = rest[len(piece):]
			if turn.server {
				if err := c.session.FromServer(0, piece); err != nil {
					t.Fatalf("pieces of %d: %v", size, err)
				}
				clear(piece) // the caller may use it again
			} else {
				c.ahead = append(c.ahead, piece...)
			}
			c.offer()
			take()
		}
	}
	if len(c.ahead) > 0 {
		t.Fatalf("pieces of %d: %d bytes of the client's were never taken", size, len(c.ahead))
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return toClient, toServer, string(text)
}

// TestAnswersDoNotDependOnHowBytesArrive replays real conversations in pieces of many sizes.
func TestAnswersDoNotDependOnHowBytesArrive(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r := newRig(t, nil)
	db := testdb.OpenPostgreSQL(t, r.database)
	for name, steps := range scripts {
		t.Run(name, func(t *testing.T) {
			if _, err := db.Exec(reset); err != nil {
				t.Fatal(err)
			}
			if err := r.catalog.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.planner.Invalidate()
			conn, err := net.Dial("tcp", r.direct)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := &conversation{t: t, session: newTestSession(r.planner), server: conn}
			c.say(step{send: []pgproto3.FrontendMessage{&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
				Parameters: map[string]string{"user": "postgres", "database": r.database}}}})
			for _, s := range steps {
				c.say(s)
			}
			wantClient, wantServer, wantEvents := replayTurns(t, r.planner, c.turns, 1<<20)
			sizes := []int{1, 2, 3, 4, 5, 7, 11, 64, 301}
			if len(wantClient) > 1<<20 {
				sizes = []int{1009, 65536, 100_003}
			}
			for _, size := range sizes {
				toClient, toServer, events := replayTurns(t, r.planner, c.turns, size)
				if !bytes.Equal(toClient, wantClient) || !bytes.Equal(toServer, wantServer) || events != wantEvents {
					t.Errorf("pieces of %d: another answer\n%s\nevents %s\nwant   %s", size,
						difference(steady(wantClient), steady(toClient)), events, wantEvents)
				}
			}
		})
	}
}
