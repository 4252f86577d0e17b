package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// The sizes behind the number of identities that an array can hold on MariaDB, which cuts it at
// group_concat_max_len and warns the client. A bounded array is never cut.
const (
	// arrayTags is how many of a row's last tags an array carries: its version and what that replaced.
	arrayTags = 3
	// maxIdentity is the most bytes that one identity takes in an array: row id, tags, "=", quotes and comma.
	maxIdentity = 64 + 1 + arrayTags*(maxTag+1) + 3
	// MaxArray is how many identities isotap collects from an aggregate at most.
	MaxArray = 10_000
	// minArray is how many an array must be able to hold for the statement to be observed at all.
	minArray = 100
)

// assumedConcat stands in for an unknown group_concat_max_len: MariaDB's default.
const assumedConcat = 1 << 20

// arrayLimit returns how many identities an array may hold: 0 where the server has no such bound. It
// refuses where there are no arrays, or they would be cut.
func (s *Session) arrayLimit() (int, error) {
	if s.Dialect != MariaDB {
		if s.Dialect == MySQL && s.Version > 0 && s.Version < 50722 {
			return 0, refusal(history.ReasonAggregate)
		}
		return 0, nil
	}
	if s.Version > 0 && s.Version < 100500 {
		return 0, refusal(history.ReasonAggregate)
	}
	bytes := s.GroupConcatMax
	if bytes == 0 {
		bytes = assumedConcat
	}
	n := min((bytes-len("[]"))/maxIdentity, MaxArray+1)
	if n < minArray {
		return 0, refusal(history.ReasonGroupConcat)
	}
	return n, nil
}

// array returns the expression for the identities of the rows that a group took from a source, whose row
// id and wList have the given names. The conversion keeps MySQL and TiDB from writing base64; latin1 has a
// character for every byte. A row without identity gives a text without "=" where the source has a row
// in every row of the join, and NULL where it may have none.
func (d Dialect) array(rowID, wList string, limit int, outer bool) string {
	if d == MariaDB {
		return joinedArray(rowID, wList, limit, outer)
	}
	all := "JSON_ARRAYAGG(" + d.element(rowID, wList, outer)
	if limit > 0 {
		all += fmt.Sprintf(" LIMIT %d", limit)
	}
	return all + ")"
}

// joinedArray is array by GROUP_CONCAT, which MariaDB computes in two thirds of the time. Its JSON_ARRAYAGG is made of
// it, and plans alike. An identity needs no escape.
func joinedArray(rowID, wList string, limit int, outer bool) string {
	tags := fmt.Sprintf("SUBSTRING_INDEX(%s, _binary',', -%d)", wList, arrayTags)
	element := "_binary'\"', CONCAT_WS(_binary'=', " + rowID + ", " + tags + "), _binary'\"'"
	if outer {
		element = "IFNULL(CONCAT(_binary'\"', " + rowID + ", _binary'=', " + tags + ", _binary'\"'), _binary'null')"
	}
	return fmt.Sprintf("CONCAT(_binary'[', GROUP_CONCAT(%s LIMIT %d), _binary']')", element, limit)
}

// element returns the expression for one of the identities in an array. TiDB warns the client that the plan of a
// prepared statement with CONVERT is not kept.
func (d Dialect) element(rowID, wList string, outer bool) string {
	tags := fmt.Sprintf("SUBSTRING_INDEX(%s, _binary',', -%d)", wList, arrayTags)
	joined := "CONCAT_WS(_binary'=', " + rowID + ", " + tags + ")"
	if outer {
		joined = "CONCAT(" + rowID + ", _binary'=', " + tags + ")"
	}
	if d == TiDB {
		return "CAST(" + joined + " AS CHAR CHARACTER SET latin1)"
	}
	return "CONVERT(" + joined + " USING latin1)"
}

// hidesGroups reports whether the groups that an aggregating SELECT read need not all be among its rows.
func hidesGroups(n *ast.SelectStmt) bool {
	return n.Having != nil || n.Limit != nil && n.GroupBy != nil
}

// skipsRows reports whether the server may answer an aggregating SELECT without looking at every row of
// its tables, as it does for MIN, MAX, DISTINCT and groups without a sum from the ends of an index: the
// identities make it read, and lock, all of them.
func skipsRows(n *ast.SelectStmt) bool {
	if n.Limit != nil && n.GroupBy != nil {
		return true
	}
	a := aggregatesOf(n)
	return a.extremes || a.distinct || !a.sums
}

// changesTypes reports whether the types of a grouped SELECT's columns depend on MySQL's plan: where it groups
// in a temporary table, MIN and MAX of an INT and the groups of ROLLUP can be BIGINT.
func changesTypes(n *ast.SelectStmt) bool {
	return n.GroupBy != nil && (n.GroupBy.Rollup || aggregatesOf(n).extremes)
}

// groupsByBits reports whether a SELECT groups by a BIT. Beside an array MySQL then names a column (SELECT b) of the
// select list b.
func groupsByBits(n *ast.SelectStmt, srcs sources) bool {
	return n.GroupBy != nil && slices.ContainsFunc(n.GroupBy.Items, func(item *ast.ByItem) bool {
		c, ok := item.Expr.(*ast.ColumnNameExpr)
		return ok && slices.ContainsFunc(srcs, func(s *source) bool {
			if s.table == nil {
				return false
			}
			is := s.table.ColumnInAnyCase(c.Name.Name.O)
			return is != nil && is.Type == "bit"
		})
	})
}

// aggregates are the kinds of aggregate functions of a SELECT: those that need every row, and those that
// do not.
type aggregates struct{ sums, extremes, distinct bool }

func aggregatesOf(n *ast.SelectStmt) aggregates {
	var a aggregates
	n.Fields.Accept(&a)
	if n.Having != nil {
		n.Having.Accept(&a)
	}
	if n.OrderBy != nil {
		n.OrderBy.Accept(&a)
	}
	return a
}

// Enter implements ast.Visitor.
func (a *aggregates) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		return n, true
	case *ast.AggregateFuncExpr:
		switch strings.ToLower(n.F) {
		case ast.AggFuncMin, ast.AggFuncMax:
			a.extremes = true
		default:
			a.distinct = a.distinct || n.Distinct
			a.sums = true
		}
	}
	return n, false
}

// Leave implements ast.Visitor.
func (a *aggregates) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// binaryArray makes an array the column of a result: bytes are not converted to character_set_results.
func binaryArray(expression string) string { return "CAST(" + expression + " AS BINARY)" }
