// Package reduce makes a scenario small that shows something: fewest transactions, then statements, rows and tables,
// then simpler SQL, by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input",
// 2002).
//
// Whether a smaller scenario still shows it is somebody else's to say: a [Shows] plays it. What is tried need not make
// sense; SQL that a server refuses shows nothing and is dropped.
package reduce

import (
	"context"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
)

// Shows reports whether a scenario shows what is looked for. Of one that does only at times it should say so by most of
// several tries. An error ends the reduction.
type Shows func(ctx context.Context, s *scenario.Scenario) (bool, error)

// Reduce returns the smallest scenario it finds that still shows what s does, and how many it tried. Its statements are
// of the family's SQL. S itself stays as it is. The error is that of shows; the scenario is the smallest until then.
func Reduce(ctx context.Context, family dbms.Family, s *scenario.Scenario,
	shows Shows) (*scenario.Scenario, int, error) {
	r := &reduction{ctx: ctx, family: family, shows: shows, best: bare(s), known: make(map[string]bool)}
	for smaller := true; smaller && r.err == nil; {
		before := size(r.best)
		r.transactions()
		r.setup() // soon, since every try plays it
		r.steps()
		r.intoSetup()
		r.texts()
		smaller = size(r.best) < before
	}
	r.best.Sessions = used(r.best)
	return r.best, r.tried, r.err
}

// bare is the scenario without what was expected of it: a part of it does something else.
func bare(s *scenario.Scenario) *scenario.Scenario {
	b := *s
	b.Expect, b.Outcomes, b.Steps = scenario.Outcome{}, nil, slices.Clone(s.Steps)
	for i := range b.Steps {
		b.Steps[i].Reply = scenario.Reply{}
	}
	return &b
}

// size counts what there is to be made less: statements first, then their characters.
func size(s *scenario.Scenario) int {
	n := 0
	for _, x := range s.Steps {
		n += 1000 + len(x.SQL)
	}
	for _, x := range s.Setup {
		n += 1000 + len(x)
	}
	return n
}

// used are the sessions that have a step.
func used(s *scenario.Scenario) []scenario.Session {
	return slices.DeleteFunc(slices.Clone(s.Sessions), func(x scenario.Session) bool {
		return !slices.ContainsFunc(s.Steps, func(step scenario.Step) bool { return step.Session == x.Name })
	})
}

// A reduction is the state of one Reduce.
type reduction struct {
	ctx    context.Context
	family dbms.Family
	shows  Shows
	best   *scenario.Scenario
	known  map[string]bool // what was tried in vain
	tried  int
	err    error
}

// try keeps a scenario if it shows what is looked for. None is played twice.
func (r *reduction) try(s *scenario.Scenario) bool {
	if r.err == nil {
		r.err = context.Cause(r.ctx)
	}
	text := textOf(s)
	if r.err != nil || r.known[text] {
		return false
	}
	r.tried++
	ok, err := r.shows(r.ctx, s)
	if err != nil {
		r.err = err
		return false
	}
	if ok {
		r.best = s
	} else {
		r.known[text] = true
	}
	return ok
}

// textOf is all that a scenario sends.
func textOf(s *scenario.Scenario) string {
	var b strings.Builder
	for _, sql := range s.Setup {
		b.WriteString(sql + "\x00")
	}
	for _, x := range s.Steps {
		b.WriteString(x.Session + "\x01" + x.SQL + "\x00")
	}
	return b.String()
}

// minimize drops as many of n parts as can be dropped: at first half of them at once, at last one by one. Without makes
// the scenario that has only the parts left.
func (r *reduction) minimize(n int, with func(left []int) *scenario.Scenario) {
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	for chunk := max(len(left)/2, 1); chunk > 0 && r.err == nil; {
		dropped := false
		for from := 0; from < len(left); {
			rest := slices.Concat(left[:from], left[min(from+chunk, len(left)):])
			if r.try(with(rest)) {
				left, dropped = rest, true
			} else {
				from += chunk
			}
		}
		if chunk == 1 && !dropped {
			return
		}
		if !dropped || chunk > len(left)/2 {
			chunk = max(min(chunk/2, len(left)/2), 1)
		}
		if len(left) == 0 {
			return
		}
	}
}

