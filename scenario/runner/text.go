package runner

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/isotap/isotap/scenario/replay"
)

// The limits of the text form.
const (
	textSQL  = 60 // characters of a statement
	textRows = 6  // rows of a result
)

// Text writes what happened as lines: the steps in the order in which they were sent, each with what came of it, then
// what was found. The error is w's.
func (p *Result) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s, %s\n", p.Scenario.Name, p.place())
	sessions, statements := 0, 0
	for _, r := range p.Trace.Results {
		sessions = max(sessions, len([]rune(r.Session)))
		statements = max(statements, len([]rune(statement(r.SQL))))
	}
	for i := range p.Trace.Results {
		r := &p.Trace.Results[i]
		fmt.Fprintf(b, "%4d  %-*s  %-*s  %s\n", r.N, sessions, r.Session, statements, statement(r.SQL), outcome(r))
	}
	p.findings(b)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the replay: %w", err)
	}
	return nil
}

// place is where it was played.
func (p *Result) place() string {
	place := fmt.Sprintf("%s %s, %s", p.Server.Engine, p.Server.Version, p.Level)
	if len(p.Settings) > 0 {
		place += ", " + p.Settings.String()
	}
	return place
}

// findings writes what was found, as far as it was looked for.
func (p *Result) findings(b *bufio.Writer) {
	if p.Result == nil {
		return
	}
	if len(p.Result.Findings) == 0 {
		fmt.Fprintf(b, "found nothing: %d of %d statements were observed exactly\n", p.Result.Coverage.Exact,
			p.Result.Coverage.Statements)
	}
	for _, f := range p.Result.Findings {
		fmt.Fprintf(b, "found %s (%s): %s\n", f.Anomaly, f.Class, printable(p.unnamed(f.Summary)[0]))
	}
}

// statement is a statement on one line.
func statement(sql string) string { return clip(printable(sql), textSQL) }

// printable is a text on one line, in which nothing moves the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// outcome says what came of a step.
func outcome(r *replay.Result) string {
	switch {
	case r.Status == replay.NotRun:
		return "was not sent: its session still waited"
	case r.Status == replay.Blocked:
		return "waits" + whom(r) + " for good"
	case r.Held && !r.Blocked:
		return "counts as waiting" + until(r) + reply(r)
	case r.Blocked:
		return "waits" + whom(r) + until(r) + reply(r)
	case r.Queued:
		return "is sent" + until(r) + reply(r)
	}
	return reply(r)
}

func whom(r *replay.Result) string {
	if len(r.WaitedFor) == 0 {
		return ""
	}
	return " for " + strings.Join(r.WaitedFor, " and ")
}

func until(r *replay.Result) string {
	if r.DoneAfter == replay.AtEnd {
		return " until the others have ended: "
	}
	return fmt.Sprintf(" until %d: ", r.DoneAfter)
}

// reply says what the server answered.
func reply(r *replay.Result) string {
	switch {
	case r.Status == replay.Lost:
		return connectionLost + ": " + printable(r.Message)
	case r.Status == replay.Failed:
		return "error " + r.ErrorCode() + ": " + printable(r.Message)
	case r.Columns == nil && r.Affected == 0:
		return "ok"
	case r.Columns == nil:
		return fmt.Sprintf("%d affected", r.Affected)
	case len(r.Rows) == 0:
		return "no rows"
	}
	var b strings.Builder
	for i, row := range r.Rows {
		if i == textRows {
			fmt.Fprintf(&b, "and %d more", len(r.Rows)-i)
			break
		}
		b.WriteByte('(')
		for j, v := range row {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(clip(printable(v.String()), textSQL))
		}
		b.WriteString(") ")
	}
	return strings.TrimRight(b.String(), " ")
}
