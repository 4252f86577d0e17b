package guard_test

import (
	"errors"
	"testing"

	"github.com/isotap/isotap/internal/guard"
)

func TestAWalkThatPanicsIsNotWhole(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []string
		whole bool
		found int
	}{
		{"to its end", []string{"a", "b", "c"}, true, 3},
		{"of nothing", nil, true, 0},
		{"up to an unknown node", []string{"a", "", "c"}, false, 1},
	} {
		found := 0
		whole := guard.Whole(func() {
			for _, n := range c.nodes {
				_ = n[0] // an empty one panics
				found++
			}
		})
		if whole != c.whole || found != c.found {
			t.Errorf("%s: whole is %v, with %d found", c.name, whole, found)
		}
	}
}

func TestAPanicOfALibraryIsAnError(t *testing.T) {
	failed := errors.New("no")
	if err := guard.Call("library", func() error { return failed }); err != failed {
		t.Errorf("an error became %v", err)
	}
	err := guard.Call("library", func() error { panic("index") })
	if p, ok := errors.AsType[*guard.Panic](err); !ok || p.Library != "library" || p.Value != "index" {
		t.Errorf("a panic became %v", err)
	}
}
