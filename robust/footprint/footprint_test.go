package footprint_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

const definitions = `
CREATE TABLE shop (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE, note VARCHAR(20) UNIQUE, open INT);
CREATE TABLE item (shop_id INT NOT NULL, no INT NOT NULL, label VARCHAR(20), price INT, stock INT, PRIMARY KEY (shop_id, no),
	CONSTRAINT item_shop FOREIGN KEY (shop_id) REFERENCES shop (id));
CREATE TABLE sale (id INT PRIMARY KEY, shop_id INT, no INT, n INT, FOREIGN KEY (shop_id, no) REFERENCES item (shop_id, no) ON DELETE CASCADE);
CREATE TABLE bare (a INT, b INT);
CREATE VIEW cheap AS SELECT no FROM item WHERE price < 3;
`

// text writes a footprint: each access, | between alternatives, ? behind what is optional, * behind what is repeated.
func text(fp *footprint.Footprint) string {
	var steps []string
	for _, s := range fp.Steps {
		var either []string
		for _, a := range s.Either {
			either = append(either, access(&a))
		}
		step := strings.Join(either, " | ")
		if s.Optional {
			step += " ?"
		}
		if s.Repeated {
			step += " *"
		}
		steps = append(steps, step)
	}
	return strings.Join(steps, "; ")
}

func access(a *footprint.Access) string {
	s := a.Type.String() + " " + a.Table.Name
	for _, set := range []struct {
		name string
		of   robust.Set
	}{{"P", a.PRead}, {"R", a.Read}, {"W", a.Write}} {
		if set.of.Defined() && (a.Type != robust.Ins && a.Type != robust.KeyDel && a.Type != robust.PredDel ||
			set.name != "W") {
			s += " " + set.name + set.of.String()
		}
	}
	if a.Lock != robust.NoLock {
		s += fmt.Sprintf(" lock %d", a.Lock)
	}
	for _, column := range slices.Sorted(maps.Keys(a.Values)) {
		if v := a.Values[column]; v != "" {
			s += " " + column + ":" + v
		}
	}
	return s
}

