package mysql

import (
	"bytes"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// brokenPlanner panics on every text.
type brokenPlanner struct{ plans }

func (brokenPlanner) Plan(text []byte, _ sqlmysql.Session) *sqlmysql.Plan { panic(string(text)) }

// TestPanicOfThePlannerCostsAnObservationOnly has a planner fail on two statements of one session.
func TestPanicOfThePlannerCostsAnObservationOnly(t *testing.T) {
	s := loggedIn(t, 0)
	s.cfg.Planner = brokenPlanner{}
	var faults []*session.Fault
	var stmts []history.Stmt
	for range 2 {
		s.settings.stale, s.settings.known = false, true
		s.Output()
		query, _ := appendPacket(nil, 0, append([]byte{gomysql.COM_QUERY}, "SELECT 'secret'"...))
		reply, _ := appendPacket(nil, 1, []byte{markOK, 0, 0, 2, 0, 0, 0})
		if _, err := s.FromClient(1, query); err != nil {
			t.Fatal(err)
		}
		if _, toServer := s.Output(); !bytes.Equal(toServer, query) {
			t.Errorf("the server gets %q, want what the client sent", toServer)
		}
		if err := s.FromServer(1, reply); err != nil {
			t.Fatal(err)
		}
		if toClient, _ := s.Output(); !bytes.Equal(toClient, reply) {
			t.Errorf("the client gets %q, want what the server sent", toClient)
		}
		for _, e := range s.Events() {
			if e.Fault != nil {
				faults = append(faults, e.Fault)
			}
			if e.Txn != nil {
				stmts = append(stmts, e.Txn.Stmts...)
			}
		}
	}
	if len(faults) != 2 || faults[0].What != "string" || !strings.Contains(faults[0].Stack, "brokenPlanner") {
		t.Errorf("%d faults: %+v", len(faults), faults)
	}
	for _, f := range faults {
		if strings.Contains(f.What+f.Stack, "secret") {
			t.Errorf("a fault tells a value: %+v", f)
		}
	}
	if len(stmts) == 0 || stmts[0].Reason != history.ReasonFault || stmts[0].Observation != history.Opaque {
		t.Errorf("recorded: %+v", stmts)
	}
}
