package mysql

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// appendCapture writes what CaptureRead would give.
func appendCapture(b []byte, entries []CaptureEntry, uncollected uint64) []byte {
	b = append(strconv.AppendUint(b, uncollected, 10), '|')
	for _, e := range entries {
		b = append(append(b, e.RowID...), '=')
		for i, tag := range e.WList {
			if i > 0 {
				b = append(b, ',')
			}
			b = tag.Append(b)
		}
		b = e.Tag.Append(append(b, '='))
		if e.Outcome != Changed {
			b = append(b, outcomeMarks[e.Outcome-1])
		}
		switch {
		case e.Instead != "":
			b = append(append(b, '='), e.Instead...)
		case e.Source > 0:
			b = strconv.AppendInt(append(b, '='), int64(e.Source), 10)
		}
		b = append(b, ';')
	}
	return b
}

func TestParseCaptureReadsWhatWasCollected(t *testing.T) {
	tags := rapid.Custom(func(t *rapid.T) history.Tag {
		run := history.Run(rapid.Uint32Range(1, history.MaxRun-1).Draw(t, "run"))
		return history.Tag{Txn: history.MakeTxnID(run, max(1, rapid.Uint32().Draw(t, "seq"))),
			Stmt: max(1, rapid.Uint32().Draw(t, "stmt"))}
	})
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOf(rapid.Custom(func(t *rapid.T) CaptureEntry {
			e := CaptureEntry{RowID: rapid.StringMatching(`[0-9a-z.:]{0,20}`).Draw(t, "id"), Tag: tags.Draw(t, "tag")}
			if n := rapid.IntRange(0, 4).Draw(t, "length"); n > 0 {
				e.WList = append(make([]history.Tag, 1), rapid.SliceOfN(tags, n, n).Draw(t, "list")...)
			}
			e.Outcome = Outcome(rapid.IntRange(0, int(Seen)).Draw(t, "met"))
			if rapid.Bool().Draw(t, "instead") {
				e.Instead = rapid.StringMatching(`[0-9a-z.]{0,9}:[0-9a-z]{1,3}`).Draw(t, "candidate")
			} else {
				e.Source = rapid.IntRange(0, 60).Draw(t, "source")
			}
			return e
		})).Draw(t, "entries")
		n := rapid.Uint64().Draw(t, "uncollected")
		got, count, err := ParseCapture(appendCapture(nil, entries, n))
		if err != nil || count != n || len(got) != len(entries) || len(got) > 0 && !reflect.DeepEqual(got, entries) {
			t.Fatalf("got %v, %d, %v; want %v, %d", got, count, err, entries, n)
		}
	})
}

func TestParseCaptureRefusesWhatIsNotAnEntry(t *testing.T) {
	const good = "r1=0=0000011.1;"
	for _, tc := range []struct {
		in, err string
		entries int
	}{
		{"", "no count", 0},
		{good, "no count", 0},
		{"-1|" + good, "count of uncollected", 0},
		{"0|" + good + "r2=0=0000011.1", "cut off", 1},
		{"0|" + good + "r2=0;" + good, "2 parts", 1},
		{"0|" + good + "r2=0=x;", "no statement number", 1},
		{"0|" + good + "r2=,=0000011.1;", "wlist", 1},
		{"0|" + good + "r2=0=0000011.1=x;", "source", 1},
		{"0|" + good + "r2=0=0000011.1~-;", "statement number", 1},
		{"0|" + good + "r2=0=0000011.1=1=1;", "5 parts", 1},
	} {
		entries, _, err := ParseCapture([]byte(tc.in))
		if err == nil || !strings.Contains(err.Error(), tc.err) || len(entries) != tc.entries {
			t.Errorf("ParseCapture(%q) = %v, %v; want %d entries and an error with %q", tc.in,
				entries, err, tc.entries, tc.err)
		}
	}
}
