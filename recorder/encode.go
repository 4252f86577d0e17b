package recorder

import (
	"encoding/binary"
	"strconv"

	"github.com/isotap/isotap/history"
)

// The bits of a transaction's and a statement's flag byte.
const (
	flagImplicit   = 1 << 0
	conflictsShift = 1 // of a transaction: history.Conflicts stands above the flag, in so many bits
	conflictsBits  = 5
	flagFresh      = 1 << 6
	flagStaleRead  = 1 << 7

	flagVoid     = 1 << 0
	flagReason   = 1 << 1
	flagError    = 1 << 2
	flagTupleIDs = 1 << 3
	flagPlace    = 1 << 4
	// flagPredicates says that predicates and images follow.
	flagPredicates = 1 << 5
	// flagWide says that some of the predicates are wide: which ones follows them.
	flagWide = 1 << 6
	// flagXID says that the id of the transaction follows at the end.
	flagXID = 1 << 7

	// toldFlag stands above a statement's observation: what is told in which of the predicates follows them.
	toldFlag = 1 << 7
	// requestFlag stands there, too: the sender's action and request follow its place.
	requestFlag = 1 << 6

	flagInexact  = 1 << 0 // of an access group; its row id form stands above it
	flagSubquery = 1 << 7 // likewise
	formShift    = 1
	flagSameTag  = 0 // of a row id in the tag form: the tag is the previous id's
	flagOtherTag = 1
)

// The words that begin a tag. A word stands above the chain bit (see encoder.chain).
const (
	tagInitial  = 0 // the initial version's
	tagForeign  = 1 // of another run: run, counter and statement follow
	tagSameRun  = 2 // of the run that the last tagForeign named: counter's difference and statement follow
	tagOfRowID  = 3 // the tag in the last row id of the tag form: the version of a row that was only inserted
	tagOwnFirst = 4 // of the transaction's own run: the word less this is the counter's difference
)

// An encoder turns the sessions and transactions of one run into values. It keeps the run's
// dictionary and what it knows to be in the recording already, so the values must be written in the
// order in which they were encoded. It is for one goroutine.
type encoder struct {
	dict    dictionary
	priors  *priorSet // nil: every list is written out
	ids     idState
	tags    tagState
	tupleID history.TupleID // what the next one is told from
	scratch []byte          // a group of accesses
}

// idState is what the ids of a record refer to: the ids before them.
type idState struct {
	form    idForm
	nums    [numForms]uint64
	tag     history.Tag
	ordinal uint64
}

// tagState is what the tags of a record refer to.
type tagState struct {
	own   history.TxnID // the record's transaction
	other history.TxnID // the last tag of another run
	base  uint32        // the counter that the next tag of the own run is told from
}

// session appends a session's value to b; its run and number are in the key.
func (e *encoder) session(b []byte, s *history.Session) []byte {
	b = binary.AppendVarint(b, s.Start)
	b = binary.AppendVarint(b, s.End)
	b = appendText(b, s.Client)
	b = appendText(b, s.User)
	if s.Database != "" {
		b = appendText(b, s.Database)
	}
	return b
}

// txn appends a transaction's value to b; its run, session and counter are in the key.
func (e *encoder) txn(b []byte, t *history.Txn) []byte {
	e.ids = idState{}
	e.tupleID = history.TupleID{}
	e.tags = tagState{own: t.ID, base: t.ID.Seq()}
	flags := byte(t.Conflicts) << conflictsShift
	if t.Implicit {
		flags |= flagImplicit
	}
	if t.StaleRead {
		flags |= flagStaleRead
	}
	if t.Fresh {
		flags |= flagFresh
	}
	b = append(b, byte(t.Status), byte(t.Level), flags)
	b = binary.AppendVarint(b, t.Start)
	b = binary.AppendVarint(b, t.End-t.Start)

	// The totals come first so that a reader allocates once.
	accesses := 0
	for i := range t.Stmts {
		accesses += len(t.Stmts[i].Accesses)
	}
	b = binary.AppendUvarint(b, uint64(len(t.Stmts)))
	b = binary.AppendUvarint(b, uint64(accesses))

	at, num := t.Start, uint32(0)
	for i := range t.Stmts {
		s := &t.Stmts[i]
		b = e.stmt(b, s, at, num)
		at, num = s.End, s.Num
	}
	return b
}

