package mysql

import (
	"slices"
	"testing"
)

func TestParametersStandAmongTheTextsOwnLiterals(t *testing.T) {
	for _, tt := range []struct{ literals, params, want []string }{
		{[]string{"?", "7", "?"}, []string{"90", "1"}, []string{"90", "7", "1"}},
		{[]string{"?", "?"}, []string{"90", "1"}, []string{"90", "1"}},
		{[]string{"7"}, nil, []string{"7"}},
		{nil, []string{"90", "1"}, []string{"90", "1"}}, // not all of the text's are known
		{[]string{"?"}, []string{"90", "1"}, []string{"90", "1"}},
		{[]string{"'?'", "?"}, []string{"90"}, []string{"'?'", "90"}},
	} {
		if got := inPlaces(tt.literals, tt.params); !slices.Equal(got, tt.want) {
			t.Errorf("%q with %q: %q, want %q", tt.literals, tt.params, got, tt.want)
		}
	}
}
