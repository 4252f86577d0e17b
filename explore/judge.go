package explore

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// A Kind of race, the surest to be a mistake first.
type Kind string

// The kinds.
const (
	DoubleInsert Kind = "double insert" // both looked for a row, did not find it, and insert one
	LostUpdate   Kind = "lost update"   // a number that both read is set by what each made of it
	WriteSkew    Kind = "write skew"    // each read what the other writes, and both wrote something else by it
	StaleChoice  Kind = "stale choice"  // both wrote by rows or values that the other's commit changes
	SameAgain    Kind = "same again"    // both set a value that is no number: what the second sets is what the first did
	OtherColumns Kind = "other columns" // two requests write one row, each other columns of it, and read all of it
)

var kinds = []Kind{DoubleInsert, LostUpdate, WriteSkew, StaleChoice, SameAgain, OtherColumns}

// Idle reports whether nothing may be lost by the race, or it is not known whether a client comes to it: it is told
// last. What is written besides by a stale read hangs on what a client makes of its answers before; and who loads an
// object to insert what belongs to it rarely goes by a number in that, which another sets.
func (r *Race) Idle() bool {
	return r.Kind == SameAgain || r.Kind == OtherColumns || r.Kind == StaleChoice && !r.Proved ||
		r.Kind == WriteSkew && r.loaded
}

// A Race is what two calls at once do, as the server has shown it.
type Race struct {
	Program string // the name of the program that reads the old
	Beside  string // that of the other; empty: it is the same
	Kind    Kind
	// Proved says that the racing twin was answered as the transaction up to the write. A real client would have sent
	// that write, too; otherwise it may have taken another way.
	Proved bool
	// Read is the statement that reads the old, and Write the one that succeeds all the same.
	Read, Write string
	// Column is what both set or go by, of Table; it is empty where rows came or went.
	Table, Column string
	// Row says which row both set, or what both looked for, by a column and its value: id 1. It is empty where the
	// statements do not say.
	Row string
	// Other is what the other one writes, where it is another call.
	Other string
	// Racing is what the racing twin read, and Serial what it reads after the commit. Wrote is what both set.
	Racing, Serial, Wrote string
	// UndoneBy is a column that another call of the same UPDATE sets, which writes Column back as it had read it, and
	// Likewise are the other columns with which it is so. Empty, where both calls set Column.
	UndoneBy string
	Likewise []string
	Txn      string // the recorded transaction that was played
	// Times is how many plays of the program showed it.
	Times int

	program string    // the shapes of its statements: two programs may have one name
	shapes  [2]string // those of Read and Write
	writes  string    // those of all statements that write
	alike   bool      // the other call writes the same, or begins with what has the shape of Write
	beside  string    // the shapes of all statements of Beside that write
	some    bool      // Read found rows, though not those that the other makes
	loaded  bool      // Read is of one row, with all columns; of these numbers changed, and Write inserts elsewhere
}

// A verdict is what one play of a program tells.
type verdict struct {
	races   []Race
	refused bool // the server refused the racing twin what the transaction was not
}

// judge makes races of what the twins read otherwise than the transaction. Apart says that the two write different
// rows.
func judge(s *schema, in *instance, racing, serial []difference, apart bool) verdict {
	faithful := len(in.statements) // the racing twin's statements before it were answered as the transaction's
	end := len(in.statements)      // from there on it wrote no more
	v := verdict{}
	for i, d := range racing {
		if i == 0 {
			faithful = d.at
		}
		if d.failed {
			v.refused, end = true, min(end, d.at)
			if in.block && d.at >= in.before && !in.savepoints() {
				return v // what it wrote before is rolled back with it
			}
		} else if in.statements[d.at].recorded.Kind == history.Update && d.fewer {
			end = min(end, d.at) // a client sees that, as with a version column
		}
	}
	for _, d := range serial {
		if d.failed || d.at >= faithful || in.statements[d.at].writes() {
			continue
		}
		again := in.setsAgain(&d, end)
		for at := d.at + 1; at < end; at++ {
			w := &in.statements[at]
			if w.notes(s) && again {
				continue // that both did the same is told by what they set
			}
			if w.writes() && !w.void && !w.missed(racing, at) && !w.stamps(s) && !d.readAnew(in, racing, at) && !foundNothing(racing, at) {
				v.races = append(v.races, races(s, in, d, at, at <= faithful, apart)...)
			}
		}
	}
	v.races = surest(v.races, playing)
	return v
}

