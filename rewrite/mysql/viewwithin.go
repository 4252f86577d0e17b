package mysql

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// A view in a subquery's FROM clause stays there in the copy, and the rows behind it are joined by the keys that it
// shows. The copy goes on where EXISTS has ended, so the view's own condition must be one that fails for no row, and of
// which the server does not warn (ADR 62).

// seeThrough has a source that is a view count as a table of the columns that it shows. It reports whether the rows
// behind can be joined, and the view may be read once more.
func (pl *planner) seeThrough(s *source, name *ast.TableName) bool {
	view, n := pl.viewNamed(name)
	if n == nil || !plainTable(name) || !innerJoins(n.From.TableRefs) || pl.st.mentionsPrefix(viewPrefix) {
		return false
	}
	behind := pl.keysShown(n, view)
	srcs := flatten(n.From.TableRefs)
	if len(behind) != len(srcs) {
		return false
	}
	for i, t := range behind {
		if srcs[i].name, srcs[i].table = t.of.Name.O, t.table; srcs[i].node.AsName.O != "" {
			srcs[i].name = srcs[i].node.AsName.O
		}
	}
	shown := &Table{Table: rewrite.Table{Name: view.Name}}
	if len(n.Fields.Fields) != len(view.Columns) || !pl.harmless(n, srcs) {
		return false
	}
	for i, f := range n.Fields.Fields {
		column, ok := f.Expr.(*ast.ColumnNameExpr)
		if !ok {
			return false
		}
		c, _, known := srcs.owner(&ast.ColumnName{Table: column.Name.Table, Name: column.Name.Name})
		if !known {
			return false
		}
		as := *c
		as.Name = view.Columns[i].Name
		shown.Columns = append(shown.Columns, as)
	}
	if s.name = name.Name.O; s.node.AsName.O != "" {
		s.name = s.node.AsName.O
	}
	s.table, s.behind = shown, behind
	return pl.checkSpelling(s.name) == nil
}

// isView reports whether a name is that of a view.
func (pl *planner) isView(name *ast.TableName) bool {
	_, why := pl.table(name)
	return why == history.ReasonView
}

// joinBehind joins the rows behind the views among a subquery's tables. It returns the tables whose rows the copy
// shows, and its text.
func joinBehind(srcs sources, query clauses) (sources, clauses) {
	var all sources
	for _, s := range srcs {
		if s.behind == nil {
			all = append(all, s)
			continue
		}
		for _, t := range s.behind {
			name := fmt.Sprintf("%s%d", viewPrefix, len(all)+1)
			var tests []string
			for i, c := range t.key {
				tests = append(tests, name+"."+quoted(c)+" = "+quoted(s.name)+"."+quoted(t.shown[i]))
			}
			query.from = append(query.from[:len(query.from):len(query.from)],
				text(", "+quoted(t.schema)+"."+quoted(t.of.Name.O)+" AS "+name))
			query = joined(query, strings.Join(tests, " AND "))
			all = append(all, &source{name: name, table: t.table})
		}
	}
	return all, query
}
