package oracle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario/replay"
)

// mostViews is how many views of a statement are tried that the order of things leaves open.
const mostViews = 8

// A judging is that of one statement.
type judging struct {
	*viewing
	ending
	got *replay.Result
	*statement
	of *actor
}

// A scene is what a statement may see: of each table its versions.
type scene struct {
	looks map[*benchTable]look
	taken int // the snapshot that it stands on; -1: none
}

// judge judges a statement, and adds what it has written to the versions.
func (v *viewing) judge(j *judging) error {
	taken := j.firstSnapshot()
	why, err := j.judge()
	if err != nil {
		return err
	}
	if len(j.of.snaps) == 0 && len(taken) > 0 { // what it said does not tell: it is not judged, has failed or is wrong
		j.of.snaps, j.of.unsure = taken, true
	}
	if why != "" {
		v.pass(why)
		if j.writes() && j.got.Status == replay.OK {
			v.lose("behind a write that is not judged")
		}
	} else {
		v.verdict.Statements++
		if !j.of.counted && j.got.Session != reader {
			j.of.counted = true
			v.verdict.Transactions++
		}
	}
	if j.got.Status == replay.Failed {
		j.fail()
	}
	return nil
}

// fail takes the consequences of an error.
func (j *judging) fail() {
	switch c := clashOf(j.family, j.got.ErrorCode()); {
	case j.of.alone:
		j.of.alone = false
		j.rollback(j.of)
	case j.family == dbms.PostgreSQLFamily:
		j.of.failed = true
		kept := 0
		if n := len(j.of.savepoints); n > 0 {
			kept = j.of.savepoints[n-1].seq
		}
		j.store.undo(j.of, kept)
	case c != nil && c.undoes:
		j.rollback(j.of)
	}
}

// judge returns why a statement is not judged; empty where it is.
func (j *judging) judge() (why string, err error) {
	if c := clashOf(j.family, j.got.ErrorCode()); c != nil {
		if !j.accompanied() {
			j.differ(j.got, Difference{Step: j.step, SQL: j.text, Aspect: Outcome, Got: outcome(j.got),
				Want: "no error of other transactions: there is none"})
		}
		return "", nil
	}
	switch {
	case j.moving.is(j.text):
		return reasonsNotJudged[volatileStep], nil
	case j.skips && j.accompanied():
		return "SKIP LOCKED beside other transactions", nil
	case j.locksWithin && j.accompanied():
		return "a query within it locks, beside other transactions", nil
	case j.tokens[0].Is("REPLACE") && !j.bench.postgresql() && j.keyless():
		return "REPLACE into a table without a primary key", nil
	case j.readsDirty() && j.racing():
		return "a dirty read beside a statement that waits", nil
	case j.limited && j.writes() && !j.script.Closed:
		return "a write with a LIMIT that may leave rows open", nil
	}
	scenes, why := j.scenes()
	if why != "" {
		return why, nil
	}
	return j.hold(scenes)
}

// readsDirty reports whether the statement sees what is not committed.
func (j *judging) readsDirty() bool {
	for p, from := range j.sights() {
		if from == dirty && len(j.named[p]) > 0 {
			return true
		}
	}
	return false
}

// accompanied reports whether others may hold locks: transactions, and statements in autocommit that have waited.
func (j *judging) accompanied() bool { return j.others(j.of) || j.overlaps(j.start[j.step]) }

// racing reports whether a statement of another session waits meanwhile, or was seen to go on later: what it has
// written by now nobody can tell.
func (j *judging) racing() bool { return j.overlaps(j.event) }

// overlaps reports whether a statement of another session that has waited began before this one ended, and did not end
// before an event.
func (j *judging) overlaps(event int) bool {
	for step, began := range j.start {
		r := &j.trace.Results[step-1]
		over := slices.ContainsFunc(j.ends, func(e ending) bool { return e.step == step && e.event < event })
		if r.Blocked && r.Session != j.got.Session && began < j.event && !over {
			return true
		}
	}
	return false
}

