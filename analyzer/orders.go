package analyzer

import "slices"

// byOrders looks for the cycles that go by the orders of sessions and of time, too: the -process and the -realtime
// variants. They are violations, which explain no hazard, and which no hazard explains. (Cycles that do not go by these
// orders are explained by now.) One with a single rw is told even where a longer one without these orders goes through
// its rw: it is the easier one to understand.
func (s *search) byOrders() {
	s.restart(Violation, sessionFlow)
	circled := slices.Clone(s.circled)
	gone := s.reopen()
	s.circular(ww | so)
	s.circular(sessionFlow)
	s.longGSingle()
	s.restart(Violation, flow)
	s.byTime(timeRules[:3])
	s.close(gone)
	s.restart(Violation, sessionFlow)
	s.longNonadjacent()
	s.forget()
	s.longG2Item()
	s.restart(Violation, flow)
	s.byTime(timeRules[3:])
	s.gone, s.circled = gone, circled
	clear(s.told)
}

// restart begins a pass over what is not explained.
func (s *search) restart(class Class, flow kind) {
	s.forget()
	clear(s.told)
	s.class, s.flow = class, flow
}
