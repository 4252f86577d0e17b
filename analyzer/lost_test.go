package analyzer

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestLostUpdatesAreToldInValues has two transactions read a row and write it, the second over what the first wrote.
func TestLostUpdatesAreToldInValues(t *testing.T) {
	const read = "SELECT * FROM t WHERE id = ?"
	for name, c := range map[string]struct {
		first, second string
		args          [2][]string
		before        []string // the arguments of who wrote what both read, by the first's statement; nil: nobody is known
		says          string
		slight        bool
	}{
		"two numbers": {"UPDATE shop.stock SET qty = ? WHERE id = ?", "UPDATE stock SET qty = ? WHERE id = ?",
			[2][]string{{"7", "1"}, {"8", "1"}}, nil,
			"stock where id = 1: one transaction set qty = 7, and another, which had read the row before that, set qty = 8 " +
				"over it. The first change is gone.", false},
		"the same number, after another": {"UPDATE account SET balance = ? WHERE id = ?",
			"UPDATE account SET balance = ? WHERE id = ?", [2][]string{{"150", "7"}, {"150", "7"}}, []string{"140", "7"},
			"account where id = 7, balance was 140: two transactions read it, and both set balance = 150. " +
				"One of the two changes (+10) is gone.", false},
		"the same state": {`UPDATE "orders" SET "state" = ? WHERE "id" = ?`, `UPDATE "orders" SET "state" = ? WHERE "id" = ?`,
			[2][]string{{"'paid'", "3"}, {"'paid'", "3"}}, nil,
			`orders where "id" = 3: two transactions read it, and both set state = 'paid'. The second did not know of the first.`,
			false},
		"the same truth value": {"UPDATE orders SET paid = ? WHERE id = ?", "UPDATE orders SET paid = ? WHERE id = ?",
			[2][]string{{"1", "3"}, {"1", "3"}}, nil,
			"orders where id = 3: two transactions read it, and both set paid = 1. The second did not know of the first.", false},
		"computed in place": {"UPDATE a SET n = n - ? WHERE id = ?", "UPDATE a SET n = n - ? WHERE id = ?",
			[2][]string{{"30", "1"}, {"50", "1"}}, nil,
			"a where id = 1: one transaction set n = n - 30; another had read the row before that, and by what it had read " +
				"set n = n - 50.", false},
		"a row that is deleted": {"UPDATE a SET n = ? WHERE id = ?", "DELETE FROM a WHERE id = ?",
			[2][]string{{"5", "1"}, {"1"}}, nil,
			"a where id = 1: one transaction set n = 5 in a where id = 1, and another, which had read the row before, deleted it.",
			false},
		"no column of both": {"UPDATE feed SET title = ? WHERE id = ?", "UPDATE feed SET url = ?, hidden = ? WHERE id = ?",
			[2][]string{{"'x'", "1"}, {"'y'", "true", "1"}}, nil,
			"feed where id = 1: one transaction set title, and another, which had read the row before, set url, hidden: " +
				"no column of both, so that neither change is lost by itself.", true},
		"only the time of the change": {"UPDATE feed SET title = ?, updated_at = ? WHERE id = ?",
			"UPDATE feed SET url = ?, updated_at = now() WHERE id = ?",
			[2][]string{{"'x'", "'2026-01-01'", "1"}, {"'y'", "1"}}, nil,
			"feed where id = 1: of what two transactions set, only updated_at collides.", true},
		"many columns": {"UPDATE a SET b = ?, c = ?, d = ?, e = ?, f = ? WHERE id = ?",
			"UPDATE a SET b = ?, c = ?, d = ?, e = ?, f = ? WHERE id = ?",
			[2][]string{{"2", "3", "4", "5", "6", "1"}, {"3", "3", "4", "5", "6", "1"}}, nil,
			"a where id = 1: one transaction set b = 2, and another, which had read the row before that, set b = 3 over it. " +
				"The first change is gone.", false},
		"many columns of which the last differs": {"UPDATE a SET b = ?, c = ?, d = ?, e = ?, f = ? WHERE id = ?",
			"UPDATE a SET b = ?, c = ?, d = ?, e = ?, f = ? WHERE id = ?",
			[2][]string{{"2", "3", "4", "5", "6", "1"}, {"2", "3", "4", "5", "7", "1"}}, nil,
			"a where id = 1: one transaction set f = 6, and another, which had read the row before that, set f = 7 over it. " +
				"The first change is gone.", false},
		"texts that begin alike": {"UPDATE a SET n = ? WHERE id = ?", "UPDATE a SET n = ? WHERE id = ?",
			[2][]string{{"'" + strings.Repeat("x", 50) + "y'", "1"}, {"'" + strings.Repeat("x", 50) + "z'", "1"}}, nil,
			"a where id = 1: one transaction set n = '" + strings.Repeat("x", 38) + "…, and another, which had read the row " +
				"before that, set n = '" + strings.Repeat("x", 38) + "… over it. The first change is gone.", false},
		"texts that were cut": {"UPDATE a SET n = ? WHERE id = ?", "UPDATE a SET n = ? WHERE id = ?",
			[2][]string{{"'" + strings.Repeat("x", 63), "1"}, {"'" + strings.Repeat("x", 63), "1"}}, nil,
			"a where id = 1: two transactions read it, and both wrote n.", false},
		"several columns at once": {"UPDATE a SET (n, m) = (?, ?) WHERE id = ?", "UPDATE a SET (n, m) = (?, ?) WHERE id = ?",
			[2][]string{{"4", "4", "1"}, {"5", "5", "1"}}, nil, "", false},
		"a part of a column": {"UPDATE a SET n[1] = ? WHERE id = ?", "UPDATE a SET n[1] = ? WHERE id = ?",
			[2][]string{{"4", "1"}, {"5", "1"}}, nil, "", false},
		"quoted names": {"UPDATE `a` SET `n` = `n` - ? WHERE `id` = ?", "UPDATE `a` SET `n` = `n` - ? WHERE `id` = ?",
			[2][]string{{"30", "1"}, {"50", "1"}}, nil,
			"a where `id` = 1: one transaction set n = `n` - 30; another had read the row before that, and by what it had read " +
				"set n = `n` - 50.", false},
		"arguments that are not known": {"UPDATE a SET n = ? WHERE id = ?", "UPDATE a SET n = ? WHERE id = ?",
			[2][]string{nil, {"5", "1"}}, nil, "", false},
		"all rows": {"UPDATE a SET n = ?", "UPDATE a SET n = ?", [2][]string{{"4"}, {"5"}}, nil, "", false},
		"of several tables": {"UPDATE a JOIN o ON o.id = a.o SET n = ? WHERE a.id = ?",
			"UPDATE a JOIN o ON o.id = a.o SET n = ? WHERE a.id = ?", [2][]string{{"4", "1"}, {"5", "1"}}, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			text := "T1 committed RR | r x 0 | u x T2.2\nT2 committed RR | r x 0 | u x 0"
			if c.before != nil {
				text = "T1 committed RR | r x T3.1 | u x T2.2\nT2 committed RR | r x T3.1 | u x T3.1\nT3 committed RR | u x 0"
			}
			h := script(t, text)
			write := func(s *history.Stmt, shape string, args []string) {
				s.Shape, s.Args = shape, args
				if shape[0] == 'D' {
					s.Kind = history.Delete
				}
			}
			write(&h[0].Stmts[1], c.second, c.args[1])
			write(&h[1].Stmts[1], c.first, c.args[0])
			h[0].Stmts[0].Shape, h[1].Stmts[0].Shape = read, read
			if c.before != nil {
				write(&h[2].Stmts[0], c.first, c.before)
			}
			r := analyze(t, scriptInfo(), h)
			if len(r.Findings) != 1 || r.Findings[0].Anomaly != LostUpdate {
				t.Fatalf("findings %q, want a lost update", names(r))
			}
			if f := r.Findings[0]; f.Lost != c.says || f.Slight != c.slight {
				t.Errorf("says  %s (slight %t)\nwants %s (slight %t)", f.Lost, f.Slight, c.says, c.slight)
			}
		})
	}
}

