package mysql

import (
	"context"
	"errors"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// MariaDB makes a temporary table on disk for each question about columns or triggers that information_schema answers,
// which takes it a third of a millisecond; SHOW CREATE TABLE takes a tenth of that. So a table alone is read of that
// text. It is made by the server, in one form: what is not of that form is asked of information_schema, as is a view.
// So is a table that somebody has under LOCK TABLES since he flushed it (ALTER TABLE ... FORCE): SHOW CREATE TABLE
// would wait for him, who may wait for isotap.
const showTable = "SET STATEMENT lock_wait_timeout = 0 FOR SHOW CREATE TABLE "

// readShown reads the one table of the reading by SHOW CREATE TABLE, and reports whether it could. Its triggers, which
// that does not tell, are asked for where they are not known.
func (r *reading) readShown(ctx context.Context, conn *Conn, known *triggers) (bool, error) {
	queries := []Query{{Purpose: "a table's definition", Text: showTable + quote(r.only.schema) + "." +
		quote(r.only.table), Columns: 2, Else: 4}}
	fires := part{Query{Purpose: "the triggers of tables", Text: readTriggers, Columns: 3}, "EVENT_OBJECT_SCHEMA",
		"EVENT_OBJECT_TABLE", r.addTrigger}
	if known == nil {
		queries = append(queries, r.query(fires))
	}
	results, err := conn.QueryAll(ctx, queries...)
	var refused *mysql.MyError
	switch {
	case errors.As(err, &refused): // there is none, it is not to be had at once, or isotap's user may not see it so
		return false, nil
	case err != nil:
		return false, err
	case len(results[0]) != 1 || len(results[0][0]) != 2:
		return false, nil
	}
	d, ok := parseDefinition(results[0][0][1])
	if !ok {
		return false, nil
	}
	r.addDefinition(d)
	if known != nil {
		known.of(r.tables[*r.only])
	} else {
		r.add(fires, results[1])
	}
	return true, nil
}

// addDefinition takes in a table's definition as rows of information_schema.
func (r *reading) addDefinition(d *shownTable) {
	n := *r.only
	at := func(values ...string) row { return append(row{n.schema, n.table}, values...) }
	r.addTable(n, at("BASE TABLE", d.engine))
	for _, c := range d.columns {
		nullable := "YES"
		if c.notNull {
			nullable = "NO"
		}
		r.addColumn(n, at(c.name, c.kind, strings.Join(c.extra, ", "), c.preset, c.bytes(), c.full, c.collation,
			nullable))
	}
	for _, i := range d.indexes {
		for _, p := range i.parts {
			r.addIndexPart(n, at(i.name, i.nonUnique, p.prefix, p.column))
		}
	}
	for _, k := range d.foreignKeys {
		if k.parentSchema == "" {
			k.parentSchema = n.schema
		}
		r.addForeignKey(n, at(k.parentSchema, k.parentTable, k.onUpdate, k.onDelete, k.name))
		for _, column := range k.columns {
			r.addReferenced(n, at(k.name, column))
		}
	}
}

// A shownTable is what SHOW CREATE TABLE says of a table.
type shownTable struct {
	engine, collation string
	columns           []shownColumn
	indexes           []shownIndex
	foreignKeys       []shownKey
}

type shownColumn struct {
	name, kind, full, collation, preset string
	extra                               []string
	notNull                             bool
}

// bytes returns the size of a varbinary, which is all that is asked of sizes.
func (c *shownColumn) bytes() string {
	size, _ := strings.CutPrefix(c.full, "varbinary(")
	return strings.TrimSuffix(size, ")")
}

type shownIndex struct {
	name, nonUnique string
	parts           []struct{ column, prefix string }
}

type shownKey struct {
	name, parentSchema, parentTable string
	onUpdate, onDelete              string
	columns                         []string // of the parent
}

// parseDefinition reads the text of SHOW CREATE TABLE, and reports whether it knows all of it that matters.
func parseDefinition(text string) (*shownTable, bool) {
	t := &shown{rest: text}
	if !t.take("CREATE TABLE ") {
		return nil, false
	}
	t.name()
	if !t.take(" (") {
		return nil, false
	}
	d := &shownTable{}
	for more := true; more; more = t.take(",") {
		t.take("\n  ")
		d.element(t)
	}
	if !t.take("\n)") || t.failed {
		return nil, false
	}
	d.options(t)
	for i := range d.columns {
		if c := &d.columns[i]; textual(c.kind) && c.collation == "" {
			c.collation = d.collation
			t.failed = t.failed || c.collation == ""
		}
	}
	return d, !t.failed && d.engine != ""
}

// textual reports whether values of a type have a collation.
func textual(kind string) bool {
	return kind == "enum" || kind == "set" || strings.HasSuffix(kind, "char") || strings.HasSuffix(kind, "text")
}

// element reads what stands between commas.
func (d *shownTable) element(t *shown) {
	switch {
	case strings.HasPrefix(t.rest, "`"):
		d.column(t)
	case t.take("PRIMARY KEY "):
		d.index(t, "PRIMARY", "0", "")
	case t.take("UNIQUE KEY "):
		d.index(t, t.name(), "0", "")
	case t.take("KEY "), t.take("FULLTEXT KEY "):
		d.index(t, t.name(), "1", "")
	case t.take("SPATIAL KEY "):
		d.index(t, t.name(), "1", "32") // as information_schema has it
	case t.take("CONSTRAINT "):
		d.constraint(t, t.name())
	default:
		t.failed = true
	}
}

// column reads a column. Its attributes stand in an order of the server's.
func (d *shownTable) column(t *shown) {
	c := shownColumn{name: t.name()}
	if t.take(" "); t.failed {
		return
	}
	c.kind = t.word()
	c.full = c.kind + t.parentheses()
	for _, word := range []string{" unsigned", " zerofill"} {
		if t.take(word) {
			c.full += word
		}
	}
	charset, generated := false, false
	for !t.failed && !strings.HasPrefix(t.rest, ",") && !strings.HasPrefix(t.rest, "\n") {
		switch {
		case t.take(" CHARACTER SET "):
			t.word()
			charset = true
		case t.take(" COLLATE "):
			c.collation = t.word()
		case t.take(" GENERATED ALWAYS AS "):
			t.parentheses()
			generated = true
			t.take(" ")
			c.extra = append(c.extra, t.word()+" GENERATED")
		case t.take(" NOT NULL"):
			c.notNull = true
		case t.take(" NULL"):
		case t.take(" INVISIBLE"):
			c.extra = append(c.extra, "INVISIBLE")
		case t.take(" DEFAULT "):
			c.preset = t.value()
		case t.take(" ON UPDATE "):
			c.extra = append(c.extra, "on update "+t.value())
		case t.take(" AUTO_INCREMENT"):
			c.extra = append(c.extra, "auto_increment")
		case t.take(" COMMENT "):
			t.quoted('\'')
		case t.take(" CHECK "):
			t.parentheses()
		default:
			t.failed = true
		}
	}
	// Of these the text says a collation only where it is not the usual one, or not at all.
	if textual(c.kind) && c.collation == "" && (charset || generated) {
		t.failed = true
	}
	d.columns = append(d.columns, c)
}

// index reads the columns of an index, and passes over its options.
func (d *shownTable) index(t *shown, name, nonUnique, prefix string) {
	i := shownIndex{name: name, nonUnique: nonUnique}
	t.take(" ")
	if !t.take("(") {
		t.failed = true
	}
	for more := !t.failed; more; more = t.take(",") {
		part := struct{ column, prefix string }{t.name(), prefix}
		if length := t.parentheses(); length != "" {
			part.prefix = strings.Trim(length, "()")
		}
		_ = t.take(" DESC") || t.take(" ASC")
		i.parts = append(i.parts, part)
	}
	if !t.take(")") {
		t.failed = true
	}
	t.passOptions()
	d.indexes = append(d.indexes, i)
}

// constraint reads a foreign key, and passes over a condition.
func (d *shownTable) constraint(t *shown, name string) {
	if t.take(" CHECK ") {
		t.parentheses()
		return
	}
	if !t.take(" FOREIGN KEY ") {
		t.failed = true
		return
	}
	t.parentheses()
	if !t.take(" REFERENCES ") {
		t.failed = true
		return
	}
	k := shownKey{name: name, parentTable: t.name()}
	if t.take(".") {
		k.parentSchema, k.parentTable = k.parentTable, t.name()
	}
	if !t.take(" (") {
		t.failed = true
	}
	for more := !t.failed; more; more = t.take(", ") || t.take(",") {
		k.columns = append(k.columns, t.name())
	}
	t.failed = t.failed || !t.take(")")
	for !t.failed {
		switch {
		case t.take(" ON DELETE "):
			k.onDelete = t.action()
		case t.take(" ON UPDATE "):
			k.onUpdate = t.action()
		default:
			d.foreignKeys = append(d.foreignKeys, k)
			return
		}
	}
}

// options reads the table's engine and collation.
func (d *shownTable) options(t *shown) {
	for !t.failed && t.rest != "" && !strings.HasPrefix(t.rest, "\n") { // partitions follow on lines of their own
		switch {
		case t.take(" ENGINE="):
			d.engine = t.word()
		case t.take(" COLLATE="):
			d.collation = t.word()
		case t.take(" SEQUENCE"), t.take(" WITH SYSTEM VERSIONING"), t.take(" CONNECTION"):
			t.failed = true
		case t.take(" "):
			t.word()
			if t.take("=") && !t.take("(") && t.word() == "" {
				t.quoted('\'')
			}
		default:
			t.failed = true
		}
	}
}

// A shown is what is left to be read of the text of SHOW CREATE TABLE. failed says that it is not as expected.
type shown struct {
	rest   string
	failed bool
}

// take passes over what comes next, if it does.
func (t *shown) take(text string) bool {
	rest, ok := strings.CutPrefix(t.rest, text)
	if ok {
		t.rest = rest
	}
	return ok
}

// pass returns the next n bytes.
func (t *shown) pass(n int) (text string) {
	text, t.rest = t.rest[:n], t.rest[n:]
	return text
}

// word reads letters, digits and underscores; there may be none.
func (t *shown) word() string {
	end := strings.IndexFunc(t.rest, func(c rune) bool {
		return !(c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	})
	if end < 0 {
		end = len(t.rest)
	}
	return t.pass(end)
}

// action reads what a foreign key does.
func (t *shown) action() string {
	for _, action := range []string{"CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"} {
		if t.take(action) {
			return action
		}
	}
	t.failed = true
	return ""
}

// name reads a quoted name.
func (t *shown) name() string {
	text := t.quoted('`')
	if t.failed {
		return ""
	}
	return strings.ReplaceAll(text[1:len(text)-1], "``", "`")
}

// quoted reads what stands in quotes, and returns it with them.
func (t *shown) quoted(quote byte) string {
	if strings.HasPrefix(t.rest, string(quote)) {
		if n := mysqltoken.Quoted(t.rest, quote != '`'); n > 0 {
			return t.pass(n)
		}
	}
	t.failed = true
	return ""
}

// parentheses reads what stands in parentheses, and returns it with them; empty where there are none.
func (t *shown) parentheses() string {
	if !strings.HasPrefix(t.rest, "(") {
		return ""
	}
	before, depth := t.rest, 0
	for !t.failed && t.rest != "" {
		switch c := t.rest[0]; c {
		case '\'', '"', '`':
			t.quoted(c)
			continue
		case '(':
			depth++
		case ')':
			depth--
		}
		if t.rest = t.rest[1:]; depth == 0 {
			return before[:len(before)-len(t.rest)]
		}
	}
	t.failed = true
	return ""
}

// value reads a default: a literal, a call or an expression in parentheses.
func (t *shown) value() string {
	before := t.rest
	for !t.failed && t.rest != "" && !strings.ContainsRune(" ,\n", rune(t.rest[0])) {
		switch c := t.rest[0]; c {
		case '\'', '"', '`':
			t.quoted(c)
		case '(':
			t.parentheses()
		default:
			t.rest = t.rest[1:]
		}
	}
	return before[:len(before)-len(t.rest)]
}

// passOptions passes over what stands behind the columns of an index.
func (t *shown) passOptions() {
	for !t.failed && t.take(" ") {
		if t.take("COMMENT ") {
			t.quoted('\'')
			continue
		}
		t.word()
		if t.take("=") && t.word() == "" {
			t.quoted('\'')
		}
	}
}

// showable reports whether the server's names are such that SHOW CREATE TABLE finds just the one that is asked for.
func (c *Cache) showable() bool { return c.quotes && !c.folds }
