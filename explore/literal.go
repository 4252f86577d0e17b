package explore

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/sqltoken"
)

// A columnName is a column as a statement names it: of is the table or its alias, and empty where nothing stands before
// the name.
type columnName struct{ of, name string }

// A literal is a value in a statement's text.
type literal struct {
	start, end int
	value      string // without quotes
	quoted     bool
	column     columnName // that it is compared with, assigned to or inserted into; empty where that is not known
	tables     []string   // those of its statement, its column's own first if that is known
	assigned   bool       // by SET
	ordinal    int        // of an INSERT that names no columns: the place of the value in its row, from 1
}

// spelled returns a value as the literal's text would have it.
func (l *literal) spelled(value string) string {
	if !l.quoted {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}

// A reader finds the literals of a statement, and which column each belongs to.
type reader struct {
	tokens   []sqltoken.Token
	literals []literal
	target   string
	aliases  map[string]string // in lower case, tables by what the statement calls them
	tables   []string          // in their order
}

func (r *reader) read() {
	r.aliases = make(map[string]string)
	r.readTables()
	inserted := r.readInsert()
	setting := false
	for i, t := range r.tokens {
		switch {
		case t.Is("SET"):
			setting = true
		case t.Is("WHERE"), t.Is("RETURNING"):
			setting = false
		}
		value, quoted, ok := valueOf(t)
		if !ok {
			continue
		}
		l := literal{start: t.Start, end: t.End, value: value, quoted: quoted}
		if at, ok := inserted[i]; ok {
			l.column, l.ordinal, l.tables = columnName{name: at.name}, at.ordinal, []string{r.target}
		} else if column, ok := r.compared(i); ok {
			l.column, l.assigned = column, setting && r.is(i-1, "=") && !r.calculated(i+1)
			l.tables = r.tables
			if table := r.aliases[strings.ToLower(column.of)]; column.of != "" && table != "" {
				l.tables = []string{table}
			}
		}
		r.literals = append(r.literals, l)
	}
}

// valueOf returns the value that a token is.
func valueOf(t sqltoken.Token) (value string, quoted, ok bool) {
	switch {
	case t.Kind == sqltoken.Word && t.Text[0] >= '0' && t.Text[0] <= '9':
		return t.Text, false, true
	case t.Kind == sqltoken.Quoted && t.Text[0] == '\'' && len(t.Text) > 1:
		return strings.ReplaceAll(t.Text[1:len(t.Text)-1], "''", "'"), true, true
	}
	return "", false, false
}

func (r *reader) is(i int, text string) bool {
	return i >= 0 && i < len(r.tokens) && r.tokens[i].Is(text)
}

// calculated reports whether an operator goes on with what ends before a token.
func (r *reader) calculated(i int) bool {
	return slices.ContainsFunc([]string{"+", "-", "*", "/", "||", "%"}, func(op string) bool { return r.is(i, op) })
}

func (r *reader) name(i int) (string, bool) {
	if i < 0 || i >= len(r.tokens) {
		return "", false
	}
	name, _, ok := r.tokens[i].Name()
	if _, _, value := valueOf(r.tokens[i]); value {
		return "", false
	}
	return name, ok
}

// readTables notes the tables that the statement names, and their aliases.
func (r *reader) readTables() {
	for i, t := range r.tokens {
		if !t.Is("FROM") && !t.Is("JOIN") && !t.Is("UPDATE") && !t.Is("INTO") {
			continue
		}
		at := i + 1
		if r.is(at, "ONLY") {
			at++
		}
		name, ok := r.name(at)
		if !ok {
			continue
		}
		if schema := r.is(at+1, "."); schema {
			at += 2
			if name, ok = r.name(at); !ok {
				continue
			}
		}
		if !t.Is("FROM") && !t.Is("JOIN") && r.target == "" || t.Is("FROM") && r.is(i-1, "DELETE") {
			r.target = name
		}
		r.tables = append(r.tables, name)
		r.aliases[strings.ToLower(name)] = name
		if r.is(at+1, "AS") {
			at++
		}
		if alias, ok := r.name(at + 1); ok {
			r.aliases[strings.ToLower(alias)] = name
		}
	}
	if r.is(0, "SELECT") || r.is(0, "(") {
		r.target = ""
	}
}

// A place is a column of an INSERT: by its name, or else by its place in the row.
type place struct {
	name    string
	ordinal int
}

// readInsert returns, of the VALUES of an INSERT, which token belongs to which column.
func (r *reader) readInsert() map[int]place {
	into := slices.IndexFunc(r.tokens, func(t sqltoken.Token) bool { return t.Is("INTO") })
	values := slices.IndexFunc(r.tokens, func(t sqltoken.Token) bool { return t.Is("VALUES") || t.Is("VALUE") })
	if into < 0 || values < 0 || r.is(0, "SELECT") {
		return nil
	}
	open := into + slices.IndexFunc(r.tokens[into:], func(t sqltoken.Token) bool { return t.Is("(") })
	var columns []string
	for i := open + 1; i < values && open > into && !r.is(i, ")"); i++ {
		if name, ok := r.name(i); ok {
			columns = append(columns, name)
		}
	}
	of := make(map[int]place)
	depth, at := 0, 0
	for i := values + 1; i < len(r.tokens); i++ {
		switch {
		case r.is(i, "("):
			if depth++; depth == 1 {
				at = 0
			}
		case r.is(i, ")"):
			depth--
		case r.is(i, ",") && depth == 1:
			at++
		case depth == 0 && !r.is(i, ","):
			return of // behind the rows
		case depth == 1 && len(columns) == 0:
			of[i] = place{ordinal: at + 1}
		case depth == 1 && at < len(columns):
			of[i] = place{name: columns[at]}
		}
	}
	return of
}

// compared returns the column that a literal is compared with or assigned to: column = value, value = column, column IN
// (value, ...), and on MySQL column = BINARY value.
func (r *reader) compared(i int) (columnName, bool) {
	at := i - 1
	if r.is(at, "BINARY") {
		at--
	}
	if r.is(at, "(") || r.is(at, ",") {
		for at > 0 && !r.is(at, "(") {
			at--
		}
		if at--; !r.is(at, "IN") {
			return columnName{}, false
		}
		if r.is(at-1, "NOT") {
			at--
		}
		return r.columnBefore(at)
	}
	if r.isComparison(at) {
		return r.columnBefore(at)
	}
	if r.isComparison(i + 1) {
		if of, ok := r.name(i + 2); ok && r.is(i+3, ".") {
			name, ok := r.name(i + 4)
			return columnName{of, name}, ok
		}
		name, ok := r.name(i + 2)
		return columnName{name: name}, ok
	}
	return columnName{}, false
}

func (r *reader) isComparison(i int) bool {
	return slices.ContainsFunc([]string{"=", "<>", "!=", "<=>"}, func(op string) bool { return r.is(i, op) })
}

// columnBefore returns the column that ends before a token.
func (r *reader) columnBefore(at int) (columnName, bool) {
	name, ok := r.name(at - 1)
	if !ok {
		return columnName{}, false
	}
	c := columnName{name: name}
	if r.is(at-2, ".") {
		c.of, _ = r.name(at - 3)
	}
	return c, true
}

// readAssigned returns the columns that an UPDATE sets, whatever to.
func (r *reader) readAssigned() (all []string) {
	depth, setting := 0, false
	for i, t := range r.tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth > 0:
		case t.Is("SET"):
			setting = true
		case t.Is("WHERE"), t.Is("FROM"), t.Is("RETURNING"), t.Is("ORDER"):
			setting = false
		case setting && r.is(i+1, "=") && (r.is(i-1, "SET") || r.is(i-1, ",") || r.is(i-1, ".")):
			if name, ok := r.name(i); ok {
				all = append(all, name)
			}
		}
	}
	return all
}

// readUpsert reports whether an INSERT has rows that are there take other values, and the columns that take those of
// the new row: = excluded.column, = VALUES(column).
func (r *reader) readUpsert() (upsert bool, overwrites []string) {
	on := slices.IndexFunc(r.tokens, func(t sqltoken.Token) bool { return t.Is("CONFLICT") || t.Is("DUPLICATE") })
	if on < 1 || !r.is(on-1, "ON") {
		return false, nil
	}
	for i := on; i < len(r.tokens); i++ {
		if name, ok := r.name(i); ok && r.is(i+1, "=") && (r.is(i+2, "EXCLUDED") || r.is(i+2, "VALUES")) &&
			!r.calculated(i+5) && !r.calculated(i+6) {
			overwrites = append(overwrites, name)
		}
	}
	return true, overwrites
}
