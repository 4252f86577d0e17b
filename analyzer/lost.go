package analyzer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
	sqlshape "github.com/isotap/isotap/sqltoken/shape"
)

// lost says in values and keys what came of the witness, and whether that is little: two updates that share no column,
// or only the time of the change. Both are empty where the statements do not tell.
func (t *explainer) lost() (sentence string, slight bool, err error) {
	switch t.f.Anomaly {
	case StaleOverwrite:
		return t.lostUpdate()
	case DoubleInsert:
		return t.insertedTwice(), false, nil
	}
	if len(t.f.Witness) != 2 {
		return "", false, nil
	}
	switch t.f.Anomaly {
	case LostUpdate:
		if sentence, slight, err = t.lostUpdate(); err != nil || !slight {
			return sentence, slight, err
		}
		more, err := t.besides()
		if more == "" || err != nil {
			return sentence, slight, err
		}
		return more + " Besides, " + sentence, false, nil
	case WriteSkew, PhantomSkew:
		return t.skewed(), false, nil
	}
	return "", false, nil
}

// insertedTwice tells what two requests looked for and inserted.
func (t *explainer) insertedTwice() string {
	switch table, by := t.lookedFor(); {
	case table == "":
		return ""
	case len(by) == 0:
		return table + ": two requests looked for any row, found none, and both inserted one."
	default:
		return fmt.Sprintf("%s with %s: two requests looked for one, found none, and both inserted one.", table, settings(by))
	}
}

// lookedFor returns the table and the values that the witness' first statement looked for and the next one inserted; an
// empty table where that is not known.
func (t *explainer) lookedFor() (table string, by []setting) {
	e := &t.f.Witness[0]
	l, ins := lookupOf(t.family, e.FromStmt.Shape), insertionOf(t.family, e.ToStmt.Shape)
	if l == nil || ins == nil {
		return "", nil
	}
	if by = l.finds(e.FromStmt.Args, ins, e.ToStmt.Args); by == nil {
		return "", nil
	}
	return l.table, by
}

// lostUpdate tells of a row that one transaction read, another wrote, and the first wrote over.
func (t *explainer) lostUpdate() (sentence string, slight bool, err error) {
	last := &t.f.Witness[1]
	first, second := deedOf(t.family, last.FromStmt), deedOf(t.family, last.ToStmt)
	if first == nil || second == nil || second.where == "" {
		return "", false, nil
	}
	row := second.table + " where " + second.where
	if t.f.Class != Unprotected && t.lockedAgain(last) {
		return fmt.Sprintf("%s: a transaction that had read the row read it again, with a lock, and then wrote it over what another "+
			"had done in between: nothing is lost unless it went by what it had read first.", row), true, nil
	}
	if sawWhatItOverwrote(last) {
		return "", false, nil
	}
	if second.kind == history.Delete {
		return fmt.Sprintf("%s: one %s %s, and another, which had read the row before, deleted it.", row, t.party(),
			first.did()), false, nil
	}
	if first.kind != history.Update {
		return "", false, nil
	}
	both := first.shared(second)
	if len(both) == 0 {
		return fmt.Sprintf("%s: one %s set %s, and another, which had read the row before, set %s: "+
			"no column of both, so that neither change is lost by itself.", row, t.party(), first.columns(), second.columns()), true, nil
	}
	values := slices.DeleteFunc(slices.Clone(both), tellsTime)
	if len(values) == 0 {
		return fmt.Sprintf("%s: of what two %ss set, only %s collides.", row, t.party(), strings.Join(both, ", ")), true, nil
	}
	before, err := t.before()
	if err != nil {
		return "", false, err
	}
	if was := before.was(values); was != "" {
		row += ", " + was
	}
	return row + ": " + second.over(t.party(), first, before, values), false, nil
}

// sawWhatItOverwrote reports whether a transaction read a version before it wrote over it: it may have gone by that
// one, whatever it had read earlier.
func sawWhatItOverwrote(e *Edge) bool {
	return slices.ContainsFunc(e.To.Stmts, func(s history.Stmt) bool { return s.Num < e.ToStmt.Num && sawOverwritten(&s, e) })
}

// sawOverwritten reports whether a statement read the version that another of its transaction wrote over.
func sawOverwritten(s *history.Stmt, e *Edge) bool {
	return slices.ContainsFunc(s.Accesses, func(a history.Access) bool {
		return a.Op == history.Read && a.Row == e.Row && a.Version == e.Version
	})
}

