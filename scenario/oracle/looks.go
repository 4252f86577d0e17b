package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/sqltoken"
)

// looks are the tables that a statement looks at, as its schema spells them.
type looks struct {
	tables []string // all
	values []string // of a write, those that only give it values
	writes []string // those that it may write; none: it is a read
	locks  []string // those that it writes or locks
}

// prepare finds out what each statement looks at, and leaves out those that cannot be judged by themselves.
func (t *serial) prepare() error {
	family := t.Server.Engine.Family()
	t.schema = &footprint.Schema{}
	for _, text := range t.script.Setup {
		if _, err := t.schema.Read(family, text); err != nil {
			return err
		}
	}
	if t.script.Tables == nil {
		for _, table := range t.schema.Tables() {
			if !table.View {
				t.script.Tables = append(t.script.Tables, quoted(t.Server.Engine, table.Name))
			}
		}
	}
	t.looks = make(map[int]looks)
	out := make(map[notJudged][]int)
	moving := volatilesOf(family, t.script.Scenario, true).steps(t.script.Scenario)
	for i, x := range t.script.Steps {
		if reduce.Bounds(x.SQL) {
			continue
		}
		if why, ok := moving[i]; ok {
			out[why] = append(out[why], i)
			continue
		}
		why, ok := t.look(i, x.SQL)
		if !ok {
			out[why] = append(out[why], i)
		}
	}
	if steps := out[undoing]; len(steps) > 0 { // what they undo is the transaction's
		if err := t.leaveOutTransactions(undoing, steps); err != nil {
			return err
		}
	}
	for _, why := range []notJudged{volatileSetup, volatileStep, refusedReadOnly, unread, undetermined} {
		if err := t.leaveOut(why, out[why]...); err != nil {
			return err
		}
	}
	return nil
}

// look finds out what a statement looks at. Of one that cannot be judged ok is false.
func (t *serial) look(step int, sql string) (why notJudged, ok bool) {
	if isSavepoint(sql) {
		return undoing, false
	}
	if skipsLocked(t.Server.Engine.Family(), sql) {
		return undetermined, false
	}
	f, err := footprint.Of(t.Server.Engine.Family(), sql, t.schema)
	if err != nil {
		return unread, false
	}
	var l looks
	predicates := make(map[string]bool)
	for _, s := range f.Steps {
		for _, a := range s.Either {
			if a.Table.View || a.Table.Triggers {
				return unread, false
			}
			add(&l.tables, a.Table.Name)
			writes := a.Type != robust.KeySel && a.Type != robust.PredSel
			if writes {
				add(&l.writes, a.Table.Name)
				if a.Type == robust.Ins && slices.ContainsFunc(a.Table.Columns, numbered) {
					return undetermined, false
				}
			}
			if writes || a.Lock != robust.NoLock {
				add(&l.locks, a.Table.Name)
			}
			predicates[a.Table.Name] = predicates[a.Table.Name] || writes || a.PRead.Defined()
		}
	}
	if len(l.writes) > 1 { // a foreign key's action: isotap does not see what it does everywhere
		return unread, false
	}
	for _, table := range l.tables {
		if len(l.writes) > 0 && !predicates[table] {
			l.values = append(l.values, table)
		}
	}
	for _, f := range t.schema.Functions() { // which the server holds a write against
		for _, table := range l.writes {
			if f.Child.Name == table {
				add(&l.tables, f.Parent.Name)
			}
			if f.Parent.Name == table {
				add(&l.tables, f.Child.Name)
			}
		}
	}
	t.looks[step] = l
	return 0, true
}

func numbered(c footprint.Column) bool { return c.Counts || c.Always }

func add(all *[]string, name string) {
	if !slices.Contains(*all, name) {
		*all = append(*all, name)
	}
}

// skipsLocked reports whether a statement leaves out, or fails by, what others have locked.
func skipsLocked(family dbms.Family, sql string) bool {
	tokens, err := sqltoken.Scan(family, sql)
	if err != nil {
		return false
	}
	for i, w := range tokens {
		if w.Is("NOWAIT") || w.Is("SKIP") && i+1 < len(tokens) && tokens[i+1].Is("LOCKED") {
			return true
		}
	}
	return false
}

// quoted returns a table's name as its engine's SQL has it.
func quoted(engine dbms.Engine, name string) string {
	quote := "`"
	if engine == dbms.PostgreSQL {
		name, quote = strings.ToLower(name), `"`
	}
	return quote + strings.ReplaceAll(name, quote, quote+quote) + quote
}

// rowTable returns the name that a recorded row's table has in the schema: it is there without the database, in any
// case.
func rowTable(row history.Row) string {
	_, name, _ := strings.Cut(row.Table, ".")
	name, _, _ = strings.Cut(name, "@")
	return strings.ToLower(name)
}

// origin names a step, or a read of a table beside it, as a comment that isotap records says it (sqlcommenter).
type origin struct {
	step  int
	at    moment
	table string // of a read
}

// A moment is when a table is read beside a step; itself is the step.
type moment string

const (
	itself moment = "itself"
	before moment = "before"
	after  moment = "after"
)

func (o origin) String() string { return fmt.Sprintf("step-%d-%s-%s", o.step, o.at, o.table) }

// on returns a statement with the comment behind it.
func (o origin) on(sql string) string {
	return fmt.Sprintf("%s /*file='%s'*/", strings.TrimRight(sql, "; \n"), o)
}

// sql is the read.
func (o origin) sql(engine dbms.Engine) string {
	return o.on("SELECT * FROM " + quoted(engine, o.table))
}
