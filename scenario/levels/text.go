package levels

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// columnWidth holds the longest word of a level, textWidth is where sentences break, and whyWidth where reasons end.
const (
	columnWidth = len("UNCOMMITTED") + 3
	textWidth   = 100
	whyWidth    = 200
)

// words are the outcomes as answers to the question of the table's first line.
var words = map[Outcome]string{Permitted: "yes", Fails: "no: error", Waits: "no: waits", Prevented: "no", NotPlayed: "not played"}

// Text writes the table, and what it says of each level. The error is w's.
func (t *Table) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: can it happen?\n\n", t.Server.Engine, t.version())
	width := 0
	for i := range t.Rows {
		width = max(width, len([]rune(t.Rows[i].label()))+3)
	}
	for _, line := range t.head() {
		b.WriteString(tableLine(width, "", line))
	}
	for i := range t.Rows {
		cells := make([]string, len(t.Columns))
		for j := range t.Columns {
			cells[j] = words[t.cells[i][j].outcome()]
		}
		b.WriteString(tableLine(width, t.Rows[i].label(), cells))
	}
	if why := t.notPlayed(); why != "" {
		b.WriteString("\n" + why)
	}
	for j := range t.Columns {
		if says := t.says(j); says != "" {
			b.WriteString("\n" + wrapped(t.Columns[j].name()+t.Columns[j].mark()+": "+says))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the table of levels: %w", err)
	}
	return nil
}

// notPlayed says of each scenario that was not played in some column why not.
func (t *Table) notPlayed() string {
	var b strings.Builder
	for i, r := range t.Rows {
		for k, s := range r.Scenarios {
			at := slices.IndexFunc(t.cells[i], func(c cell) bool { return c[k].why != "" })
			if at < 0 {
				continue
			}
			why := []rune(strings.Join(strings.Fields(t.cells[i][at][k].why), " "))
			if len(why) > whyWidth {
				why = append(why[:whyWidth-1], '…')
			}
			fmt.Fprintf(&b, "not played: %s: %s\n", s.Name, string(why))
		}
	}
	return b.String()
}

// version is the number of the server's version, without what distributions add.
func (t *Table) version() string {
	number, _, _ := strings.Cut(t.Server.Version, " ")
	number, _, _ = strings.Cut(number, "-")
	return number
}

func (c *Column) mark() string {
	if c.Default {
		return " (default)"
	}
	return ""
}

// head are the lines of the columns' titles, word below word.
func (t *Table) head() [][]string {
	var lines [][]string
	for j := range t.Columns {
		title := t.Columns[j].title
		if t.Columns[j].Default {
			title = append(slices.Clone(title), "(default)")
		}
		for i, word := range title {
			if i == len(lines) {
				lines = append(lines, make([]string, len(t.Columns)))
			}
			lines[i][j] = word
		}
	}
	return lines
}

// tableLine is a line of the table: what it is about, and a text in each column.
func tableLine(width int, about string, cells []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s", width, about)
	for _, c := range cells {
		fmt.Fprintf(&b, "%-*s", columnWidth, c)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// wrapped breaks a text into lines; all but the first are indented.
func wrapped(text string) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && at+1+len(word) > textWidth:
			b.WriteString("\n  ")
			at = 2
		case i > 0:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String() + "\n"
}