// lockedAgain reports whether a transaction read a version with a lock before it wrote over it: who does that means to
// go by it, whatever he had read earlier. A SELECT that locks rows of the table, and was not observed, may have.
func (t *explainer) lockedAgain(e *Edge) bool {
	first := t.f.Witness[0].FromStmt
	return first != nil && slices.ContainsFunc(e.To.Stmts, func(s history.Stmt) bool {
		if s.Num <= first.Num || s.Num >= e.ToStmt.Num || s.Kind != history.Select || s.Locking == history.NoLock || s.Void {
			return false
		}
		return s.Observation != history.Exact && t.names(s.Shape, e.Row.Table) || sawOverwritten(&s, e)
	})
}

// names reports whether a shape has a table's name.
func (t *explainer) names(shape, table string) bool {
	return slices.ContainsFunc(wordsOf(t.family, shape), func(w word) bool {
		return w.name && strings.EqualFold(w.text, plainName(table))
	})
}

// party is what reads and writes.
func (t *explainer) party() string {
	if t.f.Class == Unprotected {
		return "request"
	}
	return "transaction"
}

// over says what it is to set columns that another party has set since they were read. Before is the deed that left
// what was read; nil if it is not known.
func (d *deed) over(party string, first, before *deed, columns []string) string {
	apart := first.differing(d, columns)
	if len(apart) > 0 {
		columns = apart
	}
	was, is := first.setting(columns), d.setting(columns)
	computed := slices.ContainsFunc(columns, func(c string) bool { return d.settingOf(c).computed })
	counted := slices.ContainsFunc(columns, func(c string) bool { return d.settingOf(c).amount() })
	switch {
	case computed:
		return fmt.Sprintf("one %s set %s; another had read the row before that, and by what it had read set %s.", party, was, is)
	case len(apart) == 0 && slices.ContainsFunc(columns, func(c string) bool { return d.settingOf(c).cut() }):
		return "two " + party + "s read it, and both wrote " + strings.Join(columns, ", ") + "."
	case len(apart) > 0:
		return fmt.Sprintf("one %s set %s, and another, which had read the row before that, set %s over it. "+
			"The first change%s is gone.", party, was, is, first.change(before, columns))
	case counted:
		return fmt.Sprintf("two %ss read it, and both set %s. One of the two changes%s is gone.", party, is,
			first.change(before, columns))
	}
	return fmt.Sprintf("two %ss read it, and both set %s. The second did not know of the first.", party, is)
}

// skewed tells of two transactions of which each read what the other was about to change.
func (t *explainer) skewed() string {
	var reads, deeds [2]*deed
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind != RW || e.FromStmt == nil {
			return ""
		}
		reads[i], deeds[1-i] = deedOf(t.family, e.FromStmt), deedOf(t.family, e.ToStmt)
	}
	for i := range reads {
		if reads[i] == nil || reads[i].where == "" || deeds[i] == nil {
			return ""
		}
	}
	if reads[0].kind != history.Select || reads[1].kind != history.Select {
		return ""
	}
	looked := [2]string{reads[0].table + " where " + reads[0].where, reads[1].table + " where " + reads[1].where}
	if looked[0] != looked[1] {
		return fmt.Sprintf("One transaction read %s and %s; another read %s and %s. Neither knew of the other's change.",
			looked[0], deeds[0].did(), looked[1], deeds[1].did())
	}
	if a, b := deeds[0].did(), deeds[1].did(); a != b {
		return fmt.Sprintf("Two transactions read %s; then one %s, and the other %s. Neither knew of the other's change.",
			looked[0], a, b)
	}
	return fmt.Sprintf("Two transactions read %s; then both %s. Neither knew of the other's change.", looked[0],
		deeds[0].did())
}

// change says by how much a number differs from what it was before; empty where that is not one number.
func (d *deed) change(before *deed, columns []string) string {
	if len(columns) != 1 || before.was(columns) == "" {
		return ""
	}
	from, known := before.settingOf(columns[0]).number()
	to, numeric := d.settingOf(columns[0]).number()
	if !known || !numeric || from == to {
		return ""
	}
	return fmt.Sprintf(" (%+.10g)", to-from)
}

// before returns the deed that left the row as the witness's first transaction read it; nil if it is not known.
func (t *explainer) before() (*deed, error) {
	tag := t.f.Witness[0].Version
	compact, err := t.a.store.tag(tag)
	if err != nil || tag.Initial() {
		return nil, err
	}
	i := t.a.store.find(compact)
	if i < 0 {
		return nil, nil
	}
	writer, err := t.a.load(i)
	if err != nil {
		return nil, err
	}
	for k := range writer.Stmts {
		if s := &writer.Stmts[k]; s.Num == tag.Stmt {
			return deedOf(t.family, s), nil
		}
	}
	return nil, nil
}