// logged are names of tables in which programs note what they do.
var logged = regexp.MustCompile(`(?i)(^|_)(logs?|audit|trail|activity|activities|history|revisions?)(_|$)`)

// notes reports whether a statement adds to a table of what was done: it has the name of one, or many programs that
// write something else add to it.
func (s *statement) notes(of *schema) bool {
	return s.inserts() && (logged.MatchString(s.target) || of.journals[strings.ToLower(s.target)])
}

// manyNote is how many different programs add to a table where programs note what they do.
const manyNote = 4

// journalsOf returns the tables, in lower case, that many programs add to beside what else they write.
func journalsOf(instances []*instance) map[string]bool {
	by := make(map[string]map[string]bool)
	for _, in := range instances {
		for i := range in.statements {
			s := &in.statements[i]
			table := strings.ToLower(s.target)
			if !s.inserts() || !slices.ContainsFunc(in.statements, func(o statement) bool {
				return o.writes() && !strings.EqualFold(o.target, table)
			}) {
				continue
			}
			if by[table] == nil {
				by[table] = make(map[string]bool)
			}
			by[table][in.writings()] = true
		}
	}
	journals := make(map[string]bool)
	for table, programs := range by {
		journals[table] = len(programs) >= manyNote
	}
	return journals
}

// missed reports whether a write changed no row, neither when it was recorded nor at the racing twin's.
func (s *statement) missed(racing []difference, at int) bool {
	return (s.recorded.Kind == history.Update || s.recorded.Kind == history.Delete) && s.changed() == 0 &&
		!slices.ContainsFunc(racing, func(r difference) bool { return r.at == at })
}

// setsAgain reports whether a write, of those up to end, sets a column that a read shows otherwise.
func (in *instance) setsAgain(d *difference, end int) bool {
	for at := d.at + 1; at < end; at++ {
		w := &in.statements[at]
		if !w.void && w.recorded.Kind == history.Update && slices.ContainsFunc(d.changed, func(c change) bool {
			_, sets := w.assigns(c.of)
			return sets
		}) {
			return true
		}
	}
	return false
}

// foundNothing reports whether the racing twin's write changed no row, where the transaction's did: it was not late for
// anything.
func foundNothing(racing []difference, at int) bool {
	return slices.ContainsFunc(racing, func(r difference) bool { return r.at == at && r.none })
}

// readAnew reports whether the racing twin read what changed once more, as the commit left it, before a write: the
// write goes by that, as behind a look outside of the transaction that locks the row and looks again. A lock on rows
// that it does not look for is none of that, as on all of a table, for one to be written after the other.
func (d *difference) readAnew(in *instance, racing []difference, write int) bool {
	return slices.ContainsFunc(racing, func(r difference) bool {
		again := in.statements[r.at].recorded
		if r.at <= d.at || r.at >= write || r.failed || r.rows != d.rows || again.Kind != history.Select {
			return false
		}
		if d.rows {
			return (again.Locking != history.NoLock && in.statements[r.at].seeks(&in.statements[d.at]) ||
				again.Shape == in.statements[d.at].recorded.Shape) &&
				slices.ContainsFunc(d.tables, func(t string) bool { return slices.Contains(r.tables, t) })
		}
		return !slices.ContainsFunc(d.changed, func(c change) bool { return !slices.Contains(r.changed, c) })
	})
}

