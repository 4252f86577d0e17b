package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// loadData makes LOAD DATA number its rows and tag them. It rests on the lexer alone.
func (pl *planner) loadData() error {
	st := pl.st
	if pl.session.Dialect == TiDB {
		return refusal(history.ReasonLoadData)
	}
	into := st.find(2, st.last(), 0, "INTO")
	if into < 0 || !st.is(into+1, "TABLE") || into+2 > st.last() {
		return refusal(history.ReasonUnparsable)
	}
	schema, table := "", unquoted(st.tok(into+2))
	end := into + 3
	if st.mark(end, ".") && end+1 <= st.last() {
		schema, table = table, unquoted(st.tok(end+1))
		end += 2
	}
	name := &ast.TableName{Schema: ast.NewCIStr(schema), Name: ast.NewCIStr(table)}
	t, err := pl.named(name)
	if err != nil {
		return err
	}
	keyword := " SET "
	for i := end; i <= st.last(); i++ {
		if st.Tokens[i].Depth == 0 && st.is(i, "SET") && !st.is(i-1, "CHARACTER") {
			keyword = ", "
		}
	}
	pieces := append([]Piece{text(keyword + rewrite.RowIDColumn + " = ")}, numberedRowID(nil)...)
	pos, gap := pl.after(st.last())
	pl.insertAt(pos, append(pieces, text(", "+rewrite.WListColumn+" = "), tagPiece, text(gap))...)
	pl.plan.Writes.Inserts = Numbered
	if t.InsertTrigger {
		pl.downgrade(history.ReasonTrigger)
	}
	if st.find(end, st.last()+1, -1, "SELECT") >= 0 {
		pl.downgrade(history.ReasonSubquery)
	}
	v := verb{st: st, session: pl.session}
	for i := end; i < st.last(); i++ {
		// The list of columns and variables stands in parentheses, too.
		if st.mark(i+1, "(") && st.Tokens[i].Kind == mysqltoken.Word && !st.is(i, "LINES", "ROWS", "BY") && i+1 > end &&
			!v.nativeCall(i) {
			pl.downgrade(history.ReasonFunction)
		}
	}
	return nil
}