func TestWhatStatementsReadAndWrite(t *testing.T) {
	for _, c := range []struct {
		sql  string // with ? for parameters
		want string
		only []dbms.Family
	}{
		{sql: "SELECT name FROM shop WHERE id = ?", want: "key sel shop R{name} id:$1"},
		{sql: "SELECT s.name FROM shop AS s WHERE ? = s.id FOR UPDATE", want: "key sel shop R{name} lock 2 id:$1"},
		{sql: "SELECT open FROM shop WHERE id = 7 FOR SHARE", want: "key sel shop R{open} lock 1 id:=7"},
		{sql: "SELECT open FROM shop WHERE name = 'a'", want: "key sel shop R{open} name:=a"},
		{sql: "SELECT open FROM shop WHERE name = 7",
			want: "pred sel shop P{name} R{open}"}, // as numbers, more than one may be equal
		{sql: "SELECT open FROM shop WHERE note = ?", want: "pred sel shop P{note} R{open} note:$1"},
		{sql: "SELECT * FROM shop WHERE id = ? AND open = 1",
			want: "key sel shop R{id, name, note, open} id:$1 open:=1"},
		{sql: "SELECT name FROM shop WHERE id = ? OR open = 1", want: "pred sel shop P{id, open} R{name}"},
		{sql: "SELECT name FROM shop WHERE id IN (?)", want: "pred sel shop P{id} R{name}"}, // as a shape has a list
		{sql: "SELECT name FROM shop WHERE id = ? + 1", want: "key sel shop R{name}"},
		{sql: "SELECT name FROM shop WHERE id = open", want: "pred sel shop P{id, open} R{name}"},
		{sql: "SELECT COUNT(*) FROM shop WHERE id = ?", want: "pred sel shop P{id} R{} id:$1"},
		{sql: "SELECT name FROM shop WHERE id = ? FOR UPDATE SKIP LOCKED", want: "pred sel shop P{id} R{name} id:$1"},
		{sql: "SELECT price FROM item WHERE shop_id = ? ORDER BY no LIMIT 1",
			want: "pred sel item P{shop_id} R{no, price} shop_id:$1"},
		{sql: "SELECT name FROM shop WHERE (id) = (?) AND (id, open) = (?, ?)",
			want: "key sel shop R{id, name, open} id:$1 open:$3"},
		{sql: "SELECT i.price FROM item i JOIN shop s ON s.id = i.shop_id WHERE s.id = ? AND i.no = 2",
			want: "pred sel item P{no, shop_id} R{price} no:=2 shop_id:$1; pred sel shop P{id} R{} id:$1"},
		{sql: "SELECT name FROM shop LEFT JOIN item ON shop_id = id WHERE id = ?",
			want: "pred sel shop P{id} R{name} id:$1; pred sel item P{shop_id} R{}"},
		{sql: "SELECT name FROM shop WHERE id = ? AND EXISTS (SELECT 1 FROM item WHERE shop_id = id AND stock > ?)",
			want: "pred sel item P{shop_id, stock} R{}; key sel shop R{id, name} id:$1"},
		{sql: "SELECT name FROM (SELECT name, open FROM shop) AS t WHERE open = 1",
			want: "pred sel shop P{} R{name, open}"},
		{sql: "WITH t AS (SELECT no FROM item WHERE price = ?) SELECT name FROM shop, t WHERE id = no",
			want: "pred sel item P{price} R{no} price:$1; pred sel shop P{id} R{name}"},
		{sql: "SELECT name FROM shop UNION SELECT label FROM item",
			want: "pred sel shop P{} R{name}; pred sel item P{} R{label}"},
		{sql: "SELECT no FROM cheap", want: "pred sel item P{price} R{no}"},
		{sql: "SELECT 1", want: ""},
		{sql: "UPDATE item SET stock = stock - ? WHERE shop_id = ? AND no = ?",
			want: "key upd item R{stock} W{stock} no:$3 shop_id:$2"},
		{sql: "UPDATE item SET stock = stock - ? WHERE shop_id = ? AND no = ? AND stock >= ?",
			want: "key upd item R{stock} W{stock} no:$3 shop_id:$2 | key sel item R{stock} no:$3 shop_id:$2"},
		{sql: "UPDATE item SET stock = 0 WHERE shop_id = ?", want: "pred upd item P{shop_id} R{} W{stock} shop_id:$1"},
		{sql: "UPDATE shop SET id = ? WHERE id = ?", want: "pred upd shop P{id} R{} W{id} id:$2"},
		{sql: "UPDATE shop SET open = (SELECT COUNT(*) FROM item WHERE shop_id = ?) WHERE id = ?",
			want: "pred sel item P{shop_id} R{} shop_id:$1; key upd shop R{} W{open} id:$2"},
		{sql: "DELETE FROM shop WHERE id = ?", want: "key del shop id:$1"},
		{sql: "DELETE FROM item WHERE shop_id = ?",
			want: "pred del item P{shop_id} shop_id:$1; pred del sale P{no, shop_id}"},
		{sql: "INSERT INTO sale VALUES (?, ?, 3, ? + 1)", want: "ins sale id:$1 no:=3 shop_id:$2"},
		{sql: "INSERT INTO sale (id, n) VALUES (?, ?), (?, ?)", want: "ins sale *"},
		{sql: "INSERT INTO bare (a) SELECT id FROM shop WHERE open = ?",
			want: "pred sel shop P{open} R{id} open:$1; ins bare *"},
		{sql: "INSERT INTO shop (id, open) VALUES (?, ?) ON CONFLICT DO NOTHING",
			want: "pred sel shop P{id, name, note, open} R{}; ins shop id:$1 open:$2 ?",
			only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "INSERT INTO shop (id, open) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET open = shop.open + excluded.open",
			want: "pred sel shop P{id} R{}; ins shop id:$1 open:$2 | pred upd shop P{id} R{open} W{open}",
			only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "UPDATE shop SET open = open + 1 WHERE id = ? RETURNING open, name",
			want: "key upd shop R{name, open} W{open} id:$1", only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "UPDATE shop SET open = 0 WHERE id = ? RETURNING open", want: "key upd shop R{} W{open} id:$1",
			only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "UPDATE shop SET open = 0 WHERE id = ? RETURNING old.open", want: "key upd shop R{open} W{open} id:$1",
			only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "UPDATE item SET price = open FROM shop WHERE shop_id = id AND name = ?",
			want: "pred upd item P{shop_id} R{} W{price}; pred sel shop P{id, name} R{open} name:$1",
			only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "DELETE FROM sale USING item WHERE sale.no = item.no RETURNING item.price",
			want: "pred del sale P{no}; pred sel item P{no} R{price}",
			only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "INSERT INTO shop (id, open) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET open = 1 RETURNING name, " +
			"(SELECT MAX(n) FROM sale)",
			want: "pred sel sale P{} R{n}; pred sel shop P{id} R{}; ins shop id:$1 open:$2 | pred upd shop P{id} R{name} W{open}", only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "MERGE INTO item AS i USING shop AS s ON i.shop_id = s.id AND i.no = ? WHEN MATCHED " +
			"AND s.open > 0 THEN UPDATE SET stock = i.stock - 1 WHEN NOT MATCHED THEN INSERT (shop_id, no) VALUES (s.id, ?)",
			want: "pred sel item P{no, shop_id} R{stock}; pred sel shop P{id, open} R{id}; pred upd item P{no, shop_id} R{stock} W{stock}; ins item *", only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "MERGE INTO item i USING (SELECT b FROM bare WHERE a = ?) AS u ON i.no = u.b WHEN MATCHED " +
			"AND i.price < 1 THEN DELETE WHEN MATCHED THEN DO NOTHING RETURNING i.label",
			want: "pred sel bare P{a} R{b} a:$1; pred sel item P{no, price} R{label}; pred del item P{no, price}; pred del sale P{no, shop_id}", only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "MERGE INTO shop USING bare ON id = a WHEN MATCHED THEN UPDATE SET id = b",
			want: "pred sel shop P{id} R{}; pred sel bare P{a} R{b}; pred upd shop P{id} R{} W{id}",
			only: []dbms.Family{dbms.PostgreSQLFamily}},
		{sql: "DELETE FROM sale WHERE id = ? RETURNING n, id", want: "key del sale id:$1"},
		{sql: "DELETE FROM item WHERE price < ? RETURNING label, (SELECT open FROM shop WHERE id = ?)",
			want: "pred sel shop P{id} R{open} id:$2; pred del item P{price}; pred del sale P{no, shop_id}"},
		{sql: "INSERT INTO sale (id, n) VALUES (?, ?) RETURNING id", want: "ins sale id:$1 n:$2"},
		{sql: "REPLACE INTO bare (a) SELECT id FROM shop WHERE open = ? RETURNING *",
			want: "pred sel shop P{open} R{id} open:$1; pred del bare P{a, b} *; ins bare *",
			only: []dbms.Family{dbms.MySQLFamily}},
		{sql: "INSERT INTO shop (id, open) VALUES (?, ?) ON DUPLICATE KEY UPDATE open = 1 RETURNING name",
			want: "pred sel shop P{id, name, note, open} R{}; ins shop id:$1 open:$2 | pred upd shop P{id, name, note, open} R{name} W{open}", only: []dbms.Family{dbms.MySQLFamily}},
		{sql: "INSERT INTO shop (id, open) VALUES (?, ?) ON DUPLICATE KEY UPDATE open = open + VALUES(open)",
			want: "pred sel shop P{id, name, note, open} R{}; ins shop id:$1 open:$2 | pred upd shop P{id, name, note, open} R{open} W{open}", only: []dbms.Family{dbms.MySQLFamily}},
		{sql: "INSERT IGNORE INTO bare VALUES (?, ?)", want: "pred sel bare P{a, b} R{}; ins bare a:$1 b:$2 ?",
			only: []dbms.Family{dbms.MySQLFamily}},
		{sql: "REPLACE INTO bare VALUES (?, ?)", want: "pred del bare P{a, b}; ins bare a:$1 b:$2",
			only: []dbms.Family{dbms.MySQLFamily}},
		{sql: "UPDATE item JOIN shop ON shop_id = id SET item.price = shop.open WHERE shop.name = ?",
			want: "pred upd item P{shop_id} R{} W{price}; pred sel shop P{id, name} R{open} name:$1",
			only: []dbms.Family{dbms.MySQLFamily}},
		{sql: "DELETE i FROM item i JOIN shop ON shop_id = id WHERE open = 0",
			want: "pred del item P{shop_id}; pred del sale P{no, shop_id}; pred sel shop P{id, open} R{} open:=0",
			only: []dbms.Family{dbms.MySQLFamily}},
		{sql: "SELECT name FROM shop WHERE id = ? LOCK IN SHARE MODE", want: "key sel shop R{name} lock 1 id:$1",
			only: []dbms.Family{dbms.MySQLFamily}},
	} {
		families := c.only
		if families == nil {
			families = dbms.Families
		}
		for _, family := range families {
			t.Run(family.String()+"/"+c.sql, func(t *testing.T) {
				fp, err := footprint.Of(family, spelled(family, c.sql), schema(t, family))
				if err != nil {
					t.Fatal(err)
				}
				if have := text(fp); have != c.want {
					t.Errorf("\nhave %s\nwant %s", have, c.want)
				}
			})
		}
	}
}

