package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/mutate"
)

func appendImages(b []byte, entries []ImageEntry) []byte {
	for _, e := range entries {
		b = append(append(b, e.RowID...), '=')
		if !e.Inserted {
			b = e.Tag.Append(b)
		}
		b = append(append(append(b, '='), e.Values...), ';')
	}
	return b
}

func TestParseImagesReadsWhatWasCollected(t *testing.T) {
	tag := history.Tag{Txn: history.MakeTxnID(1, 1), Stmt: 2}
	entries := []ImageEntry{{RowID: string(AppendRowID(nil, tag, 3)), Tag: tag, Inserted: true, Values: "0,X'',NULL"},
		{RowID: "r1", Tag: tag, Values: "'2026-11-21',1.5"}}
	if got, err := ParseImages(appendImages(nil, entries)); err != nil || !slices.Equal(got, entries) {
		t.Errorf("got %v, %v, want %v", got, err, entries)
	}
	for in, why := range map[string]string{"r=0000011.1=1": "none", "r=1;": "none", "r=0000011.1=1=2;": "none",
		"r=x=1;": "statement number", "r==1;": "statement number"} {
		got, err := ParseImages(append(appendImages(nil, entries), in...))
		if err == nil || !strings.Contains(err.Error(), why) || !slices.Equal(got, entries) {
			t.Errorf("%q: %v, %v, want what stands before it and an error with %q", in, got, err, why)
		}
	}
}

// FuzzParseImages checks that any bytes are read or refused, and that what was read says the same when it is written.
func FuzzParseImages(f *testing.F) {
	f.Add([]byte("0000011.1:0==1,NULL;r=0000011.2=X'00';"))
	mutate.Fuzz(f, func(t *testing.T, b []byte) {
		entries, err := ParseImages(b)
		if err != nil {
			return
		}
		if again, err := ParseImages(appendImages(nil, entries)); err != nil || !slices.Equal(again, entries) {
			t.Errorf("%q gives %v, and written again %v (%v)", b, entries, again, err)
		}
	})
}
