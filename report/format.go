package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// number returns n with its thousands set apart.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural counts things that take an s.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}

// times says how often something was seen.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return number(n) + " times"
}

// percent returns part of whole to one decimal. It says 100% and 0% only where that is exact: one
// unobserved statement in a million must not read as none.
func percent(part, whole int) string {
	switch {
	case whole <= 0 || part <= 0:
		return "0%"
	case part >= whole:
		return "100%"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case p < 0.1:
		return "<0.1%"
	case p > 99.9:
		return ">99.9%"
	}
	return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 1, 64), ".0") + "%"
}

// duration returns nanoseconds in the unit that leaves three telling digits.
func duration(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d < 0:
		return "-" + duration(-ns)
	case d < time.Microsecond:
		return strconv.FormatInt(ns, 10) + " ns"
	case d < time.Millisecond:
		return threeDigits(float64(ns)/1e3) + " µs"
	case d < time.Second:
		return threeDigits(float64(ns)/1e6) + " ms"
	case d < time.Minute:
		return threeDigits(float64(ns)/1e9) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// at says when something ran: since the run's start, to the microsecond, which tells statements apart.
func at(start, end int64) string {
	return fmt.Sprintf("at %.6f s, took %s", float64(start)/1e9, duration(end-start))
}

func threeDigits(f float64) string {
	decimals := 0
	switch {
	case f < 10:
		decimals = 2
	case f < 100:
		decimals = 1
	}
	s := strconv.FormatFloat(f, 'f', decimals, 64)
	if decimals > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// printable replaces what must not reach a terminal or a page as it is: control characters (other
// than line feed and tab), invalid UTF-8, and the invisible characters that reorder or hide text.
// Each is shown by its code instead.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || treacherous(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02X`, s[i])
		case treacherous(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// treacherous reports whether a character acts on the text around it unseen.
func treacherous(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	// Cf holds the bidirectional controls, the zero-width characters and the byte order mark; the
	// two separators break lines where nobody expects it.
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// oneLine folds white space, line breaks among it, into single spaces and makes the rest printable.
func oneLine(s string) string { return printable(strings.Join(strings.Fields(s), " ")) }

// clip cuts s after at most n characters and says so with an ellipsis.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	cut := len(s)
	for i := range s {
		if count == n-1 {
			cut = i
		}
		if count == n {
			return s[:cut] + "…"
		}
		count++
	}
	return s
}

// clipMiddle cuts s to n characters, keeping both of its ends: of ids, the end tells them apart.
func clipMiddle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}

// wrap breaks a text into lines of at most width characters: at white space, and within words that
// are longer than a line.
func wrap(s string, width int) []string {
	var lines []string
	var line []rune
	for word := range strings.FieldsSeq(s) {
		for piece := range slices.Chunk([]rune(word), max(width, 1)) {
			if len(line) > 0 && len(line)+1+len(piece) > width {
				lines = append(lines, string(line))
				line = line[:0]
			}
			if len(line) > 0 {
				line = append(line, ' ')
			}
			line = append(line, piece...)
		}
	}
	if len(line) > 0 {
		lines = append(lines, string(line))
	}
	return lines
}
