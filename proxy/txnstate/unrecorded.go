package txnstate

import "github.com/isotap/isotap/history"

// An Unrecorded is what a session keeps of its open transaction until that is recorded. Beyond its bound one statement
// of the transaction stands for all that come: it may have read and written anything.
type Unrecorded struct {
	bound int // in bytes; 0: there is none
	bytes int // of the transaction's statements
	rest  int // the place of the statement that stands for others among them, from 1 on; 0: there is none
}

// NewUnrecorded returns one of at most bound bytes; 0 is no bound.
func NewUnrecorded(bound int) Unrecorded { return Unrecorded{bound: bound} }

// Full reports whether statements go unobserved from now on.
func (u *Unrecorded) Full() bool { return u.bound > 0 && u.bytes >= u.bound }

// Admits reports whether a statement whose rows take so many bytes may be kept.
func (u *Unrecorded) Admits(bytes int) bool { return u.bound == 0 || u.bytes+bytes < u.bound }

// Take counts bytes that a statement takes which was added before.
func (u *Unrecorded) Take(bytes int) { u.bytes += bytes }

// End begins with the next transaction.
func (u *Unrecorded) End() { u.bytes, u.rest = 0, 0 }

// Add puts a statement into the session's open transaction, or into the one that stands for it, and returns the place
// of either. Statements that touch no row are left out where the bound is reached, but for a COMMIT. One that its rows
// name has to be kept.
func (u *Unrecorded) Add(t *history.Txn, st *history.Stmt, named bool) (at int) {
	switch {
	case !u.Full(), named, st.Kind == history.Commit:
		u.bytes += BytesOf(st)
		t.Stmts = append(t.Stmts, *st)
	case st.Observation != history.Nothing:
		return u.addRest(t, st)
	}
	return len(t.Stmts) - 1
}

func (u *Unrecorded) addRest(t *history.Txn, st *history.Stmt) (at int) {
	if u.rest == 0 {
		t.Stmts = append(t.Stmts, history.Stmt{Num: uint32(len(t.Stmts) + 1), Observation: history.Opaque,
			Reason: history.ReasonTxnMemory, Start: st.Start})
		u.rest = len(t.Stmts)
	}
	rest := &t.Stmts[u.rest-1]
	rest.Void = false // a rollback to a savepoint has undone what came before this
	rest.End, rest.Rows, rest.Affected = st.End, rest.Rows+st.Rows, rest.Affected+st.Affected
	return u.rest - 1
}

// About how many bytes the parts of a statement take, those that are empty, too.
const (
	stmtBytes      = 400
	predicateBytes = 200
	textBytes      = 16
	tagBytes       = 16
	// AccessBytes is what an access takes with its tuple id and image, but for their texts.
	AccessBytes = 200
)

// BytesOf returns about how much memory a statement takes.
func BytesOf(st *history.Stmt) int {
	n := stmtBytes + len(st.Shape) + len(st.Text) + len(st.Sender.Place) + len(st.Sender.Action) + len(st.Sender.Request) + len(st.Error.Message) + AccessBytes*len(st.Accesses)
	for _, arg := range st.Args {
		n += textBytes + len(arg)
	}
	for i := range st.Accesses {
		n += len(st.Accesses[i].Row.ID) + tagBytes*len(st.Accesses[i].Prior)
	}
	for _, image := range st.Images {
		n += len(image)
	}
	for i := range st.Predicates {
		n += predicateBytes + len(st.Predicates[i].Where)
	}
	return n
}
