package mysql

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// changes sets what a definition may have changed: the plan's [SchemaEffect]. The object that it
// is about is the token at the given place, counted from the verb.
func (v verb) changes(object int) {
	object = v.behindDefiner(object)
	switch {
	case v.is(0, "TRUNCATE"),
		v.is(object, "USER", "ROLE", "FUNCTION", "AGGREGATE", "PROCEDURE", "PACKAGE", "EVENT", "SERVER"),
		v.is(0, "ALTER") && v.is(object, "DATABASE", "SCHEMA") && !v.has("UPGRADE"), // what later tables begin with
		v.is(0, "CREATE") && v.is(1, "DATABASE",
			"SCHEMA"), // there is no table in it, or those that there were
		v.togglesKeys(object):
		return
	}
	v.p.Schema.Changes = true
	changed, ok := v.changedTables(object)
	if !ok || v.st.Long {
		return
	}
	references, ok := v.references(changed)
	if !ok {
		return
	}
	v.p.Schema.Changed, v.p.Schema.References, v.p.Schema.Triggers = changed, references,
		v.triggerFate(object, len(changed))
}

// togglesKeys reports whether the definition only has indexes kept up to date or not, as those of a dump do.
func (v verb) togglesKeys(object int) bool {
	if !v.is(0, "ALTER") || !v.is(object, "TABLE") {
		return false
	}
	_, end, ok := v.tableName(object + 1)
	return ok && v.is(end, "DISABLE", "ENABLE") && v.is(end+1, "KEYS") && v.from+end+2 == v.to
}

// triggerFate returns what becomes of the triggers of so many tables that a definition names. A table that is renamed
// takes them along.
func (v verb) triggerFate(object, tables int) rewrite.TriggerFate {
	switch {
	case v.is(object, "TRIGGER", "DATABASE", "SCHEMA"), v.is(0, "RENAME"):
		return rewrite.TriggersDiffer
	case v.is(0, "DROP") && !v.is(object, "INDEX"), v.is(0, "CREATE") && v.is(1, "OR"):
		return rewrite.TriggersGo
	case tables > 1:
		return rewrite.TriggersDiffer
	}
	return rewrite.TriggersStay
}

// readLockedTables has the schema look at the tables of a LOCK TABLES before they are locked: from then on the server
// may make others wait for what they ask about them.
func (pl *planner) readLockedTables() {
	v := verb{st: pl.st, session: pl.session, p: pl.plan, to: len(pl.st.Tokens)}
	if !v.is(0, "LOCK") || !v.is(1, "TABLE", "TABLES") {
		return
	}
	for i := 2; i < v.to; i++ {
		t, end, ok := v.tableName(i)
		if !ok {
			return
		}
		pl.rewriter.schema.Table(t.Schema, t.Table)
		for i = end; i < v.to && !pl.st.mark(i, ","); i++ {
		}
	}
}

// behindDefiner passes over what may stand between CREATE or ALTER and the kind of object: ALGORITHM, DEFINER, SQL
// SECURITY, and ALTER TABLE's ONLINE and IGNORE.
func (v verb) behindDefiner(i int) int {
	for {
		switch {
		case v.is(i, "ALGORITHM") && v.st.mark(v.from+i+1, "="):
			i += 3
		case v.is(i, "SQL") && v.is(i+1, "SECURITY"):
			i += 3
		case v.is(i, "ONLINE", "IGNORE"):
			i++
		case v.is(i, "DEFINER") && v.st.mark(v.from+i+1, "="):
			i += 3
			if at := v.from + i; at < v.to && v.st.Tokens[at].Kind == mysqltoken.Variable { // @host
				i++
			} else if v.st.mark(at, "(") && v.st.mark(at+1, ")") { // CURRENT_USER()
				i += 2
			}
		default:
			return i
		}
	}
}

// changedTables returns the tables that a definition makes, changes or drops; a schema alone stands for all that are in
// it. It reports false where it may be others.
func (v verb) changedTables(object int) ([]rewrite.TableName, bool) {
	switch {
	case v.is(object, "DATABASE", "SCHEMA"):
		return v.namedSchema(object + 1)
	case v.is(0, "RENAME") && v.is(object, "TABLE", "TABLES"):
		return v.renamed(object + 1)
	case v.is(0, "ALTER") && v.is(object, "TABLE"):
		return v.altered(object + 1)
	case v.is(0, "CREATE", "ALTER") && v.is(object, "TABLE", "VIEW", "SEQUENCE"):
		return v.namedTables(object+1, false)
	case v.is(0, "DROP") && v.is(object, "TABLE", "TABLES", "VIEW", "SEQUENCE"):
		return v.namedTables(object+1, true)
	case v.is(0, "CREATE") && v.is(object, "TRIGGER"):
		return v.triggered(object + 1)
	case v.is(0, "DROP") && v.is(object, "TRIGGER"):
		t, _, ok := v.tableName(v.behindExists(object + 1))
		return []rewrite.TableName{{Schema: t.Schema}}, ok
	case v.is(0, "CREATE") && (v.is(object, "INDEX") || v.is(object, "UNIQUE", "FULLTEXT", "SPATIAL") &&
		v.is(object+1, "INDEX")),
		v.is(0, "DROP") && v.is(object, "INDEX"):
		if on := v.st.find(v.from, v.to, 0, "ON"); on >= 0 {
			return v.namedTables(on+1-v.from, false)
		}
	}
	return nil, false
}

