package rewrite

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNoTextLooksLikeTwo(t *testing.T) {
	texts := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom([]string{"", "\n", "*", "a\nb", "\x00", "\x01a"}),
		rapid.String()))
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts.Draw(t, "a"), texts.Draw(t, "b")
		if got := ListOf(a...).Texts(); !slices.Equal(got, a) {
			t.Fatalf("%q came back as %q", a, got)
		}
		if (ListOf(a...) == ListOf(b...)) != slices.Equal(a, b) {
			t.Fatalf("%q and %q are one list", a, b)
		}
		for _, s := range a {
			if l := ListOf(a...); !l.Has(s) || l.Without(s).Has(s) || l.Add(s) != l {
				t.Fatalf("%q has and has not %q", a, s)
			}
		}
	})
}