// stmt appends a statement. Its start is told from at, its number from num.
func (e *encoder) stmt(b []byte, s *history.Stmt, at int64, num uint32) []byte {
	var flags byte
	if s.Void {
		flags |= flagVoid
	}
	if !s.Reason.IsZero() {
		flags |= flagReason
	}
	if s.Error != (history.Error{}) {
		flags |= flagError
	}
	if s.TupleIDs != nil {
		flags |= flagTupleIDs
	}
	if s.Sender.Place != "" {
		flags |= flagPlace
	}
	if s.Predicates != nil || s.Images != nil {
		flags |= flagPredicates
	}
	wide, told := placesOf(s.Predicates, isWide), placesOf(s.Predicates, isTold)
	if wide != nil {
		flags |= flagWide
	}
	observation := byte(s.Observation)
	if told != nil {
		observation |= toldFlag
	}
	requests := s.Sender.Action != "" || s.Sender.Request != ""
	if requests {
		observation |= requestFlag
	}
	if s.XID != 0 {
		flags |= flagXID
	}
	b = binary.AppendVarint(b, int64(s.Num)-int64(num))
	b = append(b, byte(s.Kind), byte(s.Locking), observation, flags)
	if !s.Reason.IsZero() {
		b = e.dict.append(b, s.Reason.String())
	}
	b = e.dict.append(b, s.Shape)
	if s.Sender.Place != "" {
		b = e.dict.append(b, s.Sender.Place)
	}
	if requests {
		b = appendText(b, s.Sender.Action) // routes may be many: the dictionary is the shapes'
		b = appendText(b, s.Sender.Request)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Args)))
	for _, a := range s.Args {
		b = appendArg(b, a)
	}
	b = binary.AppendVarint(b, s.Start-at)
	b = binary.AppendVarint(b, s.End-s.Start)
	if flags&flagError != 0 {
		b = binary.AppendUvarint(b, uint64(s.Error.Code))
		b = e.dict.append(b, s.Error.SQLState)
		b = appendText(b, s.Error.Message)
	}
	b = binary.AppendUvarint(b, s.Rows)
	b = binary.AppendUvarint(b, s.Affected)
	b = binary.AppendUvarint(b, uint64(len(s.Accesses)))
	b = e.accesses(b, s.Accesses)
	if s.TupleIDs != nil {
		b = appendTupleIDs(b, &e.tupleID, s.TupleIDs, len(s.Accesses))
	}
	if flags&flagPredicates != 0 {
		b = e.predicates(b, s)
	}
	if wide != nil {
		b = binary.AppendUvarint(b, uint64(len(wide)))
		for _, i := range wide {
			b = binary.AppendUvarint(b, uint64(i))
		}
	}
	if told != nil {
		b = binary.AppendUvarint(b, uint64(len(told)))
		for _, i := range told {
			b = append(binary.AppendUvarint(b, uint64(i)), byte(s.Predicates[i].Told))
		}
	}
	if s.XID != 0 {
		b = binary.AppendUvarint(b, uint64(s.XID))
	}
	return b
}

func isWide(p *history.Predicate) bool { return p.Wide }
func isTold(p *history.Predicate) bool { return p.Told != 0 }

// placesOf returns the places of some among predicates.
func placesOf(all []history.Predicate, some func(*history.Predicate) bool) (places []int) {
	for i := range all {
		if some(&all[i]) {
			places = append(places, i)
		}
	}
	return places
}

// predicates appends a statement's predicates, and how many images there are, which is none or one for each access.
func (e *encoder) predicates(b []byte, s *history.Stmt) []byte {
	b = binary.AppendUvarint(b, uint64(len(s.Predicates)))
	for _, p := range s.Predicates {
		b = e.dict.append(b, p.Table)
		b = e.dict.append(b, p.Of)
		b = e.dict.append(b, p.As)
		b = appendText(b, p.Where)
		for _, text := range p.Settings.Texts() {
			b = e.dict.append(b, *text)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.Images)))
	for _, image := range s.Images {
		b = appendText(b, image)
	}
	return b
}

// accesses appends accesses in groups of the same table, operation, flags and row id form.
func (e *encoder) accesses(b []byte, list []history.Access) []byte {
	for len(list) > 0 {
		first := &list[0]
		form := e.ids.formOf(first.Row.ID)
		group, n := e.group(e.scratch[:0], list, form)
		e.scratch = group
		e.ids.form = form

		flags := byte(form) << formShift
		if first.Inexact {
			flags |= flagInexact
		}
		if first.Subquery {
			flags |= flagSubquery
		}
		b = append(b, byte(first.Op), flags)
		b = binary.AppendUvarint(b, uint64(n))
		b = e.dict.append(b, first.Row.Table)
		b = append(b, group...)
		list = list[n:]
	}
	return b
}

