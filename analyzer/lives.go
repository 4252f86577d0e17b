package analyzer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// In the MySQL family a row carries the tags of those who wrote it. A dump carries them too, and so may any INSERT that
// names isotap's columns: what it brings back shows versions that were overwritten long ago. Rows are therefore known
// by the life of their table ([history.Row].Table). A statement that empties a table, or that writes isotap's columns
// itself, begins another life; what was written before it is of unknown origin there.

// A rebirth is a statement that began another life of the tables that it names.
type rebirth struct {
	at   int64 // when it was sent, by the wall clock
	txn  int32
	stmt uint32
	void bool // its transaction aborted: nobody else saw what it wrote
}

// isotapColumns are how statements name isotap's columns.
var isotapColumns = [...]string{"isotap_rowid", "isotap_wlist"}

// isRebirth reports whether a statement of the MySQL family begins another life of its tables.
func isRebirth(s *history.Stmt, family dbms.Family) bool {
	if s.Observation != history.Opaque || s.Void || s.Kind == history.Select || family != dbms.MySQLFamily {
		return false
	}
	switch s.Reason {
	case history.ReasonTruncate, history.ReasonPartition, history.ReasonTableRewrite:
		return true
	}
	shape := strings.ToLower(s.Shape)
	return slices.ContainsFunc(isotapColumns[:], func(c string) bool { return strings.Contains(shape, c) })
}

// noteRebirths takes in which tables the statements of transaction i, of run r, give another life.
func (s *store) noteRebirths(t *history.Txn, i int32, r uint16) {
	info := &s.runs[r].info
	for j := range t.Stmts {
		stmt := &t.Stmts[j]
		if !isRebirth(stmt, info.Server.Engine.Family()) {
			continue
		}
		x := rebirth{at: s.wall(r, stmt.Start), txn: i, stmt: stmt.Num, void: t.Status == history.Aborted}
		if s.rebirths == nil {
			s.rebirths = make(map[string][]rebirth)
		}
		for _, w := range wordsOf(info.Server.Engine.Family(), stmt.Shape) {
			if w.name {
				name := strings.ToLower(w.text)
				s.rebirths[name] = append(s.rebirths[name], x)
			}
		}
	}
}

// wall returns a time of a run by the wall clock, in nanoseconds.
func (s *store) wall(r uint16, at int64) int64 { return s.runs[r].info.Started.UnixNano() + at }

// separateLives gives the rows of each life of a table names of their own, and takes the tags of earlier lives away.
func (s *store) separateLives() error {
	s.doubtRewritten()
	lives := s.livesOf()
	if len(lives) == 0 {
		return nil
	}
	list := 0
	for i := range s.accesses {
		a := &s.accesses[i]
		for list < len(s.lists) && s.lists[list].access < int32(i) {
			list++
		}
		of := lives[s.rows.tableOf(a.row)]
		n, sure := s.lifeOf(a, of)
		if !sure {
			a.flags |= inexact
		}
		if n == 0 {
			continue
		}
		row := s.rows.row(a.row)
		row.Table += "@" + strconv.Itoa(n)
		var err error
		if a.row, err = s.rows.number(row); err != nil {
			return err
		}
		began := &of[n-1]
		if s.former(a.tag(), began) {
			a.seq, a.tagStmt, a.tagRun = 0, 0, 0
		}
		if list < len(s.lists) && s.lists[list].access == int32(i) {
			s.cutAt(&s.lists[list], func(t tag) bool { return s.former(t, began) })
		}
	}
	return nil
}

// doubtRewritten makes accesses inexact to tables of which it is known only that somebody past isotap made them anew
// during the run: which rows carry tags of an earlier life is not.
func (s *store) doubtRewritten() {
	type place struct {
		run   uint16
		table int32
	}
	rewritten := make(map[place]bool)
	for r := range s.runs {
		info := &s.runs[r].info
		if info.Server.Engine.Family() != dbms.MySQLFamily {
			continue
		}
		for _, name := range info.Rewritten {
			_, table, _ := strings.Cut(name, ".")
			if i := slices.Index(s.rows.tables, name); i >= 0 && s.rebirths[strings.ToLower(table)] == nil {
				rewritten[place{uint16(r), int32(i)}] = true
			}
		}
	}
	if len(rewritten) == 0 {
		return
	}
	for i := range s.accesses {
		if a := &s.accesses[i]; rewritten[place{s.txns[a.txn].run, s.rows.tableOf(a.row)}] {
			a.flags |= inexact
		}
	}
}

// livesOf returns what began another life of each table, in the order in which it was sent.
func (s *store) livesOf() map[int32][]rebirth {
	lives := make(map[int32][]rebirth)
	if len(s.rebirths) == 0 {
		return lives
	}
	for i, name := range s.rows.tables {
		_, table, _ := strings.Cut(name, ".")
		of := s.rebirths[strings.ToLower(table)]
		if of == nil {
			continue
		}
		slices.SortFunc(of, func(a, b rebirth) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.txn, b.txn), cmp.Compare(a.stmt, b.stmt))
		})
		lives[int32(i)] = of
	}
	return lives
}

// lifeOf returns the number of what began the life that an access met, from 1; 0 for the first life. It is not sure
// where the transaction was under way when that was sent.
func (s *store) lifeOf(a *access, of []rebirth) (n int, sure bool) {
	t := &s.txns[a.txn]
	start, end := s.wall(t.run, t.start), s.wall(t.run, t.end)
	for n = len(of); n > 0; n-- {
		switch x := &of[n-1]; {
		case x.txn == a.txn:
			if x.stmt < a.stmt {
				return n, true
			}
		case x.void || t.end != 0 && end <= x.at:
		default:
			return n, start >= x.at
		}
	}
	return 0, true
}

// former reports whether a tag is certainly of a life before the one that began so.
func (s *store) former(t tag, began *rebirth) bool {
	if t.initial() {
		return false
	}
	owner := s.find(t)
	switch {
	case owner < 0:
		return false
	case owner == began.txn:
		return t.stmt <= began.stmt
	}
	o := &s.txns[owner]
	return o.end != 0 && s.wall(o.run, o.end) <= began.at
}
