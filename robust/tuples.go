package robust

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// choose chooses the tuples that the runs of a schedule use: those at the ends of each edge of the cycle are the same
// where both use them, foreign keys hold, what is named alike is the same, and all others differ. It reports whether
// that is possible. Run i has the program that edge i departs from. few has those that refer to the same tuple be the
// same, too: the execution is then one that can be had with one account a customer, say.
func (s *Schedule) choose(cycle []Edge, at []tupleUse, few bool) bool {
	c := &choice{runs: s.Runs, same: make(map[string]string)}
	for i, run := range s.Runs {
		c.slots = append(c.slots, make([][]slot, len(run.Program.Statements)))
		for at := range run.Program.Statements {
			if q := &run.Program.Statements[at]; !q.Type.ByPredicate() {
				c.slots[i][at] = []slot{c.named(i, at)}
			}
		}
	}
	for i, e := range cycle {
		if !c.tie(i, int(e.FromAt), (i+1)%len(s.Runs), int(e.ToAt), at[i]) {
			return false
		}
	}
	references := c.references()
	if few && !c.joinChildren(references) || !c.closeForeignKeys(references) {
		return false
	}
	c.write(s.Runs)
	return true
}

// A choice is of values for keys. Values are known by names, and those that are the same are united.
type choice struct {
	runs  []Run
	slots [][][]slot // by run and statement: the tuples that it uses
	same  map[string]string
	fresh int
}

// A slot is a tuple by the names of its key's values.
type slot struct {
	relation string
	values   []string
}

// named returns the tuple of a statement that uses exactly one.
func (c *choice) named(run, at int) slot {
	q := &c.runs[run].Program.Statements[at]
	s := slot{relation: q.Relation}
	for _, expression := range q.Key {
		s.values = append(s.values, c.value(run, at, expression))
	}
	if len(q.Key) == 0 {
		s.values = []string{c.unnamed()}
	}
	return s
}

// value names what an expression is at a place of a run.
func (c *choice) value(run, at int, expression string) string {
	if constant(expression) {
		return "=" + expression // the same for all
	}
	return fmt.Sprintf("%d %s", run, c.runs[run].Program.Variable(at, expression))
}

// pinned returns a tuple that the predicate of a statement may find, as far as that names it.
func (c *choice) pinned(run, at int) slot {
	q := &c.runs[run].Program.Statements[at]
	s := slot{relation: q.Relation}
	for _, expression := range q.Pinned {
		value := c.unnamed()
		if expression != "" {
			value = c.value(run, at, expression)
		}
		s.values = append(s.values, value)
	}
	if len(q.Pinned) == 0 {
		s.values = []string{c.unnamed()}
	}
	return s
}

// unnamed returns a value that is like no other.
func (c *choice) unnamed() string {
	c.fresh++
	return fmt.Sprint("fresh ", c.fresh)
}

// constant reports whether an expression is a literal.
func constant(expression string) bool {
	_, err := strconv.ParseFloat(expression, 64)
	return err == nil || strings.HasPrefix(expression, "'")
}

// Variable names the value that a variable has for the statement at a place: the same for two places where it has the
// same one.
func (l *LTP) Variable(at int, name string) string {
	return fmt.Sprintf("%v %s", l.scope(at, name), name)
}

// scope returns the iterations in which an expression has one value: those of the outermost statement that uses it
// around the one at a place.
func (l *LTP) scope(at int, expression string) []iteration {
	if slices.Contains(l.Program.Single, expression) {
		return nil
	}
	in := l.Statements[at].in
	for _, o := range l.Statements {
		if slices.Contains(o.Key, expression) && within(in, o.in) {
			in = o.in
		}
	}
	return in
}

// tie has the statements at the two ends of an edge use a tuple in common, or one of them a tuple of its own.
func (c *choice) tie(i, fromAt, j, toAt int, at tupleUse) bool {
	from, to := c.slots[i][fromAt], c.slots[j][toAt]
	fromMany, toMany := c.many(i, fromAt), c.many(j, toAt)
	if !fromMany && !toMany {
		return c.unite(from[0], to[0])
	}
	var common slot
	switch {
	case !fromMany:
		common = from[0]
	case !toMany:
		common = to[0]
	default:
		common = c.pinned(i, fromAt)
		if p := c.pinned(j, toAt); len(p.values) > len(common.values) {
			common = p
		}
	}
	if fromMany && at.from {
		if !c.fits(&common, i, fromAt) {
			return false
		}
		c.slots[i][fromAt] = append(from, common)
	}
	if toMany && at.to {
		if !c.fits(&common, j, toAt) {
			return false
		}
		c.slots[j][toAt] = append(to, common)
	}
	return true
}

