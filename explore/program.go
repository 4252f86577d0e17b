package explore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// requestGap is how long a connection may rest between a read and what its client writes by it. Both are of one request
// then, so that a twin plays both.
const requestGap = int64(50e6) // nanoseconds

// An instance is one run of a program: a transaction, or a statement in autocommit that writes, and the reads in
// autocommit just before it on the same connection.
type instance struct {
	id         history.TxnID
	session    history.SessionID
	database   string // empty: it is not known
	level      history.Level
	optimistic bool // its COMMIT is refused for what others wrote since it began (TiDB)
	block      bool // the statements are of a transaction block; false: of autocommit
	commits    bool // it was committed
	before     int  // how many reads stand before the block, or before the statement that writes
	statements []statement
	locks      []statement // that took or released locks by a name alone: they are not played
	start, end int64
	whole      bool // all values are there
	failed     bool // a statement failed, or it was not committed
	undone     bool // its client rolled it back
	named      bool // its session had a lock by a name
	alone      bool // no other transaction of the recording ran beside it
	// inner are what a test wrapped in the transaction, which it rolled back: they are played as if each had been by
	// itself. Nil: it is none of a test's.
	inner []*instance
	rows  map[history.Row]bool // see touched
	made  map[history.Row]bool // those that it inserts, likewise
	uses  map[history.Row]bool // those that it reads, changes or deletes, likewise
	place int                  // among all of them, from 1; 0: it is a part of another one
	// read is what its statements were answered when it was played as recorded; nil: it was not, or may not race.
	read []*replay.Result
}

