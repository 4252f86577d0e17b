package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cockroachdb/datadriven"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// tables is a schema for tests; its keys are "schema.table". Everybody may read everything but what is called
// hidden.
type tables map[string]*Table

func (ts tables) Table(schema, name string) *Table { return ts[schema+"."+name] }

func (ts tables) Reads(_ string, t *Table) bool {
	return !t.RowSecurity && !strings.HasSuffix(t.Name, "hidden")
}

func (ts tables) Tags(_ string, t *Table) bool { return !strings.HasSuffix(t.Name, "readonly") }

func (ts tables) Exposes() bool {
	for _, t := range ts {
		if t.Exposed {
			return true
		}
	}
	return false
}

func (ts tables) ReadsCursors() bool { return false }

// Functions are few in tests.
func (ts tables) Functions(name string) FunctionKind {
	return map[string]FunctionKind{"price_of": PlainFunction, "total": AggregateFunction, "largest": MixedFunction,
		"concat": AggregateFunction}[name]
}

// table describes a table for tests: its columns as "name type, ...", then its indexes as "primary(a)",
// "name(a,b)".
func table(name, columns string, indexes ...string) *Table {
	t := &Table{Table: rewrite.Table{Name: name}}
	if schema, name, ok := strings.Cut(name, "."); ok {
		t.Spelled = quoted(schema) + "." + quoted(name)
	}
	for c := range strings.SplitSeq(columns, ",") {
		f := strings.Fields(c)
		t.Columns = append(t.Columns, Column{Column: rewrite.Column{Name: f[0], Type: f[1]}})
	}
	for _, x := range indexes {
		name, parts, _ := strings.Cut(strings.TrimSuffix(x, ")"), "(")
		columns := strings.Split(parts, ",")
		index := rewrite.Index{Name: name, Primary: name == "primary", Columns: columns}
		t.Indexes = append(t.Indexes, Index{Index: index})
		if name == "primary" {
			t.Key = columns
		}
	}
	return t
}

func with(t *Table, change func(*Table)) *Table {
	change(t)
	return t
}

// view makes a table a view of others.
func view(t *Table, beside history.Reason, bases ...Base) *Table {
	t.View, t.OtherSources, t.Bases = true, beside, bases
	return t
}