// fits has a tuple be one that a predicate finds, and reports whether it can.
func (c *choice) fits(s *slot, run, at int) bool {
	p := c.pinned(run, at)
	return len(p.values) != len(s.values) || c.unite(p, *s)
}

// many reports whether a statement finds its tuples by a predicate.
func (c *choice) many(run, at int) bool {
	return c.runs[run].Program.Statements[at].Type.ByPredicate()
}

// unite has two tuples be one, and reports whether they can.
func (c *choice) unite(a, b slot) bool {
	if len(a.values) != len(b.values) {
		return false // the key of one of them is not known
	}
	for i := range a.values {
		v, w := c.find(a.values[i]), c.find(b.values[i])
		if v == w {
			continue
		}
		if strings.HasPrefix(v, "=") {
			v, w = w, v // a constant stays itself
		}
		if strings.HasPrefix(v, "=") {
			return false
		}
		c.same[v] = w
	}
	return true
}

func (c *choice) find(value string) string {
	for {
		next, ok := c.same[value]
		if !ok {
			return value
		}
		value = next
	}
}

func (c *choice) equal(a, b slot) bool {
	return a.relation == b.relation && slices.EqualFunc(a.values, b.values,
		func(v, w string) bool { return c.find(v) == c.find(w) })
}

// A reference is a tuple and the one that a foreign key maps it to.
type reference struct {
	foreignKey    string
	child, parent slot
}

func (c *choice) references() []reference {
	var all []reference
	for i, run := range c.runs {
		for at, o := range run.Program.Statements {
			for _, p := range o.Parents {
				for _, child := range c.slots[i][at] {
					all = append(all, reference{p.ForeignKey, child, c.slots[i][p.At][0]})
				}
			}
		}
	}
	return all
}

// joinChildren has what refers to the same be the same, once.
func (c *choice) joinChildren(all []reference) bool {
	for i, a := range all {
		for _, b := range all[:i] {
			if a.foreignKey == b.foreignKey && c.equal(a.parent, b.parent) && !c.unite(a.child, b.child) {
				return false
			}
		}
	}
	return true
}

// closeForeignKeys has foreign keys map what is the same to the same.
func (c *choice) closeForeignKeys(all []reference) bool {
	for again := true; again; {
		again = false
		for i, a := range all {
			for _, b := range all[:i] {
				if a.foreignKey != b.foreignKey || !c.equal(a.child, b.child) || c.equal(a.parent, b.parent) {
					continue
				}
				if !c.unite(a.parent, b.parent) {
					return false
				}
				again = true
			}
		}
	}
	return true
}

// write gives the runs their tuples: small numbers for values that are no constants.
func (c *choice) write(runs []Run) {
	numbers := make(map[string]string)
	taken := make(map[string]bool) // by constants
	for _, run := range c.slots {
		for _, s := range slices.Concat(run...) {
			for _, v := range s.values {
				if literal, ok := strings.CutPrefix(c.find(v), "="); ok {
					taken[literal] = true
				}
			}
		}
	}
	for i := range runs {
		runs[i].Tuples = make([][]Tuple, len(c.slots[i]))
		for at, slots := range c.slots[i] {
			for _, s := range slots {
				values := make([]string, len(s.values))
				for k, v := range s.values {
					values[k] = number(numbers, taken, c.find(v))
				}
				if t := (Tuple{Relation: s.relation,
					Key: strings.Join(values, ",")}); !slices.Contains(runs[i].Tuples[at], t) {
					runs[i].Tuples[at] = append(runs[i].Tuples[at], t)
				}
			}
		}
	}
}

// number returns the number of a value, which no constant is.
func number(numbers map[string]string, taken map[string]bool, value string) string {
	if literal, ok := strings.CutPrefix(value, "="); ok {
		return literal
	}
	for n := len(numbers) + 1; numbers[value] == ""; n++ {
		if next := strconv.Itoa(n); !taken[next] {
			numbers[value], taken[next] = next, true
		}
	}
	return numbers[value]
}
