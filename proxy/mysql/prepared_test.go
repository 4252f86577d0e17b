package mysql

import (
	"bytes"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func TestPreparedStatementsAreFoundByTheirID(t *testing.T) {
	known := newPreparedStatements()
	first, second := &prepared{id: 1}, &prepared{id: 2}
	known.add(first)
	known.add(second)
	for name, test := range map[string]struct {
		id     uint32
		direct bool
		want   *prepared
	}{
		"by id":                       {1, true, first},
		"the one prepared last":       {directExecute, true, second},
		"no such id on other servers": {directExecute, false, nil},
		"unknown":                     {7, true, nil},
	} {
		if _, got := known.find(test.id, test.direct); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	known.remove(2)
	known.remove(2)
	if id, p := known.find(directExecute, true); id != 2 || p != nil || known.bytes != first.bytes() {
		t.Errorf("after the second is closed: statement %d is %v, %d bytes", id, p, known.bytes)
	}
	known.add(&prepared{id: 1, text: []byte("another")})
	if _, p := known.find(1, false); string(p.text) != "another" || known.bytes != p.bytes() {
		t.Errorf("the id that was given again is of %q, %d bytes", p.text, known.bytes)
	}
}

func TestTooManyPreparedStatementsLeaveThemIncomplete(t *testing.T) {
	known := newPreparedStatements()
	known.add(&prepared{id: 1, text: make([]byte, maxPrepared/8)})
	if known.incomplete {
		t.Fatal("incomplete with one statement")
	}
	known.add(&prepared{id: 2, text: make([]byte, maxPrepared/8)})
	if _, p := known.find(2, false); p != nil || !known.incomplete || known.last != 2 {
		t.Errorf("the second is kept: %t, incomplete: %t, last %d", p != nil, known.incomplete, known.last)
	}
	if known.reset(); known.incomplete || known.bytes != 0 {
		t.Errorf("after the reset: incomplete: %t, %d bytes", known.incomplete, known.bytes)
	}
}

func TestHiddenParametersStandAtTheirPlaces(t *testing.T) {
	p := &prepared{params: 2, long: make([]bool, 2),
		types: []byte{gomysql.MYSQL_TYPE_TINY, 0, gomysql.MYSQL_TYPE_TINY, 0}}
	nulls := []byte{0b01} // the first is NULL
	r := reader{b: []byte{42}}
	values, err := p.values(&r, nulls)
	if err != nil {
		t.Fatal(err)
	}
	got := p.appendParams(nil, nulls, values, []sqlmysql.Hidden{{Index: 0, Hole: sqlmysql.CopyHole, Ordinal: 1},
		{Index: 1, Hole: sqlmysql.CopyHole, Ordinal: 0}}, sqlmysql.Values{}, false)
	want := []byte{0b0110, 1, // the copy of the first is NULL as well
		gomysql.MYSQL_TYPE_TINY, 0, gomysql.MYSQL_TYPE_TINY, 0, gomysql.MYSQL_TYPE_TINY, 0, gomysql.MYSQL_TYPE_TINY, 0,
		42, 42}
	if !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got = p.appendParams(nil, nulls, values, []sqlmysql.Hidden{{Index: 0, Hole: sqlmysql.CopyHole, Ordinal: 1}},
		sqlmysql.Values{}, true)
	if want := []byte{0b011, 1, gomysql.MYSQL_TYPE_TINY, 0, gomysql.MYSQL_TYPE_TINY, 0, gomysql.MYSQL_TYPE_TINY, 0,
		42}; !bytes.Equal(got, want) {
		t.Errorf("withheld: %v, want %v", got, want)
	}
	if args := p.args(values, nulls); args[0] != "NULL" || args[1] != "42" {
		t.Errorf("parameters %v", args)
	}
}

// TestParametersOfReadsThatRunAgainFitTheirColumns has values of each kind, and some that the server would warn of.
func TestParametersOfReadsThatRunAgainFitTheirColumns(t *testing.T) {
	number, word, instant, one := sqlmysql.Copy{Integer: true}, sqlmysql.Copy{}, sqlmysql.Copy{Moment: true}, sqlmysql.Copy{One: true}
	text := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	for _, c := range []struct {
		of    sqlmysql.Copy
		typ   byte
		value []byte
		fits  bool
	}{
		{number, gomysql.MYSQL_TYPE_LONGLONG, make([]byte, 8), true},
		{number, gomysql.MYSQL_TYPE_VAR_STRING, text("1"), false},
		{word, gomysql.MYSQL_TYPE_VAR_STRING, text("ü"), true},
		{word, gomysql.MYSQL_TYPE_VAR_STRING, text("\xff"), false},
		{word, gomysql.MYSQL_TYPE_LONG, make([]byte, 4), false},
		{word, gomysql.MYSQL_TYPE_NULL, nil, true},
		{instant, gomysql.MYSQL_TYPE_DATETIME, []byte{0}, true},
		{instant, gomysql.MYSQL_TYPE_VAR_STRING, text("2026-01-02 03:04:05.678"), true},
		{instant, gomysql.MYSQL_TYPE_VAR_STRING, text("2026-01-02"), true},
		{instant, gomysql.MYSQL_TYPE_VAR_STRING, text("2026-02-30"), false},
		{instant, gomysql.MYSQL_TYPE_VAR_STRING, text("soon"), false},
		{one, gomysql.MYSQL_TYPE_LONGLONG, []byte{1, 0, 0, 0, 0, 0, 0, 0}, true},
		{one, gomysql.MYSQL_TYPE_LONGLONG, []byte{1, 1, 0, 0, 0, 0, 0, 0}, false},
		{one, gomysql.MYSQL_TYPE_TINY, []byte{0}, false},
		{one, gomysql.MYSQL_TYPE_VAR_STRING, text("1"), true},
		{one, gomysql.MYSQL_TYPE_VAR_STRING, text("10"), false},
		{one, gomysql.MYSQL_TYPE_DOUBLE, make([]byte, 8), false},
	} {
		p := &prepared{params: 1, long: make([]bool, 1), types: []byte{c.typ, 0},
			plan: &sqlmysql.Plan{Upstream: sqlmysql.Upstream{Copies: []sqlmysql.Copy{c.of}}}}
		if got := p.readsFit([][]byte{c.value}, []byte{0}); got != c.fits {
			t.Errorf("%+v of type %d, %q: fits %t", c.of, c.typ, c.value, got)
		}
		if p.long[0] = true; p.readsFit([][]byte{nil}, []byte{0}) {
			t.Error("long data fits")
		}
	}
}
