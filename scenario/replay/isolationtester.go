package replay

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/isotap/isotap/scenario"
)

// IsolationTester writes the trace of a scenario in the form of PostgreSQL's isolationtester, as the files of expected
// results have each permutation. The error is w's.
func (t *Trace) IsolationTester(w io.Writer, s *scenario.Scenario) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "\nstarting permutation:")
	for _, x := range s.Steps {
		fmt.Fprintf(b, " %s", x.Name)
	}
	fmt.Fprintln(b)
	waiting := make(map[int]bool)
	t = t.inPublic()
	for _, e := range t.Events {
		switch e.Kind {
		case SetUp, TornDown:
			e.Rows.print(b)
		case Noticed:
			e.Notice.print(b, e.Session)
		case Waits:
			waiting[e.Step] = true
			fmt.Fprintf(b, "step %s: %s <waiting ...>\n", s.Steps[e.Step-1].Name, s.Steps[e.Step-1].SQL)
		case Ends:
			text := s.Steps[e.Step-1].SQL
			if waiting[e.Step] {
				text = "<... completed>"
			}
			fmt.Fprintf(b, "step %s: %s\n", s.Steps[e.Step-1].Name, text)
			t.Results[e.Step-1].print(b, e.Session)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the permutation: %w", err)
	}
	return nil
}

// inPublic is the trace as it were if its schema had been isolationtester's.
func (t *Trace) inPublic() *Trace {
	name := strings.NewReplacer(t.Database, "public", ownDatabase, "public")
	rename := func(s Set) Set {
		renamed := Set{Columns: s.Columns, Rows: make([][]Value, len(s.Rows))}
		for i, row := range s.Rows {
			renamed.Rows[i] = slices.Clone(row)
			for j := range row {
				renamed.Rows[i][j].Text = name.Replace(row[j].Text)
			}
		}
		return renamed
	}
	public := *t
	public.Events, public.Results = slices.Clone(t.Events), slices.Clone(t.Results)
	for i := range public.Events {
		e := &public.Events[i]
		e.Rows = rename(e.Rows)
		e.Notice.Message, e.Notice.Detail, e.Notice.Hint = name.Replace(e.Notice.Message),
			name.Replace(e.Notice.Detail), name.Replace(e.Notice.Hint)
	}
	for i := range public.Results {
		r := &public.Results[i]
		r.Message, r.Sets = name.Replace(r.Message), slices.Clone(r.Sets)
		for j := range r.Sets {
			r.Sets[j] = rename(r.Sets[j])
		}
	}
	return &public
}

// print writes what a step gave.
func (r *Result) print(b *bufio.Writer, session string) {
	for _, set := range r.Sets {
		set.print(b)
	}
	if r.Status == Failed {
		severity, _, _ := strings.Cut(r.Detail, "|")
		fmt.Fprintf(b, "%s:  %s\n", severity, r.Message)
	}
	for _, n := range r.Notifications {
		fmt.Fprintf(b, "%s: NOTIFY \"%s\" with payload \"%s\" from %s\n", session, n.Channel, n.Payload,
			cmp.Or(n.From, "another session"))
	}
}

func (n Notice) print(b *bufio.Writer, session string) {
	fmt.Fprintf(b, "%s: %s:  %s\n", session, n.Severity, n.Message)
	if n.Detail != "" {
		fmt.Fprintf(b, "DETAIL:  %s\n", n.Detail)
	}
	if n.Hint != "" {
		fmt.Fprintf(b, "HINT:  %s\n", n.Hint)
	}
}

// print writes the rows as libpq's PQprint does: columns are as wide as their longest value in bytes, and stand to the
// right when all values look like numbers.
func (s Set) print(b *bufio.Writer) {
	widths, left := make([]int, len(s.Columns)), make([]bool, len(s.Columns))
	header, line := make([]Value, len(s.Columns)), make([]string, len(s.Columns))
	for i, c := range s.Columns {
		header[i].Text = c.Name
		widths[i] = len(c.Name)
		for _, row := range s.Rows {
			widths[i] = max(widths[i], len(row[i].Text))
			left[i] = left[i] || row[i].Text != "" && !looksNumeric(row[i].Text)
		}
		line[i] = strings.Repeat("-", widths[i])
	}
	printRow(b, header, widths, left)
	fmt.Fprintln(b, strings.Join(line, "+"))
	for _, row := range s.Rows {
		printRow(b, row, widths, left)
	}
	plural := "s"
	if len(s.Rows) == 1 {
		plural = ""
	}
	fmt.Fprintf(b, "(%d row%s)\n\n", len(s.Rows), plural)
}

func printRow(b *bufio.Writer, row []Value, widths []int, left []bool) {
	for i, v := range row {
		if i > 0 {
			b.WriteByte('|')
		}
		pad := strings.Repeat(" ", widths[i]-len(v.Text))
		if left[i] {
			b.WriteString(v.Text + pad)
		} else {
			b.WriteString(pad + v.Text)
		}
	}
	b.WriteByte('\n')
}

// looksNumeric is PQprint's test.
func looksNumeric(text string) bool {
	last := text[len(text)-1]
	return strings.Trim(text, "0123456789.Ee -") == "" && text[0] != 'E' && text[0] != 'e' && isDigit(last)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
