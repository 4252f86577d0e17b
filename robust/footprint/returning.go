package footprint

import (
	"errors"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// parseReturning parses a statement that may have MariaDB's RETURNING, which the grammar does not know: its list is
// parsed as a SELECT's, with each token at its place.
func parseReturning(text string) (tree ast.StmtNode, returned *ast.SelectStmt, err error) {
	tree, err = parseMySQL(text)
	if err == nil {
		return tree, nil, nil
	}
	at, found := returning(text)
	if !found {
		return nil, nil, err
	}
	const instead = "SELECT   " // as long as RETURNING
	list, wrong := parseMySQL(strings.Repeat(" ", at) + instead + text[at+len(instead):])
	if wrong != nil {
		return nil, nil, errors.New("the list of RETURNING is not read: " + wrong.Error())
	}
	returned, isList := list.(*ast.SelectStmt)
	if !isList || returned.Fields == nil || returned.From != nil {
		return nil, nil, err
	}
	if tree, err = parseMySQL(text[:at]); err != nil {
		return nil, nil, err
	}
	switch tree.(type) {
	case *ast.InsertStmt, *ast.DeleteStmt:
		return tree, returned, nil
	}
	return nil, nil, errors.New("only INSERT, REPLACE and DELETE have RETURNING")
}

// returning returns the place of the word, outside of parentheses.
func returning(text string) (at int, found bool) {
	tokens, err := sqltoken.Scan(dbms.MySQLFamily, text)
	if err != nil {
		return 0, false
	}
	depth := 0
	for _, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth == 0 && t.Is("RETURNING"):
			return t.Start, true
		}
	}
	return 0, false
}
