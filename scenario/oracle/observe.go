package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle/sdg"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
)

// observe plays what is left of the script through isotap, with a read of each table that a statement looks at before
// it and, behind a write, of those that it may have written (3.2): by the statement's session or, where that would
// lock, by one that sees what is not committed. The history is nil when less is left: that the reads changed nothing is
// shown by the answers, which have to be those of the script without them.
func (t *serial) observe(plain *replay.Trace) (*sdg.History, error) {
	s := *t.script.Scenario
	s.Steps = nil
	aside := locksReads(t.Server, t.level)
	if aside {
		s.Sessions = append(slices.Clone(s.Sessions), scenario.Session{Name: observer, Level: history.ReadUncommitted.String()})
	}
	at := make([]int, len(t.steps)) // the places of the script's steps
	for n, i := range t.steps {
		session := t.script.Steps[i].Session
		look := func(when moment, tables []string) {
			by := session
			if aside {
				by = observer
			}
			for _, table := range tables {
				s.Steps = append(s.Steps, scenario.Step{Session: by, SQL: origin{i, when, table}.sql(t.Server.Engine)})
			}
		}
		look(before, t.looks[i].tables)
		at[n] = len(s.Steps)
		s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: origin{step: i, at: itself}.on(t.script.Steps[i].SQL)})
		look(after, t.looks[i].writes)
	}
	trace, txns, err := t.Record(t.ctx, &s, t.level)
	if err != nil {
		return nil, err
	}
	for n := range t.steps {
		got, want := &trace.Results[at[n]], &plain.Results[n]
		got.SQL = want.SQL // without the comment
		all := differences(0, answer{Result: got}, answer{Result: want}, t.script.Closed)
		if got.Blocked || got.Queued || len(all) > 0 || got.InsertID != want.InsertID {
			t.verdict.leaveOut(disturbed, len(t.statements()))
			return nil, errNothingLeft
		}
	}
	o := &observation{serial: t, plain: plain, seen: make(map[string]*history.Stmt), shown: make(map[string]string)}
	for n, x := range s.Steps {
		if !slices.Contains(at, n) {
			o.shown[x.SQL] = multiset(trace.Results[n].Rows)
		}
	}
	for _, txn := range txns {
		for i := range txn.Stmts {
			if x := &txn.Stmts[i]; x.Sender.Place != "" {
				o.seen[x.Sender.Place] = x
			}
		}
	}
	return o.history()
}

// observation makes a history of what was recorded.
type observation struct {
	*serial
	plain *replay.Trace
	seen  map[string]*history.Stmt // the reads, by [origin.String]
	shown map[string]string        // what they gave, by [origin.sql]
}

func (o *observation) history() (*sdg.History, error) {
	h := &sdg.History{Snapshots: o.level == history.Serializable && o.Server.Engine == dbms.PostgreSQL ||
		o.level == history.RepeatableRead}
	aside := locksReads(o.Server, o.level)
	// An open transaction's writes go into no order, but others may have read them.
	readOpen := aside || o.level == history.ReadUncommitted
	var out []int
	number, committed, views := make(map[int]int), o.committed(), newVersionsSeen() // by transaction of the script
	for _, i := range o.steps {
		of, sql := o.transactionOf(i), o.script.Steps[i].SQL
		if _, ok := number[of]; !ok {
			number[of] = len(h.Txns)
			h.Txns = append(h.Txns, sdg.Txn{Committed: committed[of]})
		}
		txn := &h.Txns[number[of]]
		if !reduce.Bounds(sql) {
			s, err := o.statement(i, number[of])
			if err == nil && aside {
				err = views.pass(&s)
			}
			if err != nil && (txn.Committed || readOpen) {
				out = append(out, i)
			}
			h.Statements = append(h.Statements, s)
		}
		if reduce.Ends(sql) || len(o.transactions()[of]) == 1 {
			views.end(number[of], txn.Committed)
		}
		txn.End = len(h.Statements)
	}
	if len(out) > 0 {
		return nil, o.leaveOut(unseen, out...)
	}
	return h, nil
}

// committed returns which of the script's transactions committed; statements in autocommit always do.
func (o *observation) committed() map[int]bool {
	all := make(map[int]bool)
	for n, i := range o.steps {
		r, of := &o.plain.Results[n], o.transactionOf(i)
		switch sql := o.script.Steps[i].SQL; {
		case isCommit(sql):
			all[of] = r.Status == replay.OK && !strings.HasPrefix(r.Tag, "ROLLBACK")
		case !reduce.Bounds(sql) && len(o.transactions()[of]) == 1:
			all[of] = true
		}
	}
	return all
}

// statement returns what was seen of a statement.
func (o *observation) statement(step, txn int) (sdg.Statement, error) {
	l := o.looks[step]
	s := sdg.Statement{Txn: txn, Tables: lower(l.tables), Values: lower(l.values), Items: make(map[history.Row]bool)}
	if x := o.seen[origin{step: step, at: itself}.String()]; x != nil {
		for i := range x.Accesses {
			if a := &x.Accesses[i]; !a.Absent {
				s.Items[history.Row{Table: rowTable(a.Row), ID: a.Row.ID}] = true
			}
		}
	}
	var err error
	if s.Before, err = o.rows(step, before, l.tables); err != nil {
		return s, err
	}
	if len(l.writes) == 0 {
		return s, nil
	}
	if s.After, err = o.rows(step, after, l.writes); err != nil {
		return s, err
	}
	s.Written = lower(l.writes)
	for _, table := range l.writes {
		if !o.seesWrites(step, table) {
			return s, fmt.Errorf("step %d: what it wrote into %s was not seen", step+1, table)
		}
	}
	return s, nil
}

// seesWrites reports whether the rows of a table that a statement changed have other versions behind it.
func (o *observation) seesWrites(step int, table string) bool {
	was, is := origin{step, before, table}.sql(o.Server.Engine), origin{step, after, table}.sql(o.Server.Engine)
	if o.shown[was] == o.shown[is] {
		return true
	}
	from, err := o.rows(step, before, []string{table})
	to, err2 := o.rows(step, after, []string{table})
	return err == nil && err2 == nil && !maps.Equal(from, to)
}

// rows returns what the reads beside a statement showed.
func (o *observation) rows(step int, when moment, tables []string) (sdg.Rows, error) {
	rows := make(sdg.Rows)
	for _, table := range tables {
		x := o.seen[origin{step, when, table}.String()]
		if x == nil || x.Observation != history.Exact {
			return nil, fmt.Errorf("step %d: its read of %s was not seen", step+1, table)
		}
		seen := uint64(0)
		for i := range x.Accesses {
			a := &x.Accesses[i]
			if a.Absent { // a row that a predicate did not find
				continue
			}
			row := history.Row{Table: rowTable(a.Row), ID: a.Row.ID}
			if _, twice := rows[row]; twice || a.Row.ID == "" {
				return nil, fmt.Errorf("step %d: rows of %s are not told apart", step+1, table)
			}
			if a.Version.Txn.Run() == history.Unrecorded {
				return nil, fmt.Errorf("step %d: it is not known which version of a row of %s it saw", step+1, table)
			}
			rows[row] = sdg.Version(a.Version.String())
			seen++
		}
		if seen != x.Rows {
			return nil, fmt.Errorf("step %d: its read of %s shows %d rows of %d", step+1, table, seen, x.Rows)
		}
	}
	return rows, nil
}

func lower(names []string) []string {
	all := slices.Clone(names)
	for i := range all {
		all[i] = strings.ToLower(all[i])
	}
	return all
}
