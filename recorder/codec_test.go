package recorder

import (
	"fmt"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/mutate"
)

// drawText draws text with few distinct values, so that it repeats as real text does.
func drawText(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "a", "shop.stock", "SELECT ?"}), rapid.String()).Draw(t, label)
}

func drawTxnID(t *rapid.T, own history.TxnID) history.TxnID {
	run := rapid.SampledFrom([]history.Run{own.Run(), own.Run(), 1, 77, history.MaxRun - 1}).Draw(t, "run")
	near := rapid.Uint32Range(max(own.Seq(), 20)-20, own.Seq()/2+1<<31)
	return history.MakeTxnID(run, rapid.OneOf(near, rapid.Uint32Min(1)).Draw(t, "seq"))
}

func drawTag(t *rapid.T, own history.TxnID) history.Tag {
	if rapid.IntRange(0, 3).Draw(t, "initial") == 0 {
		return history.Tag{}
	}
	return history.Tag{Txn: drawTxnID(t, own), Stmt: rapid.Uint32Min(1).Draw(t, "stmt")}
}

// drawRowID draws ids of every form, and ids that look like one but are not.
func drawRowID(t *rapid.T, own history.TxnID) string {
	n := rapid.Uint64().Draw(t, "n")
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0:
		return fmt.Sprint(n)
	case 1:
		return fmt.Sprintf("%x", n)
	case 2:
		return fmt.Sprintf("%X", n)
	case 3:
		return fmt.Sprintf("%016x", n)
	case 4:
		return string(formBase36.append(nil, n))
	case 5:
		return string(formBASE36.append(nil, n))
	case 6:
		return strings.ToUpper(drawTag(t, own).String()) + ":0"
	case 7:
		return drawTag(t, own).String() + rapid.SampledFrom([]string{"", ":", ":00", ":01",
			":-1", ":1:2"}).Draw(t, "end")
	case 8:
		return rapid.String().Draw(t, "raw")
	default:
		return string(appendTagID(nil, drawTag(t, own), n%50))
	}
}

func drawAccess(t *rapid.T, own history.TxnID) history.Access {
	a := history.Access{
		Row:     history.Row{Table: drawText(t, "table"), ID: drawRowID(t, own)},
		Op:      history.Op(rapid.Byte().Draw(t, "op")),
		Inexact: rapid.Bool().Draw(t, "inexact"), Subquery: rapid.Bool().Draw(t, "subquery"),
		Version: drawTag(t, own),
	}
	for range rapid.IntRange(0, 4).Draw(t, "priors") {
		a.Prior = append(a.Prior, drawTag(t, own))
	}
	return a
}

func drawStmt(t *rapid.T, own history.TxnID) history.Stmt {
	s := history.Stmt{
		Sender: history.Sender{Place: rapid.SampledFrom([]string{"", "", "app/x.py:12", "a b"}).Draw(t, "place"),
			Action:  rapid.SampledFrom([]string{"", "", "orders#create"}).Draw(t, "action"),
			Request: rapid.SampledFrom([]string{"", "", "4bf92f3577b34da6a3ce929d0e0e4736"}).Draw(t, "request")},
		Num:         rapid.Uint32().Draw(t, "num"),
		Kind:        history.Kind(rapid.Byte().Draw(t, "kind")),
		Locking:     history.Locking(rapid.Byte().Draw(t, "locking")),
		Observation: history.Observation(rapid.ByteMax(63).Draw(t, "observation")),
		Void:        rapid.Bool().Draw(t, "void"),
		Reason:      history.ParseReason(drawText(t, "reason")),
		Shape:       drawText(t, "shape"),
		Start:       rapid.Int64().Draw(t, "start"),
		End:         rapid.Int64().Draw(t, "end"),
		Rows:        rapid.Uint64().Draw(t, "rows"),
		Affected:    rapid.Uint64().Draw(t, "affected"),
		XID:         rapid.Uint32().Draw(t, "xid"),
	}
	if rapid.Bool().Draw(t, "failed") {
		s.Error = history.Error{Code: rapid.Uint16().Draw(t, "code"), SQLState: drawText(t, "state"),
			Message: drawText(t, "message")}
	}
	arg := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "0", "-0", "-1", "+1", "01", "-",
		"9223372036854775807",
		"-9223372036854775808", "2305843009213693951", "2305843009213693952", "1e3", "NULL", "18446744073709551615"}))
	for range rapid.IntRange(0, 3).Draw(t, "args") {
		s.Args = append(s.Args, arg.Draw(t, "arg"))
	}
	for range rapid.IntRange(0, 6).Draw(t, "accesses") {
		s.Accesses = append(s.Accesses, drawAccess(t, own))
	}
	if len(s.Accesses) > 0 && rapid.Bool().Draw(t, "places") {
		for range s.Accesses {
			s.TupleIDs = append(s.TupleIDs, drawPlace(t))
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "predicates") {
		s.Predicates = append(s.Predicates, drawPredicate(t))
	}
	if len(s.Accesses) > 0 && rapid.Bool().Draw(t, "images") {
		for range s.Accesses {
			s.Images = append(s.Images, drawText(t, "image"))
		}
	}
	return s
}