func testSchema() tables {
	return tables{
		"public.item": table("public.item", "id int4, name text, price numeric, stock int4", "primary(id)",
			"by_price(price)"),
		"public.orders": table("public.orders", "id int8, item_id int4, qty int4, note text", "primary(id)",
			"by_item(item_id)"),
		"public.line": table("public.line", "order_id int8, no int2, sku varchar, at timestamptz",
			"primary(order_id,no)"),
		"public.kv":    table("public.kv", "k text, v text", "primary(k)"),
		"public.event": table("public.event", "at timestamptz, body jsonb", "primary(at)"),
		"public.huge": with(table("public.huge", "id int4, a int4", "primary(id)"),
			func(t *Table) { t.Rows = 1_000_000 }),
		"public.loose":   table("public.loose", "a int4, b text"),
		"public.Odd":     table("public.Odd", `Id uuid, a"b int4`, "primary(Id)"),
		"public.größe":   table("public.größe", "id int4, maß int4", "primary(id)"),
		"public.strange": with(table("public.strange", "id whatever, a int4", "primary(id)"), func(*Table) {}),
		"public.part": with(table("public.part", "id int4, a int4", "primary(id)"), func(t *Table) {
			t.Partitioned, t.Leaves = true, map[uint32]string{7: "public.part_1", 8: "public.part_2"}
		}),
		"public.parent": with(table("public.parent", "id int4, a int4", "primary(id)"), func(t *Table) {
			t.Leaves = map[uint32]string{7: "public.parent", 8: "public.child"}
		}),
		"public.part_1": with(table("public.part_1", "id int4, a int4", "primary(id)"),
			func(t *Table) { t.Root = "public.part" }),
		"public.mixed": with(table("public.mixed", "id int4"), func(t *Table) {
			t.Partitioned, t.Leaves = true, map[uint32]string{7: "public.far"}
		}),
		"public.v": with(table("public.v", "id int4"), func(t *Table) {
			t.View, t.OtherSources = true, history.ReasonView
		}),
		"public.items": view(table("public.items", "id int4, name text"), history.Reason{},
			Base{Table: rewrite.TableName{Schema: "public", Table: "item"}, Key: []string{"id"}}),
		"public.sold": view(table("public.sold", "id int8, item int4, name text, qty int4"), history.Reason{},
			Base{Table: rewrite.TableName{Schema: "public", Table: "orders"}, Key: []string{"id"}},
			Base{Table: rewrite.TableName{Schema: "public", Table: "item"}, Key: []string{"item"}}),
		"public.lines": view(table("public.lines", "o int8, n int2, s int8"), history.ReasonView,
			Base{Table: rewrite.TableName{Schema: "public", Table: "line"}, Key: []string{"o", "n"}}),
		"public.only_parent": view(table("public.only_parent", "id int4"), history.Reason{},
			Base{Table: rewrite.TableName{Schema: "public", Table: "parent"}, Only: true, Key: []string{"id"}}),
		"public.huges": with(view(table("public.huges", "id int4"), history.Reason{},
			Base{Table: rewrite.TableName{Schema: "public", Table: "huge"},
				Key: []string{"id"}}), func(t *Table) { t.Rows = 1_000_000 }),
		"public.veiled": view(table("public.veiled", "id int4"), history.Reason{},
			Base{Table: rewrite.TableName{Schema: "public", Table: "hidden"}, Key: []string{"id"}}),
		"public.one":   view(table("public.one", "n int4"), history.Reason{}),
		"public.mv":    with(table("public.mv", "id int4"), func(t *Table) { t.View, t.Materialized = true, true }),
		"public.far":   with(table("public.far", "id int4"), func(t *Table) { t.Foreign = true }),
		"public.ruled": with(table("public.ruled", "id int4", "primary(id)"), func(t *Table) { t.Rules = true }),
		"public.secured": with(table("public.secured", "id int4", "primary(id)"),
			func(t *Table) { t.RowSecurity = true }),
		"public.hidden": table("public.hidden", "id int4", "primary(id)"),
		"public.trig": with(table("public.trig", "id int4, a int4", "primary(id)"), func(t *Table) {
			t.InsertTrigger, t.UpdateTrigger, t.DeleteTrigger = true, true, true
		}),
		"public.referred": with(table("public.referred", "id int4, a int4", "primary(id)"), func(t *Table) {
			t.CascadesUpdate, t.CascadesDelete = []string{"id"}, true
		}),
		"bank.item": table("bank.item@2", "id int4, name text", "primary(id)"),
		"bank.acct": table("bank.acct", "id int4, bal int4", "primary(id)"),
	}
}

// taggedSchema is the schema with isotap's columns in its tables, save in those that are called bare or loose. They
// are not the last ones of late's.
func taggedSchema() tables {
	schema := testSchema()
	schema["public.late"] = table("public.late", "a int4, c int4")
	schema["public.bare"] = table("public.bare", "id int4, b text", "primary(id)")
	schema["public.computed"] = with(table("public.computed", "id int4, twice int4"),
		func(t *Table) { t.Columns[1].Generated = true })
	schema["public.readonly"] = table("public.readonly", "id int4, b text", "primary(id)")
	schema["public.exposing"] = view(table("public.exposing", "id int4"), history.ReasonView)
	for name, t := range schema {
		if name == "public.bare" || name == "public.loose" || t.View && name != "public.exposing" {
			continue
		}
		t.Exposed, t.Instrumented, t.WListBytes, t.Stored = true, !t.View, DefaultWListBytes, clientColumns(t)
		if at := len(t.Stored); name == "public.late" {
			t.Stored = slices.Insert(t.Stored, at-1, rewrite.RowIDColumn, rewrite.WListColumn)
		} else {
			t.Stored = append(t.Stored, rewrite.RowIDColumn, rewrite.WListColumn)
		}
	}
	return schema
}