// seeks reports whether a statement compares a column with the same value as an earlier look did. A look that compares
// no column is sought by any.
func (s *statement) seeks(look *statement) bool {
	compared := false
	return slices.ContainsFunc(look.literals, func(l literal) bool {
		if l.column.name == "" {
			return false
		}
		compared = true
		return slices.ContainsFunc(s.literals, func(m literal) bool {
			return strings.EqualFold(m.column.name, l.column.name) && m.value == l.value
		})
	}) || !compared
}

// races returns what a write by a stale read is.
func races(s *schema, in *instance, d difference, at int, proved, apart bool) []Race {
	read, write := &in.statements[d.at], &in.statements[at]
	race := Race{Program: in.name(s), program: in.program(), Proved: proved, Read: read.text, Write: write.text, Row: s.rowOf(write),
		shapes: [2]string{read.recorded.Shape, write.recorded.Shape}, writes: in.writings(), Txn: in.id.String(), Times: 1, some: d.rows && d.found > 0}
	absent := d.absent(write.target)
	switch {
	case write.upsert && absent && len(write.overwrites) > 0:
		race.Kind, race.Table, race.Column = LostUpdate, write.target, write.overwrites[0]
		return []Race{race}
	case write.upsert && absent:
		return nil // it looks for itself
	case write.inserts() && absent:
		race.Kind, race.Table, race.Row = DoubleInsert, write.target, s.soughtBy(read, write.target)
		return []Race{race}
	}
	var all []Race
	for _, c := range d.changed {
		value, ok := write.assigns(c.of)
		if !ok {
			continue
		}
		race.Kind = SameAgain
		if isNumber(c) {
			race.Kind = LostUpdate
		}
		race.Table, race.Column, race.Wrote = c.of.table, c.of.name, value
		race.Racing, race.Serial = c.was.String(), c.now.String()
		all = append(all, race)
	}
	if len(all) > 0 || !apart && write.looksAgain(d) {
		return all
	}
	race.Kind, race.loaded = StaleChoice, write.inserts() && d.loads(write.target)
	if race.Table = write.target; len(d.changed) > 0 {
		c := d.changed[0]
		race.Row = s.soughtBy(read, c.of.table)
		race.Table, race.Column, race.Racing, race.Serial = c.of.table, c.of.name, c.was.String(), c.now.String()
	}
	return []Race{race}
}

// loads reports whether one row came, with all columns, of which others than a table's own changed, and these are
// numbers that tell no state: programs go by states, and many have numbers for them.
func (d *difference) loads(table string) bool {
	return d.found == 1 && d.whole && !slices.ContainsFunc(d.changed, func(c change) bool {
		return !isNumber(c) || c.truth || stateNames.MatchString(c.of.name) || strings.EqualFold(c.of.table, table)
	})
}

// stateNames are names of columns that hold states.
var stateNames = regexp.MustCompile(`(?i)(stat(e|us)|type|kind|role|phase|step|flag|mode|level|active|enabled|open|closed|` +
	`locked|blocked|deleted|archived|published|approved|visible|^is_|^has_)`)

// absent reports whether the twin found rows of a table that were not there before, or not so many: of an outer join,
// a key that was NULL.
func (d *difference) absent(table string) bool {
	if d.rows {
		return slices.ContainsFunc(d.tables, func(t string) bool { return strings.EqualFold(t, table) })
	}
	return slices.ContainsFunc(d.changed, func(c change) bool {
		return c.key && c.was.Null && !c.now.Null && strings.EqualFold(c.of.table, table)
	})
}

// rowOf names the row that a write changes, by the key in its condition.
func (s *schema) rowOf(write *statement) string {
	if of, value, ok := s.keyOf(write); ok {
		return of.name + " " + value
	}
	return ""
}

