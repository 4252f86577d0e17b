package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"

	"github.com/isotap/isotap/history"
)

// usage is what a statement holds beside its own table accesses.
type usage struct {
	subquery  bool
	function  bool // a call of what may be a stored function
	aggregate bool // an aggregate function of the statement itself in its select list
	// outward is an aggregate function elsewhere: in a subquery from which it may reach out to the
	// statement itself, or where servers differ about what it makes of the statement.
	outward bool
	window  bool

	depth  int      // of subqueries around the node being visited
	inner  []string // names of the tables of these subqueries, in lower case
	scopes []int    // for each query in them, where its names begin
	// known are the tables behind these names, nil where the schema does not tell their columns; table
	// finds them.
	known  []*Table
	table  func(*ast.TableName) *Table
	list   bool // in the select list
	filter bool // in WHERE or ON, where no aggregate can belong to the statement itself
}

// inspectSelect looks through a SELECT, but not into derived tables: these are looked at as queries of their own.
func (pl *planner) inspectSelect(n *ast.SelectStmt) *usage {
	u := &usage{list: true, table: pl.baseTable}
	n.Fields.Accept(u)
	u.list = false
	for i := range n.WindowSpecs {
		n.WindowSpecs[i].Accept(u)
	}
	if n.Having != nil {
		n.Having.Accept(u)
	}
	if n.OrderBy != nil {
		n.OrderBy.Accept(u)
	}
	u.filter = true
	if n.GroupBy != nil {
		n.GroupBy.Accept(u)
	}
	if n.Where != nil {
		n.Where.Accept(u)
	}
	if n.From != nil {
		n.From.Accept(u)
	}
	return u
}

// inspectWrite looks through an INSERT, UPDATE or DELETE.
func inspectWrite(n ast.Node) *usage {
	u := &usage{filter: true}
	n.Accept(u)
	return u
}

// Enter implements ast.Visitor.
func (u *usage) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.TableSource:
		_, base := n.Source.(*ast.TableName)
		_, join := n.Source.(*ast.Join)
		return n, u.depth == 0 && !base && !join
	case *ast.SelectStmt:
		u.enterQuery(n)
	case *ast.SubqueryExpr:
		u.subquery = true
		u.depth++
	case *ast.AggregateFuncExpr:
		switch {
		case u.depth == 0 && u.list:
			u.aggregate = true
		case u.depth == 0, !u.filter && u.reachesOut(n):
			u.outward = true
		}
	case *ast.WindowFuncExpr:
		u.window = u.window || u.depth == 0
	case *ast.FuncCallExpr:
		// The parser's own names, such as that of DATE '2020-01-01', begin with a quote.
		u.function = u.function || n.Schema.L != "" || !nativeFunctions[n.FnName.L] && n.FnName.L[0] != '\''
	}
	return n, false
}

// Leave implements ast.Visitor.
func (u *usage) Leave(n ast.Node) (ast.Node, bool) {
	switch n.(type) {
	case *ast.SubqueryExpr:
		u.depth--
	case *ast.SelectStmt:
		u.inner, u.known = u.inner[:u.scopes[len(u.scopes)-1]], u.known[:u.scopes[len(u.scopes)-1]]
		u.scopes = u.scopes[:len(u.scopes)-1]
	}
	return n, true
}

// enterQuery takes note of the names of a query's tables: its select list is visited before its FROM.
func (u *usage) enterQuery(n *ast.SelectStmt) {
	u.scopes = append(u.scopes, len(u.inner))
	if n.From == nil {
		return
	}
	for _, s := range flatten(n.From.TableRefs) {
		base, ok := s.node.Source.(*ast.TableName)
		switch {
		case s.node.AsName.L != "":
			u.inner = append(u.inner, s.node.AsName.L)
		case ok:
			u.inner = append(u.inner, base.Name.L)
		default:
			continue
		}
		u.known = append(u.known, nil)
		if ok && n.With == nil && u.table != nil {
			u.known[len(u.known)-1] = u.table(base)
		}
		if query, derived := s.node.Source.(*ast.SelectStmt); derived && u.table != nil && len(s.node.ColumnNames) == 0 {
			u.known[len(u.known)-1] = namesShown(query)
		}
	}
}