func testSession() Session {
	return Session{Version: 15, Role: "app", Path: rewrite.ListOf("pg_catalog", "public", "bank")}
}

// session reads a test's arguments: "version=18", "encoding=LATIN1", "path=(bank,public)", "serializable", ...
func session(t *testing.T, args []datadriven.CmdArg) Session {
	s := testSession()
	for _, a := range args {
		switch value := strings.Join(a.Vals, ","); a.Key {
		case "version":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			s.Version = n
		case "encoding":
			s.Encoding = value
		case "path":
			s.Path = rewrite.ListOf(a.Vals...)
		case "unsettled":
			s.Unsettled, s.AllUnsettled = rewrite.ListOf(value), value == "*"
		case "serializable":
			s.Serializable = true
		case "nested":
			s.Nested = true
		case "backslashes":
			s.Backslashes = true
		case "extended":
			s.Extended = true
		case "hex", "strict", "columns", "predicates":
		default:
			t.Fatalf("unknown argument %q", a.Key)
		}
	}
	return s
}

// TestPlanGolden compares plans with testdata/plan; run with -rewrite to write them anew.
func TestPlanGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			in := d.Input
			if d.HasArg("hex") { // bytes that are not UTF-8 are written \xHH
				unquoted, err := strconv.Unquote(`"` + strings.ReplaceAll(in, `"`, `\"`) + `"`)
				if err != nil {
					t.Fatal(err)
				}
				in = unquoted
			}
			schema, o := testSchema(), Options{StrictPlans: d.HasArg("strict"), Predicates: d.HasArg("predicates")}
			if d.HasArg("columns") {
				schema, o.Columns, o.WListBytes = taggedSchema(), true, DefaultWListBytes
			}
			r := New(schema, o)
			s := r.Plan(in, session(t, d.CmdArgs))
			checkPieces(t, in, s)
			return render(s)
		})
	})
}

// render prints a script, what is zero left out.
func render(s *Script) string {
	var b strings.Builder
	if s.Pieces != nil {
		fmt.Fprintf(&b, "sql: %s\n", s.Append(nil))
	}
	if s.Plain != nil {
		fmt.Fprintf(&b, "plain: %s\n", s.Plain.Append(nil))
	}
	for _, p := range s.Statements {
		renderPlan(&b, p)
	}
	if len(s.Statements) == 0 {
		b.WriteString("no statement\n")
	}
	return b.String()
}

func renderPlan(b *strings.Builder, p *Plan) {
	fmt.Fprintf(b, "%v", p.Kind)
	for _, s := range []string{p.Locking.String(), p.Observation.String()} {
		if s != "" {
			fmt.Fprintf(b, " | %s", s)
		}
	}
	if !p.Reason.IsZero() {
		fmt.Fprintf(b, ": %s", p.Reason)
	}
	b.WriteString(flags(p))
	if p.Target != "" {
		fmt.Fprintf(b, "\n  target: %s", p.Target)
	}
	for _, s := range p.Result.Sources {
		fmt.Fprintf(b, "\n  source: %s", s.Table)
		if s.Array {
			b.WriteString(" array")
		}
		if s.Physical != nil {
			fmt.Fprintf(b, " %s", itemNames(s.Physical.Items))
			if s.Physical.Leaves != nil {
				fmt.Fprintf(b, " leaves: %d", len(s.Physical.Leaves))
			}
		}
	}
	for _, c := range p.Predicates {
		fmt.Fprintf(b, "\n  predicate: %s %s AS %s: %q %v", c.Table, c.Of, c.As, c.Where, c.Params)
		for _, f := range []struct {
			name string
			set  bool
		}{{" wide", c.Wide}, {" timed", c.Asks().Has(history.AskedTime)}, {" instead", c.Instead}} {
			if f.set {
				b.WriteString(f.name)
			}
		}
		if c.Limit != nil {
			fmt.Fprintf(b, " limit %+v", *c.Limit)
			if len(c.Order) > 0 {
				fmt.Fprintf(b, " order %+v", c.Order)
			}
		}
	}
	fmt.Fprintf(b, "\n  shape: %s\n", p.Shape)
	if len(p.Args) > 0 {
		fmt.Fprintf(b, "  args: %s\n", strings.Join(p.Args, " | "))
	}
}