// TestNothingIsLostOfWhatWasReadAgain has the second transaction read what the first wrote before it writes over it, or
// lock rows of the table unseen.
func TestNothingIsLostOfWhatWasReadAgain(t *testing.T) {
	const again = "stock where id = 1: a transaction that had read the row read it again, with a lock, and then wrote it over " +
		"what another had done in between: nothing is lost unless it went by what it had read first."
	for _, c := range []struct {
		name, second string
		unseen       string // the second statement, where it is not observed
		locks        history.Locking
		slight       bool
	}{
		{"seen", "r x 0 | R x T2.2 | u x T2.2", "", history.LockUpdate, true},
		{"seen, without a lock", "r x 0 | r x T2.2 | u x T2.2", "", history.NoLock, false},
		{"once, as it was before", "r x 0 | r x 0 | u x T2.2", "", history.NoLock, false},
		{"unseen", "r x 0 | r y 0 | u x T2.2", "SELECT * FROM t JOIN s ON s.id = t.s WHERE t.id = ? FOR UPDATE", history.LockUpdate, true},
		{"unseen, without a lock", "r x 0 | r y 0 | u x T2.2", "SELECT * FROM t WHERE id = ?", history.NoLock, false},
		{"unseen, of another table", "r x 0 | r y 0 | u x T2.2", "SELECT * FROM s WHERE id = ? FOR UPDATE", history.LockUpdate, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := script(t, "T1 committed RR | "+c.second+"\nT2 committed RR | r x 0 | u x 0")
			for i, txn := range h {
				for k := range txn.Stmts {
					s := &txn.Stmts[k]
					s.Args = []string{"1"}
					if s.Kind == history.Update {
						s.Shape, s.Args = "UPDATE stock SET qty = ? WHERE id = ?", []string{string("87"[i]), "1"}
					}
				}
			}
			h[0].Stmts[1].Locking = c.locks
			if c.unseen != "" {
				h[0].Stmts[1] = history.Stmt{Num: 2, Kind: history.Select, Observation: history.Opaque, Shape: c.unseen, Args: []string{"1"},
					Locking: c.locks}
			}
			r := analyze(t, scriptInfo(), h)
			if len(r.Findings) != 1 {
				t.Fatalf("findings %q, want one", names(r))
			}
			if f := r.Findings[0]; f.Slight != c.slight || (f.Lost == again) != c.slight {
				t.Errorf("says %s (slight %t)", f.Lost, f.Slight)
			}
		})
	}
}

