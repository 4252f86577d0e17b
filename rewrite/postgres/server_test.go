package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// serverTables are those of testSchema that server tests use, as a client makes them.
const serverTables = `
	CREATE TABLE item (id int PRIMARY KEY, name text, price numeric, stock int CHECK (stock >= 0));
	CREATE INDEX by_price ON item (price);
	CREATE TABLE orders (id bigint PRIMARY KEY, item_id int, qty int, note text);
	CREATE TABLE line (order_id bigint, no smallint, sku varchar(10), at timestamptz DEFAULT '2020-01-01 00:00Z', PRIMARY KEY (order_id, no));
	CREATE TABLE kv (k text PRIMARY KEY, v text UNIQUE);
	CREATE TABLE event (at timestamptz PRIMARY KEY, body jsonb);
	CREATE TABLE loose (a int, b text);
	CREATE TABLE void (a int);
	CREATE TABLE "Odd" ("Id" uuid PRIMARY KEY, "a""b" int);
	CREATE TYPE mood AS ENUM ('sad', 'glad');
	CREATE TABLE strange (id mood PRIMARY KEY, a int);
	CREATE TABLE part (id int PRIMARY KEY, a int) PARTITION BY RANGE (id);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (100);
	CREATE TABLE part_2 (gone int, a int, id int NOT NULL);
	ALTER TABLE part_2 DROP COLUMN gone;
	ALTER TABLE part ATTACH PARTITION part_2 FOR VALUES FROM (100) TO (1000);
	CREATE TABLE parent (id int PRIMARY KEY, a int);
	CREATE TABLE child (more text, PRIMARY KEY (id)) INHERITS (parent);
	CREATE TABLE trig (id int PRIMARY KEY, a int);
	CREATE TABLE gen (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED);
	CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := NEW.a * 2; RETURN NEW; END $$;
	CREATE FUNCTION price_of(int) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT price FROM item WHERE id = $1';
	CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int, INITCOND = 0);
	CREATE AGGREGATE largest(int) (SFUNC = int4larger, STYPE = int, SORTOP = >);
	CREATE AGGREGATE concat(text) (SFUNC = textcat, STYPE = text);
	CREATE VIEW items AS SELECT id, name FROM item WHERE stock > 0;
	CREATE VIEW sold AS SELECT o.id, item_id AS item, name, qty FROM orders o LEFT JOIN item i ON i.id = item_id;
	CREATE VIEW lines AS SELECT order_id AS o, no AS n, count(*) OVER () AS s FROM line;
	CREATE VIEW only_parent AS SELECT id FROM ONLY parent;
	CREATE VIEW one AS SELECT 1 AS n;
	CREATE VIEW due AS SELECT id, item_id FROM orders WHERE 6 / (4 - id) < 100;
	CREATE TRIGGER change BEFORE INSERT OR UPDATE ON trig FOR EACH ROW EXECUTE FUNCTION change();
	INSERT INTO item VALUES (1, 'pen', 1.50, 10), (2, 'ink', 7, 3), (3, NULL, NULL, 0);
	INSERT INTO orders VALUES (1, 1, 2, 'a'), (2, 1, 1, NULL), (3, 2, 5, 'c'), (4, 9, 1, 'd');
	INSERT INTO line VALUES (1, 1, 'x'), (1, 2, 'y'), (2, 1, 'z');
	INSERT INTO kv VALUES ('a', '1'), ('b', '2'), ('c,;\', NULL);
	INSERT INTO event VALUES ('2024-02-29 12:00Z', '{"a": 1}');
	INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (2, 'y');
	INSERT INTO "Odd" VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1);
	INSERT INTO strange VALUES ('sad', 1), ('glad', 2);
	INSERT INTO part VALUES (1, 1), (2, 2), (101, 3);
	INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (2, 2, 'm');
	INSERT INTO trig VALUES (1, 1);
	INSERT INTO gen VALUES (1, 1), (2, 2);`