// transactions drops whole transactions.
func (r *reduction) transactions() {
	s := r.best
	groups := Transactions(s.Steps)
	r.minimize(len(groups), func(left []int) *scenario.Scenario {
		keep := make(map[int]bool)
		for _, g := range left {
			for _, i := range groups[g] {
				keep[i] = true
			}
		}
		return withSteps(s, func(i int) bool { return keep[i] })
	})
}

// Transactions groups the numbers of steps by the transactions that they belong to: what a session sends from one
// BEGIN to the end of the transaction, and every statement that it sends outside of one. In the MySQL family the next
// BEGIN ends one, too.
func Transactions(steps []scenario.Step) [][]int {
	var groups [][]int
	open := make(map[string]int) // by session
	for i, x := range steps {
		word := command(x.SQL)
		g, ok := open[x.Session]
		if !ok || begins(word) {
			g = len(groups)
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
		switch {
		case begins(word):
			open[x.Session] = g
		case ends(word):
			delete(open, x.Session)
		}
	}
	return groups
}

// command is a statement as it is compared with one that has no operands.
func command(sql string) string {
	return strings.ToUpper(strings.TrimRight(strings.TrimSpace(sql), "; "))
}

func begins(sql string) bool {
	word := command(sql)
	return word == "BEGIN" || strings.HasPrefix(word, "BEGIN ") || strings.HasPrefix(word, "START TRANSACTION")
}

// Bounds reports whether a statement begins or ends a transaction.
func Bounds(sql string) bool {
	word := command(sql)
	return begins(word) || ends(word)
}

// Ends reports whether a statement ends a transaction.
func Ends(sql string) bool { return ends(command(sql)) }

func ends(word string) bool { return word == "COMMIT" || word == "ROLLBACK" }

// Count returns how many transactions a scenario has, and how many statements beside those that begin and end them.
func Count(s *scenario.Scenario) (transactions, statements int) {
	for _, group := range Transactions(s.Steps) {
		n := 0
		for _, i := range group {
			if !Bounds(s.Steps[i].SQL) {
				n++
			}
		}
		if n > 0 {
			transactions, statements = transactions+1, statements+n
		}
	}
	return transactions, statements
}

func withSteps(s *scenario.Scenario, keep func(i int) bool) *scenario.Scenario {
	c := *s
	c.Steps = nil
	for i, x := range s.Steps {
		if keep(i) {
			c.Steps = append(c.Steps, x)
		}
	}
	return &c
}

// steps drops single statements.
func (r *reduction) steps() {
	s := r.best
	r.minimize(len(s.Steps), func(left []int) *scenario.Scenario {
		return withSteps(s, func(i int) bool { return slices.Contains(left, i) })
	})
}

// intoSetup makes the first steps part of the set-up, as far as they are in no transaction.
func (r *reduction) intoSetup() {
	for {
		s := r.best
		if len(s.Steps) == 0 || len(Transactions(s.Steps)[0]) > 1 || begins(s.Steps[0].SQL) {
			return
		}
		c := *s
		c.Setup, c.Steps = slices.Concat(s.Setup, []string{s.Steps[0].SQL}), s.Steps[1:]
		if !r.try(&c) {
			return
		}
	}
}

// setup drops statements of the set-up: rows, indexes, tables.
func (r *reduction) setup() {
	s := r.best
	r.minimize(len(s.Setup), func(left []int) *scenario.Scenario {
		c := *s
		c.Setup = nil
		for _, i := range left {
			c.Setup = append(c.Setup, s.Setup[i])
		}
		return &c
	})
}
