package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/isotap/isotap/history"
)

// The fewest bytes that a statement and an access take: they bound what a record's counts may claim,
// and so what a damaged record can make a reader allocate.
const (
	minStmtBytes   = 12
	minAccessBytes = 2
	minArgBytes    = 1
)

// A decoder turns values of one run back into sessions and transactions. It is for one goroutine.
type decoder struct {
	dict     dict
	outline  bool          // leave out what Reader.Outlines does not give
	arena    func() *Arena // gives what the next transaction is read into; nil: an arena of its own
	own      Arena
	into     *Arena // what the transaction in hand is read into
	intern   *interner
	unpacker *unpacker
	in       cursor
	ids      idState
	tags     tagState
	place    history.TupleID
	text     []byte // the id being put together
}

func (d *decoder) session(s *history.Session, value []byte) error {
	d.in = cursor{b: value}
	s.Start = d.in.varint()
	s.End = d.in.varint()
	s.Client = string(d.in.text())
	s.User = string(d.in.text())
	if d.in.err == nil && d.in.at < len(value) {
		s.Database = string(d.in.text())
	}
	return d.in.end()
}

// memory returns what the next transaction is read into.
func (d *decoder) memory() *Arena {
	if d.arena != nil {
		return d.arena()
	}
	d.own = Arena{}
	return &d.own
}

// txn decodes a transaction, whose ID and Session are set already, into an arena.
func (d *decoder) txn(t *history.Txn, into *Arena, value []byte) error {
	d.in, d.into = cursor{b: value}, into
	d.ids = idState{}
	d.place = history.TupleID{}
	d.tags = tagState{own: t.ID, base: t.ID.Seq()}
	t.Status = history.Status(d.in.byte())
	t.Level = history.Level(d.in.byte())
	flags := d.in.byte()
	t.Implicit, t.StaleRead, t.Fresh = flags&flagImplicit != 0, flags&flagStaleRead != 0, flags&flagFresh != 0
	t.Conflicts = history.Conflicts(flags >> conflictsShift & (1<<conflictsBits - 1))
	t.Start = d.in.varint()
	t.End = t.Start + d.in.varint()
	stmts := d.in.count(minStmtBytes)
	accesses := taken(&into.accesses, d.in.count(minAccessBytes))[:0]
	if stmts > 0 {
		t.Stmts = taken(&into.stmts, stmts)
	}
	at, num := t.Start, int64(0)
	for i := range t.Stmts {
		s := &t.Stmts[i]
		accesses = d.stmt(s, at, num, accesses)
		if d.in.err != nil {
			return d.in.err
		}
		at, num = s.End, int64(s.Num)
	}
	if len(accesses) != cap(accesses) {
		d.in.fail(fmt.Errorf("has %d accesses instead of %d", len(accesses), cap(accesses)))
	}
	return d.in.end()
}

// stmt decodes a statement. Its accesses are taken from the room that is left in accesses.
func (d *decoder) stmt(s *history.Stmt, at, num int64, accesses []history.Access) []history.Access {
	in := &d.in
	s.Num = uint32(num + in.varint())
	s.Kind = history.Kind(in.byte())
	s.Locking = history.Locking(in.byte())
	observation := in.byte()
	s.Observation = history.Observation(observation &^ (toldFlag | requestFlag))
	flags := in.byte()
	s.Void = flags&flagVoid != 0
	if flags&flagReason != 0 {
		s.Reason = history.ParseReason(d.ref())
	}
	s.Shape = d.ref()
	if flags&flagPlace != 0 {
		s.Sender.Place = d.ref()
	}
	if observation&requestFlag != 0 {
		s.Sender.Action = string(in.text())
		s.Sender.Request = string(in.text())
	}
	if n := in.count(minArgBytes); d.outline {
		for range n {
			if word := in.uvarint(); word&1 == 0 {
				in.take(word >> 1)
			}
		}
	} else if n > 0 {
		s.Args = make([]string, n)
		for i := range s.Args {
			s.Args[i] = d.arg()
		}
	}
	s.Start = at + in.varint()
	s.End = s.Start + in.varint()
	if flags&flagError != 0 {
		s.Error.Code = uint16(in.uvarint())
		s.Error.SQLState = d.ref()
		s.Error.Message = string(in.text())
	}
	s.Rows = in.uvarint()
	s.Affected = in.uvarint()
	n := in.count(minAccessBytes)
	if n > cap(accesses)-len(accesses) {
		in.fail(errors.New("has more accesses than it says"))
	}
	if in.err != nil {
		return accesses
	}
	if n > 0 {
		from := len(accesses)
		accesses = d.accesses(accesses, from+n)
		s.Accesses = accesses[from:len(accesses):len(accesses)]
	}
	if n > 0 && flags&flagTupleIDs != 0 {
		s.TupleIDs = d.in.tupleIDs(&d.place, len(s.Accesses))
	}
	if flags&flagPredicates != 0 {
		d.predicates(s)
	}
	if flags&flagWide != 0 {
		d.wide(s.Predicates)
	}
	if observation&toldFlag != 0 {
		d.told(s.Predicates)
	}
	if flags&flagXID != 0 {
		s.XID = uint32(in.uvarint())
	}
	return accesses
}