// program is what instances of one program have in common: the shapes of their statements.
func (in *instance) program() string {
	var b strings.Builder
	for i := range in.statements {
		switch s := in.statements[i].recorded; s.Kind {
		case history.Savepoint, history.Release, history.Rollback: // some frameworks give each savepoint a name of its own
		default:
			b.WriteString(s.Shape)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// writings are the shapes of its statements that write.
func (in *instance) writings() string {
	var b strings.Builder
	for i := range in.statements {
		if s := &in.statements[i]; s.writes() {
			b.WriteString(s.recorded.Shape)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// writes reports whether a statement of it may have changed rows.
func (in *instance) writes() bool {
	return slices.ContainsFunc(in.statements, func(s statement) bool { return s.writes() && s.changed() > 0 })
}

// instancesOf returns what a run's clients did, in the order in which it was committed.
func instancesOf(ctx context.Context, r *recorder.Reader, run history.Run, family dbms.Family) ([]*instance, error) {
	texts := make(map[history.TxnID]map[uint32]string)
	for t, err := range r.Texts(ctx, run) {
		if err != nil {
			return nil, err
		}
		if texts[t.Txn] == nil {
			texts[t.Txn] = make(map[uint32]string)
		}
		texts[t.Txn][t.Num] = t.Text
	}
	var txns []*history.Txn
	for x, err := range r.Txns(ctx) {
		if err != nil {
			return nil, err
		}
		if x.ID.Run() == run {
			for i := range x.Stmts {
				x.Stmts[i].Text = texts[x.ID][x.Stmts[i].Num]
			}
			txns = append(txns, x)
		}
	}
	defined := make(map[history.TxnID]string) // the databases of those that only define
	for x, err := range r.Defined(ctx, run) {
		if err != nil {
			return nil, err
		}
		txns, defined[x.ID] = append(txns, &x.Txn), x.Database
	}
	slices.SortStableFunc(txns, func(a, b *history.Txn) int { return cmp.Compare(a.End, b.End) })
	last, named := make(lastReads), make(namedLocks)
	var all []*instance
	for _, x := range txns {
		in := newInstance(x, family)
		if in.named = named.follow(x, in); len(in.statements) == 0 && len(in.locks) > 0 {
			continue
		}
		last.join(in)
		all = append(all, in)
	}
	databases, err := sessionDatabases(ctx, r, run)
	if err != nil {
		return nil, err
	}
	noteDatabases(all, func(in *instance) string {
		if family == dbms.PostgreSQLFamily {
			return databases[in.session]
		}
		return cmp.Or(in.database, defined[in.id])
	})
	markAlone(all)
	for _, in := range all {
		if in.undone {
			in.unwrap()
		}
	}
	return all, nil
}

// lastReads are each connection's reads in autocommit that nothing followed yet.
type lastReads map[history.SessionID][]statement

// join puts the reads just before an instance, on its connection, into it. One that is such a read itself waits for
// what follows.
func (l lastReads) join(in *instance) {
	if !in.block && !in.writes() {
		if in.whole && !in.failed && in.reads() {
			l[in.session] = append(recent(l[in.session], in.start), in.statements...)
		}
		return
	}
	if before := recent(l[in.session], in.start); len(before) > 0 && !in.undone {
		in.before, in.statements = len(before), slices.Concat(before, in.statements)
	}
	delete(l, in.session)
}

// recent returns those of a connection's reads that are of one request with what begins at a moment.
func recent(reads []statement, begins int64) []statement {
	for i := len(reads) - 1; i >= 0; i-- {
		if begins-reads[i].recorded.End > requestGap {
			return slices.Clone(reads[i+1:])
		}
		begins = reads[i].recorded.Start
	}
	return slices.Clone(reads)
}

// wasRolledBack reports whether a transaction's client rolled it back.
func wasRolledBack(x *history.Txn) bool {
	return x.Status == history.Aborted && len(x.Stmts) > 0 && x.Stmts[len(x.Stmts)-1].Kind == history.Rollback
}

// isOneValue reports whether an argument of a recording is a value, and all of it. What is longer was cut, and one with
// a quote in it may go on behind: put into the text of a statement that would be SQL.
func isOneValue(family dbms.Family, arg string) bool {
	if len(arg) >= shape.MaxArg {
		return false
	}
	tokens, err := sqltoken.Statement(family, arg)
	return err == nil && (len(tokens) == 1 || len(tokens) == 2 && tokens[0].Is("-"))
}

func newInstance(x *history.Txn, family dbms.Family) *instance {
	committed := x.Status == history.Committed
	in := &instance{id: x.ID, session: x.Session, database: databaseOf(x), level: x.Level, block: !x.Implicit,
		optimistic: !x.Implicit && x.WriteConflicts() == history.ConflictsAtCommit,
		commits:    committed, failed: !committed, undone: wasRolledBack(x), start: x.Start, end: x.End, whole: true}
	for i := range x.Stmts {
		s := &x.Stmts[i]
		if s.Kind == history.Begin || s.Kind == history.Commit || s.Kind == history.Rollback && i == len(x.Stmts)-1 {
			continue // the play has its own
		}
		text, whole := s.Text, true
		if text == "" {
			text, whole = report.Statement(family, s)
			whole = whole && !slices.ContainsFunc(s.Args, func(arg string) bool { return !isOneValue(family, arg) })
		}
		st := newStatement(family, s, text)
		if s.Kind == history.NamedLock {
			in.locks = append(in.locks, st)
			continue
		}
		st.whole = whole
		in.whole = in.whole && st.whole
		in.failed = in.failed || st.failed()
		in.statements = append(in.statements, st)
	}
	return in
}

// markAlone notes which instances ran while no other did.
func markAlone(all []*instance) {
	byStart := slices.Clone(all)
	slices.SortStableFunc(byStart, func(a, b *instance) int { return cmp.Compare(a.start, b.start) })
	var latest int64
	for i, in := range byStart {
		in.alone = in.start >= latest && (i+1 == len(byStart) || byStart[i+1].start >= in.end)
		latest = max(latest, in.end)
	}
}

// reads reports whether all statements of the instance only read rows.
func (in *instance) reads() bool {
	return !slices.ContainsFunc(in.statements, func(s statement) bool { return !s.reads() })
}

// defines reports whether all that the instance does is to define tables and the like.
func (in *instance) defines() bool {
	return !slices.ContainsFunc(in.statements, func(s statement) bool { return s.recorded.Kind != history.DDL })
}

// leaves reports whether the instance may have left something behind: what only reads is not played.
func (in *instance) leaves() bool {
	return slices.ContainsFunc(in.statements, func(s statement) bool {
		switch s.recorded.Kind {
		case history.Select:
			return s.reach != withinRows || s.recorded.Observation == history.Opaque
		case history.Set, history.Savepoint, history.Release:
			return false
		}
		return true
	})
}

// reach returns the farthest of its statements.
func (in *instance) reach() reach {
	farthest := withinRows
	for i := range in.statements {
		farthest = max(farthest, in.statements[i].reach)
	}
	return farthest
}

// playsAt returns the level of its play. In autocommit each statement has a snapshot of its own, which a twin's have in
// its block at READ COMMITTED.
func (in *instance) playsAt() history.Level {
	if !in.block || in.level == history.LevelUnknown {
		return history.ReadCommitted
	}
	return in.level
}

// name returns what people may call the program: what its client calls it, or what it writes first.
func (in *instance) name(of *schema) string {
	for i := range in.statements {
		if action := in.statements[i].recorded.Sender.Action; action != "" {
			return action
		}
	}
	for i := range in.statements {
		if s := &in.statements[i]; s.writes() && s.target != "" && !s.stamps(of) {
			return strings.ToUpper(s.recorded.Kind.String()) + " " + s.target
		}
	}
	return in.id.String()
}

// touched returns the rows that the instance uses, and whether it writes them.
func (in *instance) touched() map[history.Row]bool {
	if in.rows == nil {
		in.rows, in.made, in.uses = make(map[history.Row]bool), make(map[history.Row]bool), make(map[history.Row]bool)
		for i := range in.statements {
			for _, a := range in.statements[i].recorded.Accesses {
				in.rows[a.Row] = in.rows[a.Row] || a.Op != history.Read
				if a.Op == history.InsertRow {
					in.made[a.Row] = true
				} else {
					in.uses[a.Row] = true
				}
			}
		}
	}
	return in.rows
}

// savepoints reports whether the instance can go on behind a statement that failed.
func (in *instance) savepoints() bool {
	return slices.ContainsFunc(in.statements, func(s statement) bool { return s.recorded.Kind == history.Savepoint })
}

// inserts reports whether the instance inserts rows.
func (in *instance) inserts() bool {
	in.touched()
	return len(in.made) > 0
}

// hangsOn reports whether the instance uses rows that another one inserted.
func (in *instance) hangsOn(other *instance) bool {
	in.touched()
	other.touched()
	for row := range other.made {
		if in.uses[row] {
			return true
		}
	}
	return false
}

// overwrites reports whether both write one row.
func (in *instance) overwrites(other *instance) bool {
	for row, written := range in.touched() {
		if written && other.touched()[row] {
			return true
		}
	}
	return false
}

// crosses reports whether the instance writes a row that the other one uses.
func (in *instance) crosses(other *instance) bool {
	for row, written := range in.touched() {
		if _, used := other.touched()[row]; written && used {
			return true
		}
	}
	return false
}

// crossesTables reports whether the instance writes a table that the other one names.
func (in *instance) crossesTables(other *instance) bool {
	return slices.ContainsFunc(in.statements, func(s statement) bool {
		return s.writes() && slices.ContainsFunc(other.statements, func(o statement) bool { return slices.Contains(o.named, s.target) })
	})
}

// sameValues reports whether the other instance sent the same texts: it is no other call.
func (in *instance) sameValues(other *instance) bool {
	return slices.EqualFunc(in.statements, other.statements, func(a, b statement) bool { return a.text == b.text })
}

// firstWrite returns the first statement that writes; one without a text where none does.
func (in *instance) firstWrite() *statement {
	for i := range in.statements {
		if in.statements[i].writes() {
			return &in.statements[i]
		}
	}
	return &statement{recorded: &history.Stmt{}}
}