// tableName reads the name of a table at a place, and returns the place behind it.
func (v verb) tableName(i int) (t rewrite.TableName, end int, ok bool) {
	isName := func(i int) bool {
		return v.from+i < v.to && (v.st.Tokens[v.from+i].Kind == mysqltoken.Word ||
			v.st.Tokens[v.from+i].Kind == mysqltoken.Name)
	}
	if !isName(i) {
		return t, i, false
	}
	t = rewrite.TableName{Schema: v.session.Schema, Table: unquoted(v.st.tok(v.from + i))}
	if i++; v.st.mark(v.from+i, ".") {
		if !isName(i + 1) {
			return t, i, false
		}
		t = rewrite.TableName{Schema: t.Table, Table: unquoted(v.st.tok(v.from + i + 1))}
		i += 2
	}
	return t, i, t.Schema != ""
}

// behindExists passes over IF EXISTS and IF NOT EXISTS.
func (v verb) behindExists(i int) int {
	for v.is(i, "IF", "NOT", "EXISTS") {
		i++
	}
	return i
}

// namedTables reads a name behind [IF [NOT] EXISTS], or a list of them.
func (v verb) namedTables(i int, list bool) (names []rewrite.TableName, ok bool) {
	i = v.behindExists(i)
	for {
		t, end, ok := v.tableName(i)
		if !ok {
			return nil, false
		}
		names = append(names, t)
		if !list || !v.st.mark(v.from+end, ",") {
			return names, true
		}
		i = end + 1
	}
}

func (v verb) namedSchema(i int) ([]rewrite.TableName, bool) {
	i = v.behindExists(i)
	if at := v.from + i; at < v.to && (v.st.Tokens[at].Kind == mysqltoken.Word ||
		v.st.Tokens[at].Kind == mysqltoken.Name) {
		return []rewrite.TableName{{Schema: unquoted(v.st.tok(at))}}, true
	}
	return nil, false
}

// renamed reads RENAME TABLE's a [WAIT n] TO b, c TO d.
func (v verb) renamed(i int) (names []rewrite.TableName, ok bool) {
	i = v.behindExists(i)
	for v.from+i < v.to {
		t, end, ok := v.tableName(i)
		if !ok {
			return nil, false
		}
		names = append(names, t)
		for i = end; v.from+i < v.to && !v.is(i, "TO") && !v.st.mark(v.from+i, ","); {
			i++
		}
		i++
	}
	return names, len(names) > 0
}

// altered reads ALTER TABLE: the table itself, what it is renamed to, and those with which it exchanges partitions.
func (v verb) altered(i int) ([]rewrite.TableName, bool) {
	names, ok := v.namedTables(i, false)
	for at := v.from + i; ok && at < v.to; at++ {
		to := -1
		switch place := at - v.from; {
		case v.st.Tokens[at].Depth > 0:
		case v.st.is(at, "RENAME") && !v.is(place+1, "COLUMN", "INDEX", "KEY"):
			if to = place + 1; v.is(to, "TO", "AS") || v.st.mark(v.from+to, "=") {
				to++
			}
		case v.st.is(at, "TABLE"):
			// EXCHANGE PARTITION p WITH TABLE t, CONVERT PARTITION p TO TABLE t, CONVERT TABLE t TO PARTITION p
			to = place + 1
		}
		if to >= 0 {
			var t rewrite.TableName
			t, _, ok = v.tableName(to)
			names = append(names, t)
		}
	}
	return names, ok
}

// triggered reads CREATE TRIGGER's name ... ON table. Where only the trigger's name has a schema, the table is in that
// one or in the session's.
func (v verb) triggered(i int) ([]rewrite.TableName, bool) {
	trigger, end, ok := v.tableName(v.behindExists(i))
	on := v.st.find(v.from+end, v.to, 0, "ON")
	if !ok || on < 0 {
		return nil, false
	}
	t, _, ok := v.tableName(on + 1 - v.from)
	return []rewrite.TableName{t, {Schema: trigger.Schema, Table: t.Table}}, ok
}

