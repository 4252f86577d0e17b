package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/rewrite"
)

// identities returns the values of the items that one source adds, by item and in the order of rows; keys are
// joined by commas.
func identities(p *Plan, hidden [][]string, source int) (rows []map[Item]string) {
	from := 0
	for _, s := range p.Result.Sources[:source] {
		from += s.Columns()
	}
	for _, h := range hidden {
		row := make(map[Item]string)
		for i, item := range p.Result.Sources[source].Physical.Items {
			value := strings.TrimPrefix(h[from+i], "=")
			switch item {
			case ItemKeyText, ItemKeyUUID, ItemKeyHex:
				item = ItemKeyInt
			}
			if old, there := row[item]; there {
				value = old + "," + value
			}
			row[item] = value
		}
		rows = append(rows, row)
	}
	return rows
}

// one runs a text of one statement on both sides and returns the identities of its first source.
func (tw *twins) one(text string) []map[Item]string {
	tw.t.Helper()
	plans, hidden := tw.both(text)
	if plans[0].Result.Reply == rewrite.Unchanged {
		tw.t.Fatalf("%s: %v: %s", text, plans[0].Observation, plans[0].Reason)
	}
	return identities(plans[0], hidden[0], 0)
}

// ask returns the rows of a query on the rewritten side, their values joined by blanks, in order.
func (tw *twins) ask(query string) []string {
	tw.t.Helper()
	replies, err := run(tw.t, tw.proxied, query)
	if err != nil {
		tw.t.Fatal(err)
	}
	var out []string
	for _, row := range replies[0].Rows {
		out = append(out, strings.ReplaceAll(strings.Join(row, " "), "=", ""))
	}
	slices.Sort(out)
	return out
}

// tell joins items of rows as ask does.
func tell(rows []map[Item]string, items ...Item) []string {
	var out []string
	for _, r := range rows {
		var values []string
		for _, i := range items {
			values = append(values, r[i])
		}
		out = append(out, strings.Join(values, " "))
	}
	slices.Sort(out)
	return out
}

func (tw *twins) equal(what string, got, want []string) {
	tw.t.Helper()
	if len(want) == 0 || !slices.Equal(got, want) {
		tw.t.Errorf("%s: told %q, the table holds %q", what, got, want)
	}
}

func TestReadsTellTheVersionsThatTheyRead(t *testing.T) {
	tw := newTwins(t)
	for table, key := range map[string]string{"item": "id", "kv": "k", "line": "order_id || ',' || no", "part": "id",
		"parent":  "id",
		"strange": "encode(id::text::bytea, 'hex')", "event": "encode(timestamptz_send(at), 'hex')", `"Odd"`: `"Id"`} {
		rows := tw.one("SELECT * FROM " + table)
		tw.equal(table, tell(rows, ItemTID, ItemXID, ItemKeyInt),
			tw.ask("SELECT ctid, xmin, "+key+" FROM "+table))
	}
	for _, table := range []string{"part", "parent"} {
		tw.equal(table, tell(tw.one("SELECT * FROM "+table), ItemTable, ItemTID),
			tw.ask("SELECT tableoid, ctid FROM "+table))
	}
}

func TestWritesTellTheVersionsThatTheyLeave(t *testing.T) {
	for _, c := range []struct{ text, table, where string }{
		{"INSERT INTO item VALUES (50, 'x', 1, 1), (51, 'y', 2, 2) RETURNING name", "item", "id >= 50"},
		{"UPDATE item SET stock = stock + 1 WHERE id < 3", "item", "id < 3"},
		{"UPDATE item i SET stock = o.qty FROM orders o WHERE o.item_id = i.id AND o.id = 3", "item", "id = 2"},
		{"UPDATE parent SET a = 9", "parent", "true"},
		{"UPDATE ONLY parent SET a = 9", "parent", "id = 1"},
		{"INSERT INTO parent VALUES (9, 9)", "parent", "id = 9"},
		{"INSERT INTO part VALUES (5, 5), (105, 5)", "part", "a = 5"},
		{"UPDATE part SET a = 7", "part", "true"},
		{"UPDATE part SET id = 110 WHERE id = 1", "part", "id = 110"},
		{"INSERT INTO trig VALUES (5, 5)", "trig", "id = 5"},
		{"WITH x AS (SELECT 1) UPDATE item SET stock = 3 WHERE id = 1", "item", "id = 1"},
	} {
		t.Run(c.text, func(t *testing.T) {
			tw := newTwins(t)
			tw.both("BEGIN")
			before := tw.ask("SELECT pg_current_wal_insert_lsn()")
			rows := tw.one(c.text)
			tw.equal("places", tell(rows, ItemNewTID, ItemKeyInt),
				tw.ask("SELECT ctid, id FROM "+c.table+" WHERE "+c.where))
			if _, told := rows[0][ItemNewXID]; told {
				tw.equal("writers", tell(rows, ItemNewXID), tw.ask("SELECT xmin FROM "+c.table+" WHERE "+c.where))
			}
			if _, told := rows[0][ItemTable]; told {
				tw.equal("tables", tell(rows, ItemTable), tw.ask("SELECT tableoid FROM "+c.table+" WHERE "+c.where))
			}
			for _, r := range rows {
				later := tw.ask(fmt.Sprintf("SELECT '%s'::pg_lsn > '%s'::pg_lsn", r[ItemLSN], before[0]))
				tw.equal("log position", later, []string{"t"})
			}
		})
	}
}

