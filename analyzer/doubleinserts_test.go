package analyzer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// An accountStep is one statement of a request in autocommit: look is for an account by its address, and found nothing
// unless it says so, add is of one.
type accountStep struct {
	session, at int
	request     string
	op, address string
}

const (
	lookShape = "SELECT id FROM account WHERE email = ? AND closed IS NULL LIMIT ?"
	addShape  = "INSERT INTO account (email, name, created_at) VALUES (?, ?, ?)"
)

func accounts(steps []accountStep) []*history.Txn {
	h := new(requestHistory)
	row := history.Row{Table: "shop.account", ID: "0"}
	for i, x := range steps {
		row.ID = string(rune('a' + i))
		added := []history.Access{{Row: row, Op: history.InsertRow}}
		add := func(s history.Stmt) { h.add(x.session, x.at, x.request, s) }
		insert := func(shape string, args ...string) {
			add(history.Stmt{Kind: history.Insert, Shape: shape, Args: args, Accesses: added, Affected: 1})
		}
		switch x.op {
		case "look":
			add(history.Stmt{Kind: history.Select, Shape: lookShape, Args: []string{x.address, "1"}})
		case "find":
			add(history.Stmt{Kind: history.Select, Shape: lookShape, Args: []string{x.address, "1"},
				Accesses: []history.Access{{Row: row, Op: history.Read}}})
		case "list":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT * FROM account WHERE email = ?", Args: []string{x.address}})
		case "any":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM account LIMIT ?", Args: []string{"'1'"}})
		case "look in 2":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM account_2 WHERE email = ? LIMIT ?", Args: []string{x.address, "1"}})
		case "add to 1":
			insert("INSERT INTO account_1 (email) VALUES (?)", x.address)
		case "add to 2":
			insert("INSERT INTO account_2 (email) VALUES (?)", x.address)
		case "either":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM account WHERE email = ? OR name = ? LIMIT ?",
				Args: []string{x.address, "'x'", "1"}})
		case "other table":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM person WHERE email = ? LIMIT ?", Args: []string{x.address, "1"}})
		case "add":
			insert(addShape, x.address, "'n'", fmt.Sprintf("'2026-11-29 15:00:%02d'", i))
		case "add another name":
			insert(addShape, x.address, "'"+row.ID+"'", "'2026'")
		case "add or nothing":
			insert("INSERT INTO account (email) VALUES (?) ON DUPLICATE KEY UPDATE email = ?", x.address, x.address)
		case "add two":
			insert("INSERT INTO account (email) VALUES (?), (?)", x.address, x.address)
		case "add and remove":
			tag := h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Insert, Shape: addShape,
				Args: []string{x.address, "'n'", "'2026'"}, Accesses: added, Affected: 1})
			h.add(x.session, x.at+2, x.request, history.Stmt{Kind: history.Delete, Shape: "DELETE FROM account WHERE id = ?", Args: []string{"1"},
				Accesses: []history.Access{{Row: row, Op: history.DeleteRow, Version: tag}}, Affected: 1})
		}
	}
	return h.txns
}

// TestTwoRequestsInsertWhatNeitherFound has requests look for an account in one transaction, and add it in another.
func TestTwoRequestsInsertWhatNeitherFound(t *testing.T) {
	const a, long = "'a@example.org'", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	both := func(look, add string) []accountStep {
		return []accountStep{{1, 0, "", look, a}, {2, 1, "", look, a}, {1, 3, "", add, a}, {2, 5, "", add, a}}
	}
	for _, c := range []struct {
		name            string
		steps           []accountStep
		tagged, guessed string
	}{
		{"both look, both add", both("look", "add"), "", "double insert x1"},
		{"by tags", []accountStep{{1, 0, "a", "look", a}, {2, 1, "b", "look", a}, {3, 300, "a", "add", a}, {4, 500, "b", "add", a}},
			"double insert x1", "double insert x1"},
		{"three", []accountStep{{1, 0, "", "look", a}, {2, 1, "", "look", a}, {3, 1, "", "look", a}, {1, 3, "", "add", a}, {2, 5, "", "add", a},
			{3, 7, "", "add", a}}, "", "double insert x2"},
		{"one after the other", []accountStep{{1, 0, "", "look", a}, {1, 3, "", "add", a}, {2, 10, "", "look", a}, {2, 13, "", "add", a}}, "", ""},
		{"one after another, beside a third", []accountStep{{1, 0, "", "look", a}, {3, 1, "", "look", a}, {1, 3, "", "add", a},
			{2, 10, "", "look", a}, {2, 13, "", "add", a}, {3, 20, "", "add", a}}, "", "double insert x1"},
		{"on one connection", []accountStep{{1, 0, "", "look", a}, {1, 2, "", "look", a}, {1, 4, "", "add", a}, {1, 6, "", "add", a}}, "", ""},
		{"one found it", []accountStep{{1, 0, "", "look", a}, {2, 1, "", "find", a}, {1, 3, "", "add", a}, {2, 5, "", "add", a}}, "", ""},
		{"two addresses", []accountStep{{1, 0, "", "look", a}, {2, 1, "", "look", "'b'"}, {1, 3, "", "add", a}, {2, 5, "", "add", "'b'"}}, "", ""},
		{"looks for one, adds another", []accountStep{{1, 0, "", "look", a}, {2, 1, "", "look", a}, {1, 3, "", "add", a}, {2, 5, "", "add", "'b'"}},
			"", ""},
		{"an address that is cut", []accountStep{{1, 0, "", "look", long}, {2, 1, "", "look", long}, {1, 3, "", "add", long},
			{2, 5, "", "add", long}}, "", ""},
		{"a list, and the same added", both("list", "add"), "", "double insert x1"},
		{"a list, and others added", both("list", "add another name"), "", ""},
		{"any row", both("any", "add another name"), "", "double insert x1"},
		{"tables that differ by a number", append([]accountStep{{3, 0, "", "add to 1", a}}, both("look in 2", "add to 2")...), "",
			"double insert x1"},
		{"tables that differ by a number, and not one of them", append(both("look in 2", "add to 1"), accountStep{3, 9, "", "add to 2", a}), "", ""},
		{"one thing, and others added", both("look", "add another name"), "", "double insert x1"},
		{"one or the other", both("either", "add"), "", ""},
		{"in another table", both("other table", "add"), "", ""},
		{"the server says what comes of it", both("look", "add or nothing"), "", ""},
		{"several rows", both("look", "add two"), "", ""},
		{"taken back", both("look", "add and remove"), "", ""},
	} {
		for scope, want := range map[Scope]string{TaggedScope: c.tagged, GuessedScope: c.guessed, NoScope: ""} {
			if got := strings.Join(found(t, accounts(c.steps), scope), ", "); got != want {
				t.Errorf("%s, %s: %q, want %q", c.name, scope, got, want)
			}
		}
	}
}