func drawPredicate(t *rapid.T) (p history.Predicate) {
	for _, text := range append([]*string{&p.Table, &p.Of, &p.As, &p.Where}, p.Settings.Texts()...) {
		*text = drawText(t, "predicate")
	}
	p.Wide, p.Told = rapid.Bool().Draw(t, "wide"), history.Asked(rapid.Byte().Draw(t, "told"))
	return p
}

// drawPlace draws places near each other and anywhere, with fields left out.
func drawPlace(t *rapid.T) history.TupleID {
	n32 := rapid.OneOf(rapid.SampledFrom([]uint32{0, 1, 740, 741, 1<<31 - 1, 1 << 31, 1<<32 - 1}), rapid.Uint32())
	n64 := rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, 1 << 16, 1<<16 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}),
		rapid.Uint64())
	return history.TupleID{XID: n32.Draw(t, "xid"), CTID: n64.Draw(t, "ctid"), NewXID: n32.Draw(t, "new xid"),
		NewID: n64.Draw(t, "new ctid"),
		LSN:   n64.Draw(t, "lsn"), Leaf: n32.Draw(t, "leaf"), Tagged: rapid.Bool().Draw(t, "tagged")}
}

func drawTxn(t *rapid.T, id history.TxnID) *history.Txn {
	txn := &history.Txn{
		ID:        id,
		Session:   history.SessionID(rapid.Uint32().Draw(t, "session")),
		Status:    history.Status(rapid.Byte().Draw(t, "status")),
		Level:     history.Level(rapid.Byte().Draw(t, "level")),
		Conflicts: history.Conflicts(rapid.IntRange(0, 31).Draw(t, "conflicts")),
		StaleRead: rapid.Bool().Draw(t, "stale read"),
		Fresh:     rapid.Bool().Draw(t, "fresh"),
		Implicit:  rapid.Bool().Draw(t, "implicit"),
		Start:     rapid.Int64().Draw(t, "start"),
		End:       rapid.Int64().Draw(t, "end"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "stmts") {
		txn.Stmts = append(txn.Stmts, drawStmt(t, id))
	}
	return txn
}

func dictOf(strings []string) (d dict) {
	for i := range strings {
		d = append(d, &strings[i])
	}
	return d
}

// decodeAlone decodes a record as a reader would that has loaded the dictionary.
func decodeAlone(dict []string, like *history.Txn, record []byte) (*history.Txn, error) {
	d := decoder{dict: dictOf(dict), intern: newInterner(16)}
	t := &history.Txn{ID: like.ID, Session: like.Session}
	return t, d.txn(t, new(Arena), record)
}

func TestTransactionsComeBackAsTheyWereEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e encoder
		run := history.Run(rapid.Uint32Range(1, history.MaxRun-1).Draw(t, "run"))
		for range 3 {
			want := drawTxn(t, history.MakeTxnID(run, rapid.Uint32Min(1).Draw(t, "seq")))
			record := e.txn(nil, want)
			got, err := decodeAlone(e.dict.fresh, want, record)
			if err != nil {
				t.Fatalf("decode %+v: %v", want, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %+v\nwant %+v", got, want)
			}
		}
	})
}