// namesShown is a table of the names that a query's columns have; of a star, or a name of the server's choice, it has
// none.
func namesShown(query *ast.SelectStmt) *Table {
	shown := &Table{}
	for _, f := range query.Fields.Fields {
		if name := fieldName(f); f.WildCard == nil && name != "" {
			shown.Columns = append(shown.Columns, Column{Column: rewrite.Column{Name: name}})
		}
	}
	return shown
}

// holds reports whether an unqualified column is surely one of the innermost query's own tables.
func (u *usage) holds(name string) bool {
	return len(u.scopes) > 0 && slices.ContainsFunc(u.known[u.scopes[len(u.scopes)-1]:], func(t *Table) bool {
		return t != nil && t.ColumnInAnyCase(name) != nil
	})
}

// baseTable returns the table that a name means, where that is certain.
func (pl *planner) baseTable(name *ast.TableName) *Table {
	if c, uncertain := pl.nesting.with.find(name.Name.O); name.Schema.L == "" && (c != nil || uncertain) {
		return nil
	}
	t, _ := pl.table(name)
	return t
}

// reachesOut reports whether an aggregate in a subquery may take its argument from outside: it then
// belongs to the outer query, as SUM(t.a) does in SELECT (SELECT SUM(t.a)) FROM t.
func (u *usage) reachesOut(n *ast.AggregateFuncExpr) bool {
	args := argumentTables{within: u.table}
	for _, a := range n.Args {
		a.Accept(&args)
	}
	return slices.ContainsFunc(args.unqualified, func(c string) bool { return !u.holds(c) }) ||
		slices.ContainsFunc(args.tables, func(t string) bool { return !slices.Contains(u.inner, t) })
}

// argumentTables collects the qualifiers of the columns in an expression, and the columns without one.
type argumentTables struct {
	tables      []string
	unqualified []string
	outside     bool // of queries in FROM
	// within finds the tables of queries, whose own columns are left out then; nil: they are not.
	within func(*ast.TableName) *Table
	begins []begin
}

// A begin is how many names had been collected where a query begins.
type begin struct{ tables, unqualified int }

// Enter implements ast.Visitor.
func (a *argumentTables) Enter(n ast.Node) (ast.Node, bool) {
	if s, ok := n.(*ast.TableSource); ok && a.outside {
		_, derived := s.Source.(*ast.SelectStmt)
		return n, derived
	}
	if _, ok := n.(*ast.SelectStmt); ok && a.within != nil {
		a.begins = append(a.begins, begin{len(a.tables), len(a.unqualified)})
	}
	if c, ok := n.(*ast.ColumnNameExpr); ok {
		if c.Name.Table.L == "" {
			a.unqualified = append(a.unqualified, c.Name.Name.O)
		} else {
			a.tables = append(a.tables, c.Name.Table.L)
		}
	}
	return n, false
}

// Leave implements ast.Visitor.
func (a *argumentTables) Leave(n ast.Node) (ast.Node, bool) {
	if query, ok := n.(*ast.SelectStmt); ok && a.within != nil {
		a.leave(query)
	}
	return n, true
}

// leave takes out the names that are of a query's own tables.
func (a *argumentTables) leave(query *ast.SelectStmt) {
	at := a.begins[len(a.begins)-1]
	a.begins = a.begins[:len(a.begins)-1]
	own := usage{table: a.within}
	own.enterQuery(query)
	a.tables = append(a.tables[:at.tables], slices.DeleteFunc(slices.Clone(a.tables[at.tables:]), func(t string) bool {
		return slices.Contains(own.inner, t)
	})...)
	a.unqualified = append(a.unqualified[:at.unqualified], slices.DeleteFunc(slices.Clone(a.unqualified[at.unqualified:]), own.holds)...)
}

