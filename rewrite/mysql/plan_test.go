package mysql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cockroachdb/datadriven"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// tables is a schema for tests; its keys are "schema.table".
type tables map[string]*Table

func (ts tables) Table(schema, name string) *Table { return ts[schema+"."+name] }

// table describes a table for tests: its columns as "name type [flags], ...", then its indexes as
// "primary(a)", "name(a,b)".
func table(name, columns string, indexes ...string) *Table {
	t := &Table{Table: rewrite.Table{Name: name, Instrumented: true, WListBytes: 255}}
	for c := range strings.SplitSeq(columns, ",") {
		f := strings.Fields(c)
		t.Columns = append(t.Columns, Column{
			Column:    rewrite.Column{Name: f[0], Type: f[1], Full: f[1], Generated: strings.Contains(c, " generated")},
			Invisible: strings.Contains(c, " invisible"),
		})
	}
	for _, x := range indexes {
		name, parts, _ := strings.Cut(strings.TrimSuffix(x, ")"), "(")
		t.Indexes = append(t.Indexes,
			rewrite.Index{Name: name, Primary: name == "primary", Columns: strings.Split(parts, ",")})
	}
	return t
}

func with(t *Table, change func(*Table)) *Table {
	change(t)
	return t
}

func testSchema() tables {
	return tables{
		"shop.item": table("shop.item", "id int, name varchar, price decimal, stock int", "primary(id)",
			"by_price(price)"),
		"shop.orders": table("shop.orders", "id int, item_id int, qty int, note text", "primary(id)",
			"by_item(item_id)"),
		"shop.kv":    table("shop.kv", "k varchar, v varchar", "primary(k)"),
		"shop.cross": table("shop.cross", "id int, a int, b int, c int", "primary(id)", "a(a)", "b(b)"),
		"shop.types": table("shop.types",
			"id int, f float, d double, e enum, ts timestamp, body longtext, Name varchar, g int generated"),
		"shop.pair":  table("shop.pair", "a int, b int, c int, d int", "primary(a, b)", "by_c(c, a)"),
		"shop.shy":   table("shop.shy", "id int, secret int invisible, a int"),
		"shop.o`dd":  table("shop.o`dd", "id int, `c int"),
		"shop.größe": table("shop.größe", "id int, maß int"),
		"shop.plain": with(table("shop.plain", "id int, a int"), func(t *Table) { t.Instrumented = false }),
		"shop.v":     with(table("shop.v", "id int"), func(t *Table) { t.View = true }),
		"shop.stocked": with(table("shop.stocked", "number int, name varchar, qty int"), func(t *Table) {
			t.View = true
			t.Query = "select `i`.`id` AS `number`,`i`.`name` AS `name`,`shop`.`orders`.`qty` AS `qty`," +
				"`shop`.`orders`.`id` AS `o` from (`shop`.`item` `i` join `shop`.`orders` on(`shop`.`orders`.`item_id` = `i`.`id`)) " +
				"where `i`.`stock` > 0"
		}),
		"shop.keyed": with(table("shop.keyed", "number int, o int"), func(t *Table) {
			t.View = true
			t.Query = "select `shop`.`orders`.`item_id` AS `number`,`shop`.`orders`.`id` AS `o` from (`shop`.`item` join " +
				"`shop`.`orders`) where `shop`.`orders`.`item_id` = `shop`.`item`.`id`"
		}),
		"shop.tmp": with(table("shop.tmp", "id int"), func(t *Table) { t.Temporary = true }),
		"shop.trig": with(table("shop.trig", "id int, a int"), func(t *Table) {
			t.InsertTrigger, t.UpdateTrigger, t.DeleteTrigger = true, true, true
		}),
		"shop.parent": with(table("shop.parent", "id int, a int"),
			func(t *Table) { t.CascadesUpdate, t.CascadesDelete = []string{"id"}, true }),
		"shop.long":  with(table("shop.long", "id int, a int"), func(t *Table) { t.WListBytes = 0 }),
		"shop.short": with(table("shop.short", "id int, a int"), func(t *Table) { t.WListBytes = 20 }),
		"bank.item":  table("bank.item@2", "id int, name varchar"),
		"bank.acct":  table("bank.acct", "id int, bal int", "primary(id)"),
	}
}

