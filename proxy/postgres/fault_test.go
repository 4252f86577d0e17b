package postgres

import (
	"bytes"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// brokenPlanner panics on every text.
type brokenPlanner struct{ plans }

func (brokenPlanner) Plan(text []byte, _ sqlpostgres.Session) *sqlpostgres.Script {
	panic(string(text))
}

// TestPanicOfThePlannerCostsAnObservationOnly has a planner fail on the texts of Query and Parse.
func TestPanicOfThePlannerCostsAnObservationOnly(t *testing.T) {
	for _, c := range []struct{ name, client, server string }{
		{"Query", string(appendMessage(nil, msgQuery, []byte("SELECT 'secret'\x00")...)),
			string(appendMessage(appendMessage(nil, msgCommandComplete, []byte("SELECT 0\x00")...), msgReadyForQuery,
				byte(txnIdle)))},
		{"Parse", string(appendMessage(appendMessage(appendMessage(appendMessage(nil, msgParse,
			[]byte("n\x00SELECT 'secret'\x00\x00\x00")...),
			msgBind, []byte("\x00n\x00\x00\x00\x00\x00\x00\x00")...), msgExecute, 0, 0, 0, 0, 0), msgSync)),
			string(appendMessage(appendMessage(appendMessage(appendMessage(nil, msgParseComplete), msgBindComplete),
				msgCommandComplete, []byte("SELECT 0\x00")...), msgReadyForQuery, byte(txnIdle)))},
	} {
		s := loggedIn(t)
		s.cfg.Planners = func(string) Planner { return brokenPlanner{} }
		s.Output()
		s.Events()
		if n, err := s.FromClient(1, []byte(c.client)); err != nil || n != len(c.client) {
			t.Fatalf("%s: %d bytes taken, %v", c.name, n, err)
		}
		if _, toServer := s.Output(); !bytes.Equal(toServer, []byte(c.client)) {
			t.Errorf("%s: the server gets %q, want what the client sent", c.name, toServer)
		}
		if err := s.FromServer(1, []byte(c.server)); err != nil {
			t.Fatal(err)
		}
		if toClient, _ := s.Output(); !bytes.Equal(toClient, []byte(c.server)) {
			t.Errorf("%s: the client gets %q, want what the server sent", c.name, toClient)
		}
		var faults []*session.Fault
		var stmts []history.Stmt
		for _, e := range s.Events() {
			if e.Fault != nil {
				faults = append(faults, e.Fault)
			}
			if e.Txn != nil {
				stmts = append(stmts, e.Txn.Stmts...)
			}
		}
		if len(faults) == 0 || strings.Contains(faults[0].What+faults[0].Stack, "secret") {
			t.Errorf("%s: faults: %+v", c.name, faults)
		}
		if len(stmts) != 1 || stmts[0].Reason != history.ReasonFault || stmts[0].Observation != history.Opaque {
			t.Errorf("%s: recorded: %+v", c.name, stmts)
		}
	}
}
