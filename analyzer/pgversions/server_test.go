package pgversions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// TestVersionsAreTheOnesThatTheServerHolds: versions of a real server are the ones that it holds.
func TestVersionsAreTheOnesThatTheServerHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for seed := range seeds() {
		l, info := play(t, history.ReadCommitted, seed)
		got, err := pgversions.Translate([]history.Info{info}, nil, l.txns)
		if err != nil {
			t.Fatal(err)
		}
		checked := make(map[history.Op]int)
		for i, txn := range l.txns {
			for j := range txn.Stmts {
				before, after := &txn.Stmts[j], &got[i].Stmts[j]
				if len(before.Accesses) != len(after.Accesses) {
					continue // something was not known: the accesses cannot be paired
				}
				for k := range after.Accesses {
					a := &after.Accesses[k]
					want, ok := l.expected(a, &before.TupleIDs[k], l.truth[accessKey{txn.ID, before.Num, k}])
					if !ok || a.Inexact || before.Void && before.TupleIDs[k].XID == 0 {
						continue // what never was need not have its place in the order
					}
					checked[a.Op]++
					if !want(a.Version) {
						t.Errorf("%s.%d: %s of %v at %+v gives version %s, the row holds %v", txn.ID, before.Num, a.Op,
							a.Row, before.TupleIDs[k], a.Version,
							l.truth[accessKey{txn.ID, before.Num, k}])
					}
				}
			}
		}
		if checked[history.Read] < 100 || checked[history.UpdateRow] < 10 || checked[history.DeleteRow] == 0 {
			t.Errorf("seed %d: only %v accesses were checked", seed, checked)
		}
	}
}

// expected returns what the version of an access may be called; false where the row does not tell.
func (l *load) expected(a *history.Access, p *history.TupleID, hist []string) (func(history.Tag) bool, bool) {
	if a.Op == history.InsertRow {
		return nil, false
	}
	if a.Op == history.UpdateRow {
		hist = hist[:len(hist)-1]
	}
	last := hist[len(hist)-1]
	if p.XID == 0 {
		// It does not tell what it replaced: that is the last version that a recorded client wrote.
		for strings.HasPrefix(last, "x") || strings.HasPrefix(last, "f") {
			if hist = hist[:len(hist)-1]; len(hist) == 0 {
				return nil, false
			}
			last = hist[len(hist)-1]
		}
	}
	writer, hidden := strings.CutPrefix(last, "f")
	writer, beside := strings.CutPrefix(writer, "x")
	tag, err := history.ParseTag(writer)
	if err != nil {
		l.t.Errorf("a row holds %q: %v", last, err)
	}
	return func(got history.Tag) bool {
		switch {
		case beside:
			return got.Txn.Run() == history.Unrecorded
		case hidden:
			return got.Txn.Run() == history.Unrecorded || got.Txn == tag.Txn
		}
		return got == tag
	}, true
}

func TestARealServerKeepsItsPromises(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, level := range []history.Level{history.ReadUncommitted, history.ReadCommitted, history.RepeatableRead,
		history.Serializable} {
		found := make(map[analyzer.Anomaly]int)
		for seed := range seeds() {
			l, info := play(t, level, seed)
			for _, f := range analyze(t, info, l.txns).Findings {
				found[f.Anomaly] += f.Count
				if f.Class == analyzer.Violation || level == history.Serializable {
					t.Errorf("%s: %s %s: %v", level, f.Class, f.Anomaly, f.Explanation)
				}
			}
		}
		t.Logf("%s: %v", level, found)
	}
}

// Each level permits what it permits: two sessions whose statements alternate.
func TestARealServersAnomaliesAreFound(t *testing.T) {
	const read, lock, write = "SELECT", "FOR UPDATE", "UPDATE"
	type step struct {
		session int
		verb    string
		id      int
	}
	lostUpdate := []step{{0, read, 1}, {1, read, 1}, {1, write, 1}, {1, "COMMIT", 0}, {0, write, 1}, {0, "COMMIT", 0}}
	writeSkew := []step{{0, read, 1}, {1, read, 2}, {0, write, 2}, {1, write, 1}, {0, "COMMIT", 0}, {1, "COMMIT", 0}}
	readSkew := []step{{0, read, 1}, {1, write, 1}, {1, write, 2}, {1, "COMMIT", 0}, {0, read, 2}, {0, "COMMIT", 0}}
	locked := []step{{0, lock, 1}, {0, write, 1}, {0, "COMMIT", 0}, {1, lock, 1}, {1, write, 1}, {1, "COMMIT", 0}}
	for _, c := range []struct {
		level history.Level
		steps []step
		want  string
	}{
		{history.ReadCommitted, lostUpdate, "hazard lost update"},
		{history.RepeatableRead, lostUpdate, ""},
		{history.ReadCommitted, writeSkew, "hazard write skew"},
		{history.RepeatableRead, writeSkew, "hazard write skew"},
		{history.Serializable, writeSkew, ""},
		{history.ReadCommitted, readSkew, "hazard read skew"},
		{history.RepeatableRead, readSkew, ""},
		{history.ReadCommitted, locked, ""},
	} {
		l, info := begin(t, c.level)
		for _, table := range tables {
			if table == "log" && testdb.PostgreSQL(t).Major() < 18 {
				continue // an UPDATE without a key begins another row
			}
			l.txns = nil
			sessions := []*session{l.session(1), l.session(2)}
			for _, s := range sessions {
				s.table = table
				s.txn = &history.Txn{ID: history.MakeTxnID(testRun, uint32(s.id)), Session: s.id,
					Level: c.level, Status: history.Aborted}
				_, err := s.conn.ExecContext(t.Context(), "BEGIN ISOLATION LEVEL "+c.level.String())
				s.check(err)
			}
			for _, x := range c.steps {
				s := sessions[x.session]
				switch x.verb {
				case read:
					s.check(s.read(t.Context(), fmt.Sprintf("WHERE id = %d", x.id)))
				case lock:
					s.check(s.read(t.Context(), fmt.Sprintf("WHERE id = %d FOR UPDATE", x.id)))
				case write:
					s.check(s.update(t.Context(), fmt.Sprintf("WHERE id = %d", x.id)))
				default:
					if _, err := s.conn.ExecContext(t.Context(), x.verb); err == nil && !s.refused {
						s.txn.Status = history.Committed
					}
					s.txn.End = s.now()
					l.txns = append(l.txns, s.txn)
				}
			}
			var got []string
			for _, f := range analyze(t, info, l.txns).Findings {
				got = append(got, fmt.Sprintf("%s %s", f.Class, f.Anomaly))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s at %s: %q, want %q", table, c.level, text, c.want)
			}
		}
	}
}
