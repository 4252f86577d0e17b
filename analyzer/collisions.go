package analyzer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A collision is what an UPDATE of one request has to do with another's before it, by the shapes of the statements: of
// what the first request had read of the row, which columns both change.
type collision struct {
	set   []string // the second sets these to constants, and the first sets them too
	taken []string // the second takes amounts away from these, and the first changes them
}

// overwriting are the shapes of a read, of another request's UPDATE, and of the UPDATE over that.
type overwriting struct{ read, first, second int32 }

// overtaken returns what became of a request that wrote over another's change of a row which it had read before: a
// [StaleOverwrite] or a [StaleDecision]; empty where nothing tells that it went by what was no more.
func (r *requests) overtaken(witness []dep) (Anomaly, error) {
	family := r.a.engine(r.o.id(witness[0].from).Run()).Family()
	m := r.collisionOf(family, witness)
	if len(m.set)+len(m.taken) == 0 {
		return "", nil
	}
	first, err := r.deed(family, witness[1].from, witness[1].version)
	if err != nil {
		return "", err
	}
	second, err := r.deed(family, witness[1].to, witness[1].next)
	if err != nil {
		return "", err
	}
	if first == nil || second == nil {
		return m.ofUnknownValues(), nil
	}
	before, err := r.left(family, witness[0].version)
	if err != nil {
		return "", err
	}
	switch {
	case slices.ContainsFunc(m.set, func(c string) bool { return takesBack(before, first, second, c) }):
		return StaleOverwrite, nil
	case slices.ContainsFunc(m.taken, func(c string) bool { return takesFromLess(before, first, second, c) }):
		return StaleDecision, nil
	}
	return "", nil
}

// ofUnknownValues is what a collision is where the values were not recorded: the second may have set what there was. Of
// amounts it would have to be known which way they go.
func (m *collision) ofUnknownValues() Anomaly {
	if len(m.set) > 0 {
		return StaleOverwrite
	}
	return ""
}

// takesBack reports whether a deed sets a column to another value than an earlier one had, which had changed it; or to
// the same amount, as both may have added to it. Before is the deed before both; nil if it is not known.
func takesBack(before, first, second *deed, column string) bool {
	was, is := first.settingOf(column), second.settingOf(column)
	if was == nil || is == nil {
		return false
	}
	if before != nil {
		old := before.settingOf(column)
		if old != nil && old.constant && was.constant && old.value == was.value && !was.cut() {
			return false
		}
	}
	return was.value != is.value || is.cut() || is.amount()
}

// takesFromLess reports whether a deed takes an amount from a column in which an earlier one had left less than there
// was when it was looked at. Before is the deed before both; nil if it is not known.
func takesFromLess(before, first, second *deed, column string) bool {
	was, is := first.settingOf(column), second.settingOf(column)
	if was == nil || is == nil || is.adds >= 0 {
		return false
	}
	left, set := was.number()
	if !set {
		return was.adds < 0
	}
	if before == nil {
		return true
	}
	old := before.settingOf(column)
	if old == nil {
		return true
	}
	had, known := old.number()
	return !known || left < had
}

// deed returns what the statement did that left a version; nil where that is not known.
func (r *requests) deed(family dbms.Family, t, version int32) (*deed, error) {
	if t < 0 {
		return nil, nil
	}
	x, err := r.loaded.get(t)
	if err != nil {
		return nil, err
	}
	return deedOf(family, stmt(x, r.o.tagOf(version).stmt)), nil
}

// left returns the values that a version has by the statement that wrote it; nil where they are not known.
func (r *requests) left(family dbms.Family, version int32) (*deed, error) {
	t := r.o.owner(version)
	if t < 0 {
		return nil, nil
	}
	x, err := r.loaded.get(t)
	if err != nil {
		return nil, err
	}
	return leftBy(family, stmt(x, r.o.tagOf(version).stmt)), nil
}

// leftBy returns what a statement did, of an INSERT of one row with the values that it gave the columns; nil where
// these are not known.
func leftBy(family dbms.Family, s *history.Stmt) *deed {
	d := deedOf(family, s)
	if d == nil || d.kind != history.Insert {
		return d
	}
	ins := rowValuesOf(family, s.Shape)
	if ins == nil || len(s.Args) != ins.values {
		return nil
	}
	for _, p := range ins.sets {
		if p.arg >= 0 && p.arg < len(s.Args) {
			d.sets = append(d.sets, setting{column: p.column, value: s.Args[p.arg], constant: true})
		}
	}
	return d
}

// noCollision is that of statements of which nothing is told.
var noCollision = new(collision)

// collisionOf returns the collision of a witness' statements.
func (r *requests) collisionOf(family dbms.Family, witness []dep) *collision {
	read, _ := r.o.stmtsOf(&witness[0])
	first, second := r.o.stmtsOf(&witness[1])
	key := overwriting{r.o.shapeOf(witness[0].from, read), r.o.shapeOf(witness[1].from, first),
		r.o.shapeOf(witness[1].to, second)}
	if key.read < 0 || key.first < 0 || key.second < 0 {
		return noCollision
	}
	m := r.collisions[key]
	if m == nil {
		text := func(n int32) string { return r.o.programs.classes[n].first }
		m = collide(family, text(key.read), text(key.first), text(key.second))
		r.collisions[key] = m
	}
	return m
}

// collide returns the collision of three shapes: a read, another request's UPDATE, and then the reader's own. There is
// none where the last one checks itself what it goes by: its condition names a column that either of them sets.
func collide(family dbms.Family, read, first, second string) *collision {
	if !isUpdate(family, first) || !isUpdate(family, second) {
		return noCollision
	}
	ours, theirs := assignmentsOf(family, second), assignmentsOf(family, first)
	condition := conditionOf(wordsOf(family, second))
	for _, a := range slices.Concat(ours, theirs) {
		if slices.ContainsFunc(condition, func(w word) bool { return w.name && strings.EqualFold(w.text, a.column) }) {
			return noCollision
		}
	}
	m := new(collision)
	for _, a := range ours {
		both := slices.ContainsFunc(theirs, func(b assignment) bool { return strings.EqualFold(a.column, b.column) })
		switch {
		case !both || !shows(family, read, a.column):
		case a.literal() && !tellsTime(a.column):
			m.set = append(m.set, a.column)
		case a.addend() != nil && !counts(a.column):
			m.taken = append(m.taken, a.column)
		}
	}
	return m
}

func isUpdate(family dbms.Family, shape string) bool {
	words := wordsOf(family, shape)
	return len(words) > 0 && words[0].keyword("UPDATE")
}

// counter are names of columns that count other rows: who counts one down does not go by how many there are.
var counter = regexp.MustCompile(`(?i:(^|_)(count|counter|cnt)$|^(num|nb|n)_)|[a-z](Count|Counter)$`)

// counts reports whether a column counts other rows, by its name.
func counts(column string) bool { return counter.MatchString(column) }