// serverSchema is testSchema with what serverTables has otherwise.
func serverSchema() tables {
	ts := testSchema()
	ts["public.strange"] = table("public.strange", "id public.mood, a int4", "primary(id)")
	ts["public.due"] = with(view(table("public.due", "id int8, item_id int4"), history.Reason{},
		Base{Table: rewrite.TableName{Schema: "public", Table: "orders"}, Key: []string{"id"}}), func(t *Table) { t.NotAgain = true })
	ts["public.void"] = table("public.void", "a int4")
	ts["public.gen"] = with(table("public.gen", "id int4, a int4, twice int4", "primary(id)"),
		func(t *Table) { t.Columns[2].Generated = true })
	return ts
}

// twins are two databases with the same tables: in one rewritten texts run, in the other the originals.
type twins struct {
	t                 *testing.T
	original, proxied *pgconn.PgConn
	session           Session
	rewriter          *Rewriter
}

func newTwins(t *testing.T) *twins {
	t.Helper()
	tw := &twins{t: t, original: connect(t), proxied: connect(t),
		rewriter: New(serverSchema(), Options{CollectFor: time.Hour})}
	tw.session = Session{Version: testdb.PostgreSQL(t).Major(), Role: "postgres",
		Path: rewrite.ListOf("pg_catalog", "public")}
	return tw
}

func connect(t *testing.T) *pgconn.PgConn {
	t.Helper()
	c := open(t, testdb.NewPostgreSQLDatabase(t))
	if _, err := c.Exec(context.Background(), serverTables).ReadAll(); err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, database string) *pgconn.PgConn {
	t.Helper()
	ctx := context.Background()
	c, err := pgconn.Connect(ctx, testdb.PostgreSQL(t).DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(ctx) })
	return c
}

// A reply is what a client sees of one statement.
type reply struct {
	Columns []string
	Rows    [][]string
	Tag     string
}

// firstUserOID is the least oid of what is not in every database.
const firstUserOID = 16384

// run sends a text as one Query and returns its replies, and the error that ended it.
func run(t *testing.T, c *pgconn.PgConn, text string) (replies []reply, failure *pgconn.PgError) {
	t.Helper()
	results, err := c.Exec(context.Background(), text).ReadAll()
	for _, r := range results {
		one := reply{Tag: r.CommandTag.String()}
		for _, f := range r.FieldDescriptions {
			oid := min(f.DataTypeOID, firstUserOID) // the client's own types differ between the twins
			one.Columns = append(one.Columns,
				fmt.Sprintf("%s %d %d %t %d", f.Name, oid, f.TypeModifier, f.TableOID > 0, f.TableAttributeNumber))
		}
		for _, row := range r.Rows {
			values := []string{}
			for _, v := range row {
				if v == nil {
					values = append(values, "NULL")
				} else {
					values = append(values, "="+string(v))
				}
			}
			one.Rows = append(one.Rows, values)
		}
		replies = append(replies, one)
	}
	if err != nil && !errors.As(err, &failure) {
		t.Fatalf("%s: %v", text, err)
	}
	return replies, failure
}

// both runs a text on the original and rewritten on its twin, fails the test unless a client would see the same,
// and returns the plans with the identities that the client does not see.
func (tw *twins) both(text string) (plans []*Plan, hidden [][][]string) {
	tw.t.Helper()
	script := tw.rewriter.Plan(text, tw.session)
	want, wantErr := run(tw.t, tw.original, text)
	got, gotErr := run(tw.t, tw.proxied, string(script.Append(nil)))
	if wantErr == nil && len(script.Statements) != len(want) {
		tw.t.Fatalf("%s: %d plans for %d replies", text, len(script.Statements), len(want))
	}
	for i := range got {
		hidden = append(hidden, trim(&got[i], script.Statements[i]))
	}
	if !reflect.DeepEqual(got, want) {
		tw.t.Errorf("%s\nas %s\ngives %v\nnot   %v", text, script.Append(nil), got, want)
	}
	tw.sameError(text, script, gotErr, wantErr)
	return script.Statements, hidden
}

// hiddenPrefix begins the names of the columns that are added to reads.
const hiddenPrefix = "isotap_"

