package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	parsermysql "github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the literals' types: the parser does not run without a driver

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/rewrite"
)

// parse returns the tree of the only statement in the text.
func (pl *planner) parse() (ast.StmtNode, error) {
	trees, err := pl.parseAll()
	if err != nil || len(trees) != 1 {
		return nil, refusal(history.ReasonUnparsable)
	}
	return trees[0], nil
}

// parseAll returns the trees of the statements in the text.
func (pl *planner) parseAll() ([]ast.StmtNode, error) {
	if !pl.read {
		pl.read = true
		pl.beyond = pl.st.beyondParser(pl.session)
		text := pl.st.without(pl.st.parserText(), pl.beyond.rowAlias, pl.beyond.returning)
		pl.into = pl.st.intoVariables(pl.session)
		text = pl.st.without(pl.st.beyondRead(pl.session).known(pl.st, text), pl.into)
		windows := pl.session.Dialect == TiDB
		pl.trees, pl.failure = pl.rewriter.trees(text, pl.session, windows)
		if pl.failure != nil && !windows && pl.st.mayHaveWindows() {
			pl.trees, pl.failure = pl.rewriter.trees(text, pl.session, true)
		}
	}
	return pl.trees, pl.failure
}

// trees returns the trees of the statements in a text. Where window functions are known, MariaDB's
// unreserved words (rank, groups, ...) are reserved.
func (r *Rewriter) trees(text string, s *Session, windows bool) (nodes []ast.StmtNode, err error) {
	p := r.parsers.Get().(*parser.Parser)
	defer rewrite.Turn(len(text))()
	p.SetMariaDB(s.Dialect != TiDB)
	p.EnableWindowFunc(windows)
	p.SetStrictDoubleTypeCheck(false)
	p.SetSQLMode(s.parserMode())
	whole := guard.Whole(func() { nodes, _, err = p.ParseSQL(text) })
	if !whole { // the parser is in an unknown state and must not come back to the pool
		return nil, refusal(history.ReasonUnparsable)
	}
	nodes = slices.Clone(nodes) // the slice is the parser's, who takes it for the next text
	r.parsers.Put(p)
	return nodes, err
}

// parserMode returns the part of sql_mode that TiDB's parser understands.
func (s *Session) parserMode() parsermysql.SQLMode {
	var m parsermysql.SQLMode
	if s.ANSIQuotes {
		m |= parsermysql.ModeANSIQuotes
	}
	if s.NoBackslashEscapes {
		m |= parsermysql.ModeNoBackslashEscapes
	}
	if s.PipesAsConcat {
		m |= parsermysql.ModePipesAsConcat
	}
	return m
}