// group appends the accesses at the head of the list that go into one group, and counts them.
func (e *encoder) group(b []byte, list []history.Access, form idForm) ([]byte, int) {
	first := &list[0]
	for n := range list {
		a := &list[n]
		if a.Op != first.Op || a.Inexact != first.Inexact || a.Subquery != first.Subquery ||
			a.Row.Table != first.Row.Table {
			return b, n
		}
		withID, ok := e.rowID(b, form, a.Row.ID)
		if !ok {
			return b, n
		}
		b = e.chain(withID, a)
	}
	return b, len(list)
}

// rowID appends a row id; false if the form does not fit it.
func (e *encoder) rowID(b []byte, form idForm, id string) ([]byte, bool) {
	s := &e.ids
	switch form {
	case formRaw:
		return appendText(b, id), s.formOf(id) == formRaw
	case formTag:
		tag, ordinal, ok := parseTagID(id)
		if !ok {
			return b, false
		}
		step := zigzag(int64(ordinal-s.ordinal)) << 1
		if tag == s.tag {
			b = binary.AppendUvarint(b, step|flagSameTag)
		} else {
			b = binary.AppendUvarint(b, step|flagOtherTag)
			b = e.tag(b, tag, false)
		}
		s.tag, s.ordinal = tag, ordinal
		return b, true
	default:
		n, ok := form.parse(id)
		if !ok {
			return b, false
		}
		b = binary.AppendVarint(b, int64(n-s.nums[form]))
		s.nums[form] = n
		return b, true
	}
}

// chain appends an access's version and, newest first, the tags below it, unless the recording has
// them with the same version already.
func (e *encoder) chain(b []byte, a *history.Access) []byte {
	e.tags.base = e.tags.own.Seq()
	prior := a.Prior
	if len(prior) > 0 && e.priors != nil && e.priors.add(a) {
		prior = nil
	}
	b = e.tag(b, a.Version, len(prior) > 0)
	for i := len(prior) - 1; i >= 0; i-- {
		b = e.tag(b, prior[i], i > 0)
	}
	return b
}

// tag appends one tag; more says that another one of the same chain follows.
func (e *encoder) tag(b []byte, t history.Tag, more bool) []byte {
	var chained uint64
	if more {
		chained = 1
	}
	s := &e.tags
	switch run := t.Txn.Run(); {
	case t == history.Tag{}:
		return binary.AppendUvarint(b, tagInitial<<1|chained)
	case t == e.ids.tag:
		return binary.AppendUvarint(b, tagOfRowID<<1|chained)
	case run == s.own.Run():
		step := zigzag(int64(s.base) - int64(t.Txn.Seq()))
		b = binary.AppendUvarint(b, (step+tagOwnFirst)<<1|chained)
		s.base = t.Txn.Seq()
	case run == s.other.Run():
		b = binary.AppendUvarint(b, tagSameRun<<1|chained)
		b = binary.AppendVarint(b, int64(s.other.Seq())-int64(t.Txn.Seq()))
		s.other = t.Txn
	default:
		b = binary.AppendUvarint(b, tagForeign<<1|chained)
		b = binary.AppendUvarint(b, uint64(run))
		b = binary.AppendUvarint(b, uint64(t.Txn.Seq()))
		s.other = t.Txn
	}
	return binary.AppendUvarint(b, uint64(t.Stmt))
}

// appendText appends a string with its length before it.
func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// maxArgInt bounds the integers that fit above an argument's form bit.
const maxArgInt = 1 << 61

// appendArg appends a literal: a decimal integer as a number, anything else as its text.
func appendArg(b []byte, s string) []byte {
	if n, ok := canonicalInt(s); ok {
		return binary.AppendUvarint(b, zigzag(n)<<1|1)
	}
	b = binary.AppendUvarint(b, uint64(len(s))<<1)
	return append(b, s...)
}

// canonicalInt reads a decimal integer whose text is what [strconv.FormatInt] would write.
func canonicalInt(s string) (int64, bool) {
	digits := s
	if len(s) > 0 && s[0] == '-' {
		digits = s[1:]
	}
	if digits == "" || digits[0] == '+' || digits[0] == '-' || digits[0] == '0' && len(s) > 1 {
		return 0, false
	}
	if digits[0] < '0' || digits[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n >= maxArgInt || n <= -maxArgInt {
		return 0, false
	}
	return n, true
}

func zigzag(n int64) uint64   { return uint64(n)<<1 ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }
