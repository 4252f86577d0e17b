package oracle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle/sdg"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
)

// A Record plays a scenario at a level in a fresh database through isotap, and returns what was recorded, with row
// versions under their tags.
type Record func(ctx context.Context, s *scenario.Scenario, level history.Level) (replay.Trace, []*history.Txn, error)

// A Serial is what [Serial.Judge] goes by: TxCheck (OSDI 2023).
type Serial struct {
	Play   Play
	Record Record
	Server history.Server
	Orders int        // how many orders to play at most (its table 5); 0: 3
	Random *rand.Rand // draws orders, and which statement of a cycle is left out
}

// serialOrders is the default of Serial.Orders; countedOrders is how many are counted of those that there are.
const (
	serialOrders  = 3
	countedOrders = 10_000
)

// Orders are the orders that a script's statements have, in autocommit.
type Orders struct {
	// There is how many their dependencies allow; with More it is fewer than that.
	There int
	More  bool
	// Played is how many were, Wrong how many of these show a difference.
	Played, Wrong int
}

// words says of which orders something is told that same of them show, the first of which is given.
func (o Orders) words(first []int, same int) string {
	numbers := make([]string, len(first))
	for i, step := range first {
		numbers[i] = strconv.Itoa(step)
	}
	which := ""
	switch {
	case !o.More && o.There == 1:
		which = "the only one"
	case !o.More && same == o.There:
		which = fmt.Sprintf("as in each of the %d that there are", o.There)
	case o.More:
		which = fmt.Sprintf("as in %d of %d that were played; there are more than %d", same, o.Played, o.There)
	default:
		which = fmt.Sprintf("as in %d of %d that were played; there are %d", same, o.Played, o.There)
	}
	return fmt.Sprintf("in autocommit, in the order %s (%s),", strings.Join(numbers, ", "), which)
}

// Judge holds concurrent transactions against the statements of those that committed, in autocommit, one behind the
// other in orders that follow the statement-dependency graph: each has to answer as it did in its transaction, and the
// tables have to be the same at the end (theorem 1).
//
// What cannot be judged is left out of the script, and the rest is judged: see [Verdict].NotJudged.
func (j *Serial) Judge(ctx context.Context, s Script, level history.Level) (*Verdict, error) {
	t := &serial{Serial: j, ctx: ctx, level: level, script: s, verdict: &Verdict{}}
	for i := range s.Steps {
		t.steps = append(t.steps, i)
	}
	if err := t.judge(); err != nil {
		return nil, fmt.Errorf("%s at %s, in orders of its statements: %w", s.Name, level, err)
	}
	return t.verdict, nil
}

// serial is the judgement of one script.
type serial struct {
	*Serial
	ctx     context.Context
	level   history.Level
	script  Script
	schema  *footprint.Schema
	looks   map[int]looks // by the step's place in the script: what it names
	steps   []int         // places in the script of those that are left, in the order in which they are sent
	verdict *Verdict
}

// errNothingLeft ends a judgement of which nothing is left.
var errNothingLeft = errors.New("nothing is left of the script")

func (t *serial) judge() error {
	if err := t.prepare(); err != nil {
		return ignoreNothing(err)
	}
	g, err := t.play()
	if g == nil || err != nil || !t.verdict.Wrong() {
		return err
	}
	return t.explain(g)
}

// play plays what is left of the script until it has an order, and holds its transactions against that. The graph is
// nil where nothing is left.
func (t *serial) play() (g *sdg.Graph, err error) {
	var plain *replay.Trace
	for err == nil && g == nil {
		g, plain, err = t.graph()
	}
	if err != nil {
		return nil, ignoreNothing(err)
	}
	return g, t.hold(g, plain)
}

func ignoreNothing(err error) error {
	if errors.Is(err, errNothingLeft) {
		return nil
	}
	return err
}

