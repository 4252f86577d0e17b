package mysql

import (
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// Equality returns what a predicate asks of a whole number, for [Matching.Number]; false where it asks nothing that is
// known without the server. It may be called from several goroutines.
func (m *Matching) Equality(_ string, p history.Predicate) (e sqltoken.Equality, ok bool) {
	schema, table, ok := splitName(p.Of)
	if !ok {
		return e, false
	}
	t := m.schema.Table(schema, table)
	if t == nil {
		return e, false
	}
	for _, e := range sqltoken.Equalities(dbms.MySQLFamily, p.Where) {
		if c := t.ColumnInAnyCase(unquoted(e.Column)); isWhole(c) && (e.Of == "" || unquoted(e.Of) == unquoted(p.As)) {
			e.Column = quote(c.Name)
			return e, true
		}
	}
	return e, false
}

func isWhole(c *sqlmysql.Column) bool {
	if c == nil {
		return false
	}
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// unquoted returns the name that an identifier means.
func unquoted(identifier string) string {
	if len(identifier) > 1 && identifier[0] == '`' {
		return strings.ReplaceAll(identifier[1:len(identifier)-1], "``", "`")
	}
	return identifier
}

// Number returns the whole number that a row, as [history.Stmt].Images has it, holds in a column of
// [Matching.Equality]; known is false where the row does not tell.
func (m *Matching) Number(image, column string) (n int64, null, known bool) {
	rest, at, count := strings.TrimPrefix(image, "("), -1, 0
	for strings.HasPrefix(rest, "`") {
		end := mysqltoken.Quoted(rest, false)
		if end < 0 {
			return 0, false, false
		}
		if rest[:end] == column {
			at = count
		}
		rest, count = strings.TrimPrefix(rest[end:], ", "), count+1
	}
	values, ok := strings.CutPrefix(rest, ")"+sqlmysql.ImageValues)
	if !ok || at < 0 {
		return 0, false, false
	}
	return wholeValue(values, at)
}

// wholeValue reads the value at a place of a list. Those before it may be strings, in which a quote is doubled or
// follows a backslash.
func wholeValue(list string, at int) (n int64, null, known bool) {
	from, depth := 0, 0
	quoted := false
	for i := 0; i <= len(list); i++ {
		switch {
		case i < len(list) && list[i] == '\'':
			quoted = !quoted
		case i < len(list) && quoted:
			if list[i] == '\\' {
				i++
			}
		case i < len(list) && list[i] == '(':
			depth++
		case i < len(list) && list[i] == ')' && depth > 0:
			depth--
		case i == len(list) || depth == 0 && (list[i] == ',' || list[i] == ')'):
			if at == 0 {
				value := strings.TrimSpace(list[from:min(i, len(list))])
				n, err := strconv.ParseInt(value, 10, 64)
				null = strings.EqualFold(value, "NULL")
				return n, null, err == nil || null
			}
			at, from = at-1, i+1
		}
	}
	return 0, false, false
}