func testSession() Session {
	return Session{Schema: "shop", Charset: "utf8mb4", MaxPacket: 16 << 20}
}

// session reads a test's arguments: "mode=ANSI_QUOTES", "charset=latin1", "schema=bank", ...
func session(t *testing.T, args []datadriven.CmdArg) Session {
	s := testSession()
	for _, a := range args {
		value := strings.Join(a.Vals, ",")
		switch a.Key {
		case "mode":
			s.SetSQLMode(value)
		case "charset":
			s.Charset = value
		case "schema":
			s.Schema = value
		case "temp-tables":
			schema, table, _ := strings.Cut(value, ".")
			s.TempTables = AddTempTables("", []rewrite.TableName{{Schema: schema, Table: table}})
		case "packet":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			s.MaxPacket = n
		case "dialect":
			s.Dialect, s.Version = map[string]Dialect{"mysql": MySQL, "mariadb": MariaDB, "tidb": TiDB}[value], 90704
		case "concat":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			s.GroupConcatMax = n
		case "repeats":
			s.Repeats = true
		case "writes":
			s.WriteReads = map[string]WriteReads{"snapshot": ReadSnapshot, "locked": ReadLocked}[value]
		case "full", "hex", "predicates":
		default:
			t.Fatalf("unknown argument %q", a.Key)
		}
	}
	return s
}

// TestWhatApplicationsSendIsObserved compares how statements of applications are observed with testdata/applications;
// run with -rewrite to write it anew.
func TestWhatApplicationsSendIsObserved(t *testing.T) {
	r := New(testSchema(), Options{})
	datadriven.Walk(t, "testdata/applications", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for _, of := range []struct {
				name string
				Dialect
				version uint32
			}{{"MariaDB", MariaDB, 101119}, {"MySQL", MySQL, 90704}, {"TiDB", TiDB, 80400}} {
				s := testSession()
				s.SetSQLMode("STRICT_TRANS_TABLES")
				s.Dialect, s.Version, s.Repeats = of.Dialect, of.version, true
				s.WriteReads = map[Dialect]WriteReads{MariaDB: ReadLocked, MySQL: ReadSnapshot}[of.Dialect]
				p := r.Plan(d.Input, s)
				fmt.Fprintf(&b, "%s: %v", of.name, p.Observation)
				if !p.Reason.IsZero() {
					fmt.Fprintf(&b, " (%s)", p.Reason)
				}
				b.WriteString("\n")
			}
			return b.String()
		})
	})
}

// TestPlanGolden compares plans with testdata/plan; run with -rewrite to write them anew.
func TestPlanGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			r, in := New(testSchema(), Options{}), d.Input
			if d.HasArg("hex") { // bytes that are not UTF-8 are written \xHH
				unquoted, err := strconv.Unquote(`"` + strings.ReplaceAll(in, `"`, `\"`) + `"`)
				if err != nil {
					t.Fatal(err)
				}
				in = unquoted
			}
			if d.HasArg("predicates") {
				r = New(testSchema(), Options{Predicates: true})
			}
			p := r.Plan(in, session(t, d.CmdArgs))
			checkPieces(t, in, p)
			return render(p, d.HasArg("full"))
		})
	})
}

