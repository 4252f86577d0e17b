package postgres

import (
	"slices"
	"testing"
)

// kindsOf are the kinds of what is pending.
func kindsOf(p *pipeline) []pendingKind {
	kinds := make([]pendingKind, 0, len(p.pending))
	for _, x := range p.pending {
		kinds = append(kinds, x.kind)
	}
	return kinds
}

func pipelineOf(kinds ...pendingKind) *pipeline {
	p := &pipeline{}
	for _, kind := range kinds {
		p.add(pendingReply{kind: kind})
	}
	return p
}

// The server keeps replies back until a Sync, or a Flush, asks for them.
func TestRepliesAreDueUpToTheLastSync(t *testing.T) {
	p := pipelineOf(pendingParse, pendingBind, pendingExecute)
	if p.due != 0 {
		t.Errorf("%d replies are due before the Sync", p.due)
	}
	p.add(pendingReply{kind: pendingSync})
	p.add(pendingReply{kind: pendingParse})
	if p.due != 4 {
		t.Errorf("%d replies are due, not the 4 up to the Sync", p.due)
	}
	p.pop()
	if p.due != 3 || p.head().kind != pendingBind {
		t.Errorf("after a reply %d are due, and the next is that of kind %d", p.due, p.head().kind)
	}
	p.flush()
	if p.due != 4 {
		t.Errorf("%d replies are due after a Flush, not all 4", p.due)
	}
	for range 4 {
		p.pop()
	}
	if p.due != 0 || !p.idle() || p.head() != nil {
		t.Errorf("all is answered: %d are due, %v are pending", p.due, kindsOf(p))
	}
}

func TestErrorSkipsUpToTheNextSync(t *testing.T) {
	for _, c := range []struct {
		name              string
		pending, left     []pendingKind
		skipped, skipping bool
		due               int
	}{
		{"its Sync was sent", []pendingKind{pendingBind, pendingExecute, pendingSync, pendingParse},
			[]pendingKind{pendingSync, pendingParse}, true, false, 1},
		{"two were sent", []pendingKind{pendingExecute, pendingSync, pendingQuery},
			[]pendingKind{pendingSync, pendingQuery}, true, false, 2},
		{"it is that of the Sync", []pendingKind{pendingSync}, []pendingKind{pendingSync}, false, false, 1},
		{"no Sync was sent", []pendingKind{pendingParse, pendingBind}, []pendingKind{}, true, true, 0},
	} {
		p := pipelineOf(c.pending...)
		skipped := p.skip()
		if skipped != c.skipped || p.skipping != c.skipping || p.due != c.due || !slices.Equal(kindsOf(p), c.left) {
			t.Errorf("%s: skipped %v, skips %v, %d due, left %v", c.name, skipped, p.skipping, p.due, kindsOf(p))
		}
	}
}

// A variant of isotap's own whose Parse was skipped does not stand on the server.
func TestSkippedParseTakesItsVariantAway(t *testing.T) {
	st := &statement{variants: []variant{{name: "isotap_1"}, {name: "isotap_2"}}}
	p := &pipeline{}
	p.add(pendingReply{kind: pendingParse, own: true, name: "isotap_2", of: st})
	p.skip()
	if len(st.variants) != 1 || st.variants[0].name != "isotap_1" {
		t.Errorf("the statement has %v", st.variants)
	}
}

// A client of the extended protocol may send the Sync, the data and a second Sync at once: the server ignores the
// first.
func TestSyncBeforeCopyDataHasNoReply(t *testing.T) {
	p := pipelineOf(pendingExecute, pendingSync)
	p.copyIn.sent++
	p.add(pendingReply{kind: pendingSync})
	if !p.copyBegins() || !slices.Equal(kindsOf(p), []pendingKind{pendingExecute, pendingSync}) || p.due != 2 {
		t.Errorf("%v are pending, %d due", kindsOf(p), p.due)
	}
	if p.copyIn.active() {
		t.Error("the data was sent with its end, but more of it is waited for")
	}
	p.copyIn.ended()
	if p.copyIn.taken != 1 || p.copyIn.taking {
		t.Errorf("after the data: %+v", p.copyIn)
	}
}

func TestPortalRunsInTheTransactionAtHandOnly(t *testing.T) {
	p := pipelineOf(pendingBind)
	p.add(pendingReply{kind: pendingExecute, name: "p"})
	if runs, sure := p.executes("p"); !runs || !sure {
		t.Errorf("the portal runs %v, surely %v", runs, sure)
	}
	if runs, sure := p.executes("q"); runs || !sure {
		t.Errorf("another portal runs %v, surely %v", runs, sure)
	}
	p.add(pendingReply{kind: pendingSync})
	if _, sure := p.executes("p"); sure {
		t.Error("the transaction may have ended by then")
	}
	if !p.runs() || !p.oneSegment() {
		t.Errorf("a statement is to run: %v, one segment is pending: %v", p.runs(), p.oneSegment())
	}
	p.add(pendingReply{kind: pendingQuery})
	if p.oneSegment() {
		t.Error("a Query is a segment of its own")
	}
}

// Sessions that send one message at a time allocate nothing for its reply.
func TestShortPipelineUsesItsMemoryAgain(t *testing.T) {
	p := pipelineOf(pendingQuery)
	p.pop()
	if n := testing.AllocsPerRun(100, func() {
		p.add(pendingReply{kind: pendingQuery})
		p.pop()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