// downgradeBy downgrades the plan for what a statement does beside its own table accesses.
func (pl *planner) downgradeBy(u *usage) {
	if u.subquery {
		pl.downgrade(history.ReasonSubquery)
	}
	if u.function {
		pl.downgrade(history.ReasonFunction)
	}
}

// nativeFunctions are MariaDB's own functions, in lower case (information_schema.SQL_FUNCTIONS of
// 10.11, the ones that have their own grammar, and the names that TiDB's parser gives to some of
// these). Any other call may be a stored function, which can read and write what it likes.
var nativeFunctions = set(`
	abs acos add_months adddate addtime aes_decrypt aes_encrypt any_value ascii asin atan atan2 avg benchmark bin
	binlog_gtid_pos bit_and bit_count bit_length bit_or bit_xor cast ceil ceiling char char_func char_length
	character_length charset chr coalesce coercibility collation column_add column_check column_create
	column_delete column_exists column_get column_json column_list compress concat concat_ws connection_id
	contains conv convert convert_tz cos cot count crc32 crc32c cume_dist curdate current_date current_role
	current_time current_timestamp current_user curtime database date date_add date_format date_sub datediff day
	dayname dayofmonth dayofweek dayofyear decode decode_histogram default default_func degrees dense_rank
	des_decrypt des_encrypt elt encode encrypt exp export_set extract extractvalue field find_in_set first_value
	floor format found_rows from_base64 from_days from_unixtime get_format get_lock getvar greatest group_concat
	hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert insert_func instr interval is_free_lock
	is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_used_lock isnull json_array json_array_append
	json_array_insert json_arrayagg json_compact json_contains json_contains_path json_depth json_detailed
	json_equals json_exists json_extract json_insert json_keys json_length json_loose json_merge json_merge_patch
	json_merge_preserve json_normalize json_object json_objectagg json_overlaps json_pretty json_query json_quote
	json_remove json_replace json_search json_set json_type json_unquote json_valid json_value lag last_day
	last_insert_id last_value lastval lcase lead least left length lengthb ln load_file localtime localtimestamp
	locate log log10 log2 lower lpad ltrim make_set makedate maketime master_gtid_wait master_pos_wait match max
	md5 median microsecond mid min minute mod month monthname name_const natural_sort_key nextval now nth_value
	ntile nullif nvl nvl2 oct octet_length old_password ord password percent_rank percentile_cont percentile_disc
	period_add period_diff pi point position pow power quarter quote radians rand random_bytes rank regexp_instr
	regexp_replace regexp_substr release_all_locks release_lock repeat replace reverse right round row row_count
	row_number rpad rtrim schema schemas sec_to_time second session_user setval setvar sformat sha sha1 sha2 sign
	sin sleep soundex space sqrt st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_boundary
	st_buffer st_centroid st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance
	st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring st_geomcollfromtext st_geometryfromtext
	st_geometryn st_geometrytype st_geomfromgeojson st_geomfromtext st_geomfromwkb st_interiorringn
	st_intersection st_intersects st_isclosed st_isempty st_isring st_issimple st_length st_linefromtext
	st_numgeometries st_numinteriorrings st_numpoints st_overlaps st_pointfromtext st_pointn st_pointonsurface
	st_polyfromtext st_relate st_srid st_startpoint st_symdifference st_touches st_union st_within st_x st_y std
	stddev stddev_pop stddev_samp str_to_date strcmp subdate substr substring substring_index subtime sum sys_guid
	sysdate system_user tan time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64
	to_char to_days to_seconds trim truncate ucase uncompress uncompressed_length unhex unix_timestamp updatexml
	upper user utc_date utc_time utc_timestamp uuid uuid_short value values var_pop var_samp variance version week
	weekday weekofyear weight_string wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid year
	yearweek
`)

// beforeParenthesis are words that may stand before a parenthesis without being a function's name.
var beforeParenthesis = set(`
	all and any as between binary by case decimal distinct div double else escape exists float having in int integer
	is like limit not nchar numeric on or over regexp rlike set signed some sounds then unsigned using varchar when
	where xor
`)

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
