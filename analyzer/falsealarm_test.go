package analyzer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// Each history is what a healthy engine does, and looks like a violation to whoever does not know
// the rule that the case names.
func TestHealthyEnginesAreNotAccused(t *testing.T) {
	const (
		readSkew   = "T1 committed RR | r x 0 | r y T2.2\nT2 committed RR | u x 0 | u y 0"
		withOpaque = "T1 committed RR | r x 0 | o | r y T2.2\nT2 committed RR | u x 0 | u y 0"
		lockedLost = "T1 committed RC | R x 0 | u x T2.1\nT2 committed RC | u x 0"
		lostUpdate = "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0"
		opaqueLost = "T1 committed RR | r x 0 | o | u x T2.1\nT2 committed RR | u x 0"
		againLost  = "T1 committed RR | r x 0 | r y 0 | i y T2.2\nT2 committed RR | u x 0 | d y 0"
	)
	mariadb := history.Server{Engine: "mariadb", Version: "11.8", SnapshotIsolation: true}
	tidb := history.Server{Engine: "tidb", Version: "8.5"}
	postgres := history.Server{Engine: "postgresql", Version: "15.18"}
	for name, c := range map[string]struct {
		server  history.Server
		history string
		change  func(h []*history.Txn)
		want    Class
	}{
		"two snapshots": {mariadb, readSkew, nil, Violation},
		"INSERT ... SELECT reads what is current": {mariadb, readSkew, func(h []*history.Txn) {
			h[0].Stmts[1].Kind = history.Insert
		}, Violation}, // with innodb_snapshot_isolation it would have been refused
		"INSERT ... SELECT reads what is current, and is not refused": {mariadb, readSkew, func(h []*history.Txn) {
			h[0].Stmts[1].Kind, h[0].Conflicts = history.Insert, history.ConflictsAccepted
		}, Hazard},
		"a trigger wrote the row before": {mariadb, withOpaque, nil, Hazard},
		"an UPDATE that failed wrote nothing": {mariadb, withOpaque, func(h []*history.Txn) {
			h[0].Stmts[1].Void = true
		}, Violation},
		"a procedure that failed half-way": {mariadb, withOpaque, func(h []*history.Txn) {
			h[0].Stmts[1].Void, h[0].Stmts[1].Kind = true, history.Call
		}, Hazard},
		"a DISTINCT writes nothing": {mariadb, withOpaque, func(h []*history.Txn) {
			h[0].Stmts[1] = history.Stmt{Num: 2, Kind: history.Select, Observation: history.Opaque,
				Reason: history.ReasonDistinct, Shape: "SELECT DISTINCT v FROM t WHERE id IN (?)"}
		}, Violation},
		"a stored function may write": {mariadb, withOpaque, func(h []*history.Txn) {
			h[0].Stmts[1] = history.Stmt{Num: 2, Kind: history.Select, Observation: history.Opaque,
				Reason: history.ReasonDistinct, Shape: "SELECT DISTINCT audit(v) FROM t"}
		}, Hazard},
		"a locking read": {mariadb, lockedLost, nil, Violation},
		"a locking read of another table": {mariadb, lockedLost, func(h []*history.Txn) {
			h[0].Stmts[0].Shape = "SELECT t.v FROM t JOIN u ON t.id = u.id FOR UPDATE OF u"
		}, Hazard},
		"the source of INSERT ... SELECT at READ COMMITTED": {mariadb, lockedLost, func(h []*history.Txn) {
			h[0].Stmts[0].Kind, h[0].Stmts[0].Locking = history.Insert, history.LockShare
		}, Hazard},
		"a locking read that failed": {mariadb, lockedLost, func(h []*history.Txn) { h[0].Stmts[0].Void = true },
			Hazard},
		"FOR SHARE on TiDB": {tidb, lockedLost,
			func(h []*history.Txn) { h[0].Stmts[0].Locking = history.LockShare }, Hazard},
		"FOR UPDATE on TiDB":   {tidb, lockedLost, nil, Violation},
		"the server's setting": {mariadb, lostUpdate, nil, Violation},
		"the session's own setting": {mariadb, lostUpdate,
			func(h []*history.Txn) { h[0].Conflicts = history.ConflictsAccepted }, Hazard},
		"the other session's setting": {mariadb, lostUpdate,
			func(h []*history.Txn) { h[1].Conflicts = history.ConflictsAccepted }, Violation},
		"a setting that the server has not": {history.Server{Engine: "mariadb"}, lostUpdate,
			func(h []*history.Txn) { h[0].Conflicts = history.ConflictsRefused }, Violation},
		"FOR SHARE on PostgreSQL": {postgres, lockedLost, func(h []*history.Txn) {
			h[0].Stmts[0].Locking, h[0].Stmts[0].Shape = history.LockShare, "SELECT v FROM t WHERE id = ? FOR SHARE"
		}, Violation},
		"FOR KEY SHARE lets others write": {postgres, lockedLost, func(h []*history.Txn) {
			h[0].Stmts[0].Locking, h[0].Stmts[0].Shape = history.LockShare, "SELECT v FROM t WHERE id = ? FOR KEY SHARE"
		}, Hazard},
		"FOR NO KEY UPDATE keeps them out": {postgres, lockedLost, func(h []*history.Txn) {
			h[0].Stmts[0].Shape = "SELECT v FROM t WHERE id = ? FOR NO KEY UPDATE NOWAIT"
		}, Violation},
		"FOR NO KEY UPDATE of another table": {postgres, lockedLost, func(h []*history.Txn) {
			h[0].Stmts[0].Shape = `SELECT t.v FROM t JOIN "u" ON t.id = u.id FOR NO KEY UPDATE OF "u" NOWAIT`
		}, Hazard},
		"a lock that ROLLBACK TO SAVEPOINT gave back": {postgres, lockedLost,
			func(h []*history.Txn) { h[0].Stmts[0].Void = true }, Hazard},
		"a row that is made again on PostgreSQL":     {postgres, againLost, nil, Hazard},
		"a lock taken while the setting was another": {mariadb, opaqueLost, nil, Hazard},
		"a row that was deleted and made again":      {mariadb, againLost, nil, Hazard},
		"TiDB's pessimistic session": {tidb, lostUpdate,
			func(h []*history.Txn) { h[0].Conflicts = history.ConflictsAccepted }, Hazard},
		"TiDB's optimistic session": {tidb, lostUpdate,
			func(h []*history.Txn) { h[0].Conflicts = history.ConflictsAtCommit }, Violation},
		"TiDB's BEGIN PESSIMISTIC in an optimistic session": {tidb, lostUpdate, func(h []*history.Txn) {
			h[0].Conflicts = history.ConflictsAtCommit
			h[0].Stmts = append([]history.Stmt{{Kind: history.Begin, Shape: "BEGIN PESSIMISTIC"}}, h[0].Stmts...)
		}, Hazard},
	} {
		h := script(t, c.history)
		if c.change != nil {
			c.change(h)
		}
		info := scriptInfo()
		info.Server = c.server
		r := analyze(t, info, h)
		if len(r.Findings) == 0 {
			t.Errorf("%s: no finding", name)
		}
		for _, f := range r.Findings {
			if f.Class != c.want {
				t.Errorf("%s: a %s %s, want a %s", name, f.Class, f.Anomaly, c.want)
			}
		}
	}
}