// minPredicateBytes is the fewest bytes that a predicate takes.
const minPredicateBytes = 9

// predicates decodes a statement's predicates and images.
func (d *decoder) predicates(s *history.Stmt) {
	in := &d.in
	for range in.count(minPredicateBytes) {
		p := history.Predicate{Table: d.ref(), Of: d.ref(), As: d.ref(), Where: string(in.text())}
		for _, text := range p.Settings.Texts() {
			*text = d.ref()
		}
		s.Predicates = append(s.Predicates, p)
	}
	n := in.count(1)
	if n > 0 && n != len(s.Accesses) {
		in.fail(fmt.Errorf("has %d images for %d accesses", n, len(s.Accesses)))
		return
	}
	for range n {
		s.Images = append(s.Images, string(in.text()))
	}
}

// wide decodes which of a statement's predicates are wide.
func (d *decoder) wide(all []history.Predicate) {
	for range d.in.count(1) {
		if p := d.among(all); p != nil {
			p.Wide = true
		}
	}
}

// told decodes what is told in which of a statement's predicates.
func (d *decoder) told(all []history.Predicate) {
	for range d.in.count(2) {
		p, told := d.among(all), history.Asked(d.in.byte())
		if p != nil {
			p.Told = told
		}
	}
}

// among decodes the place of one among predicates; nil where it is none of them.
func (d *decoder) among(all []history.Predicate) *history.Predicate {
	i := d.in.uvarint()
	if i >= uint64(len(all)) {
		d.in.fail(fmt.Errorf("tells something of predicate %d of %d", i, len(all)))
		return nil
	}
	return &all[i]
}

// accesses decodes groups of accesses until the list has the wanted length.
func (d *decoder) accesses(list []history.Access, want int) []history.Access {
	for len(list) < want && d.in.err == nil {
		op := history.Op(d.in.byte())
		flags := d.in.byte()
		form := idForm(flags &^ flagSubquery >> formShift)
		n := d.in.count(minAccessBytes)
		if n == 0 || n > want-len(list) || form >= numForms {
			d.in.fail(fmt.Errorf("has a group of %d accesses with row ids of form %d", n, form))
			return list
		}
		table := d.ref()
		for range n {
			a := history.Access{Op: op, Inexact: flags&flagInexact != 0, Subquery: flags&flagSubquery != 0}
			a.Row = history.Row{Table: table, ID: d.rowID(form)}
			a.Version, a.Prior = d.chain()
			if d.in.err != nil {
				return list
			}
			list = append(list, a)
		}
	}
	return list
}

func (d *decoder) rowID(form idForm) string {
	s := &d.ids
	switch form {
	case formRaw:
		return d.intern.string(d.in.text())
	case formTag:
		step := d.in.uvarint()
		if step&1 == flagOtherTag {
			s.tag, _ = d.tag()
		}
		s.ordinal += uint64(unzigzag(step >> 1))
		id := d.intern.number(numberedID{form, s.tag, s.ordinal})
		if id.text == "" {
			d.text = appendTagID(d.text[:0], s.tag, s.ordinal)
			id.text = string(d.text)
		}
		return id.text
	default:
		s.nums[form] += uint64(d.in.varint())
		id := d.intern.number(numberedID{form: form, n: s.nums[form]})
		if id.text == "" {
			d.text = form.append(d.text[:0], s.nums[form])
			id.text = string(d.text)
		}
		return id.text
	}
}

