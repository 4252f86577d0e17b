package counterexample

import (
	"slices"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/scenario"
)

// The anomalies that a cycle of an execution can be, by isotap's names, which look at rows where the model looks at
// statements.
var (
	oneRW = []analyzer.Anomaly{analyzer.GSingle, analyzer.LostUpdate, analyzer.OTV, analyzer.GMonotonic,
		analyzer.NonRepeatableRead,
		analyzer.ReadSkew, analyzer.ReadWriteSkew}
	moreRW          = []analyzer.Anomaly{analyzer.GNonadjacent, analyzer.G2Item, analyzer.WriteSkew}
	onePredicateRW  = []analyzer.Anomaly{analyzer.Phantom, analyzer.PMP}
	morePredicateRW = []analyzer.Anomaly{analyzer.PhantomNonadjacent, analyzer.PhantomSkew, analyzer.G2}
)

// anomalies are what the cycle of a witness may be found as: between two of its transactions there may be other
// dependencies than that of its proof.
func anomalies(w *robust.Witness) []string {
	all, _ := w.Schedule.Check()
	least, most, predicate := 0, 0, false // transactions that depend by rw
	for _, edge := range w.Proof {
		some, every := 0, 1
		for _, d := range all {
			if d.From.Run != edge.From.Run || d.To.Run != edge.To.Run {
				continue
			}
			predicate = predicate || d.Kind == robust.PredicateRW
			if d.Kind == robust.RW || d.Kind == robust.PredicateRW {
				some = 1
			} else {
				every = 0
			}
		}
		least, most = least+every, most+some
	}
	var names []string
	add := func(list []analyzer.Anomaly) {
		for _, name := range list {
			names = append(names, string(name))
		}
	}
	if least < 2 {
		add(oneRW)
	}
	if most > 1 {
		add(moreRW)
	}
	if least < 2 && predicate {
		add(onePredicateRW)
	}
	if most > 1 && predicate {
		add(morePredicateRW)
	}
	return names
}

// expect has the scenario say what is found at which level: its anomaly where the model allows its execution, nothing
// where it does not. Of what the model is not of, which is InnoDB's REPEATABLE READ, nothing is said, nor where isotap
// does not see what the cycle rests on.
func (x *solution) expect(sc *scenario.Scenario, w *robust.Witness) {
	family := x.tables.family
	sc.Shows = anomalies(w)
	hidden := slices.ContainsFunc(w.Proof, x.hidden) || long(w.Proof) || family == dbms.MySQLFamily && x.locksMore()
	at := func(levels []string, shown bool) {
		sc.Outcomes = append(sc.Outcomes, scenario.Outcome{Levels: levels, Shown: shown &&
			!hidden, Open: levels == nil || shown && hidden})
	}
	serial := []string{"SERIALIZABLE"}
	committed := []string{"READ COMMITTED"}
	if family == dbms.PostgreSQLFamily {
		committed = []string{"READ UNCOMMITTED", "READ COMMITTED"}
	}
	at(serial, false)
	if shown, known := shows(w, robust.ReadCommitted); known {
		at(committed, shown)
	}
	if shown, known := shows(w, robust.SnapshotIsolation); known && family == dbms.PostgreSQLFamily {
		at([]string{"REPEATABLE READ"}, shown)
	}
	at(nil, false)
}

// hidden reports whether isotap does not see a dependency: of what a LIMIT leaves out nothing is known.
func (x *solution) hidden(d robust.Dependency) bool {
	return d.Kind == robust.PredicateRW &&
		x.said[x.schedule.Runs[d.From.Run].Program.Statements[d.From.At].Text].Limited
}

// locksMore reports whether InnoDB may lock more in an execution than the model, so that a transaction waits: it locks
// the row that a new one refers to, which another transaction may have written, and what a write or locking read by
// predicate looks at.
func (x *solution) locksMore() bool {
	for at, step := range x.schedule.Order {
		run := &x.schedule.Runs[step.Run]
		if step.At == len(run.Program.Statements) {
			continue
		}
		q := run.Program.Statements[step.At]
		if q.Type == robust.PredUpd || q.Type == robust.PredDel || q.Type == robust.PredSel && q.Lock != robust.NoLock {
			return true
		}
		if q.Type == robust.Ins && x.parentWritten(at, step.Run, x.byName[run.Tuples[step.At][0]]) {
			return true
		}
	}
	return false
}

// parentWritten reports whether a row refers to one that another transaction has written by then and not committed.
func (x *solution) parentWritten(at, run int, r *row) bool {
	functions := x.tables.schema.Functions()
	return slices.ContainsFunc(x.writes, func(w write) bool {
		return w.at < at && w.run != run && !x.committedBy(at, w.run) &&
			slices.ContainsFunc(functions, func(f footprint.Function) bool {
				return f.Child == r.table && f.Parent == w.row.table && x.refers(&f, r, w.row)
			})
	})
}

// long reports whether a cycle of more than two transactions goes through what predicates did not find more than once:
// no anomaly is looked for there.
func long(proof []robust.Dependency) bool {
	predicates := 0
	for _, d := range proof {
		if d.Kind == robust.PredicateRW {
			predicates++
		}
	}
	return len(proof) > 2 && predicates > 1
}

// shows reports whether an execution can be had at a level and is not serializable then. It is not known where a
// transaction would have to wait, or is refused: the order is another one then.
func shows(w *robust.Witness, level robust.Level) (shown, known bool) {
	s := *w.Schedule
	s.Runs = slices.Clone(s.Runs)
	for i := range s.Runs {
		s.Runs[i].Level = level
	}
	all, err := s.Check()
	return err == nil && robust.Cycle(all) != nil, err == nil
}
