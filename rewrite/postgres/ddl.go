package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// ddl classifies definitions. They are part of the transaction they stand in.
func (v verb) ddl() {
	p, object := v.p, 1
	p.Kind = history.DDL
	switch {
	case v.is(0, "COMMENT", "SECURITY"):
		return
	case v.is(0, "TRUNCATE"):
		v.opaque(history.ReasonTruncate)
	case v.is(0, "REFRESH"):
		v.opaque(history.ReasonMaterializedView)
	case v.is(0, "CLUSTER", "REPACK"):
		v.opaque(history.ReasonTableRewrite) // the versions get other places
	case v.is(0, "CREATE") && v.is(1, "OR") && v.is(2, "REPLACE"):
		object = 3
	}
	for v.is(object, "GLOBAL", "LOCAL", "UNLOGGED", "RECURSIVE", "FOREIGN", "MATERIALIZED", "UNIQUE", "CONSTRAINT",
		"TRUSTED",
		"PROCEDURAL", "EVENT") {
		object++
	}
	temporary := v.is(object, "TEMP", "TEMPORARY")
	for v.is(object, "TEMP", "TEMPORARY", "RECURSIVE") {
		object++
	}
	p.Schema.Changes = !v.is(object, "PROCEDURE", "OPERATOR", "CAST", "COLLATION", "CONVERSION",
		"SEQUENCE", "STATISTICS", "PUBLICATION", "SUBSCRIPTION", "TABLESPACE", "TEXT", "LANGUAGE", "SERVER", "LARGE",
		"DATABASE")
	v.definition(object, temporary)
	if p.Schema.Changes {
		p.Schema.Changed = v.changed(object)
		p.Schema.Change = v.change(object, temporary)
	}
}

// definition looks at what kind of object is defined.
func (v verb) definition(object int, temporary bool) {
	p, create, alter := v.p, v.is(0, "CREATE"), v.is(0, "ALTER")
	switch {
	case create && v.is(object, "TABLE", "VIEW", "SEQUENCE"):
		if temporary {
			p.Schema.CreatesTemp, p.Session.Changes = []rewrite.TableName{{Table: v.nameBehind(object).Table}},
				true // pg_temp comes into the search path
		}
		if v.is(object, "TABLE") && v.find(object, "AS") >= 0 &&
			v.mentions("SELECT", "TABLE", "VALUES", "EXECUTE", "WITH") {
			v.opaque(history.ReasonCreateTableAs)
			v.within()
		}
	case v.is(0, "DROP") && v.is(object, "TABLE", "VIEW"):
		p.Schema.DropsTemp = v.dropped(object)
	case create && v.is(object, "SCHEMA"), v.is(0, "DROP") && v.is(object, "SCHEMA"), alter && v.is(object, "SCHEMA"):
		p.Session.Changes = true // of the search path, those schemas count that exist
	case alter && v.is(object, "ROLE", "USER", "SYSTEM"):
		p.Session.Changes = true
	case v.is(0, "DROP") && v.is(object, "OWNED"), v.is(0, "REASSIGN"):
		p.Session.Changes = true
	}
}

// changed returns the tables and functions that the statement names, where it can change no others; nil where it may.
func (v verb) changed(object int) []rewrite.TableName {
	switch {
	case v.is(0, "CREATE") && v.is(object, "FUNCTION", "AGGREGATE"):
		return []rewrite.TableName{v.nameBehind(object)}
	case v.is(0, "TRUNCATE"):
		return v.names(1, "TABLE", "ONLY")
	case v.is(0, "CREATE", "ALTER") && v.is(object, "TABLE", "VIEW"):
		if v.mentions("INHERITS", "INHERIT", "PARTITION", "REFERENCES", "ALL", "RENAME", "SCHEMA") {
			return nil
		}
		return []rewrite.TableName{v.nameBehind(object)}
	case v.is(0, "CREATE") && v.is(object, "INDEX"):
		if on := v.find(object, "ON"); on >= 0 {
			return []rewrite.TableName{v.nameBehind(on)}
		}
	case v.is(0, "CREATE") && v.is(object, "TRIGGER", "POLICY"):
		if on := v.find(object, "ON"); on >= 0 {
			return []rewrite.TableName{v.nameBehind(on)}
		}
	}
	return nil
}