// render prints a plan, what is zero left out.
func render(p *Plan, full bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", p.Kind)
	for _, s := range []string{p.Locking.String(), p.Observation.String()} {
		if s != "" {
			fmt.Fprintf(&b, " | %s", s)
		}
	}
	if !p.Reason.IsZero() {
		fmt.Fprintf(&b, ": %s", p.Reason)
	}
	b.WriteString(flags(p))
	if p.Upstream.Pieces != nil {
		sql := string(p.Append(nil, marker))
		if !full {
			sql = abbreviate(sql)
		}
		fmt.Fprintf(&b, "\nsql: %s", sql)
	}
	if p.Target != "" {
		fmt.Fprintf(&b, "\ntarget: %s", p.Target)
	}
	for _, s := range p.Result.Sources {
		fmt.Fprintf(&b, "\nsource: %s", s.Table)
		if s.Array {
			fmt.Fprintf(&b, " array")
		}
		if s.Limit > 0 {
			fmt.Fprintf(&b, " of %d", s.Limit)
		}
	}
	for _, s := range p.Writes.Beside {
		fmt.Fprintf(&b, "\nbeside: %s", s.Table)
	}
	for _, h := range p.Upstream.Hidden {
		fmt.Fprintf(&b, "\nhidden: %d = %s", h.Index, marker(nil, h.Hole, h.Ordinal))
	}
	if p.Schema.Created != nil {
		fmt.Fprintf(&b, "\ncreated: %q", p.Schema.Created)
	}
	from := 0
	for _, end := range p.Upstream.Parts {
		fmt.Fprintf(&b, "\npart: %d-%d", from, end)
		from = end + 1
	}
	if c := p.Companion; c != nil {
		fmt.Fprintf(&b, "\ncompanion: %s", c.Observation)
		if !c.Reason.IsZero() {
			fmt.Fprintf(&b, ": %s", c.Reason)
		}
		fmt.Fprintf(&b, "\n  sql: %s", c.Append(nil, marker))
		for _, s := range c.Result.Sources {
			fmt.Fprintf(&b, "\n  source: %s", s.Table)
		}
	}
	if !p.Writes.Images.Empty() {
		fmt.Fprintf(&b, "\npicture: %+v", p.Writes.Images)
	}
	for _, c := range p.Predicates {
		fmt.Fprintf(&b, "\npredicate: %s %s AS %s: %q %v", c.Table, c.Of, c.As, c.Where, c.Params)
		if c.Limit != nil {
			fmt.Fprintf(&b, " limit %+v", *c.Limit)
			if len(c.Order) > 0 {
				fmt.Fprintf(&b, " order %+v", c.Order)
			}
		}
		for _, f := range []struct {
			name string
			set  bool
		}{{" wide", c.Wide}, {" timed", c.Asks().Has(history.AskedTime)}, {" instead", c.Instead}} {
			if f.set {
				b.WriteString(f.name)
			}
		}
	}
	fmt.Fprintf(&b, "\nshape: %s", p.Shape)
	if len(p.Args) > 0 {
		fmt.Fprintf(&b, "\nargs: %s", strings.Join(p.Args, " | "))
	}
	return b.String() + "\n"
}

func flags(p *Plan) string {
	var b strings.Builder
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"trimmed", p.Result.Reply == rewrite.Trimmed}, {"returning", p.Result.Reply == rewrite.Returning},
		{"capture", p.Writes.Captured}, {"retried", p.Writes.Retried}, {"ends-txn", p.Txn.Ends}, {"may-hide-locks", p.Upstream.MayHideLocks},
		{"reads-diagnostics", p.Session.ReadsDiagnostics}, {"changes-session", p.Session.Changes},
		{"changes-schema", p.Schema.Changes}, {"substitutes", p.Upstream.Substitutes},
		{"commits", p.Txn.Commits}, {"may-restart", p.Txn.MayRestart}, {"may-take-snapshot", p.Txn.MayTakeSnapshot},
	} {
		if f.set {
			b.WriteString(" " + f.name)
		}
	}
	if p.Writes.Inserts != 0 {
		fmt.Fprintf(&b, " inserts=%d", p.Writes.Inserts)
	}
	if p.Result.Variables > 0 {
		fmt.Fprintf(&b, " variables=%d", p.Result.Variables)
	}
	if p.Params > 0 {
		fmt.Fprintf(&b, " params=%d", p.Params)
	}
	if p.Txn.NextLevel != history.LevelUnknown {
		fmt.Fprintf(&b, " next=%q", p.Txn.NextLevel)
	}
	if p.Txn.Savepoint != "" {
		fmt.Fprintf(&b, " savepoint=%q", p.Txn.Savepoint)
	}
	if p.Schema.CreatesTemp != nil {
		fmt.Fprintf(&b, " creates-temp=%q", p.Schema.CreatesTemp)
	}
	if p.Schema.DropsTemp != nil {
		fmt.Fprintf(&b, " drops-temp=%q", p.Schema.DropsTemp)
	}
	return strings.Replace(b.String(), " ", " | ", 1)
}

