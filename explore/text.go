package explore

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Text writes the result for people: the races, the surest first, and what could not be played.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Played on a copy: %s of %s, %s in %v. ", counted(r.Transactions, "writing transaction"),
		counted(r.Programs, "program"), counted(r.Plays, "twin"), r.Took.Round(100*time.Millisecond))
	switch len(r.Races) {
	case 0:
		b.WriteString(r.silence())
	case 1:
		b.WriteString("One race is shown.\n")
	default:
		fmt.Fprintf(&b, "%d races are shown.\n", len(r.Races))
	}
	for i := range r.Races {
		r.Races[i].text(&b, i+1)
	}
	r.rest(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// counted returns how many there are of something, in words.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// wereCounted begins a sentence on things that something was done to.
func wereCounted(n int, what string) string {
	if n == 1 {
		return counted(n, what) + " was"
	}
	return counted(n, what) + " were"
}

// silence says what it means that no race is shown.
func (r *Result) silence() string {
	switch {
	case r.Transactions == 0:
		return "Nothing was written, so there is nothing to tell.\n"
	case r.Judged == 0:
		return "Nothing can be told of them.\n"
	case r.Diverged > 0 || len(r.NotPlayed) > 1 || len(r.NotPlayed) == 1 && r.NotPlayed[Enough] == 0:
		return "No race is shown by those that could be judged.\n"
	}
	return "No two of them at once race.\n"
}

// text writes one race.
func (r *Race) text(b *strings.Builder, n int) {
	fmt.Fprintf(b, "\n%3d. %s%s: %s\n", n, r.Kind, r.of(), r.who())
	fmt.Fprintf(b, "     %s\n", r.Sentence())
	fmt.Fprintf(b, "       read   %s\n       write  %s\n", r.Read, r.Write)
	if r.Other != "" {
		fmt.Fprintf(b, "       other  %s\n", r.Other)
	}
	if !r.Proved {
		b.WriteString("     Before the write it was answered otherwise than alone: a real client may have gone another way.\n")
	}
	fmt.Fprintf(b, "     %s\n", advice[r.Kind])
}

// of names what the race is about.
func (r *Race) of() string {
	switch {
	case r.Table != "" && r.Column != "":
		return " of " + r.Table + "." + r.Column
	case r.Table != "":
		return " in " + r.Table
	}
	return ""
}

// who names the two calls.
func (r *Race) who() string {
	if r.Beside == "" {
		return r.Program + ", twice at once"
	}
	return r.Program + " beside " + r.Beside
}

// Sentence says in one sentence what the server has shown.
func (r *Race) Sentence() string {
	switch {
	case r.Kind == DoubleInsert:
		return "Both looked and did not find it, and both inserted it; one after the other, the second finds it."
	case r.Kind == LostUpdate && r.Racing == "":
		return "Both looked and did not find it, and the second wrote over what the first had put there."
	case r.Wrote != "" && r.Beside == "":
		return fmt.Sprintf("Both read %s and both set %s; one after the other, the second reads %s.", r.Racing, r.Wrote, r.Serial)
	case r.Wrote != "":
		return fmt.Sprintf("It read %s and set %s over what the other had set; behind the other it reads %s.", r.Racing, r.Wrote, r.Serial)
	case r.Racing != "":
		return fmt.Sprintf("It read %s and went by that; one after the other, the second reads %s.", r.Racing, r.Serial)
	}
	return "It went by rows that are others once the first has committed."
}

// advice is what helps, by kind.
var advice = map[Kind]string{
	LostUpdate: "Read it with FOR UPDATE in the transaction that writes, or let the database calculate (SET n = n + 1), " +
		"or ask for a version in WHERE.",
	DoubleInsert: "A unique key refuses the second; ON CONFLICT or ON DUPLICATE KEY then says what to do.",
	WriteSkew: "Lock the rows that the decision hangs on (FOR UPDATE; of a count, the rows that it counts, or one that all lock), " +
		"or run both at SERIALIZABLE and try again when refused.",
	StaleChoice: "Lock the rows that the write hangs on (FOR UPDATE), or ask for them once more in the WHERE of the write.",
	SameAgain:   "Both set the same, so that nothing is lost unless they set different values: then FOR UPDATE, or a version.",
}

// rest says what was not played.
func (r *Result) rest(b *strings.Builder) {
	if r.Refused > 0 {
		fmt.Fprintf(b, "\nThe server refused %s: it protects these programs.\n", counted(r.Refused, "racing twin"))
	}
	for i, why := range slices.Sorted(maps.Keys(r.NotPlayed)) {
		if i == 0 {
			b.WriteString("\nWithout a twin:\n")
		}
		fmt.Fprintf(b, "  %5d  %s\n", r.NotPlayed[why], why)
	}
	if r.Wrapped > 0 {
		fmt.Fprintf(b, "\n%s rolled back, as tests do. What was in them was played as if each savepoint had been a transaction, and\n"+
			"each statement outside of one in autocommit.\n", wereCounted(r.Wrapped, "transaction"))
	}
	if r.Diverged > 0 {
		fmt.Fprintf(b, "\n%d did otherwise than recorded when they were played again: nothing is told of them.\n", r.Diverged)
	}
}
