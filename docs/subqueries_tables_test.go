package docs_test

import (
	"strings"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/rewrite/mysql"
	"github.com/isotap/isotap/rewrite/postgres"
)

// exampleTables are the tables of subqueries.md's examples: columns with their types on MySQL and on PostgreSQL, then
// indexes.
var exampleTables = []struct{ name, columns, indexes string }{
	{"item", "id int int4, name varchar text, price int int4, stock int int4", "primary(id) by_price(price)"},
	{"orders", "id int int4, item_id int int4, qty int int4, note varchar text", "primary(id) by_item(item_id)"},
	{"kv", "k varchar text, v int int4", "primary(k)"},
	{"loose", "a int int4, b varchar text", ""},
}

// mysqlSchema and postgresSchema are their definitions.
type (
	mysqlSchema    map[string]*mysql.Table
	postgresSchema map[string]*postgres.Table
)

var mysqlTables, postgresTables = schemas()

func schemas() (mysqlSchema, postgresSchema) {
	m, p := make(mysqlSchema), make(postgresSchema)
	for _, d := range exampleTables {
		my := &mysql.Table{Table: rewrite.Table{Name: "shop." + d.name, Instrumented: true, WListBytes: 255}}
		pg := &postgres.Table{Table: rewrite.Table{Name: "public." + d.name}, Spelled: `"public"."` + d.name + `"`}
		for c := range strings.SplitSeq(d.columns, ", ") {
			f := strings.Fields(c)
			key := strings.Contains(d.indexes, "primary("+f[0]+")")
			my.Columns = append(my.Columns,
				mysql.Column{Column: rewrite.Column{Name: f[0], Type: f[1], Full: f[1], NotNull: key}})
			pg.Columns = append(pg.Columns, postgres.Column{Column: rewrite.Column{Name: f[0], Type: f[2], NotNull: key}})
		}
		for x := range strings.FieldsSeq(d.indexes) {
			name, column, _ := strings.Cut(strings.TrimSuffix(x, ")"), "(")
			index := rewrite.Index{Name: name, Columns: []string{column}, Primary: name == "primary", Unique: name == "primary"}
			my.Indexes = append(my.Indexes, index)
			pg.Indexes = append(pg.Indexes, postgres.Index{Index: index})
			if index.Primary {
				pg.Key = index.Columns
			}
		}
		m[my.Name], p[pg.Name] = my, pg
	}
	m["shop.items"] = &mysql.Table{Table: rewrite.Table{Name: "shop.items", View: true},
		Columns: m["shop.item"].Columns[:2], Query: "select `shop`.`item`.`id` AS `id`,`shop`.`item`.`name` AS `name` " +
			"from `shop`.`item` where `shop`.`item`.`stock` > 0"}
	base := postgres.Base{Table: rewrite.TableName{Schema: "public", Table: "item"}, Key: []string{"id"}}
	p["public.items"] = &postgres.Table{Table: rewrite.Table{Name: "public.items", View: true},
		Spelled: `"public"."items"`, Columns: p["public.item"].Columns[:2], Bases: []postgres.Base{base}}
	m["shop.due"] = &mysql.Table{Table: rewrite.Table{Name: "shop.due", View: true},
		Columns: m["shop.orders"].Columns[:2], Query: "select `shop`.`orders`.`id` AS `id`,`shop`.`orders`.`item_id` AS `item_id` " +
			"from `shop`.`orders` where 6 / (4 - `shop`.`orders`.`id`) < 100"}
	base = postgres.Base{Table: rewrite.TableName{Schema: "public", Table: "orders"}, Key: []string{"id"}}
	p["public.due"] = &postgres.Table{Table: rewrite.Table{Name: "public.due", View: true}, NotAgain: true,
		Spelled: `"public"."due"`, Columns: p["public.orders"].Columns[:2], Bases: []postgres.Base{base}}
	return m, p
}

// Table implements [mysql.Schema].
func (s mysqlSchema) Table(schema, name string) *mysql.Table { return s[schema+"."+name] }

// Table implements [postgres.Schema].
func (s postgresSchema) Table(schema, name string) *postgres.Table { return s[schema+"."+name] }

// Reads implements [postgres.Schema].
func (s postgresSchema) Reads(string, *postgres.Table) bool { return true }

// Tags implements [postgres.Schema].
func (s postgresSchema) Tags(string, *postgres.Table) bool { return true }

// Exposes implements [postgres.Schema].
func (s postgresSchema) Exposes() bool { return false }

// ReadsCursors implements [postgres.Schema].
func (s postgresSchema) ReadsCursors() bool { return false }

// Functions implements [postgres.Schema].
func (s postgresSchema) Functions(string) postgres.FunctionKind { return postgres.NoFunction }
