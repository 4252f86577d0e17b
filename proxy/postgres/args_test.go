package postgres

import (
	"slices"
	"testing"
)

func TestArgumentsStandWhereTheTextHasThem(t *testing.T) {
	for _, test := range []struct{ args, values, want []string }{
		{[]string{"$1", "0"}, []string{"'27'"}, []string{"'27'", "0"}},
		{[]string{"$2", "'$1'", "$1", "$2"}, []string{"1", "2"}, []string{"2", "'$1'", "1", "2"}},
		{[]string{"1"}, nil, []string{"1"}},
		{[]string{"$3", "$0", "$x$ $x$"}, []string{"1"}, []string{"$3", "$0", "$x$ $x$"}},
	} {
		if got := fillArgs(test.args, test.values); !slices.Equal(got, test.want) {
			t.Errorf("%q with %q: %q, want %q", test.args, test.values, got, test.want)
		}
	}
}