func TestWritesTellTheVersionsThatTheyReplace(t *testing.T) {
	for _, c := range []struct {
		text, table, where string
		since              int
	}{
		{"DELETE FROM item WHERE id < 3", "item", "id < 3", 0},
		{"DELETE FROM part", "part", "true", 0},
		{"DELETE FROM parent RETURNING a", "parent", "true", 0},
		{"DELETE FROM orders USING item WHERE item.id = item_id", "orders", "item_id < 4", 0},
		{"UPDATE item SET stock = 3 WHERE id < 3", "item", "id < 3", 18},
		{"INSERT INTO item VALUES (1, 'x', 1, 1) ON CONFLICT (id) DO UPDATE SET stock = 7", "item", "id = 1", 18},
		{"MERGE INTO item USING orders o ON o.id = 1 AND o.item_id = item.id WHEN MATCHED THEN UPDATE SET stock = 1",
			"item", "id = 1", 18},
		{"MERGE INTO item USING orders o ON o.id = 1 AND o.item_id = item.id WHEN MATCHED THEN DELETE", "item",
			"id = 1", 17},
	} {
		t.Run(c.text, func(t *testing.T) {
			tw := newTwins(t)
			if tw.session.Version < c.since {
				return // the server does not tell
			}
			want := tw.ask("SELECT ctid, xmin, id FROM " + c.table + " WHERE " + c.where)
			tw.equal("versions", tell(tw.one(c.text), ItemTID, ItemXID, ItemKeyInt), want)
		})
	}
}

func TestConflictsTellInsertedFromUpdated(t *testing.T) {
	tw := newTwins(t)
	const text = "INSERT INTO kv VALUES ('a', 'x'), ('new', 'y') ON CONFLICT (k) DO UPDATE SET v = excluded.v"
	want := []string{"a f", "new t"}
	tw.equal("first", tell(tw.one(text), ItemKeyInt, ItemInserted), want)
	// A row that the transaction itself has just inserted, one that it has locked, and one that another
	// (sub)transaction has.
	tw.both("BEGIN")
	tw.both("INSERT INTO kv VALUES ('n2', 'n2')")
	tw.both("SELECT * FROM kv FOR KEY SHARE")
	tw.both("SAVEPOINT s")
	tw.equal("again", tell(tw.one("INSERT INTO kv VALUES ('n2', 'n'), ('n3', 'z') ON CONFLICT (k) DO UPDATE SET v = excluded.v"),
		ItemKeyInt, ItemInserted), []string{"n2 f", "n3 t"})
	tw.both("COMMIT")
	if tw.session.Version < 18 {
		return // a partitioned table's rows do not tell
	}
	tw.equal("partitioned", tell(tw.one("INSERT INTO part VALUES (1, 7), (120, 1) ON CONFLICT (id) DO UPDATE SET a = 3"),
		ItemKeyInt, ItemInserted), []string{"1 f", "120 t"})
}

func TestWritesTellWhatTheyReadBeside(t *testing.T) {
	tw := newTwins(t)
	plans, hidden := tw.both("UPDATE item i SET stock = o.qty FROM orders o LEFT JOIN line l ON l.order_id = o.id WHERE o.item_id = i.id AND o.id = 3")
	tw.equal("orders", tell(identities(plans[0], hidden[0], 1), ItemTID, ItemXID, ItemKeyInt),
		tw.ask("SELECT ctid, xmin, id FROM orders WHERE id = 3"))
	tw.equal("line", tell(identities(plans[0], hidden[0], 2), ItemTID, ItemKeyInt), []string{"NULL NULL,NULL"})
}
