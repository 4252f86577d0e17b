package explore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Text writes the result for people: the races, the surest first, and what could not be played.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	where := "on a copy"
	if r.Live {
		where = "live, on the database itself"
	}
	fmt.Fprintf(&b, "Played %s: %s of %s, %s in %v. ", where, counted(r.Transactions, "writing transaction"),
		counted(r.Programs, "program"), counted(r.Plays, "twin"), r.Took.Round(100*time.Millisecond))
	found, idle := r.pairs()
	switch len(found) {
	case 0:
		b.WriteString(r.silence())
	case 1:
		b.WriteString("One race is shown.\n")
	default:
		fmt.Fprintf(&b, "%d races are shown.\n", len(found))
	}
	for i, races := range found {
		r.pair(&b, i+1, races)
	}
	r.idle(&b, idle)
	r.rest(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// printable returns a text on one line, in which nothing moves a terminal's cursor or turns the text around. A blank at
// its beginning stays.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	text := strings.Join(strings.Fields(s), " ")
	if strings.HasPrefix(s, " ") {
		return " " + text
	}
	return text
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

// Empty reports whether nothing was judged, and what was played explains that: it ran beside others, changed nothing or
// failed. Where isotap could not play it, that is to be said.
func (r *Result) Empty() bool {
	if r.Judged > 0 || r.Diverged > 0 || len(r.Races) > 0 {
		return false
	}
	for why := range r.NotPlayed {
		if why != NotAlone && why != NothingChanged && why != Failed {
			return false
		}
	}
	return true
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

// pairs returns the races by what races: a request with itself or with another one, the surest race of each first.
// Those of which nothing worse is known than an idle kind are by themselves.
func (r *Result) pairs() (found [][]*Race, idle []*Race) {
	for i := range r.Races {
		race := &r.Races[i]
		at := slices.IndexFunc(found, func(of []*Race) bool {
			return of[0].sameLook(race) || slices.ContainsFunc(of, race.sameRequests)
		})
		switch {
		case at >= 0:
			found[at] = append(found[at], race)
		case race.Idle():
			idle = append(idle, race)
		default:
			found = append(found, []*Race{race})
		}
	}
	return found, idle
}

// sameRequests reports whether two races are of the same requests: those that write the same, whatever they read.
func (r *Race) sameRequests(other *Race) bool {
	return r.Program == other.Program && r.Beside == other.Beside && r.writes == other.writes && r.beside == other.beside
}

// sameLook reports whether two races are of requests of one name that read and write in one way what races: their
// programs differ in something else.
func (r *Race) sameLook(other *Race) bool {
	return r.Program == other.Program && r.Beside == other.Beside && r.Kind == other.Kind && r.shapes == other.shapes
}

// pair writes the races of one request with itself, or with another one: the surest, and what others there are.
func (r *Result) pair(b *strings.Builder, n int, races []*Race) {
	first := races[0]
	fmt.Fprintf(b, "\n%3d. %s%s: %s\n", n, first.Kind, printable(first.of()), printable(first.who()))
	fmt.Fprintf(b, "     %s\n", printable(first.Sentence()))
	fmt.Fprintf(b, "       read   %s\n       write  %s\n", printable(brief(r.family, first.Read)),
		printable(brief(r.family, first.Write)))
	if first.Other != "" {
		fmt.Fprintf(b, "       other  %s\n", printable(brief(r.family, first.Other)))
	}
	label := "       also   "
	for i, other := range races {
		if slices.ContainsFunc(races[:i], func(r *Race) bool { return r.Kind == other.Kind && r.of() == other.of() }) || i == 0 {
			continue
		}
		proof := ""
		if !other.Proved && first.Proved {
			proof = ", if a client goes that way"
		}
		fmt.Fprintf(b, "%s%s%s%s%s\n", label, other.Kind, printable(other.of()), printable(other.values()), proof)
		label = "              "
	}
	if !first.Proved {
		b.WriteString("     Before the write it was answered otherwise than alone: a real client may have gone another way.\n")
	}
	fmt.Fprintf(b, "     %s\n", advice[first.Kind])
}

// idle writes the races in which nothing may be lost.
func (r *Result) idle(b *strings.Builder, races []*Race) {
	for i, race := range races {
		if i == 0 || race.Kind != races[i-1].Kind {
			fmt.Fprintf(b, "\n%s\n", idleWords[race.Kind])
		}
		line := fmt.Sprintf("     %s%s: %s\n", printable(strings.TrimPrefix(race.of(), " of ")), printable(race.values()),
			printable(race.who()))
		if !strings.HasSuffix(b.String(), line) { // of two programs of one name
			b.WriteString(line)
		}
	}
}

// idleWords begin the lists of these kinds.
var idleWords = map[Kind]string{
	WriteSkew: "One loads a row, in which the other sets a number, and inserts what belongs to it: a race if it goes by that number.",
	SameAgain: "Both set the same, so that nothing is lost unless they set different values (then FOR UPDATE, or a version):",
	StaleChoice: "A write hangs on what the other's commit changes; but its client was answered otherwise before it, and may " +
		"have gone another way.",
	OtherColumns: "Both write one row, each other columns of it: nothing is lost unless one goes by what the other sets.",
}

// values says what was read and written, where that is known.
func (r *Race) values() string {
	switch {
	case r.UndoneBy != "":
		return fmt.Sprintf(" (%s is written back over %s)", orEmpty(r.Racing), orEmpty(r.Wrote))
	case r.Wrote != "" && r.Racing != "":
		return fmt.Sprintf(" (%s, both set %s)", short(r.Racing), short(r.Wrote))
	case r.Racing != "" && r.Serial == "":
		return fmt.Sprintf(" (%s)", short(r.Racing))
	case r.Racing != "":
		return fmt.Sprintf(" (%s, then %s)", short(r.Racing), short(r.Serial))
	}
	return ""
}

// short cuts a value that is long.
func short(value string) string {
	if len(value) <= maxList {
		return value
	}
	return strings.ToValidUTF8(value[:maxList], "") + "..."
}

// orEmpty returns a value as a sentence shows it; quotes, where it is an empty one.
func orEmpty(value string) string { return cmp.Or(short(value), "''") }

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
		if r.some {
			return "Both looked in " + r.Table + r.sought() + ", found the same rows, and both inserted one; " +
				"one after the other, the second finds one more."
		}
		return "Both looked in " + r.Table + r.sought() + ", found none, and both inserted one; one after the other, the second finds it."
	case r.Kind == LostUpdate && r.Racing == "":
		if r.some {
			return "Both looked in " + r.Table + r.sought() + ", found the same rows, and the second wrote over what the first had put there."
		}
		return "Both looked in " + r.Table + r.sought() + ", found none, and the second wrote over what the first had put there."
	case r.UndoneBy != "":
		return fmt.Sprintf("One set %s%s. Another that sets %s at the same time has read %s, and writes that back: "+
			"what the first set is lost.%s",
			orEmpty(r.Wrote), r.where(), r.UndoneBy, orEmpty(r.Racing), r.likewise())
	case r.Wrote != "" && r.Beside == "":
		return fmt.Sprintf("Both read %s and both set %s%s; one after the other, the second reads %s%s.", short(r.Racing), short(r.Wrote),
			r.where(), short(r.Serial), r.sum())
	case r.Wrote != "":
		return fmt.Sprintf("It read %s and set %s%s over what the other had set; behind the other it reads %s%s.", short(r.Racing),
			short(r.Wrote), r.where(), short(r.Serial), r.sum())
	case r.Kind == LostUpdate:
		return fmt.Sprintf("Both read %s and both set it%s, whatever the other made of it: what one of them set is lost.", short(r.Racing), r.where())
	case r.Racing != "" && r.Serial == "":
		return fmt.Sprintf("It read %s%s and went by that; behind the other it reads something else.", short(r.Racing), r.where())
	case r.Racing != "":
		return fmt.Sprintf("It read %s%s and went by that; one after the other, the second reads %s.", short(r.Racing), r.where(), short(r.Serial))
	}
	return "It went by rows that are others once the first has committed."
}

