package analyzer

import (
	"maps"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

func TestConditionsAreCountedInModePredicates(t *testing.T) {
	left := []history.Predicate{{Table: "shop.booking", Where: "room = 'blue'"}}
	stmts := []history.Stmt{
		{Kind: history.Select, Observation: history.Exact, Shape: "SELECT who FROM booking WHERE room = ?", Predicates: left},
		{Kind: history.Update, Observation: history.Exact, Shape: "UPDATE booking SET who = ? WHERE room = ?"},
		{Kind: history.Select, Observation: history.Exact, Shape: "SELECT 1 FROM booking WHERE room = ? limit ?"},
		{Kind: history.Select, Observation: history.Opaque, Shape: "SELECT 1 FROM booking FETCH FIRST ROW ONLY"},
		{Kind: history.Select, Observation: history.Exact, Shape: "SELECT `limit` FROM booking"},
		{Kind: history.Select, Observation: history.Nothing, Shape: "SELECT 1 LIMIT ?"},
		{Kind: history.Insert, Observation: history.Exact, Shape: "INSERT INTO booking VALUES (?)"},
		{Kind: history.Insert, Observation: history.Exact, Shape: "INSERT INTO booking SELECT ? WHERE NOT EXISTS (...)",
			Predicates: []history.Predicate{{Table: "shop.booking", Wide: true}}},
	}
	for i := range stmts {
		stmts[i].Num = uint32(i + 1)
	}
	for mode, want := range map[string][5]int{"predicates": {6, 2, 2, 1, 0}, "items": {0, 0, 0, 0, 1}} {
		info := scriptInfo()
		info.Mode = mode
		r, err := Analyze([]history.Info{info}, []*history.Txn{{ID: history.MakeTxnID(info.Run, 1), Session: 1,
			Status: history.Committed, Stmts: stmts}})
		if err != nil {
			t.Fatal(err)
		}
		c := r.Coverage
		if got := [5]int{c.Looked, c.Conditions, c.Without[Limited] + c.Without[AnyRows], c.Wide,
			c.LookedAndInserted}; got != want {
			t.Errorf("mode %s: %v looked, left a condition, had LIMIT, left a wide one, looked and inserted; want %v", mode,
				got, want)
		}
	}
}

// TestStatementsThatKeepTagsAreCounted: whoever reads their rows later is told the version before.
func TestStatementsThatKeepTagsAreCounted(t *testing.T) {
	for _, tt := range []struct {
		engine dbms.Engine
		status history.Status
		stmt   history.Stmt
		want   int
	}{
		{dbms.TiDB, history.Committed, history.Stmt{Kind: history.Update, Observation: history.Opaque, Shape: "UPDATE t SET v = f(v)"}, 1},
		{dbms.TiDB, history.Indeterminate, history.Stmt{Kind: history.Update, Observation: history.Opaque}, 1},
		{dbms.TiDB, history.Aborted, history.Stmt{Kind: history.Update, Observation: history.Opaque}, 0},
		{dbms.TiDB, history.Committed, history.Stmt{Kind: history.Update, Observation: history.Opaque, Void: true}, 0},
		{dbms.TiDB, history.Committed, history.Stmt{Kind: history.Update, Observation: history.Exact}, 0},
		{dbms.PostgreSQL, history.Committed, history.Stmt{Kind: history.Update, Observation: history.Opaque}, 0},
		{dbms.MariaDB, history.Committed, history.Stmt{Kind: history.Insert, Observation: history.Opaque,
			Shape: "INSERT INTO t VALUES (?) on duplicate key UPDATE v = v + ?"}, 1},
		{dbms.MariaDB, history.Committed, history.Stmt{Kind: history.Insert, Observation: history.Opaque,
			Shape: "INSERT INTO `duplicate` VALUES (?)"}, 0},
		{dbms.MariaDB, history.Committed, history.Stmt{Kind: history.Select, Observation: history.Opaque}, 0},
	} {
		info := scriptInfo()
		info.Server.Engine = tt.engine
		tt.stmt.Num = 1
		r, err := Analyze([]history.Info{info}, []*history.Txn{{ID: history.MakeTxnID(info.Run, 1), Session: 1,
			Status: tt.status, Stmts: []history.Stmt{tt.stmt}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Coverage.OldTags; got != tt.want {
			t.Errorf("%s, %s: %+v: %d, want %d", tt.engine, tt.status, tt.stmt, got, tt.want)
		}
	}
}

func TestEachStatementWithoutConditionHasACause(t *testing.T) {
	for _, c := range []struct {
		shape    string
		observed history.Observation
		want     NoCondition
	}{
		{"SELECT 1 FROM booking WHERE room = ? LIMIT ?", history.Exact, AnyRows},
		{"SELECT 1 FROM booking WHERE room = ? LIMIT ?", history.Opaque, Limited},
		{"SELECT 1 FROM booking WHERE room = ? ORDER BY random() LIMIT ?", history.Exact, Limited},
		{"SELECT 1 FROM booking WHERE id IN (SELECT id FROM x LIMIT ?)", history.Exact, Limited},
		{"SELECT 1 FROM booking LIMIT ? FOR UPDATE SKIP LOCKED", history.Exact, SkipsLocked},
		{"SELECT 1 FROM booking FOR UPDATE SKIP LOCKED", history.Exact, SkipsLocked},
		{"DELETE FROM booking WHERE random() < ?", history.Exact, Volatile},
		{"SELECT 1 FROM booking WHERE `random` < ? AND NOW() > till", history.Exact, Timed},
		{"SELECT 1 FROM booking WHERE till < current_date", history.Exact, Timed},
		{"SELECT 1 FROM booking WHERE `current_date` = ?", history.Exact, OtherCause},
		{"SELECT 1 FROM booking WHERE now = ?", history.Exact, OtherCause},
		{"SELECT 1 FROM booking WHERE who = @who", history.Exact, OfSession},
		{"SELECT 1 FROM booking WHERE who = CURRENT_USER", history.Exact, OfSession},
		{"SELECT 1 FROM booking WHERE room = ?", history.Opaque, Unobserved},
		{"SELECT 1 FROM booking JOIN room ON booking.room = room.id", history.Exact, AllRows},
		{"UPDATE booking SET who = ? WHERE f(room)", history.Exact, OtherCause},
	} {
		if got := noConditionOf(dbms.MySQLFamily, c.shape, c.observed); got != c.want {
			t.Errorf("%s (%v): %s, want %s", c.shape, c.observed, got, c.want)
		}
	}
}

// TestWhatWasToldIsNoCauseOfAWideCondition: a statement's condition that has the time is wide for another reason, and
// one that lacks it for that.
func TestWhatWasToldIsNoCauseOfAWideCondition(t *testing.T) {
	const timed, ofUser = "SELECT 1 FROM a JOIN b ON a.x = b.x WHERE a.till > NOW()", "SELECT 1 FROM a, b WHERE a.who = USER()"
	for _, c := range []struct {
		shape string
		told  history.Asked
		want  map[NoCondition]int
	}{
		{timed, 0, map[NoCondition]int{Timed: 1}},
		{timed, history.AskedTime, map[NoCondition]int{}},
		{timed, history.AskedUser, map[NoCondition]int{Timed: 1}},
		{ofUser, history.AskedUser, map[NoCondition]int{}},
		{ofUser, history.AskedTime, map[NoCondition]int{OfSession: 1}},
	} {
		info := scriptInfo()
		info.Mode = "predicates"
		s := history.Stmt{Num: 1, Kind: history.Select, Observation: history.Exact, Shape: c.shape,
			Predicates: []history.Predicate{{Table: "shop.a", Where: "till > 5 /* then */", Wide: true, Told: c.told}}}
		r, err := Analyze([]history.Info{info}, []*history.Txn{{ID: history.MakeTxnID(info.Run, 1), Session: 1,
			Status: history.Committed, Stmts: []history.Stmt{s}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Coverage.Widened; !maps.Equal(got, c.want) {
			t.Errorf("%s, told %d: widened by %v, want %v", c.shape, c.told, got, c.want)
		}
	}
}

// TestVersionsThatNoConditionIsHeldAgainstAreCounted: of a table that a condition is about.
func TestVersionsThatNoConditionIsHeldAgainstAreCounted(t *testing.T) {
	write := func(op history.Op, table string) history.Access {
		return history.Access{Row: history.Row{Table: table, ID: "1"}, Op: op}
	}
	left := []history.Access{write(history.InsertRow, "shop.a"), write(history.UpdateRow, "shop.a"),
		write(history.DeleteRow, "shop.a"), write(history.Read, "shop.a"), write(history.InsertRow, "shop.b")}
	looks := history.Stmt{Num: 1, Kind: history.Select, Observation: history.Exact, Shape: "SELECT 1 FROM a WHERE x = ?",
		Predicates: []history.Predicate{{Table: "shop.a", Where: "x = 5"}}}
	for _, c := range []struct {
		what   string
		stmt   history.Stmt
		status history.Status
		mode   string
		want   int
	}{
		{"no values", history.Stmt{Accesses: left}, history.Committed, "predicates", 2},
		{"perhaps committed", history.Stmt{Accesses: left}, history.Indeterminate, "predicates", 2},
		{"written beside the client's statement", history.Stmt{Accesses: left, Unseen: true}, history.Committed, "predicates", 2},
		{"values of one", history.Stmt{Accesses: left, Images: []string{"(1)", "", "", "", ""}}, history.Committed, "predicates", 1},
		{"undone", history.Stmt{Accesses: left, Void: true}, history.Committed, "predicates", 0},
		{"aborted", history.Stmt{Accesses: left}, history.Aborted, "predicates", 0},
		{"in another mode", history.Stmt{Accesses: left}, history.Committed, "items", 0},
	} {
		info := scriptInfo()
		info.Mode = c.mode
		c.stmt.Num, c.stmt.Kind, c.stmt.Observation = 2, history.Insert, history.Exact
		stmts := []history.Stmt{looks, c.stmt}
		if c.mode == "items" {
			stmts[0].Predicates = nil
		}
		r, err := Analyze([]history.Info{info}, []*history.Txn{{ID: history.MakeTxnID(info.Run, 1), Session: 1,
			Status: c.status, Stmts: stmts}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Coverage.Imageless; got != c.want {
			t.Errorf("%s: %d versions are said not to be tested, want %d", c.what, got, c.want)
		}
	}
}
