package random

import (
	"slices"
	"strconv"
)

// A kind of statement, and how often it is chosen.
type kind struct {
	name   string
	weight int
	deep   int // its weight in a deep profile
	draw   func(*source) string
}

// The defaults of weights: IsoRel's six types, in shares that keep its small tables both read and changed. The last
// three are for deep profiles.
var kinds = []kind{
	{"select", 40, 36, (*source).query},
	{"locking", 10, 8, (*source).locking},
	{"insert", 8, 8, (*source).insert},
	{"insert-select", 3, 4, (*source).insertSelect},
	{"upsert", 4, 4, (*source).upsert},
	{"replace", 3, 3, (*source).replace},
	{"update", 24, 22, (*source).update},
	{"delete", 6, 5, (*source).delete},
	{"savepoint", 2, 2, nil},
	{"rekey", 0, 4, (*source).rekey},
	{"joined-update", 0, 3, (*source).joinedUpdate},
	{"joined-delete", 0, 1, (*source).joinedDelete},
}

// Kinds are the names of the kinds of statements, for a profile's weights. PostgreSQL has no REPLACE: it gets an INSERT
// … ON CONFLICT.
func Kinds() []string {
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = k.name
	}
	return all
}

func kindNamed(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

func (p *Profile) weight(k kind) int {
	if w, ok := p.Weights[k.name]; ok {
		return w
	}
	if p.Deep {
		return k.deep
	}
	return k.weight
}

// choose draws a kind by the weights.
func (s *source) choose() kind {
	total := 0
	for _, k := range kinds {
		total += s.g.profile.weight(k)
	}
	if total == 0 {
		return kinds[0]
	}
	at := s.n(total)
	for _, k := range kinds {
		if at -= s.g.profile.weight(k); at < 0 {
			return k
		}
	}
	return kinds[0]
}

// drawKinds returns how many statements a transaction has beside those that begin and end it, and draws the kind of
// each.
func (s *source) drawKinds(n int) (count int, next func(i int) kind) {
	if s.g.template != nil {
		all := s.g.kindsOf(n)
		return len(all), func(i int) kind { return all[i] }
	}
	return 1 + s.n(s.g.profile.Statements), func(int) kind { return s.choose() }
}

// Transaction returns the statements of transaction n, from 1: the one that begins it, at most Profile.Statements
// others or those of its template, and COMMIT or ROLLBACK.
func (g *Generator) Transaction(n int) []string {
	s := g.source(uint64(n))
	s.focus = g.focusOf(n)
	all := []string{s.g.engine.begin()}
	savepoints := 0
	count, next := s.drawKinds(n)
	for i := range count {
		if k := next(i); k.draw != nil {
			all = append(all, k.draw(s))
		} else if savepoints == 0 || s.chance(30) {
			savepoints++
			all = append(all, "SAVEPOINT s"+strconv.Itoa(savepoints))
		} else {
			all = append(all, "ROLLBACK TO SAVEPOINT s1")
			savepoints = 1
		}
	}
	if s.chance(g.profile.Rollback) {
		return append(all, "ROLLBACK")
	}
	return append(all, "COMMIT")
}
