package report

import (
	"strings"
	"testing"
)

func TestEveryHintCanBeReached(t *testing.T) {
	for i, h := range hints {
		for _, before := range hints[:i] {
			if strings.HasPrefix(h.reason, before.reason) {
				t.Errorf("%q is never reached: %q comes first", h.reason, before.reason)
			}
		}
		if got := hint(h.reason + " of something"); got != h.hint {
			t.Errorf("%q gives %q", h.reason, got)
		}
	}
	if hint("no such reason") == "" {
		t.Error("an unknown reason has no hint at all")
	}
}
