package foreign_test

import (
	"testing"

	"github.com/isotap/isotap/history"
)

var other = history.Row{Table: "shop.other", ID: "s"}

// logged is a transaction of the log that ended between two times.
func logged(position uint64, from, to int64, writes ...history.LoggedWrite) *history.LoggedTxn {
	return &history.LoggedTxn{Status: history.Committed, Position: position, From: from, To: to, Seen: to, Writes: writes}
}

func deletion(row history.Row, old history.Tag) history.LoggedWrite {
	return history.LoggedWrite{Op: history.DeleteRow, Row: row, Old: old}
}

func TestDeletionsPastIsotapReplaceWhatTheyFound(t *testing.T) {
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), logged(2, 50, 60, deletion(row, tag(1, 1)))}
	read := one(3, history.Select, history.Read, tag(1, 1), 70, 80)
	r := resolver(t, log, one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25), read)
	_, _, past := r.Past()
	if len(past) != 1 || len(past[0].Stmts[0].Accesses) != 1 {
		t.Fatalf("past isotap %+v", past)
	}
	if a := past[0].Stmts[0].Accesses[0]; a.Op != history.DeleteRow || a.Version != tag(1, 1) || a.Row != row {
		t.Errorf("past isotap %+v", a)
	}
	if r.Resolve(read); read.Stmts[0].Accesses[0].Version != tag(1, 1) {
		t.Errorf("it read %v", read.Stmts[0].Accesses[0].Version)
	}
}

func TestRecordedDeletionsAreNobodyElses(t *testing.T) {
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), logged(2, 50, 60, deletion(row, tag(1, 1)))}
	mine := one(2, history.Delete, history.DeleteRow, tag(1, 1), 45, 65)
	r := resolver(t, log, mine)
	if _, _, past := r.Past(); len(past) > 0 {
		t.Errorf("past isotap %+v", past[0])
	}
	if r.Resolve(mine); len(mine.Stmts[0].Accesses) != 1 || r.Stats().Effects > 0 {
		t.Errorf("it deleted %v", mine.Stmts[0].Accesses)
	}
}

// TestADeletionIsOfWhoRanThen has a recorded transaction say that it deleted a row that somebody else did.
func TestADeletionIsOfWhoRanThen(t *testing.T) {
	log := []*history.LoggedTxn{logged(2, 50, 60, deletion(row, tag(1, 1)))}
	early := one(2, history.Delete, history.DeleteRow, tag(1, 1), 5, 25)
	early.Stmts[0].Accesses[0].Inexact = true
	late := one(3, history.Delete, history.DeleteRow, tag(1, 1), 61, 65)
	late.Stmts[0].Accesses[0].Inexact = true
	for _, x := range []*history.Txn{early, late} {
		if _, _, past := resolver(t, log, x).Past(); len(past) != 1 {
			t.Errorf("%d transactions past isotap beside %v", len(past), x.ID)
		}
	}
}

// TestUnseenDeletionsAreTheirTransactions has a recorded transaction delete what its statement does not say, as a
// cascade does.
func TestUnseenDeletionsAreTheirTransactions(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 10, 20, history.LoggedWrite{Op: history.UpdateRow, Row: row, New: tag(1, 1)},
		deletion(other, history.Tag{}))}
	txn := one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25)
	r := resolver(t, log, txn)
	r.Resolve(txn)
	a := txn.Stmts[0].Accesses
	if len(a) != 2 || a[1].Row != other || a[1].Op != history.DeleteRow || r.Stats().Effects != 1 {
		t.Errorf("it wrote %+v", a)
	}
}

// TestRowsThatWerePutBackAreNotOfWhoWroteThemOnce has somebody past isotap put a row back with the tag that it had,
// long after that or at about the same time.
func TestRowsThatWerePutBackAreNotOfWhoWroteThemOnce(t *testing.T) {
	for _, from := range []int64{50, 20, 0} {
		log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), logged(2, from, 60,
			deletion(other, history.Tag{}), history.LoggedWrite{Op: history.InsertRow, Row: row, New: tag(1, 1)})}
		txn := one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25)
		r := resolver(t, log, txn)
		if _, _, past := r.Past(); len(past) != 1 || past[0].Stmts[0].Accesses[0].Row != other {
			t.Errorf("from %d: past isotap %+v", from, past)
		}
		if r.Resolve(txn); len(txn.Stmts[0].Accesses) != 1 {
			t.Errorf("from %d: it wrote %+v", from, txn.Stmts[0].Accesses)
		}
	}
}

// TestARowIsDeletedOnceByWhoDeletedIt has somebody past isotap put a row back that a recorded transaction deletes, and
// delete it again, at about the same time.
func TestARowIsDeletedOnceByWhoDeletedIt(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 10, 20, deletion(row, tag(9, 1))), logged(2, 10, 60, inserted(row, tag(9, 1))),
		logged(3, 10, 60, deletion(row, tag(9, 1)), untagged(other, tag(9, 1)))}
	txn := one(1, history.Delete, history.DeleteRow, tag(9, 1), 5, 25)
	r := resolver(t, log, txn)
	if _, _, past := r.Past(); len(past) == 0 || past[len(past)-1].Stmts[0].Accesses[0].Row != other {
		t.Errorf("past isotap %+v", past)
	}
	if r.Resolve(txn); len(txn.Stmts[0].Accesses) != 1 {
		t.Errorf("it wrote %+v", txn.Stmts[0].Accesses)
	}
}

// TestWhatTheLogDoesNotNameMayHaveChanged has somebody past isotap change rows of a table by a foreign key's action.
func TestWhatTheLogDoesNotNameMayHaveChanged(t *testing.T) {
	silent := logged(2, 50, 60, deletion(other, history.Tag{}))
	silent.Unlogged = []string{row.Table}
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), silent, update(3, tag(1, 1), tag(2, 1), 70, 80)}
	writers := []*history.Txn{one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25),
		one(2, history.Update, history.UpdateRow, tag(1, 1), 65, 85)}
	for _, c := range []struct {
		name     string
		version  history.Tag
		from, to int64
		level    history.Level
		open     bool
	}{
		{"before", tag(1, 1), 30, 50, history.RepeatableRead, false},
		{"meanwhile", tag(1, 1), 30, 51, history.RepeatableRead, true},
		{"uncommitted", tag(1, 1), 30, 50, history.ReadUncommitted, true},
		{"behind", tag(1, 1), 62, 64, history.RepeatableRead, true},
		{"written again", tag(2, 1), 90, 95, history.RepeatableRead, false},
		{"never written", history.Tag{}, 90, 95, history.RepeatableRead, true},
	} {
		read := one(3, history.Select, history.Read, c.version, c.from, c.to)
		read.Level = c.level
		r := resolver(t, log, append(writers, read)...)
		r.Resolve(read)
		got := read.Stmts[0].Accesses[0].Version
		if open := got.Txn.Run() == history.Unrecorded; open != c.open || !open && got != c.version {
			t.Errorf("%s: it read %v", c.name, got)
		}
		if r.Stats().Silent != 1 {
			t.Errorf("%d transactions changed what the log does not name", r.Stats().Silent)
		}
	}
}