// change returns what is to be read again after the statement; nil: perhaps anything. What it changes beside what it
// makes it names, but for what is related to that.
func (v verb) change(object int, temporary bool) *rewrite.SchemaChange {
	named := v.namesAll()
	c := &rewrite.SchemaChange{Named: named, Cascades: v.mentions("CASCADE")}
	create, alter, drop := v.is(0, "CREATE"), v.is(0, "ALTER"), v.is(0, "DROP")
	c.Relates = !drop && v.mentions("REFERENCES", "INHERITS", "INHERIT", "PARTITION", "VIEW", "TRIGGER", "RULE", "POLICY",
		"FUNCTION", "AGGREGATE", "SECURITY")
	switch {
	case named == nil, v.is(1, "EVENT"): // a trigger of which any definition may be more than it says
		return nil
	case v.is(0, "TRUNCATE"):
		c.Empties = true
	case v.is(0, "GRANT", "REVOKE"):
		return v.granted(c)
	case v.is(0, "REFRESH"), v.is(0, "CLUSTER", "REPACK") && len(v.toks) > 2:
		c.Rewrites, c.Indexes = true, true
	case v.is(object, "SCHEMA"):
		if create && len(v.toks) > 1 && v.find(object, "CREATE", "GRANT") < 0 {
			return &rewrite.SchemaChange{}
		}
		c.Made = schemas(named)
		c.Cascades = c.Cascades || alter // types have another name with their schema, and columns elsewhere are of them
	case create && v.is(object, "TYPE", "DOMAIN"):
		return &rewrite.SchemaChange{}
	case create && v.is(object, "FUNCTION", "AGGREGATE"):
		c = &rewrite.SchemaChange{Made: []rewrite.TableName{v.nameBehind(object)}}
	case create && v.is(object, "TABLE", "VIEW"):
		if !temporary {
			c.Made = []rewrite.TableName{v.nameBehind(object)}
		}
	case create && v.is(object, "INDEX", "TRIGGER", "POLICY", "RULE"):
	case alter && v.is(object, "TABLE", "VIEW", "INDEX", "TRIGGER", "POLICY", "RULE", "FUNCTION", "AGGREGATE") &&
		!v.is(object+1, "ALL"):
		v.altered(c, object)
	case drop && v.is(object, "TABLE", "VIEW", "INDEX", "TRIGGER", "POLICY", "RULE"),
		drop && v.is(object, "FUNCTION", "AGGREGATE") && !c.Cascades:
		c.Indexes = v.is(object, "INDEX")
	default:
		return nil
	}
	if slices.ContainsFunc(c.Made, func(t rewrite.TableName) bool { return t == rewrite.TableName{} }) {
		return nil
	}
	if c.Tells = v.tells(); c.Tells != nil {
		c.Made = []rewrite.TableName{c.Tells.Table}
	}
	return c
}

// altered adds what an ALTER does: other names, and rows in other files.
func (v verb) altered(c *rewrite.SchemaChange, object int) {
	c.Indexes = v.is(object, "INDEX") || v.mentions("RENAME")
	c.Rewrites = v.mentions("TYPE", "DEFAULT", "GENERATED", "IDENTITY", "SERIAL", "SMALLSERIAL", "BIGSERIAL", "SERIAL2",
		"SERIAL4", "SERIAL8",
		"LOGGED", "UNLOGGED", "TABLESPACE", "METHOD")
	name := v.nameBehind(object)
	for i := range v.toks {
		to, ok := v.ident(i + 1)
		switch {
		case !ok:
		case v.is(i, "TO"):
			c.Made = append(c.Made, rewrite.TableName{Schema: name.Schema, Table: to})
		case v.is(i, "SCHEMA"):
			c.Made = append(c.Made, rewrite.TableName{Schema: to, Table: name.Table})
		}
	}
}

// granted returns what GRANT and REVOKE change: who may do what with tables and schemas. Roles may be granted, too.
func (v verb) granted(c *rewrite.SchemaChange) *rewrite.SchemaChange {
	if v.find(0, "ON") < 0 {
		return nil
	}
	if v.mentions("SCHEMA") {
		c.Made = schemas(c.Named)
	}
	c.Cascades = false // to what others were granted on the same
	return c
}

// namesAll returns whatever in the statement can be a name, qualified or not; nil where it cannot be read.
func (v verb) namesAll() []rewrite.TableName {
	named := []rewrite.TableName{}
	seen := make(map[rewrite.TableName]bool)
	for i := range v.toks {
		n, ok := v.ident(i)
		switch {
		case !ok && v.toks[i].Kind == pgtoken.Name: // U&"..."
			return nil
		case !ok:
			continue
		}
		t := rewrite.TableName{Table: n}
		if v.mark(i-1, ".") {
			t.Schema, _ = v.ident(i - 2)
		}
		if !seen[t] {
			seen[t] = true
			named = append(named, t)
		}
	}
	return named
}

