package history

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/internal/mutate"
)

// tags draws any tag that a run can hand out, and the initial one.
func tags() *rapid.Generator[Tag] {
	return rapid.Custom(func(t *rapid.T) Tag {
		if rapid.Bool().Draw(t, "initial") {
			return Tag{}
		}
		run := Run(rapid.Uint32Range(1, MaxRun-1).Draw(t, "run"))
		seq := rapid.Uint32Min(1).Draw(t, "seq")
		return Tag{Txn: MakeTxnID(run, seq), Stmt: rapid.Uint32Min(1).Draw(t, "stmt")}
	})
}

func TestWListReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(tags(), 1, 20).Draw(t, "tags")
		var text []byte
		for i, tag := range want {
			if i > 0 {
				text = append(text, ',')
			}
			text = tag.Append(text)
		}
		got, err := ParseWList(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d tags out of %q, want %d", len(got), text, len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("tag %d of %q is %v, want %v", i, text, got[i], want[i])
			}
		}
	})
}

func TestTextsThatAreNoTagAreRefused(t *testing.T) {
	for _, text := range []string{"", ",", "0,", "1", "00", "0.1", "k3f9z0", "k3f9z0.1", "k3f9z01", "k3f9z01.",
		"k3f9z01.0", "k3f9z01.01",
		"k3f9z001.1", "0000001.1", "k3f9z01.1 ", "-3f9z01.1", "k3f9z0zzzzzzzz.1", "k3f9z01.zzzzzzzz", "k3f9z01.1.1",
		"k3f9z01\x00.1"} {
		if tags, err := ParseWList(text); err == nil {
			t.Errorf("%q is read as %v", text, tags)
		} else if !strings.Contains(err.Error(), "wlist") {
			t.Errorf("the error about %q does not say what it is about: %v", text, err)
		}
	}
}

func TestIDsOfOneRunGrow(t *testing.T) {
	run, err := ParseRun("k3f9z0")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := MakeTxnID(run, 35), MakeTxnID(run, 36); a >= b || a.String() != "k3f9z0z" || b.String() != "k3f9z010" {
		t.Errorf("ids %v (%d) and %v (%d)", a, a, b, b)
	}
}

// FuzzParseWList reads whatever a column may hold. What it takes is exactly what it would write.
func FuzzParseWList(f *testing.F) {
	f.Add("0")
	f.Add("0,k3f9z01.2,k3f9z0zz.1")
	f.Add("k3f9z01.02")
	mutate.Fuzz(f, func(t *testing.T, text string) {
		tags, err := ParseWList(text)
		if err != nil {
			return
		}
		var back []byte
		for i, tag := range tags {
			if i > 0 {
				back = append(back, ',')
			}
			back = tag.Append(back)
		}
		if !strings.EqualFold(string(back), text) {
			t.Fatalf("%q is read as %q", text, back)
		}
	})
}

func TestLevelsReadAsTheServerSpellsThem(t *testing.T) {
	for _, l := range []Level{ReadUncommitted, ReadCommitted, RepeatableRead, Serializable} {
		for _, spelling := range []string{l.String(), strings.ReplaceAll(l.String(), " ", "-")} {
			if got, err := ParseLevel(spelling); err != nil || got != l {
				t.Errorf("%q is read as %v, %v", spelling, got, err)
			}
		}
	}
	if _, err := ParseLevel("SNAPSHOT"); err == nil {
		t.Error("SNAPSHOT is read as a level")
	}
}