// explain looks whether the differences are gone without the writes that went by newer versions than their transactions
// saw of tables that they do not write.
func (t *serial) explain(g *sdg.Graph) error {
	if !goesByNewest(t.Server, t.level) {
		return nil
	}
	without := &serial{Serial: t.Serial, ctx: t.ctx, level: t.level, script: t.script, schema: t.schema, looks: t.looks,
		steps: slices.Clone(t.steps), verdict: &Verdict{}}
	var out []int
	for n, i := range t.statements() {
		stale, err := g.Stale(n)
		if err != nil {
			return err
		}
		if len(stale) > 0 && len(t.looks[i].writes) > 0 {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil
	}
	if err := without.leaveOut(newestWritten, out...); err != nil {
		return ignoreNothing(err)
	}
	if _, err := without.play(); err != nil || without.verdict.Wrong() || without.verdict.Statements == 0 {
		return err // nothing shows that it was these writes
	}
	for i := range t.verdict.Differences {
		t.verdict.Differences[i].Known = newestElsewhere
	}
	return nil
}

// hold compares what the transactions answered with what their statements answer in some orders.
func (t *serial) hold(g *sdg.Graph, plain *replay.Trace) error {
	nodes := t.statements()
	order := g.Order(t.Random)
	if len(order) == 0 {
		return nil
	}
	seen := make(map[int]bool) // transactions
	for _, n := range order {
		seen[t.transactionOf(nodes[n])] = true
	}
	t.verdict.Transactions, t.verdict.Statements = len(seen), len(order)
	for n, i := range t.steps {
		t.verdict.hear(i+1, &plain.Results[n])
	}
	return t.inOrders(g, plain)
}

// inOrders plays orders of a graph, all if they are few, and keeps the differences of the first that has any. One is
// enough: each has to give what the transactions gave (theorem 1).
func (t *serial) inOrders(g *sdg.Graph, plain *replay.Trace) error {
	o := &t.verdict.Orders
	nodes, same := t.statements(), make(map[string]int) // how many orders show a difference
	t.verdict.Graph = g
	for _, order := range t.choose(g) {
		steps := make([]int, len(order))
		for i, n := range order {
			steps[i] = nodes[n]
		}
		all, err := t.compare(steps, plain)
		if err != nil {
			return err
		}
		o.Played++
		for _, d := range all {
			same[differenceKey(d)]++
		}
		if len(all) == 0 {
			continue
		}
		if o.Wrong++; o.Wrong == 1 {
			t.verdict.Differences = all
		}
	}
	for i := range t.verdict.Differences {
		d := &t.verdict.Differences[i]
		d.By = o.words(t.verdict.Order, same[differenceKey(*d)])
	}
	return nil
}

// differenceKey tells a script's differences apart.
func differenceKey(d Difference) string {
	return fmt.Sprint(d.Step, d.Aspect, d.SQL, "\x00", d.Got, "\x00", d.Want)
}

// choose returns the orders that are played: all, or as many as may be, drawn at random.
func (t *serial) choose(g *sdg.Graph) [][]int {
	most := cmp.Or(t.Orders, serialOrders)
	all, more := g.Orders(max(countedOrders, most))
	t.verdict.Orders.There, t.verdict.Orders.More = len(all), more
	if !more {
		t.Random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:min(most, len(all))]
	}
	var drawn [][]int
	for len(drawn) < most {
		order := g.Order(t.Random)
		if !slices.ContainsFunc(drawn, func(x []int) bool { return slices.Equal(x, order) }) {
			drawn = append(drawn, order)
		}
	}
	return drawn
}