func TestCutRecordsAreErrors(t *testing.T) {
	s := newSysbench(5, 1, 300)
	for range 30 {
		s.txn(1)
	}
	var e encoder
	txn := s.txn(1)
	record := e.txn(nil, txn)
	for n := range record {
		if _, err := decodeAlone(e.dict.fresh, txn, record[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes decode", n, len(record))
		}
	}
	if _, err := decodeAlone(e.dict.fresh, txn, append(record, 0)); err == nil {
		t.Fatal("a record with a byte too many decodes")
	}
}

// placed returns a transaction whose accesses have the places that they might have on PostgreSQL.
func placed(t *history.Txn) *history.Txn {
	for i := range t.Stmts {
		s := &t.Stmts[i]
		for j := range s.Accesses {
			p := history.TupleID{XID: uint32(700 + j%3), CTID: uint64(j)<<16 | 1}
			if s.Accesses[j].Op != history.Read {
				p.NewXID, p.NewID, p.LSN = t.ID.Seq(), uint64(900+j)<<16|2, 1<<32+uint64(j)*80
			}
			s.TupleIDs = append(s.TupleIDs, p)
		}
	}
	return t
}

func TestCutRecordsWithPlacesAreErrors(t *testing.T) {
	var e encoder
	txn := newSysbench(5, 1, 300).txn(1)
	// Many rows of the same form cost time only.
	txn.Stmts = slices.DeleteFunc(txn.Stmts, func(s history.Stmt) bool { return len(s.Accesses) > 10 })
	record := e.txn(nil, placed(txn))
	for n := range record {
		if _, err := decodeAlone(e.dict.fresh, txn, record[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes decode", n, len(record))
		}
	}
}

func TestPlacesThatAreMissingAreZero(t *testing.T) {
	var e encoder
	txn := plainTxn(5, 1, 1)
	txn.Stmts = []history.Stmt{{Num: 1, Accesses: make([]history.Access, 3), TupleIDs: make([]history.TupleID, 1)}}
	txn.Stmts[0].TupleIDs[0].LSN = 9
	got, err := decodeAlone(nil, txn, e.txn(nil, txn))
	if err != nil {
		t.Fatal(err)
	}
	if want := []history.TupleID{{LSN: 9}, {}, {}}; !reflect.DeepEqual(got.Stmts[0].TupleIDs, want) {
		t.Errorf("places %v, want %v", got.Stmts[0].TupleIDs, want)
	}
}

func TestTransactionsWithoutPlacesTakeNoRoomForThem(t *testing.T) {
	var with, without encoder
	plain, more := plainTxn(5, 1, 1), plainTxn(5, 1, 1)
	n := len(without.txn(nil, plain))
	accesses := 0
	for i := range more.Stmts {
		accesses += len(more.Stmts[i].Accesses)
		if len(more.Stmts[i].Accesses) > 0 {
			more.Stmts[i].TupleIDs = make([]history.TupleID, len(more.Stmts[i].Accesses))
		}
	}
	if got := len(with.txn(nil, more)); got != n+accesses {
		t.Errorf("%d bytes with %d empty places, %d without", got, accesses, n)
	}
}

func TestSessionsComeBackAsTheyWereEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := history.Session{
			Client: rapid.String().Draw(t, "client"), User: rapid.String().Draw(t, "user"),
			Database: rapid.String().Draw(t, "database"),
			Start:    rapid.Int64().Draw(t, "start"), End: rapid.Int64().Draw(t, "end"),
		}
		var got history.Session
		if err := new(decoder).session(&got, new(encoder).session(nil, &want)); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestPackedValuesComeBack(t *testing.T) {
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	u, err := newUnpacker()
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	for _, n := range []int{0, 1, minPacked - 1, minPacked, 4000, chunkBytes} {
		for _, text := range []string{strings.Repeat("a", n), noise(n)} {
			got, err := u.unpack(p.pack(nil, []byte(text)))
			if err != nil || string(got) != text {
				t.Errorf("%d bytes (%.8q...): %d came back, %v", n, text, len(got), err)
			}
		}
	}
	if _, err := u.unpack(p.pack(nil, make([]byte, chunkBytes+1))); err == nil {
		t.Error("a frame of more than chunkBytes unpacks")
	}
}

// noise is text that does not compress.
func noise(n int) string {
	b, x := make([]byte, n), uint64(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return string(b)
}

func TestLongDictionariesOverflowIntoRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	var e encoder
	dict := make([]string, 0, maxDictEntries)
	for i := range maxDictEntries + 10 {
		txn := &history.Txn{ID: history.MakeTxnID(9, uint32(i+1)), Session: 1,
			Stmts: []history.Stmt{{Shape: fmt.Sprint("shape ", i)}}}
		record := e.txn(nil, txn)
		dict = append(dict, e.dict.fresh...)
		e.dict.fresh = e.dict.fresh[:0]
		if i%8192 != 0 && i < maxDictEntries-10 {
			continue // each decoding takes the whole dictionary
		}
		got, err := decodeAlone(dict, txn, record)
		if err != nil || got.Stmts[0].Shape != txn.Stmts[0].Shape {
			t.Fatalf("transaction %d: %+v, %v", i, got, err)
		}
	}
	if len(dict) != maxDictEntries {
		t.Errorf("the dictionary has %d strings, want %d", len(dict), maxDictEntries)
	}
}

// allocated is how many bytes the process has allocated so far. Unlike runtime.ReadMemStats it stops nobody.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// FuzzDecodeTxn feeds damaged values to the decoder: it must not panic, and must not allocate more
// than a multiple of what it was given.
func FuzzDecodeTxn(f *testing.F) {
	p, err := newPacker()
	if err != nil {
		f.Fatal(err)
	}
	s := newSysbench(5, 1, 300)
	for range 30 {
		s.txn(1)
	}
	var e encoder
	record := e.txn(nil, s.txn(1))
	f.Add(append([]byte{packPlain}, record...))
	f.Add(p.pack(nil, record))
	f.Add(append([]byte{packPlain}, e.txn(nil, placed(s.txn(1)))...))
	f.Add(append([]byte{packPlain}, e.txn(nil, &history.Txn{ID: 1})...))
	f.Add([]byte{packParts, 2, 0xff, 0xff, 0x3f})
	f.Add([]byte{packPlain, 1, 3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f})
	dict := dictOf(e.dict.fresh)
	u, err := newUnpacker()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(u.close)
	intern := newInterner(16)
	mutate.Fuzz(f, func(t *testing.T, value []byte) {
		if len(value) > 0 && value[0] == packParts {
			if _, size, err := decodeParts(value[1:]); err == nil && size <= chunkBytes {
				t.Fatalf("%d bytes are in parts", size)
			}
			return
		}
		record, err := u.unpack(value)
		if err != nil {
			return
		}
		before := allocated()
		d := decoder{dict: dict, intern: intern}
		txn := history.Txn{ID: history.MakeTxnID(5, 31)}
		_ = d.txn(&txn, new(Arena), record)
		// A tag takes a byte in the record and 16 in memory, growing lists twice that and more; other
		// goroutines of the fuzzer allocate, too.
		if got, limit := allocated()-before, uint64(128*len(record)+1<<20); got > limit {
			t.Fatalf("%d bytes of record made %d bytes of memory, more than %d", len(record), got, limit)
		}
	})
}