// keyOf returns by which value of which key a write names the row that it changes.
func (s *schema) keyOf(write *statement) (key column, value string, ok bool) {
	for i := range write.literals {
		l := &write.literals[i]
		of, known := s.of(l)
		if known && !l.assigned && s.unique[of] && strings.EqualFold(of.table, write.target) && !write.inserts() {
			return of, l.value, true
		}
	}
	return column{}, "", false
}

// soughtBy names what a read looks for in a table, by the first two columns that it compares with a value.
func (s *schema) soughtBy(read *statement, table string) string {
	var by []string
	for i := range read.literals {
		l := &read.literals[i]
		of, known := s.of(l)
		if !known || len(by) == 2 {
			continue
		}
		name := of.String()
		if strings.EqualFold(of.table, table) {
			name = of.name
		}
		if name += " " + l.value; !slices.Contains(by, name) {
			by = append(by, name)
		}
	}
	return strings.Join(by, " and ")
}

// looksAgain reports whether a write goes by the columns that changed as they are when it comes: it calculates with
// them, or asks for them in its condition. A key in its condition says which row it takes, and asks for nothing.
func (s *statement) looksAgain(d difference) bool {
	return len(d.changed) > 0 && !slices.ContainsFunc(d.changed, func(c change) bool {
		return c.key || !strings.EqualFold(c.of.table, s.target) || !slices.ContainsFunc(s.tokens, func(t sqltoken.Token) bool {
			name, _, ok := t.Name()
			return ok && strings.EqualFold(name, c.of.name)
		})
	})
}

// assigns returns the value that a statement sets a column to.
func (s *statement) assigns(c column) (string, bool) {
	if !strings.EqualFold(s.target, c.table) {
		return "", false
	}
	for name, value := range s.sets {
		if strings.EqualFold(name, c.name) {
			return value, true
		}
	}
	return "", slices.ContainsFunc(s.overwrites, func(name string) bool { return strings.EqualFold(name, c.name) })
}

// isNumber reports whether a value is one that is counted with: a key's number names something.
func isNumber(c change) bool {
	for _, v := range []string{c.was.Text, c.now.Text} {
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return false
		}
	}
	name := strings.ToLower(c.of.name)
	return name != "id" && !strings.HasSuffix(name, "_id") && !strings.HasSuffix(c.of.name, "Id")
}

// A phase says whether all plays are over.
type phase bool

const (
	playing phase = false // what one call sets may turn out to be lost by others ([writeBacks.tell])
	played  phase = true
)

// surest keeps, of the races about one thing, the surest. What is written besides by a stale read is told where there
// is nothing else, and once; while plays go on, beside the same value that both set.
func surest(all []Race, p phase) []Race {
	rank(all)
	var kept []Race
	for _, r := range all {
		at := slices.IndexFunc(kept, func(k Race) bool {
			return k.isOf(&r) && k.covers(&r) && (p == played || k.Kind != StaleChoice || r.Kind != SameAgain)
		})
		if at < 0 {
			kept = append(kept, r)
		} else if kept[at].Kind == r.Kind {
			kept[at].Times += r.Times
		}
	}
	return kept
}

// isOf reports whether two races are of one program, or of two that differ in what they read besides: of autocommit, a
// read that came just before is among those.
func (r *Race) isOf(other *Race) bool {
	return r.program == other.program ||
		r.shapes == other.shapes && r.writes == other.writes && (r.Beside == other.Beside || r.alike || other.alike)
}

// covers reports whether a race says what another one of its program does, or more.
func (r *Race) covers(other *Race) bool {
	return other.Kind == StaleChoice || r.Table == other.Table && r.Column == other.Column
}

// rank sorts races, the surest first: by kind, and of one kind those whose path is proved; idle ones last.
func rank(all []Race) {
	slices.SortStableFunc(all, func(a, b Race) int {
		return cmp.Or(falseFirst(a.Idle(), b.Idle()), cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			falseFirst(b.Proved, a.Proved))
	})
}

// falseFirst compares two truths, as cmp.Compare does numbers.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
