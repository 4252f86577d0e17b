package mysql

import (
	"strings"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// asFunctions returns pieces of isotap's in which variables are read and assigned by the functions that
// TiDB itself makes of them: GETVAR('x') for @x and SETVAR('x', y) for @x := y. As variables they would
// keep the plan of a prepared statement out of TiDB's cache, which it says in a warning to the client.
func asFunctions(pieces []Piece) []Piece {
	var w variableWriter
	out := make([]Piece, len(pieces))
	for i, p := range pieces {
		if out[i] = p; p.Hole == NoHole {
			out[i].Text = w.write(p.Text)
		}
	}
	return out
}

// A variableWriter rewrites a text that comes in parts.
type variableWriter struct {
	depth int   // of parentheses
	open  []int // the depths at which a SETVAR is to be closed
}

func (w *variableWriter) write(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\'', '`':
			end := i + 1 + strings.IndexByte(s[i+1:], s[i])
			b.WriteString(s[i:end])
			i = end
		case '(':
			w.depth++
		case ')', ',':
			w.close(&b)
			if s[i] == ')' {
				w.depth--
			}
		case '@':
			end := i + 1
			for end < len(s) && mysqltoken.IsWord(s[end]) {
				end++
			}
			rest, assigned := strings.CutPrefix(s[end:], " := ")
			function := "GETVAR('" + s[i+1:end] + "')"
			if assigned {
				function = "SETVAR('" + s[i+1:end] + "', "
				w.open = append(w.open, w.depth)
			}
			b.WriteString(function)
			i = len(s) - len(rest) - 1
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// close ends the assignments whose value ends here.
func (w *variableWriter) close(b *strings.Builder) {
	for n := len(w.open); n > 0 && w.open[n-1] == w.depth; n = len(w.open) {
		b.WriteByte(')')
		w.open = w.open[:n-1]
	}
}
