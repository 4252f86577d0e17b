package analyzer

import "slices"

// A TheoryLevel is an isolation level as the literature defines it.
type TheoryLevel struct {
	Name    string
	Forbids []Anomaly
	Source  string
}

// TheoryLevels are the levels that the anomalies found here can tell apart, weakest first.
var TheoryLevels = []TheoryLevel{
	{"PL-1", []Anomaly{G0}, "Adya 1999, 4.2.1"},
	{"PL-2", []Anomaly{G0, G1a, G1b, G1c}, "Adya 1999, 4.2.2"},
	{"PL-2+", []Anomaly{G0, G1a, G1b, G1c, GSingle}, "Adya 1999, 4.3"},
	{"SI", []Anomaly{G0, G1a, G1b, G1c, GSingle, GNonadjacent},
		"Adya 1999, 4.3: G-SI, of which both are cases; Cerone and Gotsman 2018: every cycle has two adjacent rw"},
	{"PL-2.99", []Anomaly{G0, G1a, G1b, G1c, GSingle, GNonadjacent, G2Item}, "Adya 1999, 4.2.3"},
	{"PL-3", []Anomaly{G0, G1a, G1b, G1c, GSingle, GNonadjacent, G2Item}, "Adya 1999, 4.2.4"},
}

// base gives the phenomenon that an anomaly is a case of.
func (a Anomaly) base() Anomaly {
	switch a {
	case DirtyUpdate:
		return G1a
	case LostUpdate, OTV, GMonotonic, NonRepeatableRead, ReadSkew, ReadWriteSkew:
		return GSingle
	case WriteSkew:
		return G2Item
	default:
		return a
	}
}

// weakest gives the weakest theoretical level that forbids an anomaly; empty where every level does.
func weakest(a Anomaly) string {
	for _, l := range TheoryLevels {
		if slices.Contains(l.Forbids, a.base()) {
			return l.Name
		}
	}
	return ""
}

// forbids says whether the promise excludes a phenomenon whatever the reads.
func (p *Promise) forbids(a Anomaly) bool { return slices.Contains(p.Forbids, a.base()) }