func TestLookupsAndInsertionsOfShapes(t *testing.T) {
	columns := func(all []placed) string {
		var names []string
		for _, p := range all {
			names = append(names, p.column)
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct{ shape, mysql, postgres string }{
		{"SELECT 1 FROM t WHERE t.a = ? AND (b = ?) AND c <> ? AND ? = d", "t: a", "t: a"},
		{"SELECT * FROM s.t AS x WHERE x.a = ? AND x.b = ? ORDER BY a LIMIT ?", "t: a b", "t: a b"},
		{"SELECT * FROM t WHERE a = ?::uuid", "", "t: a"},
		{"SELECT * FROM t WHERE a = BINARY ?", "t: a", "t: a"},
		{"SELECT * FROM t WHERE a = ? + ?", "", ""},
		{"SELECT * FROM t WHERE a = b", "", ""},
		{"SELECT * FROM t WHERE a > ? LIMIT ?", "", ""},
		{"SELECT * FROM t LIMIT ?", "t: ", "t: "},
		{"SELECT * FROM t", "", ""},
		{"SELECT * FROM t WHERE a = ? OR b = ?", "", ""},
		{"SELECT * FROM t WHERE a = ? AND b = ? OR c = ?", "", ""},
		{"SELECT * FROM t JOIN u ON t.a = u.a WHERE t.a = ?", "", ""},
		{"SELECT * FROM (SELECT * FROM t WHERE a = ?) d WHERE b = ?", "", ""},
		{"INSERT INTO t (a, b, c) VALUES (?, now(), ?)", "t: a c", "t: a c"},
		{"INSERT INTO s.t (a) VALUES (?) RETURNING id", "t: a", "t: a"},
		{"INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING", "", ""},
		{"INSERT INTO t (a) SELECT ?", "", ""},
		{"INSERT INTO t VALUES (?)", "", ""},
		{"INSERT IGNORE INTO t (a) VALUES (?)", "", ""},
		{"REPLACE INTO t (a) VALUES (?)", "", ""},
		{"INSERT INTO t (a) VALUES (?", "", ""},
		{"UPDATE t SET a = ?", "", ""},
		{"", "", ""},
	} {
		for family, want := range map[dbms.Family]string{dbms.MySQLFamily: c.mysql, dbms.PostgreSQLFamily: c.postgres} {
			got := ""
			if l := lookupOf(family, c.shape); l != nil {
				got = l.table + ": " + columns(l.keys)
			} else if ins := insertionOf(family, c.shape); ins != nil {
				got = ins.table + ": " + columns(ins.sets)
			}
			if got != want {
				t.Errorf("%s, %s: %q, want %q", c.shape, family, got, want)
			}
		}
	}
}

// FuzzLookups holds that shapes are taken apart whatever they are, and that arguments are looked at only where there
// are some.
func FuzzLookups(f *testing.F) {
	f.Add(lookShape, addShape, "'a'")
	f.Add("SELECT * FROM t WHERE (", "INSERT INTO t (", "")
	f.Fuzz(func(t *testing.T, look, add, arg string) {
		for _, family := range []dbms.Family{dbms.MySQLFamily, dbms.PostgreSQLFamily} {
			l, ins := lookupOf(family, look), insertionOf(family, add)
			if l == nil || ins == nil {
				continue
			}
			for _, s := range l.finds(slices.Repeat([]string{arg}, l.values), ins, slices.Repeat([]string{arg}, ins.values)) {
				if s.value != arg {
					t.Errorf("%q is looked for, not %q", s.value, arg)
				}
			}
			l.finds(nil, ins, nil)
			l.forOne(nil)
			ins.lasting(nil)
		}
	})
}