// However much of what a healthy engine did went unseen, nothing accuses it.
func TestPartsOfHealthyHistoriesAccuseNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	findings := 0
	forRandomHistories(t, 2, func(t *testing.T, rng *rand.Rand, c generated, h []*history.Txn) {
		if c.Engine == histgen.Broken {
			return
		}
		info := c.Info()
		lose(rng, h)
		if rng.IntN(2) == 0 {
			info.Ended = time.Time{}
			h = h[:1+rng.IntN(len(h))] // the rest was not written any more
		}
		r := analyze(t, info, h)
		findings += len(r.Findings)
		for _, f := range r.Findings {
			if f.Class == Violation {
				t.Errorf("%s: %v", f.Anomaly, f.Explanation)
			}
		}
	})
	if findings == 0 {
		t.Error("nothing is left to find")
	}
}

// lose takes out of a history what a proxy may fail to see.
func lose(rng *rand.Rand, h []*history.Txn) {
	share := 2 + rng.IntN(12) // one in so many
	for _, txn := range h {
		switch rng.IntN(4 * share) {
		case 0:
			txn.Level = history.LevelUnknown
		case 1:
			txn.Status = history.Indeterminate
		}
		for i := range txn.Stmts {
			s := &txn.Stmts[i]
			switch rng.IntN(2 * share) {
			case 0:
				s.Observation, s.Accesses = history.Opaque, nil
			case 1:
				s.Observation = history.Inexact
				for j := range s.Accesses {
					s.Accesses[j].Inexact = true
				}
			case 2:
				s.Observation = history.Inexact
				s.Accesses = s.Accesses[:rng.IntN(len(s.Accesses)+1)]
			}
			for j := range s.Accesses {
				if a := &s.Accesses[j]; rng.IntN(share) == 0 {
					a.Prior = a.Prior[rng.IntN(len(a.Prior)+1):]
				}
			}
		}
	}
}

