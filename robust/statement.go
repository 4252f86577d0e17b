package robust

import "fmt"

// A Type is what a statement does, and how it finds its tuples (5.1). Key-based: by the whole primary key, exactly one
// tuple, or the transaction aborts. Predicate-based: any number of tuples.
type Type uint8

// The types, in the order of Table 1.
const (
	Ins Type = iota
	KeySel
	PredSel
	KeyUpd
	PredUpd
	KeyDel
	PredDel
	types = iota // how many there are
)

var typeNames = [types]string{"ins", "key sel", "pred sel", "key upd", "pred upd", "key del", "pred del"}

// String returns the paper's name.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// ByKey reports whether the statement finds exactly one tuple, by its key; insertions find none.
func (t Type) ByKey() bool { return t == KeySel || t == KeyUpd || t == KeyDel }

// ByPredicate reports whether the statement evaluates a predicate over all tuples of its relation.
func (t Type) ByPredicate() bool { return t == PredSel || t == PredUpd || t == PredDel }

// A Lock is what a selection takes on the tuples that it reads, until its transaction ends. The paper has none: see
// [Statement].
type Lock uint8

// The locks.
const (
	NoLock     Lock = iota // a plain SELECT; and what does not keep others from updating, as FOR KEY SHARE
	ShareLock              // FOR SHARE, LOCK IN SHARE MODE: others may lock so, too, and nobody may write
	UpdateLock             // FOR UPDATE, FOR NO KEY UPDATE: nobody else may lock or write
)

// String returns the lock as SQL does; nothing for none.
func (l Lock) String() string {
	return [...]string{"", "for share", "for update"}[l]
}

// A Statement is one statement q of a program (5.1). It is known by its address: a program has each of its statements
// once, and its foreign keys point to them.
//
// A locking selection is not in the paper. It reads the tuple that was committed last and keeps others from writing it,
// as an update does that writes nothing: in the tables it counts as the update of the same kind, with WriteSet ⊥.
type Statement struct {
	Name     string // as q1: unique in its program; [NewProgram] numbers those that have none
	Type     Type
	Relation string // rel(q)
	PRead    Set    // PReadSet(q): the attributes that its predicate looks at
	Read     Set    // ReadSet(q): those that are observed
	Write    Set    // WriteSet(q): those that are modified; all of them for insertions and deletions
	Lock     Lock   // of selections alone

	// Key says how a key-based statement or an insertion names its tuple: the expressions that the key's attributes are
	// equal to, in the order of [Relation].Key, as ":B" or "7". Two statements of a program that name a tuple alike
	// must use the same one when they run in the same iterations of loops: a variable that gets another value needs
	// another name. Empty: not known. Algorithms 1 and 2 do not look at it; [Snapshot], levels and schedules do.
	Key []string
	// Pinned is, of a statement with a predicate, what that says of the key in the same way; an empty expression where
	// it says nothing of an attribute. None: it says nothing of all. Schedules alone look at it.
	Pinned []string

	SQL string // as the program has it, for people and for schedules; empty where there is none
	// Text is SQL with the family's placeholders ($1, ?) in place of what Params names, in their order: variables as in
	// Key, and constants; an empty name is a value of which nothing is known. Nothing here looks at them: they are for
	// who runs the statement.
	Text   string
	Params []string
	Origin string   // where it comes from, for people: FILE:LINE, or the shape of a recorded statement
	Notes  []string // what could not be decided about it, and was taken so that no dependency is missed
}

// rule is the type that stands for the statement in the tables.
func (q *Statement) rule() Type {
	if q.Lock != NoLock {
		switch q.Type {
		case KeySel:
			return KeyUpd
		case PredSel:
			return PredUpd
		}
	}
	return q.Type
}

// String returns the statement for people.
func (q *Statement) String() string {
	text := fmt.Sprintf("%s %s %s", q.Name, q.Type, q.Relation)
	if q.Lock != NoLock {
		text += " " + q.Lock.String()
	}
	return text
}

// check returns what is wrong with the statement's sets (Figure 5) and names.
func (q *Statement) check(s *Schema) error {
	r := s.Relation(q.Relation)
	if r == nil {
		return fmt.Errorf("there is no relation %s", q.Relation)
	}
	for _, set := range []struct {
		name string
		set  Set
		want bool // that it is defined
	}{
		{"PReadSet", q.PRead, q.Type.ByPredicate()},
		{"ReadSet", q.Read, q.Type == KeySel || q.Type == PredSel || q.Type == KeyUpd || q.Type == PredUpd},
		{"WriteSet", q.Write, q.Type != KeySel && q.Type != PredSel},
	} {
		if set.set.Defined() != set.want {
			return fmt.Errorf("%s is %s, which does not go with %s", set.name, set.set, q.Type)
		}
		if stray, ok := set.set.outside(Of(r.Attributes...)); ok {
			return fmt.Errorf("%s: relation %s has no attribute %s", set.name, r.Name, stray)
		}
	}
	switch {
	case q.Type.ByKey() && len(r.Key) == 0:
		return fmt.Errorf("it is %s, and relation %s has no key", q.Type, r.Name)
	case len(q.Pinned) > 0 && len(q.Pinned) != len(r.Key):
		return fmt.Errorf("it pins %d attributes of the key of %s, which has %d", len(q.Pinned), r.Name, len(r.Key))
	case len(q.Key) > 0 && len(q.Key) != len(r.Key):
		return fmt.Errorf("it gives %d expressions for the key of %s, which has %d attributes", len(q.Key), r.Name,
			len(r.Key))
	case q.Lock != NoLock && q.Type != KeySel && q.Type != PredSel:
		return fmt.Errorf("it is %s, and only selections have locks of their own", q.Type)
	case (q.Type == Ins || q.Type == KeyDel || q.Type == PredDel) && !q.Write.all &&
		len(q.Write.attributes) < len(r.Attributes):
		return fmt.Errorf("WriteSet is %s, and %s writes all attributes of %s", q.Write, q.Type, r.Name)
	}
	return nil
}