// A deed is what a statement did or looked at, in its own words.
type deed struct {
	kind  history.Kind
	table string // as the statement names it, without a schema
	where string // with its values; empty: it has none, or one too long to be told in a sentence
	sets  []setting
}

// A setting is an assignment with its value.
type setting struct {
	column, value string
	constant      bool // the value is a literal or a parameter
	computed      bool // the value uses what the column holds
}

// amount reports whether the value is a number, and none that may be a truth value.
func (s *setting) amount() bool {
	n, ok := s.number()
	return ok && n != 0 && n != 1
}

// cut reports whether the value may be longer than what was recorded of it.
func (s *setting) cut() bool { return len(s.value) >= sqlshape.MaxArg }

// number returns the value where it is a number. Drivers that send parameters as text quote it.
func (s *setting) number() (float64, bool) {
	value := strings.Trim(s.value, "'")
	if !s.constant || strings.Trim(value, "+-.0123456789eE") != "" {
		return 0, false // NaN, too, and what begins with 0x
	}
	n, err := strconv.ParseFloat(value, 64)
	return n, err == nil
}

const (
	maxWhere   = 100 // characters of a WHERE in a sentence
	maxValue   = 40  // of a value
	maxSetting = 3   // columns that are named
)

// deedOf returns what a statement did; nil where its text does not tell, or not all values of it are known.
func deedOf(family dbms.Family, s *history.Stmt) *deed {
	if s == nil || s.Unseen || s.Shape == "" {
		return nil
	}
	f := filler{shape: s.Shape, places: sqltoken.Values(family, s.Shape), args: s.Args}
	words := wordsOf(family, s.Shape)
	table := tableOf(words, s.Kind)
	if len(f.places) != len(f.args) || table == "" {
		return nil
	}
	d := &deed{kind: s.Kind, table: table, where: f.where(words)}
	if s.Kind == history.Update {
		all, read := countAssignments(words), assignmentsOf(family, s.Shape)
		if len(read) != all {
			return nil // of several columns at once, or of a part of one
		}
		for _, a := range read {
			value := f.fill(a.value[0].start(s.Shape), endOf(s.Shape, words, a.value))
			computed := slices.ContainsFunc(a.value, func(w word) bool { return w.name && strings.EqualFold(w.text, a.column) })
			d.sets = append(d.sets, setting{a.column, value, a.literal(), computed})
		}
	}
	return d
}

// tableOf returns the table of an UPDATE, a DELETE, an INSERT or a SELECT of one table; empty for others.
func tableOf(words []word, kind history.Kind) string {
	before := map[history.Kind]string{history.Update: "UPDATE", history.Delete: "FROM", history.Insert: "INTO",
		history.Select: "FROM"}[kind]
	depth := 0
	at := slices.IndexFunc(words, func(w word) bool { return nest(&depth, w) == 0 && before != "" && w.keyword(before) }) + 1
	if at < len(words) && words[at].keyword("ONLY") {
		at++
	}
	if at == 0 || at >= len(words) || !words[at].name {
		return ""
	}
	if at+2 < len(words) && words[at+1].text == "." && words[at+2].name {
		at += 2
	}
	depth = 0
	if kind != history.Insert && slices.ContainsFunc(words[at+1:], func(w word) bool {
		return nest(&depth, w) == 0 && (w.keyword("JOIN") || w.keyword("UNION") || w.keyword("GROUP"))
	}) {
		return ""
	}
	return words[at].text
}

// did says in the past tense what a writing statement did.
func (d *deed) did() string {
	switch {
	case d.kind == history.Insert:
		return "inserted into " + d.table
	case d.kind == history.Delete && d.where != "":
		return "deleted from " + d.table + " where " + d.where
	case d.kind == history.Update && len(d.sets) > 0 && d.where != "":
		return "set " + settings(d.sets) + " in " + d.table + " where " + d.where
	case d.kind == history.Update:
		return "updated " + d.table
	}
	return "wrote to " + d.table
}

// shared returns the columns that both set, in the first's order.
func (d *deed) shared(other *deed) []string {
	var columns []string
	for _, s := range d.sets {
		if other.settingOf(s.column) != nil {
			columns = append(columns, s.column)
		}
	}
	return columns
}

// settingOf returns the setting of a column; nil if it sets another.
func (d *deed) settingOf(column string) *setting {
	for i := range d.sets {
		if strings.EqualFold(d.sets[i].column, column) {
			return &d.sets[i]
		}
	}
	return nil
}

// differing returns those of the columns that the two set to different values.
func (d *deed) differing(other *deed, columns []string) []string {
	return slices.DeleteFunc(slices.Clone(columns), func(c string) bool {
		return d.settingOf(c).value == other.settingOf(c).value
	})
}

