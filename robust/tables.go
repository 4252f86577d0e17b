package robust

// A verdict is an entry of Table 1: whether two statements over one relation can have a dependency, by their types
// alone.
type verdict uint8

const (
	never  verdict = iota // false
	bySets                // ⊥: it depends on the attributes that they use
	always                // true
)

// A table is Table 1a or 1b: its rows are type(q_i), where the dependency begins, its columns type(q_j), where it ends,
// both in the order of the types.
type table [types][types]verdict

// The entries as they are written below.
const (
	no, at, ye = never, bySets, always
)

// rules are all that Algorithms 1 and 2 know of statements. They are data so that tests can change each of them.
type rules struct {
	// ncDep is Table 1a, for dependencies in the order of the commits; cDep is Table 1b, for counterflow ones.
	ncDep, cDep table
	// ncSets and cSets are the pairs of sets, of q_i and q_j, that make a dependency when they meet: ncDepConds and
	// cDepConds of Algorithm 1.
	ncSets, cSets []setPair
	// holders are the types of statements that keep others from their tuple until their transaction ends: two
	// transactions that both used a common parent so before cannot be in counterflow (cDepConds).
	holders typeSet
	// readers are the types that an edge can begin with which is a read that does not hold its tuple (Algorithm 2).
	readers typeSet
}

// A setPair names one set of the statement where a dependency begins, and one of the statement where it ends.
type setPair struct {
	from, to operation
	// unlessHeld says that no such dependency is counterflow between statements whose common parent is held.
	unlessHeld bool
}

// An operation is what a statement does to the attributes of one of its sets.
type operation uint8

const (
	pread operation = iota
	read
	write
)

// A typeSet is a set of statement types.
type typeSet [types]bool

// theRules are the paper's.
var theRules = rules{
	ncDep: table{
		//        ins key sel pred sel key upd pred upd key del pred del
		Ins:     {no, at, ye, at, ye, at, ye},
		KeySel:  {no, no, no, at, at, at, at},
		PredSel: {ye, no, no, at, at, ye, ye},
		KeyUpd:  {no, at, at, at, at, at, at},
		PredUpd: {ye, at, at, at, at, ye, ye},
		KeyDel:  {no, no, ye, no, ye, no, ye},
		PredDel: {ye, no, ye, at, ye, ye, ye},
	},
	cDep: table{
		//        ins key sel pred sel key upd pred upd key del pred del
		Ins:     {no, no, no, no, no, no, no},
		KeySel:  {no, no, no, at, at, at, at},
		PredSel: {ye, no, no, at, at, ye, ye},
		KeyUpd:  {no, no, no, no, no, no, no},
		PredUpd: {ye, no, no, at, at, ye, ye},
		KeyDel:  {no, no, no, no, no, no, no},
		PredDel: {ye, no, no, at, at, ye, ye},
	},
	ncSets: []setPair{
		{from: write, to: write},
		{from: write, to: read},
		{from: write, to: pread},
		{from: read, to: write},
		{from: pread, to: write},
	},
	cSets: []setPair{
		{from: pread, to: write},
		{from: read, to: write, unlessHeld: true},
	},
	holders: typeSet{KeyUpd: true, KeyDel: true, Ins: true},
	readers: typeSet{KeySel: true, PredSel: true, PredUpd: true, PredDel: true},
}
