package robust

import "slices"

// A Promotion says which plain selections are to become locking ones (SELECT ... FOR UPDATE), so that programs are
// robust against READ COMMITTED that are not without. A locked tuple is read as it was committed last, and nobody
// overwrites it before the transaction ends: no counterflow dependency begins with the selection. It is the promotion
// of Alomari and Fekete (AICCSA 2015) and others.
type Promotion struct {
	// Programs are the numbers of those that are robust together then: all of them if that can be had, or a largest
	// set.
	Programs []int
	// Statements are the selections; without any of them the programs would not be robust. They are key-based: a
	// predicate keeps nobody from inserting.
	Statements []Promoted
}

// A Promoted is a selection that is to be a locking one.
type Promoted struct {
	Program   int
	Statement *Statement
}

// maxPromoted bounds the selections that are tried.
const maxPromoted = 100

// Promote finds a promotion for programs that are not robust against READ COMMITTED in a setting; nil where none makes
// more of them robust. The programs are not changed.
func Promote(programs []*Program, s Setting) *Promotion {
	before := Analyze(programs, s).Subsets(TypeII, 0).Maximal
	if len(before) > 0 && len(before[0]) == len(programs) {
		return nil
	}
	candidates := promotable(programs)
	if len(candidates) == 0 || len(candidates) > maxPromoted {
		return nil
	}
	after := Analyze(promoted(programs, candidates), s).Subsets(TypeII, 0).Maximal
	if len(after) == 0 || len(before) > 0 && len(after[0]) <= len(before[0]) {
		return nil
	}
	p := &Promotion{Programs: after[0]}
	suffices := func(list []Promoted) bool {
		return Analyze(promoted(programs, list), s).Robust(TypeII, p.Programs...)
	}
	p.Statements = slices.DeleteFunc(candidates,
		func(c Promoted) bool { return !slices.Contains(p.Programs, c.Program) })
	p.spare(suffices)
	return p
}

// spare leaves out those statements that are not needed. What suffices without many suffices without some of these,
// so that it asks for more at once as long as it may: what stays is what it would be one by one.
func (p *Promotion) spare(suffices func([]Promoted) bool) {
	all := slices.Clone(p.Statements)
	for at, size := 0, 1; at < len(all); {
		some := all[at:min(at+size, len(all))]
		without := slices.DeleteFunc(slices.Clone(p.Statements), func(o Promoted) bool { return slices.Contains(some, o) })
		switch {
		case suffices(without):
			p.Statements = without
			at, size = at+len(some), 2*size
		case size == 1:
			at++ // it is needed
		default:
			size /= 2
		}
	}
}

// promotable returns the plain key-based selections of what some program writes.
func promotable(programs []*Program) []Promoted {
	written := make(map[string]bool)
	for _, p := range programs {
		for _, q := range p.Statements() {
			written[q.Relation] = written[q.Relation] || q.Write.Defined()
		}
	}
	var all []Promoted
	for i, p := range programs {
		for _, q := range p.Statements() {
			if q.Type == KeySel && q.Lock == NoLock && written[q.Relation] {
				all = append(all, Promoted{i, q})
			}
		}
	}
	return all
}

// promoted copies programs, with selections locked.
func promoted(programs []*Program, list []Promoted) []*Program {
	locked := make(map[*Statement]bool)
	for _, p := range list {
		locked[p.Statement] = true
	}
	copies := make([]*Program, len(programs))
	for i, p := range programs {
		c := copier{locked: locked, made: make(map[*Statement]*Statement)}
		q := *p
		q.Body = c.part(p.Body)
		q.ForeignKeys = slices.Clone(p.ForeignKeys)
		for k := range q.ForeignKeys {
			f := &q.ForeignKeys[k]
			f.Parent, f.Child = c.made[f.Parent], c.made[f.Child]
		}
		copies[i] = &q
	}
	return copies
}

// A copier copies the parts of a program.
type copier struct {
	locked map[*Statement]bool
	made   map[*Statement]*Statement
}

func (c *copier) part(p Part) Part {
	switch p := p.(type) {
	case *Statement:
		q := *p
		if c.locked[p] {
			q.Lock = UpdateLock
		}
		c.made[p] = &q
		return &q
	case Sequence:
		return Sequence(c.parts(p))
	case Choice:
		return Choice(c.parts(p))
	case *Loop:
		return &Loop{Body: c.part(p.Body)}
	case *Optional:
		return &Optional{Body: c.part(p.Body)}
	}
	return nil
}

func (c *copier) parts(list []Part) []Part {
	copies := make([]Part, len(list))
	for i, p := range list {
		copies[i] = c.part(p)
	}
	return copies
}
