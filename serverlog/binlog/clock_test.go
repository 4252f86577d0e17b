package binlog

import (
	"testing"

	"github.com/isotap/isotap/internal/mutate"
)

func TestMarksTellWhenTransactionsEnded(t *testing.T) {
	var c clock
	at := func(file string, offset uint64) position { return position{file, offset} }
	c.add(mark{at("log.000001", 100), 10, 11})
	c.add(mark{at("log.000001", 100), 20, 21}) // nothing ended meanwhile
	c.add(mark{at("log.000001", 300), 30, 31})
	c.add(mark{at("log.000010", 50), 40, 41})
	for _, want := range []struct {
		at         position
		passed     bool
		from, seen int64
	}{
		{at("log.000001", 90), true, 0, 11},
		{at("log.000001", 100), true, 0, 11},
		{at("log.000001", 200), true, 20, 31},
		{at("log.000001", 300), true, 20, 31},
		{at("log.000002", 4), true, 30, 41},
		{at("log.000010", 60), false, 40, 0},
	} {
		passed := c.passed(want.at)
		from, seen := c.times(want.at)
		if passed != want.passed || from != want.from || seen != want.seen {
			t.Errorf("%v: %v, from %d, seen %d; want %+v", want.at, passed, from, seen, want)
		}
	}
}

func FuzzPreparedName(f *testing.F) {
	f.Add([]byte{0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'a', 'b'})
	f.Add([]byte{1, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255})
	mutate.Fuzz(f, func(t *testing.T, data []byte) {
		name, _, err := preparedName(data)
		if err == nil && len(name) < len("x'',x'',0") {
			t.Errorf("the name is %q", name)
		}
	})
}