// A database that was put back between two runs lost nothing.
func TestRunsThatDoNotMeetLoseNoWrites(t *testing.T) {
	const before history.Run = scriptRun + 1
	for _, c := range []struct {
		start, end time.Duration // of the other run, from this one's start
		want       int
	}{{-2 * time.Minute, -time.Minute, 0}, {time.Minute, 2 * time.Minute, 0}, {-time.Minute, time.Second, 1},
		{time.Second, time.Hour, 1}} {
		h := script(t, "T1 committed RR | u x 0\nT2 committed RR | u x 0")
		h[0].ID = history.MakeTxnID(before, 1)
		info := scriptInfo()
		other := info
		other.Run, other.Started, other.Ended = before, info.Started.Add(c.start), info.Started.Add(c.end)
		r, err := Analyze([]history.Info{info, other}, h)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != c.want {
			t.Errorf("a run from %s to %s: findings %q, want %d", c.start, c.end, names(r), c.want)
		}
	}
}

// A writer at another level, between two serializable transactions of PostgreSQL, takes the one's read out of
// the other's sight. Where there are signs of such writers, a cycle of serializable transactions is no violation.
func TestWritersBesideSerializableTransactionsAreReckonedWith(t *testing.T) {
	const skew = "T1 committed SR | r x 0 | u y 0\nT2 committed SR | r y 0 | u x 0"
	for name, c := range map[string]struct {
		history string
		change  func(h []*history.Txn)
		want    Class
	}{
		"nobody beside": {skew, nil, Violation},
		"a version that nobody recorded": {skew + "\nT3 committed SR | r z 0", func(h []*history.Txn) {
			h[2].Stmts[0].Accesses[0].Version = history.Tag{Txn: history.MakeTxnID(history.Unrecorded, 700), Stmt: 1}
		}, Hazard},
		"a function at READ COMMITTED":   {skew + "\nT3 committed RC | o", nil, Hazard},
		"a function at SERIALIZABLE":     {skew + "\nT3 committed SR | o", nil, Violation},
		"a plain read at READ COMMITTED": {skew + "\nT3 committed RC | r z 0", nil, Violation},
	} {
		h := script(t, c.history)
		if c.change != nil {
			c.change(h)
		}
		info := scriptInfo()
		info.Server = history.Server{Engine: "postgresql", Version: "15.18"}
		r := analyze(t, info, h)
		if len(r.Findings) != 1 || r.Findings[0].Class != c.want {
			t.Errorf("%s: findings %q, want one %s", name, names(r), c.want)
		}
		if len(r.Findings) == 1 && c.want == Hazard && !strings.Contains(r.Findings[0].Rule, "not recorded") {
			t.Errorf("%s: the rule does not say why: %s", name, r.Findings[0].Rule)
		}
	}
}
