package mysql

import "testing"

func TestPendingExchangesAreAnsweredInOrder(t *testing.T) {
	var p pending
	if !p.none() || p.first() != nil {
		t.Fatal("an exchange is due before one was sent")
	}
	first, second := &exchange{}, &exchange{}
	p.add(first)
	p.add(second)
	for i, want := range []*exchange{first, second, nil} {
		if p.first() != want {
			t.Errorf("reply %d is due to another exchange", i+1)
		}
		if want != nil {
			p.answered()
		}
	}
	p.add(first)
	if p.drop(); !p.none() {
		t.Error("a reply is due though all were dropped")
	}
}

func TestNextPacketsNumberFollowsFromWhatIsDue(t *testing.T) {
	own := &exchange{}
	for name, test := range map[string]struct {
		queue  []*exchange
		seq    byte
		within bool
	}{
		"nothing":                       {},
		"isotap's own alone":            {queue: []*exchange{own}},
		"the client's behind it":        {queue: []*exchange{own, {visible: true, first: 1}}, seq: 1},
		"a command of two packets":      {queue: []*exchange{{visible: true, first: 2}}, seq: 2},
		"a number that begins anew":     {queue: []*exchange{{visible: true, first: 0}}, seq: 1},
		"a reply that the client reads": {queue: []*exchange{{visible: true, first: 1, begun: true}}, within: true},
	} {
		p := pending{queue: test.queue}
		if seq, within := p.nextSeq(); seq != test.seq || within != test.within {
			t.Errorf("%s: packet %d, within a reply: %t", name, seq, within)
		}
	}
}