var names = map[Item]string{ItemTable: "table", ItemTID: "place", ItemXID: "xid",
	ItemNewTID: "new place", ItemNewXID: "new xid", ItemKeyInt: "int", ItemKeyText: "text",
	ItemKeyUUID: "uuid", ItemKeyHex: "hex", ItemOldKeyChanged: "key changed",
	ItemInserted: "inserted", ItemAction: "action", ItemLSN: "lsn", ItemTag: "tag", ItemNewTags: "new tags",
	ItemImage: "image"}

func itemNames(items []Item) string {
	var out []string
	for _, i := range items {
		out = append(out, names[i])
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func flags(p *Plan) string {
	var b strings.Builder
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"trimmed", p.Result.Reply == rewrite.Trimmed}, {"returning", p.Result.Reply == rewrite.Returning},
		{"ends-txn", p.Txn.Ends},
		{"chains", p.Txn.Chains}, {"imports-snapshot", p.Txn.ImportsSnapshot}, {"may-restart", p.Txn.MayRestart}, {"changes-session", p.Session.Changes},
		{"changes-schema", p.Schema.Changes}, {"calls", p.Session.Calls}, {"at-once", p.Result.AtOnce},
	} {
		if f.set {
			b.WriteString(" | " + f.name)
		}
	}
	if p.Params > 0 {
		fmt.Fprintf(&b, " | params=%d", p.Params)
	}
	if p.Txn.Level != history.LevelUnknown {
		fmt.Fprintf(&b, " | level=%q", p.Txn.Level)
	}
	for _, t := range p.Schema.CreatesTemp {
		fmt.Fprintf(&b, " | creates-temp=%q", t.Table)
	}
	for _, s := range []struct{ name, value string }{{"savepoint", p.Txn.Savepoint}, {"global", p.Txn.Global}} {
		if s.value != "" {
			fmt.Fprintf(&b, " | %s=%q", s.name, s.value)
		}
	}
	if c := p.Session.Cursor; c != nil {
		fmt.Fprintf(&b, " | cursor=%q", c.Name)
		for _, f := range []struct {
			name string
			set  bool
		}{{"binary", c.Binary}, {"hold", c.Hold}} {
			if f.set {
				b.WriteString(" " + f.name)
			}
		}
	}
	if len(p.Schema.Changed) > 0 {
		fmt.Fprintf(&b, " | changed=%v", p.Schema.Changed)
	}
	return b.String()
}

// checkPieces fails the test unless the pieces that are the client's, put together, give the client's text
// back, less what the splices cut.
func checkPieces(t testing.TB, in string, s *Script) {
	t.Helper()
	if s.Pieces == nil {
		if len(s.Splices) > 0 {
			t.Error("splices without pieces")
		}
		return
	}
	var client, want strings.Builder
	for _, piece := range s.Pieces {
		if within(in, piece) {
			client.WriteString(piece)
		}
	}
	at, grown := 0, 0
	for _, p := range s.Splices {
		want.WriteString(in[at:p.At])
		at = p.At + p.Cut
		grown += p.Added - p.Cut
	}
	want.WriteString(in[at:])
	if client.String() != want.String() {
		t.Errorf("the client's pieces give %q, not %q", client.String(), want.String())
	}
	if got := len(s.Append(nil)); got != len(in)+grown {
		t.Errorf("%d bytes go upstream, the splices say %d", got, len(in)+grown)
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