// references returns the tables to which foreign keys may have been made. Where a name has no schema, it is in that of
// the table that has the key, or in the session's.
func (v verb) references(of []rewrite.TableName) (parents []rewrite.TableName, ok bool) {
	for at := v.from; at < v.to; at++ {
		if !v.st.is(at, "REFERENCES") {
			continue
		}
		t, end, ok := v.tableName(at + 1 - v.from)
		if !ok {
			return nil, false
		}
		parents = append(parents, t)
		if end == at+2-v.from {
			for _, child := range of {
				parents = append(parents, rewrite.TableName{Schema: child.Schema, Table: t.Table})
			}
		}
	}
	return parents, true
}

// joinChanges adds to p what another statement of the same text may have changed. Where one of them chooses the default
// schema, the names of the others mean tables that are not known.
func joinChanges(p, other *Plan, uses bool) {
	certain := func(p *Plan) bool { return !p.Schema.Changes || len(p.Schema.Changed) > 0 }
	switch {
	case !p.Schema.Changes:
		p.Schema.Triggers = other.Schema.Triggers
	case other.Schema.Changes && other.Schema.Triggers != p.Schema.Triggers:
		p.Schema.Triggers = rewrite.TriggersDiffer
	}
	if uses || !certain(p) || !certain(other) {
		p.Schema.Changed, p.Schema.References = nil, nil
	} else {
		p.Schema.Changed, p.Schema.References = slices.Concat(p.Schema.Changed, other.Schema.Changed),
			slices.Concat(p.Schema.References, other.Schema.References)
	}
	p.Schema.Changes = p.Schema.Changes || other.Schema.Changes
}

// hiddenChanges sets what a text may have changed whose executable comments stand where the verb is read: what its
// statements change when the comments run, where every server runs them. A dump has two ALTER TABLE for each table so:
// where nothing else runs the session's settings stay as they are.
func (st *statement) hiddenChanges(p *Plan, s *Session) {
	p.Schema.Changes, p.Schema.Changed, p.Schema.References, p.Schema.Triggers = true, nil, nil, rewrite.TriggersDiffer
	plain := st.uncommented(s)
	if plain == nil {
		return
	}
	var run Plan
	plain.classify(&run, s)
	p.Txn.SetsNext, p.Txn.Ends, p.Session.Changes = run.Txn.SetsNext, run.Txn.Ends, run.Session.Changes
	p.Schema.Changes, p.Schema.Changed, p.Schema.References, p.Schema.Triggers = run.Schema.Changes, run.Schema.Changed,
		run.Schema.References, run.Schema.Triggers
}

// everywhere is the version up to which all servers that isotap works with run the code in a comment: MariaDB leaves
// out what is for MySQL from 5.7 on.
const everywhere = 50699

var executableComment = regexp.MustCompile(`/\*!(\d{5,6})?`)

// uncommented returns the text without the marks of its executable comments; nil where it is not certain that all
// servers read it so.
func (st *statement) uncommented(s *Session) *statement {
	text := []byte(st.SQL)
	for _, at := range st.Comments {
		comment := st.SQL[at.Start:at.End]
		mark := executableComment.FindString(comment)
		if mark == "" {
			return nil
		}
		version, err := strconv.Atoi(mark[len("/*!"):])
		if len(mark) > len("/*!") && (err != nil || version > everywhere) {
			return nil
		}
		content, closed := strings.CutSuffix(comment[len(mark):], "*/")
		// The server looks for the end among tokens: it is not in a string, nor in a comment.
		if !closed || strings.Contains(content, "/*") || strings.Contains(content, "--") ||
			strings.Contains(content, "#") ||
			!s.lexable(content) || unclosed(content, s) {
			return nil
		}
		for _, i := range [][2]int{{at.Start, at.Start + len(mark)}, {at.End - len("*/"), at.End}} {
			copy(text[i[0]:i[1]], "           ")
		}
	}
	plain := scan(string(text), s.ANSIQuotes, s.NoBackslashEscapes)
	if plain.Broken() || plain.Long || plain.executable() >= 0 {
		return nil
	}
	return plain
}

// unclosed reports whether a quote is open at the end of the text, or what no statement has is in it. Parentheses may
// be opened or closed elsewhere.
func unclosed(text string, s *Session) bool {
	st := scan(text, s.ANSIQuotes, s.NoBackslashEscapes)
	return st.Open >= 0 || st.Strange
}