// compare plays statements in an order, in autocommit, and compares what they answer with what they did before.
func (t *serial) compare(order []int, plain *replay.Trace) (all []Difference, err error) {
	s := t.scenario(order)
	want, err := t.Play(t.ctx, s, t.level)
	if err != nil {
		return nil, err
	}
	for i, step := range order {
		got := &plain.Results[slices.Index(t.steps, step)]
		all = append(all, differences(step+1, answer{Result: got}, answer{Result: &want.Results[i]}, t.script.Closed)...)
	}
	for i := range t.script.Tables {
		got, want := &plain.Results[len(t.steps)+i], &want.Results[len(order)+i]
		if d := ofRows(got.Rows, want.Rows); d != nil {
			d.SQL, d.Aspect = got.SQL, Table
			all = append(all, *d)
		}
	}
	if t.verdict.Orders.Wrong > 0 { // what is shown is what the first of these gives
		return all, nil
	}
	t.verdict.Order = make([]int, len(order))
	for i, step := range order {
		t.verdict.Order[i] = step + 1
		t.verdict.expect(step+1, &want.Results[i])
	}
	return all, nil
}

// scenario returns the script with some of its steps, and a look at each table behind them.
func (t *serial) scenario(steps []int) *scenario.Scenario {
	s := *t.script.Scenario
	s.Steps, s.Sessions = nil, slices.Clone(s.Sessions)
	for _, i := range steps {
		x := t.script.Steps[i]
		x.AtOnce, x.Until = false, nil
		s.Steps = append(s.Steps, x)
	}
	for _, table := range t.script.Tables {
		s.Steps = append(s.Steps, scenario.Step{Session: reader, SQL: "SELECT * FROM " + table})
	}
	s.Sessions = append(s.Sessions, scenario.Session{Name: reader})
	return &s
}

// graph plays what is left of the script, and returns its graph if it has an order; else, or when something cannot be
// judged, less is left. The trace is of the script as it is.
func (t *serial) graph() (*sdg.Graph, *replay.Trace, error) {
	plain, err := t.schedule()
	if plain == nil || err != nil {
		return nil, nil, err
	}
	if out := t.besideUncommitted(); len(out) > 0 {
		return nil, nil, t.leaveOut(committedRead, out...)
	}
	h, err := t.observe(plain)
	if h == nil || err != nil {
		return nil, nil, err
	}
	g, err := sdg.New(h)
	if undone := (*sdg.UndoneError)(nil); errors.As(err, &undone) {
		return nil, nil, t.leaveOut(readUndone, t.statements()[undone.Statement])
	}
	if errors.Is(err, sdg.ErrUnplaced) {
		t.verdict.leaveOut(unplaced, len(t.statements()))
		return nil, nil, errNothingLeft
	}
	if err != nil {
		return nil, nil, err
	}
	if left, err := t.leaveOutStale(g); left || err != nil {
		return nil, nil, err
	}
	if cycles := g.Cycles(); len(cycles) > 0 {
		nodes := t.statements()
		var out []int
		for _, set := range cycles {
			out = append(out, nodes[set[t.Random.IntN(len(set))]])
		}
		return nil, nil, t.leaveOut(inCycle, out...)
	}
	return g, plain, nil
}

// leaveOutStale leaves out writes and locking reads that, as their engine has it, did not go by what their transactions
// saw of the rows that they write or lock.
func (t *serial) leaveOutStale(g *sdg.Graph) (left bool, err error) {
	if !goesByNewest(t.Server, t.level) {
		return false, nil
	}
	var out []int
	for n, i := range t.statements() {
		stale, err := g.Stale(n)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(stale, func(table string) bool { return slices.Contains(t.looks[i].locks, table) }) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return false, nil
	}
	return true, t.leaveOut(newestWritten, out...)
}

// besideUncommitted returns UPDATEs that, as their engine has it, went by committed versions of a table that another
// transaction had written and not committed.
func (t *serial) besideUncommitted() (out []int) {
	if !slices.ContainsFunc(committing, func(r newestRule) bool { return r.engine == t.Server.Engine && r.level == t.level }) {
		return nil
	}
	open := make(map[int][]string) // tables by the transaction that wrote them
	for n, i := range t.steps {
		own, written := t.transactionOf(i), t.looks[i].writes
		if strings.EqualFold(firstWord(t.script.Steps[i].SQL), "UPDATE") {
			for other, tables := range open {
				if other != own && slices.ContainsFunc(written, func(table string) bool { return slices.Contains(tables, table) }) {
					out = append(out, i)
					break
				}
			}
		}
		open[own] = append(open[own], written...)
		if last := !slices.ContainsFunc(t.steps[n+1:], func(i int) bool { return t.transactionOf(i) == own }); last {
			delete(open, own)
		}
	}
	return out
}

