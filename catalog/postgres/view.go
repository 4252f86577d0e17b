package postgres

import (
	"cmp"
	"maps"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A stored query is what is known of how a view's rows are made.
type stored struct {
	// uses are the tables of its FROM clause of which a row of the result is made of one row at most.
	uses []use
	// others says why there may be more that its rows are made of; empty: there is not.
	others history.Reason
	// notAgain is [sqlpostgres.Table.NotAgain].
	notAgain bool
}

// A use is a table, or a query in the place of one, in a FROM clause.
type use struct {
	table uint32
	query *stored
	only  bool
	// columns are, by number of the table's columns, those of the result that have the same value in every row of the
	// result that a row of the table is in.
	columns map[int][]int
}

// The kinds of entries of a range table and of joins (nodes/parsenodes.h, nodes/nodes.h).
const (
	entryRelation, entrySubquery, entryJoin, entryGroup = 0, 1, 2, 9
	joinInner, joinLeft, joinFull, joinRight            = 0, 1, 2, 3
)

// equalities are the operators = of integers and uuids, by oid: values that they take for equal are the same key.
var equalities = map[int]bool{15: true, 94: true, 96: true, 410: true, 416: true, 532: true, 533: true, 1862: true,
	1868: true, 2972: true}

// readers are the functions of the server's own that read tables which their arguments name, by oid: table_to_xml and
// its kind, ts_rewrite and ts_stat of queries.
func readers(oid int) bool {
	return oid >= 2923 && oid <= 2938 || oid == 3685 || oid == 3689 || oid == 3690
}

// storedOf returns what is known of a view by its query, as [readTerm] read it.
func storedOf(t *term) *stored {
	if t == nil || len(t.items) != 1 || t.items[0].kind != "QUERY" {
		return &stored{others: history.ReasonView, notAgain: true}
	}
	return readQuery(t.items[0])
}

// A column is one of a range table's entry, by their numbers.
type column struct{ entry, number int }

// A queryReader goes through one stored query.
type queryReader struct {
	*term
	entries []*term
	others  history.Reason
	// notAgain says that the query may fail for what is in a row, or have other rows another time.
	notAgain bool
	// sameAs leads from a column to one that is equal to it in every row, from is where its value can be had from
	// as well, if its row is there.
	sameAs, from map[column]column
	found        map[int]bool // entries whose rows are each in rows of the result, as far as is known
}

func readQuery(t *term) *stored {
	r := &queryReader{term: t, entries: t.of("rtable").items, sameAs: make(map[column]column),
		from: make(map[column]column), found: make(map[int]bool)}
	switch {
	case t.number("commandType") != 1, !t.of("setOperations").empty(), !t.of("groupingSets").empty(),
		!t.of("rowMarks").empty():
		return &stored{others: history.ReasonView, notAgain: true}
	case !t.of("cteList").empty():
		r.note(history.ReasonWith)
	case t.is("hasAggs"), t.is("hasWindowFuncs"), !t.of("groupClause").empty(), !t.of("havingQual").empty(),
		!t.of("distinctClause").empty():
		r.note(history.ReasonView)
	}
	t.each(r.look)
	for _, item := range t.of("jointree").of("fromlist").items {
		r.join(item, always)
	}
	r.equal(t.of("jointree").of("quals"))
	out := &stored{}
	shown := r.shown()
	for _, entry := range slices.Sorted(maps.Keys(r.found)) {
		if u, ok := r.use(entry, shown); ok {
			out.uses = append(out.uses, u)
		}
	}
	out.others, out.notAgain = r.others, r.notAgain
	return out
}

// note keeps the first reason.
func (r *queryReader) note(reason history.Reason) {
	if r.others.IsZero() {
		r.others = reason
	}
}

// look takes note of what may read tables beside the FROM clause.
func (r *queryReader) look(t *term) {
	switch t.kind {
	case "SUBLINK":
		r.note(history.ReasonSubquery)
	case "COERCETODOMAIN":
		r.note(history.ReasonFunction)
	}
	r.notAgain = r.notAgain || t.kind != "" && !harmless[t.kind] ||
		t.fields["opno"] != nil && !compares(t.number("opno")) ||
		t.kind == "QUERY" && (!t.of("limitCount").empty() || !t.of("limitOffset").empty())
	for _, field := range []string{"funcid", "opno", "opfuncid", "aggfnoid", "winfnoid"} {
		if oid := t.number(field); oid >= firstUserOID || readers(oid) {
			r.note(history.ReasonFunction)
		}
	}
}

// A side of a join may have rows always, or not for each of the other side's. The server may leave it out then, where
// none of its columns is asked for, and with it the errors of its conditions.
type side byte

const (
	always side = iota
	optional
	mayFail
)

// harmless are the kinds of nodes that cannot fail for what is in a row, if the operators in them compare. From 16 on
// some have longer names.
var harmless = map[string]bool{"QUERY": true, "RTE": true, "RANGETBLENTRY": true, "RTEPERMISSIONINFO": true,
	"ALIAS": true, "FROMEXPR": true, "JOINEXPR": true, "RANGETBLREF": true, "TARGETENTRY": true, "SORTGROUPCLAUSE": true,
	"VAR": true, "CONST": true, "RELABELTYPE": true, "OPEXPR": true, "DISTINCTEXPR": true, "NULLIFEXPR": true,
	"SCALARARRAYOPEXPR": true, "BOOLEXPR": true, "NULLTEST": true, "BOOLEANTEST": true, "COALESCE": true,
	"COALESCEEXPR": true, "CASE": true, "CASEEXPR": true, "WHEN": true, "CASEWHEN": true, "CASETESTEXPR": true}

// comparing are the operators =, <>, <, >, <= and >= of the server's numbers, texts, times, uuids, bool, oid and
// bytea, by oid: the first and the last of some.
var comparing = [][2]int{{15, 15}, {36, 37}, {58, 59}, {76, 76}, {80, 80}, {82, 82}, {85, 85}, {91, 91}, {94, 98},
	{410, 420}, {430, 430}, {518, 525}, {531, 543}, {607, 612}, {620, 625}, {664, 667}, {670, 675}, {1054, 1054},
	{1057, 1061}, {1093, 1098}, {1108, 1113}, {1120, 1125}, {1130, 1135}, {1320, 1325}, {1694, 1695}, {1752, 1757},
	{1862, 1873}, {1955, 1960}, {2060, 2065}, {2345, 2350}, {2358, 2363}, {2371, 2376}, {2384, 2389}, {2534, 2545},
	{2972, 2977}}

func compares(operator int) bool {
	return slices.ContainsFunc(comparing, func(r [2]int) bool { return r[0] <= operator && operator <= r[1] })
}

// join looks at an item of the FROM clause.
func (r *queryReader) join(t *term, s side) {
	switch t.kind {
	case "RANGETBLREF":
		entry := t.number("rtindex")
		if s == mayFail || s == optional && !r.table(entry) {
			r.note(history.ReasonView)
		} else {
			r.found[entry] = true
		}
	case "JOINEXPR":
		kind, quals := t.number("jointype"), t.of("quals")
		left, right, plain := r.equality(quals)
		outer := optional
		if !plain {
			outer = mayFail
		}
		sides := [2]side{s, s}
		if kind == joinRight || kind == joinFull {
			sides[0] = max(s, outer)
		}
		if kind == joinLeft || kind == joinFull {
			sides[1] = max(s, outer)
		}
		r.join(t.of("larg"), sides[0])
		r.join(t.of("rarg"), sides[1])
		switch {
		case kind == joinInner:
			r.equal(quals)
		case kind == joinLeft && plain:
			r.keyFrom(t.of("rarg"), left, right)
		case kind == joinRight && plain:
			r.keyFrom(t.of("larg"), left, right)
		}
	default:
		r.note(history.ReasonView)
	}
}

// table reports whether an entry is a table.
func (r *queryReader) table(entry int) bool {
	if entry < 1 || entry > len(r.entries) {
		return false
	}
	kind := r.entries[entry-1].of("relkind").word
	return r.entries[entry-1].number("rtekind") == entryRelation && (kind == "r" || kind == "p")
}

// keyFrom takes note of where the key of a table on the optional side of a join can be had from: there is a row of it
// wherever the key has one.
func (r *queryReader) keyFrom(side *term, a, b column) {
	if side.kind != "RANGETBLREF" {
		return
	}
	switch side.number("rtindex") {
	case a.entry:
		r.from[a] = b
	case b.entry:
		r.from[b] = a
	}
}

// equal takes note of the columns that a condition makes equal.
func (r *queryReader) equal(quals *term) {
	if quals.kind == "BOOLEXPR" && quals.of("boolop").word == "and" {
		for _, arg := range quals.of("args").items {
			r.equal(arg)
		}
		return
	}
	if a, b, ok := r.equality(quals); ok {
		if a, b = r.first(a), r.first(b); a != b {
			r.sameAs[a] = b
		}
	}
}

// first returns the column that stands for all that are equal to one.
func (r *queryReader) first(c column) column {
	for next, ok := r.sameAs[c]; ok; next, ok = r.sameAs[c] {
		c = next
	}
	return c
}

// equality reports whether a condition is that two columns are equal, and nothing else.
func (r *queryReader) equality(t *term) (a, b column, ok bool) {
	args := t.of("args").items
	if t.kind != "OPEXPR" || !equalities[t.number("opno")] || len(args) != 2 {
		return column{}, column{}, false
	}
	a, okA := r.column(args[0], 0)
	b, okB := r.column(args[1], 0)
	return a, b, okA && okB
}

// column returns the column of a table that an expression is. Those of joins and groups stand for others.
func (r *queryReader) column(t *term, depth int) (column, bool) {
	entry, number := t.number("varno"), t.number("varattno")
	if t.kind != "VAR" || t.number("varlevelsup") > 0 || entry < 1 || entry > len(r.entries) || number < 1 ||
		depth > maxNesting {
		return column{}, false
	}
	e := r.entries[entry-1]
	var stand []*term
	switch e.number("rtekind") {
	case entryRelation, entrySubquery:
		return column{entry, number}, true
	case entryJoin:
		stand = e.of("joinaliasvars").items
	case entryGroup:
		stand = e.of("groupexprs").items
	}
	if number > len(stand) {
		return column{}, false
	}
	return r.column(stand[number-1], depth+1)
}

// shown returns the result's columns by what they hold.
func (r *queryReader) shown() map[column][]int {
	shown := make(map[column][]int)
	for _, t := range r.of("targetList").items {
		if c, ok := r.column(t.of("expr"), 0); ok && !t.is("resjunk") {
			c = r.first(c)
			shown[c] = append(shown[c], t.number("resno"))
		}
	}
	return shown
}

// use returns what is known of an entry; ok is false where it reads no table.
func (r *queryReader) use(entry int, shown map[column][]int) (u use, ok bool) {
	if entry < 1 || entry > len(r.entries) {
		r.note(history.ReasonView)
		return use{}, false
	}
	u.columns = make(map[int][]int)
	e := r.entries[entry-1]
	switch e.number("rtekind") {
	case entryRelation:
		u.table, u.only = uint32(e.number("relid")), !e.is("inh")
	case entrySubquery:
		u.query = readQuery(e.of("subquery"))
		if !u.query.others.IsZero() {
			r.note(u.query.others)
		}
		r.notAgain = r.notAgain || u.query.notAgain
	default: // a function's rows, or values
		return use{}, false
	}
	for number := 1; number <= len(e.of("eref").of("colnames").items); number++ {
		c := column{entry, number}
		u.columns[number] = shown[r.first(c)]
		if from, ok := r.from[c]; ok && len(u.columns[number]) == 0 {
			u.columns[number] = shown[r.first(from)]
		}
	}
	return u, true
}

// firstUserOID is the least oid of what is not in every database (FirstNormalObjectId).
const firstUserOID = 16384

// bases says of a view which rows its own are made of.
func (b *builder) bases(t *sqlpostgres.Table, r *relation) {
	if r.query == nil {
		return
	}
	t.OtherSources, t.NotAgain = r.query.others, r.query.notAgain
	b.basesOf(t, r.query, r.nameOf, 0)
}

// nameOf returns the name of the column of a number; empty where there is none.
func (r *relation) nameOf(number int) string {
	if at := slices.Index(r.numbers, number); at >= 0 {
		return r.table.Columns[at].Name
	}
	return ""
}

// maxViews is how many views may stand in each other.
const maxViews = 20

// basesOf adds the tables that a query reads to a view's. The columns of the query have names among the view's, or
// none.
func (b *builder) basesOf(t *sqlpostgres.Table, q *stored, name func(number int) string, depth int) {
	for _, u := range q.uses {
		inner := func(number int) string {
			for _, n := range u.columns[number] {
				if name := name(n); name != "" {
					return name
				}
			}
			return ""
		}
		query, r := u.query, b.relations.get(u.table)
		if r != nil && r.query != nil {
			query = r.query
			t.OtherSources, t.NotAgain = cmp.Or(t.OtherSources, query.others), t.NotAgain || query.notAgain
		}
		switch {
		case query != nil && depth < maxViews:
			b.basesOf(t, query, inner, depth+1)
		case query == nil && u.table < firstUserOID: // a catalog, whose rows are nobody's
		case r == nil || !b.base(t, r, &u, inner):
			t.OtherSources = cmp.Or(t.OtherSources, history.ReasonView)
		}
	}
}

// base adds one table, if it has a key and the view all of it.
func (b *builder) base(t *sqlpostgres.Table, r *relation, u *use, name func(number int) string) bool {
	family := b.family(u.table)
	key := b.key(u.table, family)
	if r.kind != "r" && r.kind != "p" || len(key) == 0 {
		return false
	}
	base := sqlpostgres.Base{Table: rewrite.TableName{Schema: r.name.schema, Table: r.name.table}, Only: u.only}
	for _, column := range key {
		at := slices.IndexFunc(r.table.Columns, func(c sqlpostgres.Column) bool { return c.Name == column })
		if at < 0 || name(r.numbers[at]) == "" {
			return false
		}
		base.Key = append(base.Key, name(r.numbers[at]))
	}
	t.Bases = append(t.Bases, base)
	t.Rows = max(t.Rows, b.rows(family))
	return true
}