// chain decodes a version and the tags below it, which stand in the record newest first.
func (d *decoder) chain() (version history.Tag, prior []history.Tag) {
	d.tags.base = d.tags.own.Seq()
	version, more := d.tag()
	lists := &d.into.tags
	from := len(*lists)
	for more && d.in.err == nil {
		var t history.Tag
		t, more = d.tag()
		*lists = append(*lists, t)
	}
	if from < len(*lists) {
		prior = slices.Clip((*lists)[from:])
		slices.Reverse(prior)
	}
	return version, prior
}

func (d *decoder) tag() (t history.Tag, more bool) {
	s := &d.tags
	word := d.in.uvarint()
	more = word&1 != 0
	switch word >>= 1; word {
	case tagInitial:
		return history.Tag{}, more
	case tagOfRowID:
		return d.ids.tag, more
	case tagForeign:
		run, seq := d.in.uvarint(), d.in.uvarint()
		s.other = history.MakeTxnID(history.Run(run), uint32(seq))
		t.Txn = s.other
	case tagSameRun:
		seq := int64(s.other.Seq()) - d.in.varint()
		s.other = history.MakeTxnID(s.other.Run(), uint32(seq))
		t.Txn = s.other
	default:
		s.base = uint32(int64(s.base) - unzigzag(word-tagOwnFirst))
		t.Txn = history.MakeTxnID(s.own.Run(), s.base)
	}
	t.Stmt = uint32(d.in.uvarint())
	return t, more
}

// ref decodes a string that may be in the dictionary.
func (d *decoder) ref() string {
	switch word := d.in.uvarint(); {
	case word == refEmpty:
		return ""
	case word == refInline:
		return string(d.in.text())
	case word-refFirst < uint64(len(d.dict)):
		if text := d.dict[word-refFirst]; text != nil {
			return *text
		}
		d.in.fail(fmt.Errorf("refers to string %d, which is missing", word-refFirst))
		return ""
	default:
		d.in.fail(fmt.Errorf("refers to string %d of a dictionary of %d", word-refFirst, len(d.dict)))
		return ""
	}
}

func (d *decoder) arg() string {
	word := d.in.uvarint()
	if word&1 == 0 {
		return string(d.in.take(word >> 1))
	}
	return strconv.FormatInt(unzigzag(word>>1), 10)
}

// A cursor reads a value. Its first error stays, and reads after it give zeroes.
type cursor struct {
	b   []byte
	at  int
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

var errShort = errors.New("ends early")

func (c *cursor) byte() byte {
	if c.err != nil || c.at >= len(c.b) {
		c.fail(errShort)
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

func (c *cursor) uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	n, size := binary.Uvarint(c.b[c.at:])
	if size == 0 {
		c.fail(errShort)
		return 0
	}
	if size < 0 {
		c.fail(errors.New("has a number of more than 64 bits"))
		return 0
	}
	c.at += size
	return n
}

func (c *cursor) varint() int64 { return unzigzag(c.uvarint()) }

// count reads how many things follow that take at least size bytes each.
func (c *cursor) count(size int) int {
	n := c.uvarint()
	if rest := uint64(len(c.b) - c.at); n > rest/uint64(size) {
		c.fail(fmt.Errorf("says that %d items follow in %d bytes", n, rest))
		return 0
	}
	return int(n)
}

// take returns the next n bytes, which are the cursor's own.
func (c *cursor) take(n uint64) []byte {
	if c.err != nil || n > uint64(len(c.b)-c.at) {
		c.fail(errShort)
		return nil
	}
	c.at += int(n)
	return c.b[c.at-int(n) : c.at]
}

func (c *cursor) text() []byte { return c.take(c.uvarint()) }

// end returns the error, or one if bytes are left over.
func (c *cursor) end() error {
	if c.err == nil && c.at != len(c.b) {
		c.fail(fmt.Errorf("has %d bytes too many", len(c.b)-c.at))
	}
	return c.err
}
