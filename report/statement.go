package report

import (
	"regexp"
	"strings"

	"github.com/isotap/isotap/history"
)

// statementText returns a statement as people want to read it: its shape with the arguments put back
// where the question marks stand. Where their numbers differ (a shape folds lists such as IN (?) and
// multi-row VALUES, and a recording may leave arguments out) the shape is followed by the arguments, unless it is plain
// which list was folded. Arguments are used as recorded, quotes included.
func statementText(s *history.Stmt) string {
	text, _ := Statement(s)
	return text
}

// Statement returns a statement with its arguments in their places, and whether all of them are.
func Statement(s *history.Stmt) (text string, whole bool) {
	if s == nil {
		return "", true
	}
	shape := s.Shape
	if shape == "" {
		shape = s.Kind.String()
	}
	marks := placeholders(shape)
	if len(marks) < len(s.Args) {
		shape = unfolded(shape, marks, len(s.Args))
		marks = placeholders(shape)
	}
	if len(s.Args) == 0 {
		return shape, len(marks) == 0
	}
	if len(marks) != len(s.Args) {
		return shape + " -- with " + strings.Join(s.Args, ", "), false
	}
	var b strings.Builder
	from := 0
	for i, at := range marks {
		b.WriteString(shape[from:at])
		b.WriteString(s.Args[i])
		from = at + 1
	}
	b.WriteString(shape[from:])
	return b.String(), true
}

// folded finds what a shape may have folded: the elements behind IN, the rows behind VALUES.
var folded = regexp.MustCompile(`(?i)\b(?:IN\s*\(([^()]*\?[^()]*)\)|VALUES?\s*(\([^()]*\?[^()]*\)))`)

// unfolded returns the shape with as many elements in its only list of one element as the arguments are for; the shape
// as it is where there is not just one such list, or where they do not come out even.
func unfolded(shape string, marks []int, arguments int) string {
	lists := folded.FindAllStringSubmatchIndex(shape, 2)
	if len(lists) != 1 {
		return shape
	}
	from, to, row := lists[0][2], lists[0][3], false
	if from < 0 {
		from, to, row = lists[0][4], lists[0][5], true
	}
	element := shape[from:to]
	if !row && strings.Contains(element, ",") || row && strings.HasPrefix(strings.TrimSpace(shape[to:]), ",") {
		return shape
	}
	each := len(placeholders(element))
	more := arguments - len(marks)
	if each == 0 || more%each != 0 {
		return shape
	}
	return shape[:to] + strings.Repeat(", "+element, more/each) + shape[to:]
}

// placeholders returns the offsets of the question marks that stand for a value: those outside quoted
// names, strings and comments.
func placeholders(shape string) []int {
	var marks []int
	for i := 0; i < len(shape); {
		switch rest := shape[i:]; {
		case rest[0] == '?':
			marks = append(marks, i)
			i++
		case rest[0] == '`' || rest[0] == '"' || rest[0] == '\'':
			i += 1 + through(rest[1:], rest[:1])
		case strings.HasPrefix(rest, "/*"):
			i += 2 + through(rest[2:], "*/")
		case strings.HasPrefix(rest, "-- ") || rest[0] == '#':
			i += through(rest, "\n")
		default:
			i++
		}
	}
	return marks
}

// through returns the length of s up to and with the first end; all of it where there is none. A
// doubled quote inside a quoted text reads as two texts side by side, which comes to the same.
func through(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}
