package report

import (
	"strings"

	"github.com/isotap/isotap/history"
)

// statementText gives a statement as people want to read it: its shape with the arguments put back
// where the question marks stand. Where their numbers differ (a shape folds lists such as IN (?) and
// multi-row VALUES, and a recording may leave arguments out) the shape is followed by the arguments.
// Arguments are used as recorded, quotes included.
func statementText(s *history.Stmt) string {
	if s == nil {
		return ""
	}
	shape := s.Shape
	if shape == "" {
		shape = s.Kind.String()
	}
	if len(s.Args) == 0 {
		return shape
	}
	marks := placeholders(shape)
	if len(marks) != len(s.Args) {
		return shape + " -- with " + strings.Join(s.Args, ", ")
	}
	var b strings.Builder
	from := 0
	for i, at := range marks {
		b.WriteString(shape[from:at])
		b.WriteString(s.Args[i])
		from = at + 1
	}
	b.WriteString(shape[from:])
	return b.String()
}

// placeholders gives the offsets of the question marks that stand for a value: those outside quoted
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

// through gives the length of s up to and with the first end; all of it where there is none. A
// doubled quote inside a quoted text reads as two texts side by side, which comes to the same.
func through(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}