// marker shows a hole.
func marker(b []byte, h Hole, ordinal int) []byte {
	switch h {
	case TagHole:
		return append(b, "{TAG}"...)
	case RowIDHole:
		return fmt.Appendf(b, "{ROWID %d}", ordinal)
	case RowCountHole:
		return append(b, "{ROW_COUNT}"...)
	case ShownHole:
		return append(b, "{SHOWN}"...)
	case CopyHole:
		return fmt.Appendf(b, "{COPY %d}", ordinal)
	}
	return append(b, "{FOUND_ROWS}"...)
}

var (
	savePart    = regexp.MustCompile(`(\S+\.)?isotap_wlist = CONCAT\((?:IFNULL\()?LEFT\(\(@isotap_o := (.*?)\), 0\)(?:, _binary''\))?, (\S+\.)?isotap_wlist\),`)
	tagPart     = regexp.MustCompile(`, (\S+\.)?isotap_wlist = CONCAT\(IF\(LENGTH\(\(@isotap_s := .*?(\{COLLECT.*?\}), IF\(LENGTH\(@isotap_s\).*?\{TAG\}\)\)\)`)
	singlePart  = regexp.MustCompile(`, (\S+\.)?isotap_wlist = IF\(RIGHT\(\(@isotap := CONCAT_WS\(_binary'', @isotap, .*?\{TAG\}\)\)`)
	numberPart  = regexp.MustCompile(`CONVERT\(LOWER\(CONV\(SUBSTRING_INDEX\(\(@isotap_c := .*?10, 36\)\) USING latin1\)`)
	imagePart   = regexp.MustCompile(`(IF\(IFNULL\(LENGTH[^>]*? > \d+, _binary'', )?IFNULL\(LEFT\(IF\(@isotap_k < \d+, .*?CONCAT_WS\(_binary',', (.*?)\), _binary';'\)\) < .*?@isotap_i := _binary''\), 0\)\)\), _binary''\), 0\), _binary''\)`)
	collectPart = regexp.MustCompile(`IFNULL\(LEFT\(IF\(@isotap_l < \d+, IF\(LENGTH\(@isotap := CONCAT_WS\(_binary'', @isotap, (\S*isotap_rowid|_binary''), .*?, \{TAG\}(.*?), _binary';'\)\) < .*?@isotap_n \+ 1 AS BINARY\)\)\), 0\), _binary''\)`)
)

// abbreviate shortens what collects entries, and the two long assignments around it.
func abbreviate(sql string) string {
	sql = imagePart.ReplaceAllString(sql, "{IMAGE $2}")
	sql = numberPart.ReplaceAllString(collectPart.ReplaceAllString(sql, "{COLLECT $1$2}"), "{NUMBER}")
	sql = singlePart.ReplaceAllString(savePart.ReplaceAllString(sql, "{SAVE $2}"), ", {TAG ONE ROW}")
	return tagPart.ReplaceAllString(sql, ", {TAG ROW $2}")
}

// checkPieces fails the test unless the pieces that are the client's, put together, give the client's
// text back, less the calls that a substituting plan replaces.
func checkPieces(t testing.TB, in string, p *Plan) {
	t.Helper()
	if p.Upstream.Pieces == nil {
		return
	}
	var client strings.Builder
	for _, piece := range p.Upstream.Pieces {
		if piece.Hole == RowCountHole || piece.Hole == FoundRowsHole {
			// The call that it replaces is the client's text up to the closing parenthesis.
			rest := in[client.Len():]
			client.WriteString(rest[:strings.IndexByte(rest, ')')+1])
		} else if within(in, piece.Text) {
			client.WriteString(piece.Text)
		}
	}
	if client.String() != in {
		t.Errorf("the client's pieces give %q, not %q", client.String(), in)
	}
}

// within reports whether part shares memory with s.
func within(s, part string) bool {
	if len(part) == 0 || len(s) == 0 {
		return false
	}
	from, at := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.StringData(part)))
	return at >= from && at < from+uintptr(len(s))
}
