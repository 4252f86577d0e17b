package explore

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/sqltoken"
)

// A scope is a transaction, or what is in it from a savepoint to where that was released or rolled back to.
type scope struct {
	name       string // of the savepoint; empty: the transaction
	begin, end int    // its statements, from the first to before the last; the savepoint's own are among them
	undone     bool   // it was rolled back
	parts      []part // in their order
}

// A part is one of a scope: another scope, or the statement at a place.
type part struct {
	inner *scope // nil: the statement
	at    int
}

// unwrap finds what a transaction holds that a test wraps in it, so that the test leaves nothing behind: Django's and
// Rails' tests begin a transaction, what they test makes savepoints where it would make transactions, and the test ends
// with ROLLBACK. So a savepoint that was released is a transaction here, and a statement between savepoints is in
// autocommit. A transaction without a savepoint is left as it is: the application may have rolled it back.
func (in *instance) unwrap() {
	whole := scopesOf(in.statements)
	if !whole.wraps(in.statements) {
		return
	}
	in.inner = whole.instances(in)
}

// wraps reports whether a scope that was rolled back is one that a test makes: a part of it wrote in a savepoint, and
// no statement that is in none failed.
func (s *scope) wraps(statements []statement) bool {
	wrote := false
	for _, p := range s.parts {
		if p.inner == nil && statements[p.at].failed() {
			return false
		}
		wrote = wrote || p.inner != nil && slices.ContainsFunc(statements[p.inner.begin:p.inner.end],
			func(st statement) bool { return st.writes() && st.changed() > 0 })
	}
	return wrote
}

// instances makes instances of a scope's parts.
func (s *scope) instances(of *instance) []*instance {
	var all []*instance
	var reads []statement // in autocommit that nothing followed yet
	add := func(from []statement, block, undone bool) *instance {
		var before []statement
		if block || from[0].writes() {
			before = recent(reads, from[0].recorded.Start)
		}
		in := &instance{id: of.id, named: of.named, level: of.level, optimistic: of.optimistic && block, block: block,
			commits: !undone, before: len(before),
			statements: slices.Concat(before, from), alone: of.alone,
			start: from[0].recorded.Start, end: from[len(from)-1].recorded.End,
			whole:  !slices.ContainsFunc(from, func(st statement) bool { return !st.whole }),
			failed: undone || slices.ContainsFunc(from, func(st statement) bool { return st.failed() })}
		all, reads = append(all, in), nil
		return in
	}
	for _, p := range s.parts {
		if p.inner == nil {
			st := of.statements[p.at]
			st.void = st.failed()
			before := recent(reads, st.recorded.Start)
			add([]statement{st}, false, false)
			if st.reads() && !st.failed() {
				reads = append(before, st)
			}
			continue
		}
		if len(p.inner.parts) == 0 {
			continue
		}
		if !p.inner.undone {
			all := slices.Clone(of.statements)
			p.inner.keep(all)
			add(all[p.inner.begin+1:p.inner.end-1], true, false)
			continue
		}
		reads = nil
		in := add(of.statements[p.inner.begin:p.inner.end], true, true)
		if !slices.ContainsFunc(in.statements, func(st statement) bool { return st.failed() }) {
			in.inner = p.inner.instances(of)
		}
	}
	return all
}

// keep notes that the statements of a scope are not undone, but for those of scopes in it that are.
func (s *scope) keep(statements []statement) {
	for _, p := range s.parts {
		switch {
		case p.inner == nil:
			statements[p.at].void = statements[p.at].failed()
		case !p.inner.undone:
			p.inner.keep(statements)
		}
	}
}

// scopesOf returns the scope of all of a transaction's statements. What is open at its end is rolled back with it.
func scopesOf(statements []statement) *scope {
	open := []*scope{{end: len(statements), undone: true}}
	begin := func(name string, at int) {
		s := &scope{name: name, begin: at, end: len(statements), undone: true}
		last := open[len(open)-1]
		last.parts = append(last.parts, part{inner: s})
		open = append(open, s)
	}
	end := func(name string, at int, undone bool) bool {
		for i := len(open) - 1; i > 0; i-- {
			if open[i].name != name {
				continue
			}
			for _, s := range open[i:] {
				s.end, s.undone = at+1, undone
			}
			open = open[:i]
			return true
		}
		return false
	}
	for at := range statements {
		switch does, name := savepointOf(statements[at].tokens); does {
		case saves:
			begin(name, at)
		case releases:
			end(name, at, false)
		case undoes:
			if end(name, at, true) {
				begin(name, at) // the savepoint is still there
			}
		default:
			last := open[len(open)-1]
			last.parts = append(last.parts, part{at: at})
		}
	}
	return open[0]
}

// What a statement does with a savepoint.
type savepointUse int

const (
	none savepointUse = iota
	saves
	releases
	undoes
)

// savepointOf returns what a statement does with which savepoint.
func savepointOf(tokens []sqltoken.Token) (does savepointUse, name string) {
	if len(tokens) < 2 {
		return none, ""
	}
	switch {
	case tokens[0].Is("SAVEPOINT"):
		does = saves
	case tokens[0].Is("RELEASE"):
		does = releases
	case tokens[0].Is("ROLLBACK") && slices.ContainsFunc(tokens, func(t sqltoken.Token) bool { return t.Is("TO") }):
		does = undoes
	default:
		return none, ""
	}
	name, _, _ = tokens[len(tokens)-1].Name()
	return does, strings.ToLower(name)
}
