package report

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// maxStretches bounds the stretches of the server's log that are listed.
const maxStretches = 4

// serverLog says when the server's own log was read, and what it told; empty where nobody was to read it.
func serverLog(c *analyzer.Coverage) string {
	var parts []string
	read := false
	for i, s := range c.Log.Stretches {
		switch {
		case i == maxStretches:
			parts = append(parts, fmt.Sprintf("and %d times more", len(c.Log.Stretches)-i))
		case i > maxStretches:
		case s.Empty():
			parts = append(parts, "not read: "+s.Reason+" (isotap doctor says more)")
		case s.To == 0:
			parts = append(parts, fmt.Sprintf("read from %s on, without an end", duration(s.From)))
		case s.Reason != "":
			parts = append(parts, fmt.Sprintf("read from %s to %s of the run (%s)", duration(s.From), duration(s.To), s.Reason))
		default:
			parts = append(parts, fmt.Sprintf("read from %s to %s of the run", duration(s.From), duration(s.To)))
		}
		read = read || !s.Empty()
	}
	if !read {
		return strings.Join(parts, ", ")
	}
	if c.Log.Left > 0 {
		parts = append(parts, plural(c.Log.Left, "transaction")+" that were not looked at as a whole")
	}
	if c.Log.Txns > 0 {
		parts = append(parts, plural(c.Log.Txns, "transaction"))
	}
	if c.Log.Past > 0 {
		parts = append(parts, number(c.Log.Past)+" of them past isotap, on rows that its clients saw or wrote")
	}
	if c.Log.Either > 0 {
		parts = append(parts, number(c.Log.Either)+" of them past isotap or within statements that showed nothing")
	}
	if c.Log.Effects > 0 {
		parts = append(parts, fmt.Sprintf("%s of recorded ones that isotap did not see, %s of them told by the log",
			plural(c.Log.Effects, "write"), number(c.Log.Told)))
	}
	if c.Log.Ends > 0 {
		parts = append(parts, plural(c.Log.Ends, "recorded one")+" of which it alone tells the end")
	}
	if c.Log.Unlogged > 0 {
		parts = append(parts, plural(c.Log.Unlogged, "transaction")+
			" past isotap whose foreign keys changed rows that it does not name")
	}
	return strings.Join(parts, ", ")
}

// disputed says that isotap and the server's log contradict each other; empty where they do not.
func disputed(c *analyzer.Coverage) string {
	if c.Log.Disputed == 0 {
		return ""
	}
	return fmt.Sprintf("the server's log lacks %s that statements saw themselves leave, the first one where %s: "+
		"this is a fault of isotap's, please report it", plural(c.Log.Disputed, "version"), c.Log.Example)
}

// hint returns what a user can do about statements that are not exact for a reason. Of what the server's log told of
// them it does not say that it cannot be seen.
func hint(c *analyzer.Coverage, why history.Reason) string {
	if c.Log.Told > 0 && c.Log.Told == c.Log.Effects {
		return why.HintBesideLog()
	}
	return why.Hint()
}
