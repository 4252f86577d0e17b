package mysql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestWhySubqueriesAreLeftAlone has the server answer a statement otherwise with a copy that isotap could add, as
// docs/subqueries.md has it: it warns more often, and computes with a value that was assigned.
func TestWhySubqueriesAreLeftAlone(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.session.Repeats = true
	warnings := func(query string) int64 {
		s.exec(query)
		n, _ := s.exec("SHOW COUNT(*) WARNINGS").GetInt(0, 0)
		return n
	}
	for _, of := range []struct{ client, copied string }{
		{" FROM e WHERE id = 1 AND id NOT IN (SELECT name FROM d)", "d x WHERE x.name = e.id"},
		{" FROM d WHERE name + 2 IN (SELECT pay / 10 FROM e)", "e x WHERE x.pay / 10 = d.name + 2"},
	} {
		if p := s.rewriter.Plan("SELECT id"+strings.Replace(of.client, "NOT IN", "IN", 1), s.session); p.Observation == history.Exact {
			t.Errorf("%s is exact", of.client)
		}
		once := warnings("SELECT id" + of.client)
		again := warnings("SELECT id, (SELECT GROUP_CONCAT(x.id) FROM " + of.copied + ")" + of.client)
		if t.Logf("%s: the server warns %d times, and %d times with a copy", of.client, once, again); once == 0 || again <= once {
			t.Errorf("%s: the server warns %d times, and %d times with a copy", of.client, once, again)
		}
	}
	s.exec("SET GLOBAL innodb_status_output_locks = ON")
	s.session.WriteReads = ReadLocked
	const among = "INSERT INTO d (id, boss) VALUES (9, %s)"
	found, all := "99 IN (SELECT dep FROM e WHERE note < 'x')", "(SELECT COUNT(*) FROM e WHERE note < 'x')"
	if p := s.rewriter.Plan(fmt.Sprintf(among, found), s.session); p.Observation == history.Exact {
		t.Errorf("%s is exact", found)
	}
	few, many := s.locksOf("REPEATABLE READ", fmt.Sprintf(among, found)), s.locksOf("REPEATABLE READ", fmt.Sprintf(among, all))
	if len(less(many, few)) == 0 {
		t.Errorf("IN takes the locks %v, and what reads all rows %v", few, many)
	}
	const assigned = "UPDATE d SET boss = (SELECT COUNT(*) FROM e x WHERE x.id > d.boss)"
	if p := s.rewriter.Plan(assigned+" WHERE id = 1", s.session); p.Observation == history.Exact {
		t.Errorf("%s is exact", assigned)
	}
	s.exec(assigned + ", name = (SELECT COUNT(*) FROM e x WHERE x.id > d.boss) WHERE id = 1")
	row := s.exec("SELECT boss, name FROM d WHERE id = 1")
	boss, _ := row.GetInt(0, 0)
	if name, _ := row.GetInt(0, 1); boss != 3 || name != 2 { // five rows, and a boss of 2
		t.Errorf("the subquery has %d, and its copy %d", boss, name)
	}
}