// trim takes what the plan added off a reply.
func trim(r *reply, p *Plan) (hidden [][]string) {
	n := len(r.Columns) - p.HiddenColumns()
	if p.Session.Cursor != nil { // a FETCH gives what its DECLARE added
		n = slices.IndexFunc(append(r.Columns, hiddenPrefix),
			func(name string) bool { return strings.HasPrefix(name, hiddenPrefix) })
	}
	if n < 0 || len(r.Columns) == 0 {
		return nil
	}
	for i, row := range r.Rows {
		hidden = append(hidden, row[n:])
		r.Rows[i] = row[:n]
	}
	count := len(r.Rows)
	if r.Columns = r.Columns[:n]; p.Result.Reply == rewrite.Returning {
		r.Columns, r.Rows = nil, nil
	}
	if p.Result.Tag != "" {
		r.unwrap(p, hidden, count)
	}
	if len(r.Columns) == 0 {
		r.Columns = nil
	}
	return hidden
}

// unwrap makes a reply that of the client's statement, which another one holds.
func (r *reply) unwrap(p *Plan, hidden [][]string, rows int) {
	at := 0
	for _, s := range p.Result.Sources[:slices.IndexFunc(p.Result.Sources, func(s Source) bool { return s.Present })] {
		at += s.Columns()
	}
	if len(hidden) == 1 && hidden[0][at] == "NULL" {
		rows, r.Rows, r.Columns = 0, nil, nil // pgconn gives no columns without a row
	}
	r.Tag = p.Result.Tag + strconv.Itoa(rows)
}

func (tw *twins) sameError(text string, script *Script, got, want *pgconn.PgError) {
	tw.t.Helper()
	if got == nil || want == nil {
		if got != want {
			tw.t.Errorf("%s\nas %s\nfails with %v, not %v", text, script.Append(nil), got, want)
		}
		return
	}
	type visible struct {
		code, message, detail, hint string
		position                    int32
	}
	g := visible{got.Code, got.Message, got.Detail, got.Hint, int32(script.Position(int(got.Position), true))}
	w := visible{want.Code, want.Message, want.Detail, want.Hint, want.Position}
	if g != w {
		tw.t.Errorf("%s\nas %s\nfails with %+v, not %+v", text, script.Append(nil), g, w)
	}
}

// sameTables fails the test unless all tables hold the same on both sides.
func (tw *twins) sameTables() {
	tw.t.Helper()
	for _, name := range []string{"item", "orders", "line", "kv", "event", "loose", `"Odd"`, "strange", "part",
		"parent", "child", "trig"} {
		query := "SELECT t.tableoid::regclass, t.* FROM " + name + " t ORDER BY t::text"
		want, _ := run(tw.t, tw.original, query)
		got, _ := run(tw.t, tw.proxied, query)
		if !reflect.DeepEqual(want, got) {
			tw.t.Errorf("%s holds %v, not %v", name, got, want)
		}
	}
}

func TestClientsSeeTheSame(t *testing.T) {
	for topic, texts := range sameTexts() {
		t.Run(topic, func(t *testing.T) {
			tw := newTwins(t)
			for _, text := range texts {
				tw.both(text)
			}
			tw.sameTables()
		})
	}
}

// TestObservedStatementsAreRewritten keeps the comparison above honest: most of what it compares was changed.
func TestObservedStatementsAreRewritten(t *testing.T) {
	r := New(serverSchema(), Options{})
	s := Session{Version: testdb.PostgreSQL(t).Major(), Role: "postgres", Path: rewrite.ListOf("pg_catalog", "public")}
	changed, all := 0, 0
	for _, texts := range sameTexts() {
		for _, text := range texts {
			for _, p := range r.Plan(text, s).Statements {
				if p.Kind == history.Select || p.Kind == history.Insert || p.Kind == history.Update ||
					p.Kind == history.Delete {
					all++
				}
				if p.Result.Reply != rewrite.Unchanged {
					changed++
				}
			}
		}
	}
	if changed*4 < all*3 {
		t.Errorf("%d of %d statements are rewritten", changed, all)
	}
}