// likewise names the other columns that calls of the same UPDATE lose.
func (r *Race) likewise() string {
	switch n := len(r.Likewise); {
	case n == 0:
		return ""
	case n > maxNamed:
		return fmt.Sprintf(" So it is with %s and %s.", strings.Join(r.Likewise[:maxNamed], ", "), counted(n-maxNamed, "other column"))
	}
	return " So it is with " + strings.Join(r.Likewise, ", ") + "."
}

// maxNamed is how many columns a sentence names.
const maxNamed = 12

// sought says what both looked for.
func (r *Race) sought() string {
	if r.Row == "" {
		return ""
	}
	return " for " + short(r.Row)
}

// where says which row it is about.
func (r *Race) where() string {
	if r.Row == "" {
		return ""
	}
	return " (" + short(r.Row) + ")"
}

// sum says what a number would be if each call added to it, or took from it, as the first one did.
func (r *Race) sum() string {
	was, err := strconv.ParseInt(r.Racing, 10, 64)
	set, err2 := strconv.ParseInt(r.Wrote, 10, 64)
	now, err3 := strconv.ParseInt(r.Serial, 10, 64)
	if errors.Join(err, err2, err3) != nil || r.Kind != LostUpdate || set == was {
		return ""
	}
	does, by := "adds", set-was
	if by < 0 {
		does, by = "takes", -by
	}
	return fmt.Sprintf(", and sets %d if it %s %d", now+set-was, does, by)
}

// advice is what helps, by kind.
var advice = map[Kind]string{
	LostUpdate: "Read it with FOR UPDATE in the transaction that writes, or let the database calculate (SET n = n + 1), " +
		"or ask for a version in WHERE.",
	DoubleInsert: "A unique key refuses the second; ON CONFLICT or ON DUPLICATE KEY then says what to do.",
	WriteSkew: "Lock the rows that the decision hangs on (FOR UPDATE; of a count, the rows that it counts, or one that all lock), " +
		"or run both at SERIALIZABLE and try again when refused.",
	StaleChoice: "Lock the rows that the write hangs on (FOR UPDATE), or ask for them once more in the WHERE of the write.",
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
	if r.failure != "" {
		fmt.Fprintf(b, "\nThe last twin failed so: %s\n", printable(short(r.failure)))
	}
	if r.Wrapped > 0 {
		fmt.Fprintf(b, "\n%s rolled back, as tests do. What was in them was played as if each savepoint had been a transaction, and\n"+
			"each statement outside of one in autocommit.\n", wereCounted(r.Wrapped, "transaction"))
	}
	if r.Live && r.Plays > 0 {
		b.WriteString("\nThe twins were rolled back. What they drew of sequences (AUTO_INCREMENT) is left out there, and they left\n" +
			"dead rows, which the server clears away.\n")
	}
	if r.Diverged > 0 {
		fmt.Fprintf(b, "\n%d did otherwise than recorded when they were played again: nothing is told of them.\n", r.Diverged)
	}
}