// schedule plays what is left of the script, and puts its steps into the order in which they end, until none waits for
// another session (blocking scheduling, section 4). The trace is nil when less is left.
func (t *serial) schedule() (*replay.Trace, error) {
	for range len(t.steps) + 1 {
		trace, err := t.Play(t.ctx, t.scenario(t.steps), t.level)
		if err != nil {
			return nil, err
		}
		if out := t.broken(&trace); len(out) > 0 {
			return nil, t.leaveOutTransactions(endedByOthers, out)
		}
		if !slices.ContainsFunc(trace.Results, func(r replay.Result) bool { return r.Blocked || r.Queued }) {
			return &trace, nil
		}
		var ended []int
		for _, e := range trace.Events {
			if e.Kind == replay.Ends && e.Step <= len(t.steps) {
				ended = append(ended, t.steps[e.Step-1])
			}
		}
		t.steps = ended
	}
	t.verdict.leaveOut(alwaysWaits, len(t.statements()))
	return nil, errNothingLeft
}

// broken returns steps that never ended, or that the server ended for what others did.
func (t *serial) broken(trace *replay.Trace) (all []int) {
	for n, i := range t.steps {
		r := &trace.Results[n]
		if r.Status == replay.Blocked || r.Status == replay.NotRun || r.DoneAfter == replay.AtEnd ||
			isEndedByOthers(t.Server.Engine, r.ErrorCode()) {
			all = append(all, i)
		}
	}
	return all
}

// statements are the steps that are left but for those that begin and end transactions, in the order in which they are
// sent: the nodes of the graph have these places.
func (t *serial) statements() (all []int) {
	for _, i := range t.steps {
		if !reduce.Bounds(t.script.Steps[i].SQL) {
			all = append(all, i)
		}
	}
	return all
}

// transactions are those of the script, by the places of their steps.
func (t *serial) transactions() [][]int { return reduce.Transactions(t.script.Steps) }

// transactionOf returns the number of a step's transaction.
func (t *serial) transactionOf(step int) int {
	return slices.IndexFunc(t.transactions(), func(steps []int) bool { return slices.Contains(steps, step) })
}

// leaveOut leaves steps out.
func (t *serial) leaveOut(why notJudged, out ...int) error {
	t.verdict.leaveOut(why, len(out))
	t.steps = slices.DeleteFunc(slices.Clone(t.steps), func(i int) bool { return slices.Contains(out, i) })
	if len(t.statements()) == 0 {
		return errNothingLeft
	}
	return nil
}

// leaveOutTransactions leaves out the whole transactions of steps.
func (t *serial) leaveOutTransactions(why notJudged, of []int) error {
	var out []int
	for _, steps := range t.transactions() {
		if !slices.ContainsFunc(steps, func(i int) bool { return slices.Contains(of, i) }) {
			continue
		}
		for _, i := range steps {
			if slices.Contains(t.steps, i) && !reduce.Bounds(t.script.Steps[i].SQL) {
				t.verdict.leaveOut(why, 1)
			}
		}
		out = append(out, steps...)
	}
	t.steps = slices.DeleteFunc(slices.Clone(t.steps), func(i int) bool { return slices.Contains(out, i) })
	if len(t.statements()) == 0 {
		return errNothingLeft
	}
	return nil
}

// goesByNewest reports whether an engine's writes and locking reads go by the newest versions that were committed and
// not by what their transaction sees: the paper's assumption 3 does not hold there.
func goesByNewest(s history.Server, level history.Level) bool {
	return slices.ContainsFunc(newest, func(n newestRule) bool { return n.engine == s.Engine && n.level == level })
}