// mergeTexts are for those versions that can tell what MERGE did.
const mergeTexts = `
MERGE INTO item i USING orders o ON o.item_id = i.id AND o.id <> 2 WHEN MATCHED AND o.qty > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET stock = o.qty WHEN NOT MATCHED THEN INSERT VALUES (o.item_id, 'new', 1, 1)
MERGE INTO kv USING (VALUES ('a', 'x'), ('q', 'y')) AS s(k, v) ON s.k = kv.k WHEN MATCHED THEN UPDATE SET k = 'aa' WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v) RETURNING merge_action(), kv.*
MERGE INTO kv USING loose ON kv.k = loose.b WHEN NOT MATCHED BY SOURCE THEN DELETE
WITH q AS (DELETE FROM loose RETURNING a, b) MERGE INTO item USING (orders o JOIN q AS x ON x.a = o.item_id) ON false WHEN NOT MATCHED BY SOURCE AND stock > 1 THEN UPDATE SET stock = 0 RETURNING x
MERGE INTO part USING (VALUES (1, 7), (105, 8)) AS s(id, a) ON s.id = part.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a)
MERGE INTO loose USING kv ON false WHEN MATCHED THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN DO NOTHING
MERGE INTO trig t USING (VALUES (1), (5)) AS s(id) ON s.id = t.id WHEN MATCHED THEN UPDATE SET a = 3 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 4) RETURNING t.a
MERGE INTO item USING kv ON true WHEN MATCHED THEN UPDATE SET nope = 1`

// versionTexts are for those versions that tell the old row from the new.
const versionTexts = `
UPDATE item SET stock = stock + 1 WHERE id = 1 RETURNING old.stock, new.stock, stock
UPDATE item SET stock = stock + 1 WHERE id = 1 RETURNING WITH (OLD AS o, NEW AS "N") o.stock, "N".stock, 'é'
UPDATE item AS old SET stock = stock + 1 WHERE id = 1 RETURNING old.stock
UPDATE item SET stock = 1 FROM orders AS new WHERE new.item_id = item.id AND new.id = 1 RETURNING item.stock, new.id
INSERT INTO kv VALUES ('a', 'b'), ('new', 'n') ON CONFLICT (k) DO UPDATE SET v = 'x' RETURNING WITH (NEW AS n) n.v, old.v
DELETE FROM item WHERE id = 2 RETURNING WITH (OLD AS o) o.*, new.*
DELETE FROM item WHERE id = 1 RETURNING WITH (OLD AS o) nope
INSERT INTO part AS old VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET a = 3
INSERT INTO part VALUES (1, 2), (150, 1) ON CONFLICT (id) DO UPDATE SET a = 3 RETURNING old.*, new.*
MERGE INTO item USING kv ON false WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING WITH (OLD AS o) merge_action(), o.id`

func TestClientsSeeTheSameOfOldAndNew(t *testing.T) {
	if testdb.PostgreSQL(t).Major() < 18 {
		return // TestPlanGolden has it that such texts go unchanged
	}
	tw := newTwins(t)
	for text := range strings.SplitSeq(strings.TrimSpace(versionTexts), "\n") {
		tw.both(text)
	}
	tw.sameTables()
}

func TestClientsSeeTheSameOfMerge(t *testing.T) {
	if testdb.PostgreSQL(t).Major() < 17 {
		return // TestPlanGolden has it that nothing is added to it
	}
	tw := newTwins(t)
	for text := range strings.SplitSeq(strings.TrimSpace(mergeTexts), "\n") {
		tw.both(text)
	}
	tw.sameTables()
}