// schemas returns all that is in schemas of the names.
func schemas(names []rewrite.TableName) (all []rewrite.TableName) {
	for _, n := range names {
		if n.Schema == "" {
			all = append(all, rewrite.TableName{Schema: n.Table})
		}
	}
	return all
}

// names returns the names behind token i, separated by commas.
func (v verb) names(i int, skip ...string) []rewrite.TableName {
	var out []rewrite.TableName
	for {
		for v.is(i, skip...) {
			i++
		}
		n, next := v.tableName(i)
		if n.Table == "" {
			return nil
		}
		out = append(out, n)
		if v.sign(next, "*") {
			next++
		}
		if !v.mark(next, ",") {
			return out
		}
		i = next + 1
	}
}

// dropped returns the tables and views of a DROP that may be temporary ones, as [SchemaEffect].DropsTemp has them.
func (v verb) dropped(object int) []rewrite.TableName {
	var names []rewrite.TableName
	for _, n := range v.names(object, "TABLE", "VIEW", "IF", "EXISTS") {
		if n.Schema == "" {
			names = append(names, n)
		}
	}
	return names
}

// nameBehind returns the name behind a keyword and what may stand between.
func (v verb) nameBehind(i int) rewrite.TableName {
	for i++; v.is(i, "IF", "NOT", "EXISTS", "ONLY"); {
		i++
	}
	n, _ := v.tableName(i)
	return n
}

// The schema does not have the tables that an open transaction has created. Of those to which isotap has added its
// columns the session keeps what the client gave them, so that they stay hidden.

// Create takes what a statement that was sent creates or changes.
func (s *Session) Create(p *Plan) {
	if s.Created != "" && p.Schema.Changes {
		s.Created = WithoutTables(s.Created, p.Schema.Changed)
	}
	if len(p.Schema.Created) > 0 && len(s.Created) <= maxNames {
		s.Created = s.Created.Append(string(rewrite.ListOf(p.Schema.Created...)))
	}
}

// KnowTempTables returns a list of temporary tables and their columns, like [Session].Created, once a statement has
// run. One that it may have changed goes, and one that it created comes, if it says which columns that has.
func KnowTempTables(tables rewrite.List, p *Plan) rewrite.List {
	if tables != "" && (p.Schema.Changes || len(p.Schema.CreatesTemp) > 0) {
		tables = WithoutTables(tables, slices.Concat(p.Schema.Changed, p.Schema.CreatesTemp))
	}
	if len(p.Schema.CreatedTemp) > 0 && len(tables) <= maxNames {
		tables = tables.Append(string(rewrite.ListOf(p.Schema.CreatedTemp...)))
	}
	return tables
}

// KnowsTables reports whether a list like [Session].Created has all tables of these names that a text may name.
func KnowsTables(tables, names rewrite.List, text string) bool {
	text = strings.ToLower(text)
	for name := range names.All() {
		known := ascii(name) && !strings.Contains(name, `"`) && !strings.Contains(text, strings.ToLower(name))
		for entry := range tables.All() {
			known = known || rewrite.List(entry).Texts()[0] == name
		}
		if !known {
			return false
		}
	}
	return true
}

// WithoutTables returns a list like [Session].Created without the tables of some names; of none: without all.
func WithoutTables(tables rewrite.List, changed []rewrite.TableName) rewrite.List {
	var kept rewrite.List
	for entry := range tables.All() {
		name := rewrite.List(entry).Texts()[0]
		if len(changed) > 0 && !slices.ContainsFunc(changed,
			func(t rewrite.TableName) bool { return t.Table == name }) {
			kept = kept.Append(entry)
		}
	}
	return kept
}

// created returns a table that the transaction has created; nil where it is not known.
func (s *Session) created(n *ast.RangeVar) *Table {
	for entry := range s.Created.All() {
		names := rewrite.List(entry).Texts()
		if names[0] != n.RelName || n.CatalogName != "" || n.SchemaName != "" {
			continue
		}
		t := &Table{
			Table:  rewrite.Table{Name: names[0], Exposed: true},
			Stored: append(slices.Clone(names[1:]), rewrite.RowIDColumn, rewrite.WListColumn),
		}
		for _, column := range names[1:] {
			t.Columns = append(t.Columns, Column{Column: rewrite.Column{Name: column}})
		}
		return t
	}
	return nil
}

// generated reports whether the server computes a column, which COPY then does not read.
func generated(n *ast.ColumnDef) bool {
	return slices.ContainsFunc(nodes(n.Constraints), func(c ast.Node) bool {
		k, ok := c.(*ast.Constraint)
		return ok && k.Contype == ast.CONSTR_GENERATED
	})
}