func (d *deed) columns() string {
	names := make([]string, 0, len(d.sets))
	for _, s := range d.sets {
		names = append(names, s.column)
	}
	return strings.Join(names, ", ")
}

// setting says what it sets of the columns.
func (d *deed) setting(columns []string) string {
	var sets []setting
	for _, c := range columns {
		sets = append(sets, *d.settingOf(c))
	}
	return settings(sets)
}

func settings(sets []setting) string {
	var parts []string
	for i, s := range sets {
		if i == maxSetting && len(sets) > maxSetting+1 {
			parts = append(parts, strconv.Itoa(len(sets)-i)+" more columns")
			break
		}
		parts = append(parts, s.column+" = "+clipValue(s.value))
	}
	return strings.Join(parts, ", ")
}

// was says what it left in the columns, where it left constants in all of them.
func (d *deed) was(columns []string) string {
	if d == nil {
		return ""
	}
	var parts []string
	for _, c := range columns {
		s := d.settingOf(c)
		if s == nil || !s.constant {
			return ""
		}
		parts = append(parts, s.column+" was "+clipValue(s.value))
	}
	if len(parts) > maxSetting {
		return ""
	}
	return strings.Join(parts, ", ")
}

// timed are names that columns have which tell when a row was changed.
var timed = regexp.MustCompile(`(?i)^((date_?|last_?)*(updated?|modif(ied|y)|changed?|edit(ed)?|touched|mtime|seen|login)` +
	`|(page|post|user|row|rec)_(touched|modified|mtime))(_?(at|on|time|date|ts|timestamp|gmt))*$`)

// tellsTime reports whether a column's name says that it tells when the row was changed.
func tellsTime(column string) bool { return timed.MatchString(column) }

// A filler puts arguments into parts of a shape.
type filler struct {
	shape  string
	places []int
	args   []string
}

// fill returns the shape from one place to another, with its values.
func (f *filler) fill(from, to int) string {
	first, _ := slices.BinarySearch(f.places, from)
	end, _ := slices.BinarySearch(f.places, to)
	places := make([]int, 0, end-first)
	texts := make([]string, 0, end-first)
	for i := first; i < end; i++ {
		places, texts = append(places, f.places[i]-from), append(texts, f.args[i])
	}
	return strings.Join(strings.Fields(sqltoken.Fill(f.shape[from:to], places, texts)), " ")
}

// countAssignments counts what an UPDATE sets, read or not.
func countAssignments(words []word) (n int) {
	depth, set := 0, false
	for _, w := range words {
		switch outside := nest(&depth, w) == 0; {
		case !outside:
		case !set:
			set = w.keyword("SET")
			if set {
				n = 1
			}
		case slices.ContainsFunc(behindSet, w.keyword):
			return n
		case w.text == "," && !w.name:
			n++
		}
	}
	return n
}

// clipValue cuts a value that is too long for a sentence.
func clipValue(value string) string {
	if r := []rune(value); len(r) > maxValue {
		return string(r[:maxValue-1]) + "…"
	}
	return value
}

// where returns the condition of a statement's own WHERE with its values; empty where it is long or has none.
func (f *filler) where(words []word) string {
	condition := conditionOf(words)
	if len(condition) == 0 {
		return ""
	}
	text := f.fill(condition[0].start(f.shape), endOf(f.shape, words, condition))
	if len(text) > maxWhere {
		return ""
	}
	return text
}

// conditionOf returns the words of a statement's own WHERE, none where it has none.
func conditionOf(words []word) []word {
	depth := 0
	from := slices.IndexFunc(words, func(w word) bool { return nest(&depth, w) == 0 && w.keyword("WHERE") }) + 1
	if from == 0 {
		return nil
	}
	depth = 0
	length := slices.IndexFunc(words[from:], func(w word) bool {
		return nest(&depth, w) == 0 && slices.ContainsFunc(behindWhere, w.keyword)
	})
	if length < 0 {
		length = len(words) - from
	}
	return words[from : from+length]
}

// behindWhere are keywords that may stand behind a condition.
var behindWhere = []string{"ORDER", "GROUP", "HAVING", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK", "RETURNING", "UNION",
	"WINDOW"}

// start is where a word begins in its shape, its quote included.
func (w *word) start(shape string) int {
	if w.quoted && w.at > 0 {
		return w.at - 1
	}
	return w.at
}

// endOf is where the last of some of a shape's words ends.
func endOf(shape string, words, part []word) int {
	last := part[len(part)-1]
	i := slices.IndexFunc(words, func(w word) bool { return w.at > last.at })
	if i < 0 {
		return len(strings.TrimRight(shape, " \t\n;"))
	}
	return words[i].start(shape)
}