// sameTexts are what a client may send, by topic.
func sameTexts() map[string][]string {
	lines := func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
	return map[string][]string{
		"reads": lines(`
SELECT * FROM item ORDER BY id
SELECT item.*, o.note FROM item LEFT JOIN orders o ON o.item_id = item.id ORDER BY id, o.id
SELECT id + 1 AS id FROM item ORDER BY id DESC
SELECT o.id FROM item JOIN orders o ON o.item_id = item.id ORDER BY o.id
SELECT o.id FROM item JOIN orders o ON o.item_id = item.id ORDER BY id
SELECT note AS xmin FROM orders ORDER BY xmin
SELECT name AS ctid FROM item ORDER BY ctid
SELECT FROM kv
SELECT count(*) OVER (), sum(qty) OVER (PARTITION BY item_id ORDER BY id) FROM orders ORDER BY id
SELECT name FROM item WHERE id IN (SELECT item_id FROM orders) ORDER BY 1
SELECT (SELECT max(qty) FROM orders o WHERE o.item_id = i.id) FROM item i ORDER BY i.id
SELECT (SELECT max(i.price)) FROM item i
SELECT i FROM item i ORDER BY i.id
SELECT generate_series(1, stock) FROM item ORDER BY id, 1 LIMIT 4
SELECT * FROM part ORDER BY id
SELECT * FROM parent ORDER BY id
SELECT * FROM ONLY parent
SELECT * FROM strange ORDER BY id
SELECT * FROM event
SELECT * FROM "Odd" AS "O""x"("I""d")
SELECT * FROM item AS i(a, b) WHERE a = 1
SELECT * FROM loose ORDER BY a, b
SELECT k FROM kv ORDER BY k COLLATE "C" FOR UPDATE
SELECT a.id FROM item a LEFT JOIN orders b ON b.item_id = a.id ORDER BY a.id, b.id FOR NO KEY UPDATE OF a SKIP LOCKED
SELECT 1 / stock FROM item ORDER BY id
SELECT nope FROM item
SELECT name, nopé FROM item WHERE name = 'größe' AND nope
SELECT name FROM item WHERE größe
SELECT é.name FROM item é WHERE é.nope = 1
SELECT name FROM item GROUP BY id HAVING true ORDER BY id
SELECT item.* FROM item, orders FOR UPDATE OF nope
SELECT * FROM kv WHERE k = 1
SELECT * FROM item FETCH FIRST 1 ROW WITH TIES
SELECT * FROM item ORDER BY id FETCH FIRST 2 ROWS ONLY
SELECT * FROM line JOIN orders ON orders.id = order_id ORDER BY order_id, no
SELECT * FROM line NATURAL JOIN kv
SELECT id FROM item JOIN orders USING (id) ORDER BY 1
SELECT lower(name), upper(name) FROM item ORDER BY id
SELECT * FROM item TABLESAMPLE bernoulli (100) ORDER BY id`),
		"writes": lines(`
INSERT INTO item VALUES (10, 'a', 1, 1), (11, 'b', 2, 2)
INSERT INTO item (id, name) VALUES (12, 'c') RETURNING *, id * 2 AS twice
INSERT INTO item VALUES (1, 'dup', 1, 1)
INSERT INTO item VALUES (20, 'bad', 1, -1)
INSERT INTO item VALUES (21, 'x', nope, 1)
INSERT INTO kv SELECT note, id FROM orders WHERE note IS NOT NULL AND note > 'b' AND note > 'c'
INSERT INTO kv VALUES ('a', 'n'), ('z', 'z') ON CONFLICT DO NOTHING
INSERT INTO kv VALUES ('a', 'up'), ('y', 'y') ON CONFLICT (k) DO UPDATE SET v = excluded.v
INSERT INTO kv VALUES ('a', 'up'), ('x', 'x') ON CONFLICT (k) DO UPDATE SET v = 'w' WHERE kv.v = 'nothing' RETURNING kv.k
INSERT INTO kv VALUES ('a', 'q') ON CONFLICT (k) DO UPDATE SET k = 'a2' RETURNING k, v
INSERT INTO loose DEFAULT VALUES
INSERT INTO part VALUES (3, 3), (102, 4) RETURNING id
INSERT INTO part VALUES (5000, 1)
INSERT INTO part VALUES (1, 9), (103, 9) ON CONFLICT (id) DO UPDATE SET a = excluded.a
INSERT INTO parent VALUES (7, 7)
INSERT INTO trig VALUES (2, 5) RETURNING a
INSERT INTO trig VALUES (2, 5) ON CONFLICT (id) DO UPDATE SET a = 7 RETURNING a
UPDATE trig SET a = a + 1
UPDATE item SET stock = stock + 1
UPDATE item SET stock = stock - 5 WHERE id = 1 RETURNING id, stock AS left
UPDATE item SET stock = -1 WHERE id = 1
UPDATE item SET nope = 1
UPDATE item i SET stock = o.qty FROM orders o WHERE o.item_id = i.id AND o.id = 3 RETURNING *
UPDATE item SET name = x.k FROM (SELECT k FROM kv WHERE k = 'b') AS x WHERE id = 2
UPDATE item SET id = 100 WHERE id = 12 RETURNING id
UPDATE loose SET b = b || 'x' WHERE a = 1
UPDATE part SET a = a + 1
UPDATE part SET id = 104 WHERE id = 2 RETURNING *
UPDATE parent SET a = a + 1 RETURNING *
UPDATE ONLY parent SET a = 0
UPDATE strange SET a = 5 WHERE id = 'sad'
UPDATE line SET at = at + interval '1 day' WHERE no = 1
UPDATE "Odd" SET "a""b" = 2
UPDATE event SET body = body || '{"b": 2}'
WITH x AS (SELECT 1 AS id) UPDATE item SET stock = 99 FROM x WHERE x.id = item.id
WITH d AS (DELETE FROM loose WHERE a = 2 RETURNING *) INSERT INTO loose SELECT a + 10, b FROM d RETURNING *
WITH item AS (SELECT 3 AS id) UPDATE item SET stock = 1 FROM item AS x WHERE x.id = 3
DELETE FROM line WHERE no = 2 RETURNING sku
DELETE FROM orders USING item WHERE item.id = item_id AND item.name = 'ink'
DELETE FROM orders o USING item i JOIN kv ON kv.k = 'b' WHERE i.id = o.item_id RETURNING o.id, i.name
DELETE FROM part WHERE id > 100 RETURNING id
DELETE FROM part
DELETE FROM parent
DELETE FROM event WHERE nope
DELETE FROM item WHERE 1 / stock > 5
DELETE FROM strange
DELETE FROM loose`),
		"several": lines(`
SELECT k FROM kv ORDER BY k COLLATE "C"; UPDATE kv SET v = 'x' WHERE k = 'a'; SELECT v FROM kv WHERE k = 'a' FOR SHARE
INSERT INTO kv VALUES ('m', 'm') RETURNING k; SELECT nope FROM kv
BEGIN; DELETE FROM kv WHERE k = 'b'; SELECT k FROM kv; SAVEPOINT s; UPDATE kv SET v = 'é' WHERE k = 'c'; ROLLBACK TO s; COMMIT
;; SELECT 1 ;; SELECT a FROM loose WHERE a = 2;
BEGIN; DECLARE c CURSOR FOR SELECT * FROM item FOR UPDATE; FETCH 1 FROM c; UPDATE item SET stock = 5 WHERE CURRENT OF c; DELETE FROM item WHERE CURRENT OF c RETURNING id; COMMIT
BEGIN; DECLARE c CURSOR FOR SELECT name, stock FROM item ORDER BY id; FETCH 2 FROM c; FETCH BACKWARD ALL c; CLOSE c; DECLARE c BINARY SCROLL CURSOR FOR SELECT k, v FROM kv JOIN item ON stock > 0 ORDER BY k, id; FETCH LAST c; FETCH FIRST c; MOVE 2 c; FETCH RELATIVE 0 c; COMMIT
BEGIN; DECLARE c CURSOR FOR SELECT name FROM item; FETCH NEXT c; UPDATE item SET stock = 7 WHERE CURRENT OF c RETURNING *; FETCH BACKWARD 1 c; FETCH ALL c; COMMIT
DECLARE c CURSOR WITH HOLD FOR TABLE kv; FETCH ALL c; CLOSE c; FETCH c
INSERT INTO loose VALUES (5, 'é'); DELETE FROM loose WHERE a = 'x'
SELECT 1; SELECT 1 FROM`),
	}
}
