package twin

import (
	"strings"
	"testing"
)

// TestATapHasWhatWasSentSinceTheLastReply: some of a reply has gone to the client before it ended, and some not.
func TestATapHasWhatWasSentSinceTheLastReply(t *testing.T) {
	tap := &Tap{}
	tap.Sent([]byte("on"))
	if got := string(tap.Reply([]byte("e."))); got != "one." {
		t.Errorf("the first is %q", got)
	}
	if got := string(tap.Reply([]byte("e.two."))); got != "two." {
		t.Errorf("the second is %q", got)
	}
	tap.Sent([]byte("e.two.th"))
	tap.Sent([]byte("ree"))
	if got := string(tap.Reply([]byte("."))); got != "three." {
		t.Errorf("the third is %q", got)
	}
}

func TestATapKeepsSoMuch(t *testing.T) {
	tap := &Tap{}
	tap.Sent([]byte(strings.Repeat("x", maxTapped)))
	if got := tap.Reply([]byte("y")); got != nil {
		t.Errorf("it is %d bytes", len(got))
	}
	tap.Sent([]byte("y"))
	if got := string(tap.Reply([]byte("z"))); got != "z" {
		t.Errorf("behind it there is %q", got)
	}
	tap.Lose()
	if got := tap.Reply([]byte("part")); got != nil {
		t.Errorf("of what was lost there is %q", got)
	}
	var none *Tap
	none.Sent([]byte("x"))
	none.Lose()
	if none.Reply(nil) != nil {
		t.Error("nil keeps something")
	}
}
