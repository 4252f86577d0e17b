package robust

import "fmt"

// Assumptions are what the answers assume of the server and of the programs (5.4).
var Assumptions = []string{
	"a statement sees one snapshot, taken when it begins",
	"nobody overwrites what is not committed",
	"key-based statements find exactly one tuple, or the transaction aborts",
	"keys are never updated",
	"there are no other programs",
}

// Describe returns an edge for people.
func (g *SummaryGraph) Describe(e Edge) string {
	from, to := g.Ends(e)
	text := fmt.Sprintf("%s %s → %s %s", g.Nodes[e.From].Name, from, g.Nodes[e.To].Name, to)
	if e.Counterflow {
		text += " (counterflow)"
	}
	return text
}

// Describe returns a step for people, without its transaction.
func (s *Schedule) Describe(step Step) string {
	if s.commits(step) {
		return "COMMIT"
	}
	run := s.Runs[step.Run]
	q := run.Program.Statements[step.At]
	text := fmt.Sprintf("%s %s %s", q.Name, q.Type, q.Relation)
	for i, t := range run.Tuples[step.At] {
		if text += ", "; i == 0 {
			text = fmt.Sprintf("%s %s ", q.Name, q.Type)
		}
		text += t.String()
	}
	if q.SQL != "" {
		text += ": " + q.SQL
	}
	return text
}

// Explain returns a dependency for people.
func (s *Schedule) Explain(d Dependency) string {
	from, to := d.From.Run+1, d.To.Run+1
	q, p := s.Runs[d.From.Run].Program.Statements[d.From.At].Name, s.Runs[d.To.Run].Program.Statements[d.To.At].Name
	text := ""
	switch d.Kind {
	case WW:
		text = fmt.Sprintf("T%d writes %s in %s, and T%d writes it later in %s", from, d.Tuple, q, to, p)
	case WR:
		text = fmt.Sprintf("T%d reads in %s what T%d wrote to %s in %s", to, p, from, d.Tuple, q)
	case RW:
		text = fmt.Sprintf("T%d reads %s in %s as it is before T%d writes it in %s", from, d.Tuple, q, to, p)
	case PredicateWR:
		text = fmt.Sprintf("T%d looks in %s for what T%d wrote to %s in %s", to, p, from, d.Tuple, q)
	case PredicateRW:
		text = fmt.Sprintf("T%d looks in %s for tuples, and sees %s as it is before T%d writes it in %s", from, q,
			d.Tuple, to, p)
	}
	return fmt.Sprintf("%s: T%d before T%d", text, from, to)
}
