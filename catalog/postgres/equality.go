package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
	"github.com/isotap/isotap/sqltoken"
)

// Equality returns what a predicate asks of a whole number, for [Databases.Number]; false where it asks nothing that is
// known without the server. It waits for nothing.
func (d *Databases) Equality(database string, p history.Predicate) (e sqltoken.Equality, ok bool) {
	t := d.peek(database, p)
	if t == nil {
		return e, false
	}
	for _, e := range sqltoken.Equalities(dbms.PostgreSQLFamily, p.Where) {
		at := slices.IndexFunc(t.Columns, func(c sqlpostgres.Column) bool { return c.Name == unquoted(e.Column) })
		if at < 0 || e.Of != "" && unquoted(e.Of) != unquoted(p.As) {
			continue
		}
		switch t.Columns[at].Type {
		case "int2", "int4", "int8":
			e.Column = fmt.Sprint(at, "/", len(t.Columns))
			return e, true
		}
	}
	return e, false
}

// peek returns the table of a predicate as it is known at the moment; nil where it is not.
func (d *Databases) peek(database string, p history.Predicate) *sqlpostgres.Table {
	d.mu.Lock()
	entry := d.known[database]
	d.mu.Unlock()
	if entry == nil {
		return nil
	}
	select {
	case <-entry.opened:
	default:
		return nil
	}
	schema, table, _ := strings.Cut(p.Table, ".")
	if entry.cache == nil {
		return nil
	}
	t := entry.cache.current.Load().tables.get(name{schema, table})
	if t == nil || t.Spelled != p.Of {
		return nil
	}
	return t
}

// unquoted returns the name that an identifier means.
func unquoted(identifier string) string {
	if len(identifier) > 1 && identifier[0] == '"' {
		return strings.ReplaceAll(identifier[1:len(identifier)-1], `""`, `"`)
	}
	return strings.ToLower(identifier)
}

// Number returns the whole number that a row, as [history.Stmt].Images has it, holds in a column of
// [Databases.Equality]; known is false where the row does not tell.
func (d *Databases) Number(image, column string) (n int64, null, known bool) {
	place, count, _ := strings.Cut(column, "/")
	at, err := strconv.Atoi(place)
	if err != nil {
		return 0, false, false
	}
	field, fields := fieldOf(image, at)
	switch {
	case strconv.Itoa(fields) != count:
		return 0, false, false // of before a column was added or dropped
	case field == "":
		return 0, true, true
	}
	n, err = strconv.ParseInt(field, 10, 64)
	return n, false, err == nil
}

// fieldOf returns a field of a composite value's text (the documentation's "Composite Type Input and Output Syntax"),
// and how many there are.
func fieldOf(text string, at int) (field string, fields int) {
	text, opens := strings.CutPrefix(text, "(")
	text, closes := strings.CutSuffix(text, ")")
	if !opens || !closes {
		return "", 0
	}
	from, quoted := 0, false
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] == '"':
			quoted = !quoted
		case i < len(text) && text[i] == '\\':
			i++
		case i == len(text) || text[i] == ',' && !quoted:
			if fields == at {
				field = text[from:i]
			}
			fields, from = fields+1, i+1
		}
	}
	return field, fields
}
