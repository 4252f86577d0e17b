package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// levels says which levels of the theory the history satisfies and violates, as Elle does; empty where nothing
// was observed.
func levels(r *analyzer.Result) string {
	v := &r.Levels
	if r.Coverage.Exact == 0 || len(v.Violated)+len(v.Satisfied) == 0 {
		return ""
	}
	if len(v.Violated) == 0 {
		if why := doubts(&r.Coverage); len(why) > 0 {
			return "none is seen to be violated, and none can be said to be satisfied: " + strings.Join(why, "; ")
		}
		return "satisfies every level, strict serializability too, as far as " + tellers(r)
	}
	most := "satisfies no level"
	if len(v.Strongest) > 0 {
		most = "satisfies " + strings.Join(named(v.Strongest), ", ") + " at most"
	}
	var weakest []string
	for _, l := range v.Violated {
		if l.Weakest {
			weakest = append(weakest, fmt.Sprintf("%s (%s)", levelAlias(l.Level), l.By))
		}
	}
	return most + "; violates " + strings.Join(weakest, ", ") + " and what is stronger"
}

// tellers says what the levels were judged by.
func tellers(r *analyzer.Result) string {
	without := func(i history.Info) bool { return i.Mode != "predicates" }
	switch c := &r.Coverage; {
	case !slices.ContainsFunc(r.Runs, func(i history.Info) bool { return !without(i) }):
		return "rows tell (predicates were not observed)"
	case slices.ContainsFunc(r.Runs, without):
		return "rows tell (predicates were not observed in every run)"
	// A wide condition says of no level that it is violated.
	case c.Conditions-c.Wide < c.Looked-c.Without[analyzer.AnyRows]:
		return fmt.Sprintf("rows tell, and the conditions of %s of %s that looked for rows", number(c.Conditions-c.Wide),
			plural(c.Looked, "statement"))
	}
	return "rows and conditions tell"
}

// doubts says why a history in which nothing is wrong may still have violated any level: what was not seen of it
// could hide that.
func doubts(c *analyzer.Coverage) []string {
	var why []string
	switch n := c.Unrecorded + c.Unreadable; {
	case n > 0:
		why = append(why, "the recording lacks "+plural(n, "transaction"))
	case c.Damaged:
		why = append(why, "the recording is damaged")
	}
	if c.UnseenOrigins > 0 {
		why = append(why, unseenOrigins(c)+", and what its writers read and wrote is not known")
	}
	if c.OldTags > 0 {
		why = append(why, oldTags(c))
	}
	if n := c.Levels[history.ReadUncommitted]; n > 0 {
		why = append(why, plural(n, "transaction")+" ran at READ UNCOMMITTED, and what such reads met of writes that nobody saw "+
			"and that were undone leaves no trace")
	}
	if n := c.Log.Past; n > 0 {
		why = append(why, plural(n, "transaction")+" went past isotap, and what they read is not known")
	}
	if n := c.Log.Unlogged; n > 0 {
		why = append(why, plural(n, "transaction")+" changed rows past isotap that the server's log does not name")
	}
	if n := c.Log.Either; n > 0 {
		why = append(why, plural(n, "transaction")+" went past isotap or within statements that showed nothing, and what "+
			"they read is not known")
	}
	if n := c.Log.Left; n > 0 {
		why = append(why, "what "+plural(n, "transaction")+" of the server's log wrote was not looked at as a whole")
	}
	if c.PutBack > 0 {
		why = append(why, putBack(c))
	}
	if n := c.Reasons[history.ReasonNoIdentity]; n > 0 {
		why = append(why, plural(n, "statement")+" met rows without identity, which were written past isotap")
	}
	if n := c.Cascades; n > 0 {
		why = append(why, plural(n, "statement")+" changed rows by foreign keys, and which is not known (cascade)")
	}
	if n := c.Reasons[history.ReasonKey] + c.Reasons[history.ReasonKeyChanged]; n > 0 {
		why = append(why, "of "+plural(n, "statement")+" it is not known which rows they changed (key)")
	}
	why = append(why, doubtsOfConditions(c)...)
	if unseen := c.Statements - c.Exact; 2*unseen > c.Statements {
		why = append(why, percent(unseen, c.Statements)+" of the statements were not observed exactly")
	}
	if c.Several == 0 {
		why = append(why, "no transaction had two statements that read or write rows, "+
			"and no level protects what a client does between two")
	}
	return why
}

// doubtsOfConditions are those by what conditions were not held against.
func doubtsOfConditions(c *analyzer.Coverage) (why []string) {
	if c.Untested > 0 {
		why = append(why, untestedConditions(c))
	}
	if c.Imageless > 0 {
		why = append(why, imageless(c))
	}
	return why
}

// unseenOrigins says how many reads have no known writer, where there are any.
func unseenOrigins(c *analyzer.Coverage) string {
	return plural(c.UnseenOrigins, "read") + " of versions that nobody was seen to write"
}

// oldTags says how many statements left rows under the tags that these had, where there are any.
func oldTags(c *analyzer.Coverage) string {
	return plural(c.OldTags, "statement") + " that isotap did not observe left rows under the tags that they had"
}

// putBack says how many rows came back to what they had been, where there are any.
func putBack(c *analyzer.Coverage) string {
	return plural(c.PutBack, "row") + " had a version again that had been replaced"
}

// named returns each level's name with the one that Elle has for it.
func named(levels []string) []string {
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = levelAlias(l)
	}
	return names
}

func levelAlias(name string) string {
	if l, err := analyzer.FindLevel(name); err == nil && !strings.HasPrefix(name, "strong") {
		return name + " " + l.CommonName()
	}
	return name
}
