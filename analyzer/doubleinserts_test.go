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
	renamed := make(map[string]history.Tag)
	rename := func(x accountStep, id, shape string, args ...string) {
		row := history.Row{Table: "shop.account", ID: id}
		renamed[id] = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Shape: shape, Args: args, Affected: 1,
			Accesses: []history.Access{{Row: row, Op: history.UpdateRow, Version: renamed[id]}}})
	}
	for i, x := range steps {
		row.ID = string(rune('a' + i))
		add := func(s history.Stmt) { h.add(x.session, x.at, x.request, s) }
		insert := func(shape string, args ...string) {
			add(history.Stmt{Kind: history.Insert, Shape: shape, Args: args, Affected: 1,
				Accesses: []history.Access{{Row: row, Op: history.InsertRow}}})
		}
		switch x.op {
		case "look":
			add(history.Stmt{Kind: history.Select, Shape: lookShape, Args: []string{x.address, "1"}})
		case "find":
			add(history.Stmt{Kind: history.Select, Shape: lookShape, Args: []string{x.address, "1"},
				Accesses: []history.Access{{Row: row, Op: history.Read}}})
		case "list":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT * FROM account WHERE email = ?", Args: []string{x.address}})
		case "two columns":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT * FROM account WHERE email = ? AND name = ?", Args: []string{x.address, "'n'"}})
		case "two columns, one shown":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM account WHERE email = ? AND name = ?", Args: []string{x.address, "'n'"}})
		case "a state that is set":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM account WHERE email = ? AND name <> ? LIMIT ?",
				Args: []string{x.address, "'n'", "1"}})
		case "a state by default":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM account WHERE email = ? AND approved = ? LIMIT ?",
				Args: []string{x.address, "1", "1"}})
		case "add an expression":
			insert("INSERT INTO account (email) VALUES (lower(?))", x.address)
		case "elsewhere":
			row.Table = "other.account"
			insert(addShape, x.address, "'n'", "'2026'")
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
		case "rename": // an account that is there
			rename(x, "r"+fmt.Sprint(x.session), "UPDATE account SET email = ?, name = ? WHERE id = ?", x.address, "'n'", fmt.Sprint(x.session))
		case "rename one":
			rename(x, "r", "UPDATE account SET email = ?, name = ? WHERE id = ?", x.address, "'n'", "5")
		case "another column":
			rename(x, "r"+fmt.Sprint(x.session), "UPDATE account SET name = ? WHERE id = ?", x.address, fmt.Sprint(x.session))
		case "look beside its own":
			add(history.Stmt{Kind: history.Select, Shape: "SELECT id FROM account WHERE email = ? AND id <> ? LIMIT ?",
				Args: []string{x.address, fmt.Sprint(x.session), "1"}})
		case "add or nothing":
			insert("INSERT INTO account (email) VALUES (?) ON DUPLICATE KEY UPDATE email = ?", x.address, x.address)
		case "add two":
			insert("INSERT INTO account (email) VALUES (?), (?)", x.address, x.address)
		case "add and remove":
			tag := h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Insert, Shape: addShape,
				Args: []string{x.address, "'n'", "'2026'"}, Accesses: []history.Access{{Row: row, Op: history.InsertRow}}, Affected: 1})
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
		{"a list by two columns", both("two columns", "add another name"), "", ""},
		{"two columns, of which one is shown", both("two columns, one shown", "add"), "", "double insert x1"},
		{"both look, both rename", both("look beside its own", "rename"), "", "double set x1"},
		{"both look, both rename, by a list", both("list", "rename"), "", ""},
		{"any row, and two are renamed", both("any", "rename"), "", ""},
		{"one row that both rename", both("look beside its own", "rename one"), "", ""},
		{"another column", both("look beside its own", "another column"), "", ""},
		{"one adds, one renames", []accountStep{{1, 0, "", "look", a}, {2, 1, "", "look", a}, {1, 3, "", "add", a}, {2, 5, "", "rename", a}}, "",
			"double set x1"},
		{"a third renames the first before the second", []accountStep{{1, 0, "a", "look", a}, {2, 1, "b", "look", a}, {1, 3, "a", "rename", a},
			{1, 5, "c", "rename", "'b'"}, {2, 7, "b", "rename", a}}, "", ""},
		{"it renames once more", []accountStep{{1, 0, "a", "look", a}, {2, 1, "b", "look", a}, {1, 3, "a", "rename", a}, {2, 5, "b", "rename", a},
			{2, 7, "b", "rename", "'b'"}}, "", ""},
		{"a state that the row does not have", both("a state that is set", "add"), "", ""},
		{"a state that the table gives it", both("a state by default", "add"), "", ""},
		{"an expression", both("look", "add an expression"), "", ""},
		{"NULL", []accountStep{{1, 0, "", "look", "NULL"}, {2, 1, "", "look", "NULL"}, {1, 3, "", "add", "NULL"}, {2, 5, "", "add", "NULL"}}, "", ""},
		{"tables of one name", []accountStep{{1, 0, "", "look", a}, {2, 1, "", "look", a}, {1, 3, "", "add", a}, {2, 5, "", "elsewhere", a}},
			"", ""},
		{"looked for twice", []accountStep{{1, 0, "a", "look", a}, {2, 1, "b", "look", a}, {2, 20, "b", "look", a}, {1, 40, "a", "add", a},
			{2, 60, "b", "add", a}}, "double insert x1", "double insert x1"},
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
			if p.arg < 0 {
				p.column += "*" // of an expression
			}
			names = append(names, p.column)
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct{ shape, mysql, postgres string }{
		{"SELECT 1 FROM t WHERE t.a = ? AND (b = ?) AND c <> ? AND d IS NULL", "t: a b", "t: a b"},
		{"SELECT 1 FROM t WHERE (((a = ?) AND (t.b = ?))) LIMIT ? FOR UPDATE", "t: a b", "t: a b"},
		{"SELECT 1 FROM t WHERE a = ? AND ? = d", "", ""},
		{"SELECT 1 FROM t WHERE a = ? AND lower(b) = lower(?)", "", ""},
		{"SELECT 1 FROM t WHERE a = ? AND b LIKE ?", "", ""},
		{"SELECT 1 FROM t WHERE a = ? AND b IN (?)", "t: a b", "t: a b"},
		{"SELECT 1 FROM t WHERE a = ? AND b IS NOT NULL", "", ""},
		{"SELECT 1 FROM t WHERE a = ? AND b > ?", "", ""},
		{"SELECT 1 FROM t WHERE a = ?::uuid OR b = ?", "", ""},
		{"SELECT 1 FROM t, u WHERE t.a = ?", "", ""},
		{"SELECT 1 FROM t STRAIGHT_JOIN u WHERE t.a = ?", "", ""},
		{"SELECT 1 FROM t WHERE a = ? INTERSECT SELECT 1 FROM u", "", ""},
		{"SELECT count(*) FROM t WHERE a = ? GROUP BY b", "", ""},
		{"SELECT * FROM t WHERE a = ? LIMIT ?, ?", "", ""},
		{"SELECT * FROM t WHERE a = ? LIMIT ? OFFSET ?", "", ""},
		{"SELECT * FROM s.t AS x WHERE x.a = ? AND x.b = ? ORDER BY a LIMIT ?", "t: a b", "t: a b"},
		{"SELECT * FROM t WHERE a = ?::uuid", "", "t: a"},
		{"SELECT * FROM t WHERE a = BINARY ?", "t: a", "t: a"},
		{"SELECT * FROM t WHERE a = (?)", "", ""},
		{"SELECT * FROM t WHERE a = ? + ?", "", ""},
		{"SELECT * FROM t WHERE a = b", "", ""},
		{"SELECT * FROM t WHERE a > ? LIMIT ?", "", ""},
		{"SELECT * FROM t LIMIT ?", "t: ", "t: "},
		{"SELECT * FROM t", "", ""},
		{"SELECT * FROM t WHERE a = ? OR b = ?", "", ""},
		{"SELECT * FROM t WHERE a = ? AND b = ? OR c = ?", "", ""},
		{"SELECT * FROM t JOIN u ON t.a = u.a WHERE t.a = ?", "", ""},
		{"SELECT * FROM (SELECT * FROM t WHERE a = ?) d WHERE b = ?", "", ""},
		{"INSERT INTO t (a, b, c, d) VALUES (?, now(), ?, DEFAULT)", "t: a b* c", "t: a b* c"},
		{"INSERT INTO t (a, b) VALUES (?::uuid, ?)", "t: a* b", "t: a b"},
		{"INSERT INTO s.t (a) VALUES (?) RETURNING id", "t: a", "t: a"},
		{"INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING", "", ""},
		{"INSERT INTO t (a) SELECT ?", "", ""},
		{"INSERT INTO t VALUES (?)", "", ""},
		{"INSERT IGNORE INTO t (a) VALUES (?)", "", ""},
		{"REPLACE INTO t (a) VALUES (?)", "", ""},
		{"INSERT INTO t (a) VALUES (?", "", ""},
		{"UPDATE t SET a = ?, b = a + ?, c = ? WHERE id = ?", "t: a b* c", "t: a b* c"},
		{"UPDATE t, u SET a = ?", "", ""},
		{"UPDATE t SET (a, b) = (?, ?)", "", ""},
		{"", "", ""},
	} {
		for family, want := range map[dbms.Family]string{dbms.MySQLFamily: c.mysql, dbms.PostgreSQLFamily: c.postgres} {
			got := ""
			if l := lookupOf(family, c.shape); l != nil {
				got = l.table + ": " + columns(l.keys)
			} else if ins := rowValuesOf(family, c.shape); ins != nil {
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
			l, ins := lookupOf(family, look), rowValuesOf(family, add)
			if l == nil || ins == nil {
				continue
			}
			l.table = ins.table
			looked, added := slices.Repeat([]string{arg}, l.values), slices.Repeat([]string{arg}, ins.values)
			for i := range added {
				added[i] += fmt.Sprint(i % 2) // every other one
			}
			if by := l.finds(looked, ins, added); len(by) > 0 {
				t.Errorf("%q finds %q by %v", looked, added, by)
			}
			l.finds(nil, ins, nil)
			l.forOne(nil)
			ins.lasting(nil)
		}
	})
}