// hold holds the statement against itself on each scene. Where several fit that have it write different things, the
// versions are lost.
func (j *judging) hold(scenes []scene) (why string, err error) {
	var first []Difference
	var fits *scene
	var wrote string
	for i, x := range scenes {
		if fits != nil && !j.writes() {
			break
		}
		t, want, err := j.try(x)
		if errors.Is(err, errNoView) {
			return "its view breaks a constraint", nil
		}
		if err != nil {
			return "", err
		}
		if why := j.beyond(t, want); why != "" {
			return why, nil
		}
		all := j.differences(t, want)
		switch {
		case len(all) > 0:
			if i == 0 {
				first = all
				j.verdict.expect(j.step, t.answer.Result)
			}
		case fits == nil:
			fits, wrote = &scenes[i], t.wrote()
			j.verdict.expect(j.step, t.answer.Result)
			j.settle(scenes, x)
			if j.got.Status == replay.OK {
				j.store.apply(j.of, t, j.holdsUnchanged())
			}
		case t.wrote() != wrote:
			j.lose("behind a write that several orders explain")
		}
	}
	if fits != nil {
		return "", nil
	}
	return "", j.tell(scenes[0], first)
}

// holdsUnchanged reports whether rows that the statement finds and leaves as they are count as written: it has locked
// them. An optimistic transaction has not.
func (j *judging) holdsUnchanged() bool { return j.verb == updates && !j.of.optimistic }

// keyless reports whether the table that is written has no primary key.
func (j *judging) keyless() bool {
	return slices.ContainsFunc(j.named[inTarget], func(name string) bool { return len(j.bench.table(name).key) == 0 })
}

// try tries the statement on a scene, and returns the outcome that it has to have.
func (j *judging) try(x scene) (t *trial, want string, err error) {
	for table, look := range x.looks {
		if err := j.bench.put(table, look.values()); err != nil {
			return nil, "", err
		}
	}
	if t, err = j.bench.try(j.got.Session, j.statement, j.got.InsertID); err != nil {
		return nil, "", err
	}
	want = outcome(t.answer.Result)
	if j.rule(j.got.Session).meets == fails && (j.writes() || j.verb == locks) && t.answer.Status == replay.OK {
		for _, n := range t.touched {
			if by := j.store.chain(n).newest().by; by != nil && by != j.of && by.committed && by.ended > x.taken {
				want = "error 40001"
			}
		}
	}
	return t, want, nil
}

// beyond returns why an outcome cannot be told by the bench; empty where it can.
func (j *judging) beyond(t *trial, want string) string {
	if j.engine == dbms.TiDB && j.got.Status == replay.OK && t.answer.Status == replay.OK && j.got.InsertID != t.answer.InsertID {
		return "its number is another one, as TiDB leaves gaps"
	}
	if want == outcome(j.got) || want == "success" && j.got.Status == replay.OK {
		return ""
	}
	code := t.answer.ErrorCode()
	if j.rule(j.got.Session).optimistic && code == "1062/23000" && j.got.Status == replay.OK {
		return "its keys are checked at COMMIT"
	}
	if j.engine == dbms.PostgreSQL && len(code) == 5 && code[:2] == "42" && j.got.Status == replay.OK {
		return "it cannot read a table's view in the table's place"
	}
	if j.rule(j.got.Session).meets == fails && j.got.ErrorCode() == "23505" {
		return "a key beside a newer version"
	}
	return ""
}

// differences compares what the server said with what came of a trial.
func (j *judging) differences(t *trial, want string) []Difference {
	if got := outcome(j.got); got != want {
		return []Difference{{Step: j.step, SQL: j.text, Aspect: Outcome, Got: got, Want: want}}
	}
	if j.got.Status != replay.OK {
		return nil
	}
	all := differences(j.step, answer{Result: j.got}, t.answer, j.script.Closed)
	all = slices.DeleteFunc(all, func(d Difference) bool {
		return d.Aspect == Warnings || d.Aspect == Order && j.got.Blocked
	})
	if by := j.mustWait(t); by != nil && !j.got.Blocked {
		all = append(all, Difference{Step: j.step, SQL: j.text, Aspect: Waiting, Got: "it is done",
			Want: fmt.Sprintf("a wait for the transaction of %s, which has written a row of it", by.session)})
	}
	return all
}

// mustWait returns the open transaction that holds a row which the statement writes or locks; nil where there is
// none.
func (j *judging) mustWait(t *trial) *actor {
	if !t.known || j.rule(j.got.Session).optimistic || j.verb == locks && j.anywhere("KEY") || j.verb == inserts {
		return nil
	}
	for _, n := range t.touched {
		by := j.store.holder(n, j.of)
		if by != nil && (!j.sharesIndex() || slices.ContainsFunc(j.store.changed(n, by), j.reads)) {
			return by
		}
	}
	return nil
}

