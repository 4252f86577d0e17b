package analyzer

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
	sqlshape "github.com/isotap/isotap/sqltoken/shape"
)

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
	constant      bool    // the value is a literal or a parameter
	computed      bool    // the value uses what the column holds
	adds          float64 // to what the column holds, below zero where it takes away; 0: nothing, or it does something else
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
	if !s.constant {
		return 0, false
	}
	return numberOf(s.value)
}

// numberOf returns the number that a literal is, quoted or not.
func numberOf(literal string) (float64, bool) {
	value := strings.Trim(literal, "'")
	if strings.Trim(value, "+-.0123456789eE") != "" {
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
			d.sets = append(d.sets, setting{a.column, value, a.literal(), computed, f.adds(&a)})
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

// adds returns what an assignment adds to its column, as [setting].adds.
func (f *filler) adds(a *assignment) float64 {
	addend := a.addend()
	if addend == nil {
		return 0
	}
	literal := &addend[1]
	amount, known := numberOf(f.fill(literal.start(f.shape), literal.start(f.shape)+len(literal.text)))
	if !known {
		return 0
	}
	if addend[0].text == "-" {
		return -amount
	}
	return amount
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
