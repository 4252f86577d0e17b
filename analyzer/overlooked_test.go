package analyzer

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
)

// An optionStep is one statement of a request in autocommit, about the options of user 1.
type optionStep struct {
	session, at int
	request     string
	op, value   string
}

func options(steps []optionStep) []*history.Txn {
	h := new(requestHistory)
	theme := history.Row{Table: "shop.options", ID: "9"}
	other := history.Row{Table: "shop.options", ID: "1"}
	for _, x := range steps {
		read := func(shape string, rows []history.Row, args ...string) {
			s := history.Stmt{Kind: history.Select, Shape: shape, Args: args}
			for _, row := range rows {
				a := history.Access{Row: row, Op: history.Read}
				if row == theme {
					a.Version = h.latest
				}
				s.Accesses = append(s.Accesses, a)
			}
			h.add(x.session, x.at, x.request, s)
		}
		switch x.op {
		case "list": // in which the theme is not
			read("SELECT name, value FROM options WHERE user_id IN (?)", []history.Row{other}, "1")
		case "look":
			read("SELECT value FROM options WHERE user_id = ? AND name = ? LIMIT ?", nil, "1", x.value, "1")
		case "first": // of several, which need not be the theme
			read("SELECT value FROM options WHERE user_id = ? LIMIT ?", []history.Row{other}, "1", "1")
		case "look for the name":
			read("SELECT name FROM options WHERE user_id = ? AND name = ?", nil, "1", "'theme'")
		case "id":
			read("SELECT id FROM options WHERE user_id = ? AND name = ?", []history.Row{theme}, "1", "'theme'")
		case "read":
			read("SELECT value FROM options WHERE user_id = ? AND name = ?", []history.Row{theme}, "1", "'theme'")
		case "insert":
			h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Insert, Affected: 1,
				Shape: "INSERT INTO options (user_id, name, value) VALUES (?, ?, ?)", Args: []string{"1", "'theme'", x.value},
				Accesses: []history.Access{{Row: theme, Op: history.InsertRow}}})
		case "set":
			h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
				Shape: "UPDATE options SET value = ? WHERE user_id = ? AND name = ?", Args: []string{x.value, "1", "'theme'"},
				Accesses: []history.Access{{Row: theme, Op: history.UpdateRow, Version: h.latest}}})
		}
	}
	return h.txns
}

// TestARowIsSetWhereNoneWasFound has a request look for an option that another one inserts then, and set it.
func TestARowIsSetWhereNoneWasFound(t *testing.T) {
	const theme = "'theme'"
	for _, c := range []struct {
		name  string
		steps []optionStep
		told  bool
	}{
		{"a list without it", []optionStep{{1, 0, "a", "list", ""}, {2, 5, "b", "insert", "'dark'"}, {1, 10, "a", "set", "'light'"}}, true},
		{"its number alone is read again", []optionStep{{1, 0, "a", "list", ""}, {2, 5, "b", "insert", "'dark'"}, {1, 8, "a", "id", ""},
			{1, 10, "a", "set", "'light'"}}, true},
		{"it is read again", []optionStep{{1, 0, "a", "list", ""}, {2, 5, "b", "insert", "'dark'"}, {1, 8, "a", "read", ""},
			{1, 10, "a", "set", "'light'"}}, false},
		{"none found by LIMIT 1", []optionStep{{1, 0, "a", "look", theme}, {2, 5, "b", "insert", "'dark'"}, {1, 10, "a", "set", "'light'"}}, true},
		{"another is looked for", []optionStep{{1, 0, "a", "look", "'font'"}, {2, 5, "b", "insert", "'dark'"}, {1, 10, "a", "set", "'light'"}},
			false},
		{"one of several is looked for", []optionStep{{1, 0, "a", "first", ""}, {2, 5, "b", "insert", "'dark'"}, {1, 10, "a", "set", "'light'"}},
			false},
		{"the value is not looked for", []optionStep{{1, 0, "a", "look for the name", ""}, {2, 5, "b", "insert", "'dark'"},
			{1, 10, "a", "set", "'light'"}}, false},
		{"the same value", []optionStep{{1, 0, "a", "list", ""}, {2, 5, "b", "insert", "'dark'"}, {1, 10, "a", "set", "'dark'"}}, false},
		{"its own row", []optionStep{{1, 0, "a", "list", ""}, {1, 5, "a", "insert", "'dark'"}, {1, 10, "a", "set", "'light'"}}, false},
		{"looked for behind the INSERT", []optionStep{{2, 0, "b", "insert", "'dark'"}, {1, 5, "a", "look", theme}, {1, 10, "a", "set", "'light'"}},
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			if c.told {
				want = []string{"stale overwrite x1"}
			}
			if got := found(t, options(c.steps), TaggedScope); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}