// spelled returns parameters the spelling of the family.
func spelled(family dbms.Family, sql string) string {
	parts := strings.Split(sql, "?")
	for i := range len(parts) - 1 {
		parts[i] += footprint.Param(family, i+1)
	}
	return strings.Join(parts, "")
}

func schema(t testing.TB, family dbms.Family) *footprint.Schema {
	s, remarks, err := footprint.ReadSchema(family, definitions)
	if err != nil || len(remarks) > 0 {
		t.Fatal(remarks, err)
	}
	return s
}

func TestWhatCannotBeReadIsToldWhy(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"SELECT a FROM nowhere", "no table nowhere"},
		{"SELECT nothing FROM shop", "no column nothing"},
		{"UPDATE shop SET nothing = 1", "no column nothing"},
		{"INSERT INTO shop (nothing) VALUES (1)", "no column nothing"},
		{"TRUNCATE shop", "not known what it reads"},
		{"SELECT n FROM twice30", "more than 2000 queries"},
		{"SELECT FROM WHERE", "syntax"},
	} {
		for _, family := range dbms.Families {
			s := schema(t, family)
			for n := range 31 {
				if _, err := s.Read(family, fmt.Sprintf("CREATE VIEW twice%d AS SELECT a.n FROM twice%d a, twice%d b",
					n+1, n, n)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Read(family, "CREATE VIEW twice0 AS SELECT 1 AS n"); err != nil {
				t.Fatal(err)
			}
			_, err := footprint.Of(family, c.sql, s)
			if err == nil || !strings.Contains(err.Error(), c.want) && c.want != "syntax" {
				t.Errorf("%s: %s: %v, want %q", family, c.sql, err, c.want)
			}
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, sql := range []string{"SELECT name FROM shop AS s WHERE s.id = $1 AND open IN (1, 2) FOR UPDATE",
		"UPDATE item SET stock = stock - ? WHERE shop_id = ? AND no = ?",
		"INSERT INTO shop (id, open) VALUES ($1, 2) ON CONFLICT (id) DO UPDATE SET open = excluded.open RETURNING *",
		"DELETE i FROM item i JOIN shop ON shop_id = id WHERE open = 0",
		"MERGE INTO item i USING shop s ON i.shop_id = s.id WHEN MATCHED AND s.open > 0 THEN UPDATE SET stock = 1 " +
			"WHEN NOT MATCHED THEN INSERT VALUES (1)",
		"REPLACE INTO sale (id, n) VALUES (?, 2) RETURNING n + ?, (SELECT 1)",
		"WITH t AS (SELECT no FROM cheap UNION SELECT n FROM sale) SELECT COUNT(*) FROM shop, t WHERE id = no " +
			"GROUP BY open HAVING open > (SELECT 1)"} {
		for _, family := range dbms.Families {
			f.Add(sql, family == dbms.MySQLFamily)
		}
	}
	schemas := map[bool]*footprint.Schema{false: schema(f, dbms.PostgreSQLFamily), true: schema(f, dbms.MySQLFamily)}
	mutate.Fuzz(f, func(t *testing.T, sql string, mysql bool) {
		family := dbms.PostgreSQLFamily
		if mysql {
			family = dbms.MySQLFamily
		}
		fp, err := footprint.Of(family, sql, schemas[mysql])
		if (fp == nil) == (err == nil) {
			t.Error("neither a footprint nor an error")
		}
		_, _ = footprint.ValuesOf(family, sql, schemas[mysql])
	}, mutate.SQL...)
}

func TestKeysAndReferencesComeFromDefinitions(t *testing.T) {
	const more = definitions + `
		CREATE UNIQUE INDEX label ON item (label);
		ALTER TABLE bare ADD COLUMN c INT NOT NULL;
		CREATE UNIQUE INDEX bare_c ON bare (c);
		ALTER TABLE bare ADD CONSTRAINT bare_shop FOREIGN KEY (a) REFERENCES shop (id);
		CREATE FUNKTION nonsense;`
	for _, family := range dbms.Families {
		s, remarks, err := footprint.ReadSchema(family, more)
		if err != nil {
			t.Fatal(err)
		}
		if len(remarks) != 1 || !strings.HasPrefix(remarks[0], "line 13: not read: ") {
			t.Errorf("%s: remarks %q", family, remarks)
		}
		for _, c := range []struct{ table, keys string }{{"shop", "[[id] [name]]"}, {"item", "[[shop_id no]]"},
			{"bare", "[[c]]"}} {
			if have := fmt.Sprint(s.Table("", c.table).Keys); have != c.keys {
				t.Errorf("%s: keys of %s are %s, want %s", family, c.table, have, c.keys)
			}
		}
		var have []string
		for _, f := range s.Functions() {
			have = append(have, fmt.Sprintf("%s: %s%v -> %s%v", f.Name, f.Child.Name, f.ChildColumns,
				f.Parent.Name, f.ParentColumns))
		}
		want := []string{"item_shop: item[shop_id] -> shop[id]",
			"sale(shop_id,no): sale[shop_id no] -> item[shop_id no]", "bare_shop: bare[a] -> shop[id]"}
		if !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", family, have, want)
		}
	}
}

func TestTriggersAreKnownByTheirTable(t *testing.T) {
	for family, trigger := range map[dbms.Family]string{
		dbms.PostgreSQLFamily: "CREATE TRIGGER audit AFTER UPDATE OR DELETE ON item FOR EACH ROW EXECUTE FUNCTION note();",
		dbms.MySQLFamily:      "CREATE DEFINER=`root`@`%` TRIGGER `audit` AFTER UPDATE ON `item` FOR EACH ROW DO 0;",
	} {
		s, remarks, err := footprint.ReadSchema(family, definitions+trigger)
		if err != nil || len(remarks) > 0 {
			t.Fatal(family, remarks, err)
		}
		if !s.Table("", "item").Triggers || s.Table("", "shop").Triggers {
			t.Errorf("%s: the trigger is not that of its table alone", family)
		}
	}
}

// What the server writes through foreign keys is found where these make circles, and once for each.
func TestCascadesMayComeBack(t *testing.T) {
	for _, c := range []struct{ name, definitions, sql, want string }{
		{"a table that refers to itself",
			"CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE);",
			"DELETE FROM t WHERE id = 1",
			"key del t id:=1; pred del t P{up}; pred del t P{up}"},
		{"a chain", "CREATE TABLE t (id INT PRIMARY KEY); " +
			"CREATE TABLE u (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE);" +
			"CREATE TABLE v (u INT, FOREIGN KEY (u) REFERENCES u (id) ON DELETE CASCADE);",
			"DELETE FROM t WHERE id = 1",
			"key del t id:=1; pred del u P{t}; pred del v P{u}"},
		{"two that refer to each other twice",
			"CREATE TABLE u (id INT PRIMARY KEY); CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a) " +
				"REFERENCES u (id) ON DELETE CASCADE, FOREIGN KEY (b) REFERENCES u (id) ON DELETE SET NULL);" +
				"ALTER TABLE u ADD c INT; ALTER TABLE u ADD d INT; ALTER TABLE u ADD FOREIGN KEY (c) " +
				"REFERENCES t (id) ON DELETE CASCADE; ALTER TABLE u ADD FOREIGN KEY (d) REFERENCES t (id) " +
				"ON DELETE CASCADE;", "DELETE FROM t WHERE id = 1",
			"key del t id:=1; pred del u P{c}; pred del u P{d}; pred del t P{a}; pred del t P{b}; pred del u P{c}; pred del u P{d}; pred del t P{a}; pred del t P{b}"},
	} {
		for _, family := range dbms.Families {
			t.Run(family.String()+"/"+c.name, func(t *testing.T) {
				s, _, err := footprint.ReadSchema(family, c.definitions)
				if err != nil {
					t.Fatal(err)
				}
				fp, err := footprint.Of(family, c.sql, s)
				if err != nil {
					t.Fatal(err)
				}
				if have := text(fp); have != c.want {
					t.Errorf("have: %s\nwant: %s", have, c.want)
				}
			})
		}
	}
}