func TestColumnsThatTellTheTime(t *testing.T) {
	for column, want := range map[string]bool{"updated_at": true, "mtime": true, "last_seen": true, "user_touched": true,
		"post_modified_gmt": true, "user_login": false, "is_modified": false, "edited_by": false, "time": false} {
		if tellsTime(column) != want {
			t.Errorf("%s tells the time: %t", column, !want)
		}
	}
}

func TestSkewsAreToldInValues(t *testing.T) {
	h := script(t, "T1 committed RR | r x 0 & r y 0 | u x 0\nT2 committed RR | r x 0 & r y 0 | u y 0")
	for i, id := range []string{"1", "2"} {
		s := h[i].Stmts
		s[0].Shape, s[0].Args = "SELECT id, on_call FROM doctor WHERE shift = ? AND on_call FOR SHARE", []string{"9"}
		s[1].Shape, s[1].Args = "UPDATE doctor SET on_call = ? WHERE id = ?", []string{"false", id}
	}
	r := analyze(t, scriptInfo(), h)
	const want = "Two transactions read doctor where shift = 9 AND on_call; then one set on_call = false in doctor " +
		"where id = 1, and the other set on_call = false in doctor where id = 2. Neither knew of the other's change."
	if len(r.Findings) != 1 || r.Findings[0].Lost != want {
		t.Errorf("says  %s\nwants %s", r.Findings[0].Lost, want)
	}
}

// TestWhatIsSlightComesLast has a lost update that happens often and loses nothing, and one that is rare.
func TestWhatIsSlightComesLast(t *testing.T) {
	h := script(t, `
T1 committed RR | r x 0 | u x T2.2
T2 committed RR | r x 0 | u x 0
T3 committed RR | r y 0 | u y T4.2
T4 committed RR | r y 0 | u y 0
T5 committed RR | r z 0 | u z T6.2
T6 committed RR | r z 0 | u z 0`)
	for i, txn := range h {
		s := txn.Stmts
		s[0].Shape, s[0].Args = "SELECT * FROM a WHERE id = ?", []string{"1"}
		s[1].Shape, s[1].Args = "UPDATE a SET n = ? WHERE id = ?", []string{"5", "1"}
		if i < 4 {
			s[1].Shape = "UPDATE a SET " + string("bc"[i%2]) + " = ? WHERE id = ?"
		}
	}
	r := analyze(t, scriptInfo(), h)
	if len(r.Findings) != 2 || r.Findings[0].Slight || r.Findings[0].Count != 1 || !r.Findings[1].Slight {
		t.Errorf("findings %q", names(r))
	}
}

// A lost update that harms nobody hides no double insert of the same two transactions.
func TestALostUpdateTellsWhatWasMissedBeside(t *testing.T) {
	const slight = "orders where id = 1: of what two transactions set, only updated_at collides."
	for name, c := range map[string]struct {
		first, second string // what each did beside it
		says          string
		slight        bool
	}{
		"each inserts what the other looked for": {"m p.y 0 | i p.z 0", "m p.z 0 | i p.y 0",
			"p: each of two transactions looked for rows there, did not find what the other one wrote, and wrote its own. Besides, " + slight,
			false},
		"one inserts what the other looked for": {"m p.y 0 | i p.z 0", "i p.y 0", slight, true},
		"each in another table":                 {"m p.y 0 | i q.z 0", "m q.z 0 | i p.y 0", slight, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := script(t, "T1 committed RR | r x 0 | u x T2.2 | "+c.first+"\nT2 committed RR | r x 0 | u x 0 | "+c.second)
			for i := range h {
				s := &h[i].Stmts[1]
				s.Shape, s.Args = "UPDATE orders SET state = ?, updated_at = ? WHERE id = ?", []string{"'paid'", "'now'", "1"}
				if i == 1 {
					s.Shape, s.Args = "UPDATE orders SET total = ?, updated_at = ? WHERE id = ?", []string{"7", "'now'", "1"}
				}
			}
			r := analyze(t, scriptInfo(), h)
			if len(r.Findings) != 1 || r.Findings[0].Anomaly != LostUpdate {
				t.Fatalf("findings %q, want a lost update", names(r))
			}
			if f := r.Findings[0]; f.Lost != c.says || f.Slight != c.slight {
				t.Errorf("says  %s (slight %t)\nwants %s (slight %t)", f.Lost, f.Slight, c.says, c.slight)
			}
		})
	}
}