// sharesIndex reports whether the statement takes InnoDB's shared locks: of an index that has all columns which it
// reads it locks the entries alone, and does not wait for who holds the row, where no entry is written.
func (j *judging) sharesIndex() bool {
	return j.engine != dbms.PostgreSQL && (j.verb == selects || j.verb == locks && !j.anywhere("UPDATE"))
}

// reads reports whether the statement names a column, or shows all by a star.
func (j *judging) reads(column string) bool { return j.anywhere(column) || j.showsAll() }

// showsAll reports whether a select list has a star. That of COUNT(*) is none.
func (j *judging) showsAll() bool {
	for i, t := range j.tokens[1:] {
		if before := j.tokens[i]; t.Is("*") && (before.Is("SELECT") || before.Is("DISTINCT") || before.Is(".") || before.Is(",")) {
			return true
		}
	}
	return false
}

// settle keeps the snapshots that fit what the server said.
func (j *judging) settle(scenes []scene, fits scene) {
	if fits.taken < 0 {
		return
	}
	var left []int
	for _, x := range scenes {
		same := true
		for table, look := range x.looks {
			same = same && look.equal(fits.looks[table])
		}
		if same && !slices.Contains(left, x.taken) {
			left = append(left, x.taken)
		}
	}
	j.of.snaps = left
	j.of.unsure = !j.rule(j.got.Session).early && !j.mustRead()
}

// mustRead reports whether the statement has read a row of a table for sure: a condition that is never true is
// decided without.
func (j *judging) mustRead() bool {
	return len(j.tables()) == 1 && !j.anywhere("WHERE") && !j.anywhere("HAVING") && !j.anywhere("LIMIT") && !j.grouped ||
		len(j.got.Rows) > 0 && j.verb == selects && j.at("WHERE") >= 0 && !j.grouped && !aggregates(j.statement)
}

func aggregates(s *statement) bool {
	return slices.ContainsFunc([]string{"COUNT", "MIN", "MAX", "SUM", "AVG"}, s.anywhere)
}

// tell keeps the difference, with the published bug that explains it if there is one. What a write left is known only
// then.
func (j *judging) tell(x scene, all []Difference) error {
	known, t, err := j.explain(x)
	if err != nil {
		return err
	}
	for _, d := range all {
		d.Known = known
		j.differ(j.got, d)
	}
	switch {
	case t != nil:
		j.store.apply(j.of, t, j.holdsUnchanged())
		if known != "" && j.verb == selects {
			j.settle([]scene{x}, x)
		}
	case j.writes():
		j.lose("behind an answer that is wrong")
	}
	return nil
}

// explain looks for a published bug that makes the server say what it said.
func (j *judging) explain(x scene) (name string, t *trial, err error) {
	for _, d := range deviations {
		if !slices.Contains(d.engines, j.engine) || !slices.Contains(d.levels, j.levelOf(j.got.Session)) ||
			!slices.Contains(d.verbs, j.verb) || d.waited && !j.got.Blocked {
			continue
		}
		for _, y := range j.deviating(d, x) {
			t, want, err := j.try(y)
			if errors.Is(err, errNoView) {
				continue
			}
			if err != nil {
				return "", nil, err
			}
			if len(j.differences(t, want)) == 0 {
				return d.name + ": " + d.says, t, nil
			}
		}
	}
	return "", nil, nil
}

// deviating returns the scenes that a published bug may make of one.
func (j *judging) deviating(d deviation, x scene) (all []scene) {
	views := make(map[*benchTable][]look)
	most := 0
	for table, due := range x.looks {
		main := j.verb == selects || slices.Contains(j.named[inMain], table.name) || slices.Contains(j.named[inTarget], table.name)
		if !main {
			continue
		}
		o := &overlook{due: due, order: j.store.order(table), without: due}
		first := j.start[j.step] - 1
		for _, event := range append([]int{first}, j.committedSince(first)...) {
			o.began = append(o.began, j.store.look(table, j.of, begun, event, false))
		}
		if j.verb == selects && x.taken >= 0 {
			o.without = j.store.look(table, j.of, snapshot, x.taken, true)
		}
		views[table] = d.view(o)
		most = max(most, len(views[table]))
	}
	for i := range most {
		y := scene{looks: make(map[*benchTable]look), taken: x.taken}
		for table, due := range x.looks {
			y.looks[table] = due
			if of := views[table]; len(of) > 0 {
				y.looks[table] = of[min(i, len(of)-1)]
			}
		}
		all = append(all, y)
	}
	return all
}
