package oracle

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/oracle/sdg"
)

// TestTransactionsSeeWhatIsCommittedAndTheirOwn has random transactions write rows of two tables, no two of them the
// same one at once, and holds what each sees against a list of all writes.
func TestTransactionsSeeWhatIsCommittedAndTheirOwn(t *testing.T) {
	type write struct {
		txn     int
		row     history.Row
		version sdg.Version
	}
	rapid.Check(t, func(r *rapid.T) {
		var writes []write
		ended := map[int]bool{-1: true} // committed or not; -1 wrote what was there before
		open := func(row history.Row, txn int) bool {
			for _, w := range writes {
				if _, over := ended[w.txn]; w.row == row && w.txn != txn && !over {
					return true
				}
			}
			return false
		}
		// rows returns those of a table that writes make which pass.
		rows := func(table string, passes func(w write) bool) sdg.Rows {
			all := make(sdg.Rows)
			for _, w := range writes {
				if w.row.Table == table && passes(w) {
					overwrite(all, sdg.Rows{w.row: w.version}, nil)
				}
			}
			return all
		}
		newest := func(w write) bool { committed, over := ended[w.txn]; return !over || committed }
		row := func(n int) history.Row { return history.Row{Table: string("tu"[n%2]), ID: fmt.Sprint(n)} }
		for n := range 4 {
			writes = append(writes, write{-1, row(n), "first"})
		}
		v, next := newVersionsSeen(), 0
		var running []int
		for step := range rapid.IntRange(1, 30).Draw(r, "steps") {
			if len(running) == 0 || rapid.IntRange(0, 3).Draw(r, "begin") == 0 {
				running, next = append(running, next), next+1
			}
			at := rapid.IntRange(0, len(running)-1).Draw(r, "txn")
			txn := running[at]
			if rapid.IntRange(0, 4).Draw(r, "end") == 0 {
				ended[txn] = rapid.Bool().Draw(r, "commits")
				v.end(txn, ended[txn])
				running = append(running[:at:at], running[at+1:]...)
				continue
			}
			own := func(w write) bool { return w.txn == txn || ended[w.txn] }
			table := string("tu"[rapid.IntRange(0, 1).Draw(r, "table")])
			s := sdg.Statement{Txn: txn, Tables: []string{table}, Before: rows(table, newest)}
			if rapid.Bool().Draw(r, "writes") {
				s.Written = s.Tables
				for n := range 6 {
					x := row(n)
					if x.Table != table || open(x, txn) || !rapid.Bool().Draw(r, "row") {
						continue
					}
					version := sdg.Version(fmt.Sprint("step ", step))
					if rapid.IntRange(0, 2).Draw(r, "deletes") == 0 {
						version = ""
					}
					writes = append(writes, write{txn, x, version})
				}
			}
			before := rows(table, func(w write) bool { return own(w) && w.version != sdg.Version(fmt.Sprint("step ", step)) })
			if s.Written != nil {
				s.After, before = rows(table, newest), nil // of a write what it leaves is compared
			}
			if err := v.pass(&s); err != nil {
				r.Fatalf("step %d: %v", step, err)
			}
			if before != nil && !maps.Equal(s.Before, before) {
				r.Fatalf("step %d: transaction %d sees %v, want %v", step, txn, s.Before, before)
			}
			if want := rows(table, own); s.Written != nil && !maps.Equal(s.After, want) {
				r.Fatalf("step %d: transaction %d leaves %v, want %v", step, txn, s.After, want)
			}
		}
	})
}

func TestWhatIsWrittenUnseenIsTold(t *testing.T) {
	v := newVersionsSeen()
	row := history.Row{Table: "t", ID: "1"}
	for n, version := range []sdg.Version{"a", "b"} {
		err := v.pass(&sdg.Statement{Tables: []string{"t"}, Before: sdg.Rows{row: version}})
		if told := errors.Is(err, errWrittenUnseen); told != (n == 1) {
			t.Errorf("read %d: %v", n, err)
		}
	}
}
