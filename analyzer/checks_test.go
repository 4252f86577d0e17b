package analyzer

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

const (
	helps     = "the cycle could not have formed."
	notEnough = "It is not enough here, another cycle remains: "
)

// Each piece of advice to change statements reports whether it would have helped.
func TestAdviceSaysWhetherItWouldHaveHelped(t *testing.T) {
	for _, c := range []struct {
		name, history string
		want          []string // of each piece of advice but the level: its beginning, and its end
	}{
		{"lost update", `
T1 committed RR | r x 0 | u x T2.1
T2 committed RR | u x 0`, []string{"Lock", helps, "Or let the server", helps, "Or add a version", helps}},
		{"lost update beside another read that the writer missed", `
T1 committed RR | r b.1 0 | r a.1 0 | u a.1 T2.2
T2 committed RR | u b.1 0 | u a.1 0`, []string{"Lock", "T2 wrote version", "Or let the server", "T2 wrote version", "Or add a version", helps}},
		{"write skew", `
T1 committed RR | r a.1 0 | u b.1 0
T2 committed RR | r b.1 0 | u a.1 0`, []string{"Lock", "FOR UPDATE`.", "Lock", "With all of this " + helps}},
		{"read skew", `
T1 committed RC | r a.1 0 | r b.1 T2.2
T2 committed RC | u a.1 0 | u b.1 0`, []string{"Lock", helps}},
		{"read skew at the level that shows what is not committed", `
T1 committed RU | r a.1 0 | r b.1 T2.2
T2 committed RU | u a.1 0 | u b.1 0`, []string{"Lock", notEnough}},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := scriptInfo()
			info.Server = history.Server{Engine: "mariadb", Version: "10.11.19"}
			h := script(t, c.history)
			writeNumbers(h)
			r := analyze(t, info, h)
			if len(r.Findings) != 1 {
				t.Fatalf("findings %q, want one", names(r))
			}
			advice := slices.DeleteFunc(r.Findings[0].Advice,
				func(s string) bool { return strings.Contains(s, "un these transactions at") })
			if len(advice)*2 != len(c.want) {
				t.Fatalf("the advice is %q", advice)
			}
			for i, text := range advice {
				if !strings.HasPrefix(text, c.want[2*i]) || !strings.Contains(text, c.want[2*i+1]) {
					t.Errorf("the advice is %q, want %q and %q", text, c.want[2*i], c.want[2*i+1])
				}
			}
		})
	}
}

// TestUniqueKeyIsOverSearchedColumns: unique key is over the columns that were looked for.
func TestUniqueKeyIsOverSearchedColumns(t *testing.T) {
	for _, c := range []struct {
		read, insert string
		want         []string
	}{
		{"SELECT id FROM booking WHERE room = ? AND slot = ?", "INSERT INTO booking (room, slot, who) VALUES (?, ?, ?)",
			[]string{"room", "slot"}},
		{"SELECT 1 FROM `b` WHERE b.`Room`=? and who <> ?", "insert into b (`room`,`who`) values (?, ?)",
			[]string{"Room"}},
		{`SELECT 1 FROM b WHERE "room" = $1 AND day > $2`, `INSERT INTO b ("room", day) VALUES ($1, $2) RETURNING id`,
			[]string{"room"}},
		{"SELECT id FROM booking WHERE room = ?", "INSERT INTO booking VALUES (?, ?, ?)", nil},
		{"SELECT id FROM booking", "INSERT INTO booking (room) VALUES (?)", nil},
		{"SELECT id FROM booking WHERE id = ?", "INSERT INTO booking (room) SELECT room FROM free", nil},
	} {
		if got := keyColumns(&history.Stmt{Shape: c.read}, &history.Stmt{Shape: c.insert}); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.read, c.insert, got, c.want)
		}
	}
}

// Where only one of two transactions inserts, no key makes the other fail.
func TestKeyIsAdvisedWhereTwoInsert(t *testing.T) {
	for text, want := range map[string]bool{
		"T1 committed RC | r x 0 | i y\nT2 committed RC | r y 0 | i x":   true,
		"T1 committed RC | r x 0 | u z 0\nT2 committed RC | r z 0 | i x": false,
	} {
		h := script(t, text)
		for _, txn := range h {
			for i := range txn.Stmts {
				if a := &txn.Stmts[i].Accesses[0]; a.Op == history.Read && a.Row.ID != "z" {
					a.Absent = true
				}
			}
		}
		r := analyze(t, scriptInfo(), h)
		if len(r.Findings) != 1 {
			t.Errorf("%s\nfindings %q, want one", text, names(r))
			continue
		}
		if advice := strings.Join(r.Findings[0].Advice, "\n"); strings.Contains(advice, "unique key") != want ||
			!strings.Contains(advice, helps) {
			t.Errorf("%s\nthe advice is %s", text, advice)
		}
	}
}
