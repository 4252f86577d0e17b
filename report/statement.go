package report

import (
	"regexp"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// statementText returns a statement as people want to read it: its shape with the arguments put back
// where the question marks stand. Where their numbers differ (a shape folds lists such as IN (?) and
// multi-row VALUES, and a recording may leave arguments out) the shape is followed by the arguments, unless it is plain
// which list was folded. Arguments are used as recorded, quotes included.
func statementText(family dbms.Family, s *history.Stmt) string {
	text, _ := Statement(family, s)
	return text
}

// Statement returns a statement of a family's SQL with its arguments in their places, and whether all of them are.
func Statement(family dbms.Family, s *history.Stmt) (text string, whole bool) {
	if s == nil {
		return "", true
	}
	shape := s.Shape
	if shape == "" {
		shape = s.Kind.String()
	}
	marks := sqltoken.Values(family, shape)
	if len(marks) < len(s.Args) {
		shape = unfolded(family, shape, marks, len(s.Args))
		marks = sqltoken.Values(family, shape)
	}
	if len(s.Args) == 0 {
		return shape, len(marks) == 0
	}
	if len(marks) != len(s.Args) {
		return shape + " -- with " + strings.Join(s.Args, ", "), false
	}
	return sqltoken.Fill(shape, marks, s.Args), true
}

// folded finds what a shape may have folded: the elements behind IN, the rows behind VALUES.
var folded = regexp.MustCompile(`(?i)\b(?:IN\s*\(([^()]*\?[^()]*)\)|VALUES?\s*(\([^()]*\?[^()]*\)))`)

// unfolded returns the shape with as many elements in its only list of one element as the arguments are for; the shape
// as it is where there is not just one such list, or where they do not come out even.
func unfolded(family dbms.Family, shape string, marks []int, arguments int) string {
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
	each := len(sqltoken.Values(family, element))
	more := arguments - len(marks)
	if each == 0 || more%each != 0 {
		return shape
	}
	return shape[:to] + strings.Repeat(", "+element, more/each) + shape[to:]
}
