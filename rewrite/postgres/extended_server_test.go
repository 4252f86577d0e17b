package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
)

// sizes are the numbers of bytes that values of items have in binary; 0: any.
var sizes = map[Item][]int{
	ItemTable: {4}, ItemTID: {6}, ItemNewTID: {6}, ItemXID: {4}, ItemNewXID: {4},
	ItemKeyInt: {2, 4, 8}, ItemKeyUUID: {16}, ItemLSN: {8}, ItemInserted: {1}, ItemOldKeyChanged: {1},
}

func TestPreparedStatementsLookTheSame(t *testing.T) {
	tw := newTwins(t)
	tw.session.Extended = true
	for _, c := range []struct {
		text string
		args []string
	}{
		{"SELECT * FROM item WHERE id = $1 OR name = $2 ORDER BY id", []string{"1", "ink"}},
		{"SELECT $1::text, id FROM item LIMIT $2", []string{"x", "2"}},
		{"SELECT * FROM part, parent, kv, line WHERE part.id = $1 LIMIT 1", []string{"1"}},
		{"SELECT k FROM kv WHERE k = ANY ($1) FOR UPDATE", []string{"{a,b}"}},
		{`SELECT * FROM "Odd", event, strange`, nil},
		{"INSERT INTO item VALUES ($1, $2, $3, $4)", []string{"70", "n", "1.5", "3"}},
		{"INSERT INTO kv VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = $2 RETURNING *", []string{"a", "vv"}},
		{"UPDATE item SET stock = stock + $1 WHERE id = $2", []string{"2", "1"}},
		{"UPDATE item SET id = $1 WHERE id = $2 RETURNING id", []string{"80", "3"}},
		{"UPDATE part SET a = $1", []string{"3"}},
		{"DELETE FROM line WHERE no = $1", []string{"1"}},
		{"DELETE FROM orders USING item WHERE item.id = item_id AND item.name = $1 RETURNING orders.id",
			[]string{"pen"}},
	} {
		script := tw.rewriter.Plan(c.text, tw.session)
		want, wantRows := prepared(t, tw.original, c.text, c.args)
		got, gotRows := prepared(t, tw.proxied, string(script.Append(nil)), c.args)
		p := script.Statements[0]
		if !slices.Equal(got.ParamOIDs, want.ParamOIDs) {
			t.Errorf("%s: parameters of types %d, not %d", c.text, got.ParamOIDs, want.ParamOIDs)
		}
		if p.Params != len(want.ParamOIDs) {
			t.Errorf("%s: the plan has %d parameters, the statement %d", c.text, p.Params, len(want.ParamOIDs))
		}
		if p.Result.Reply == rewrite.Unchanged || len(got.Fields) != len(want.Fields)+p.HiddenColumns() {
			t.Errorf("%s: %d columns beside %d are not those of %v", c.text, len(got.Fields),
				len(want.Fields), p.Result.Sources)
			continue
		}
		if len(gotRows) == 0 || len(want.Fields) > 0 && len(gotRows) != len(wantRows) {
			t.Errorf("%s: %d rows, not %d", c.text, len(gotRows), len(wantRows))
		}
		for _, row := range gotRows {
			checkSizes(t, c.text, p, row[len(want.Fields):])
		}
	}
	tw.sameTables()
}

// prepared runs a prepared statement and returns its description, and its rows in binary.
func prepared(t *testing.T, c *pgconn.PgConn, text string, args []string) (*pgconn.StatementDescription, [][][]byte) {
	t.Helper()
	ctx := context.Background()
	d, err := c.Prepare(ctx, "", text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var values [][]byte
	for _, a := range args {
		values = append(values, []byte(a))
	}
	r := c.ExecPrepared(ctx, "", values, nil, []int16{1}).Read()
	if r.Err != nil {
		t.Fatalf("%s: %v", text, r.Err)
	}
	return d, r.Rows
}

// checkSizes fails the test unless hidden values are of the types that their items say.
func checkSizes(t *testing.T, text string, p *Plan, values [][]byte) {
	t.Helper()
	for _, s := range p.Result.Sources {
		for _, item := range s.Physical.Items {
			if size := sizes[item]; values[0] != nil && size != nil && !slices.Contains(size, len(values[0])) {
				t.Errorf("%s: %s of %d bytes", text, names[item], len(values[0]))
			}
			values = values[1:]
		}
	}
}

// TestLogPositionsOrderTheWritersOfARow has sessions count in one row: the positions that their statements tell are
// to be in the order of the counts.
func TestLogPositionsOrderTheWritersOfARow(t *testing.T) {
	server := testdb.PostgreSQL(t)
	name := testdb.NewPostgreSQLDatabase(t)
	r := New(tables{"public.hot": table("public.hot", "id int4, n int4", "primary(id)")}, Options{})
	s := Session{Version: server.Major(), Path: rewrite.ListOf("public")}
	ctx := context.Background()
	open := func() *pgconn.PgConn {
		c, err := pgconn.Connect(ctx, server.DSN(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(ctx) })
		return c
	}
	first := open()
	for _, unlogged := range []string{"", "UNLOGGED"} {
		if _, err := first.Exec(ctx, fmt.Sprintf("DROP TABLE IF EXISTS hot; CREATE %s TABLE hot (id int PRIMARY KEY, n int); INSERT INTO hot VALUES (1, 0)", unlogged)).ReadAll(); err != nil {
			t.Fatal(err)
		}
		texts := []string{"UPDATE hot SET n = n + 1 WHERE id = 1 RETURNING n",
			"INSERT INTO hot VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET n = hot.n + 1 RETURNING n"}
		var mu sync.Mutex
		var wg sync.WaitGroup
		written := map[string]string{} // count by log position, of as many digits
		for g := range 4 {
			c := open()
			wg.Go(func() {
				for range 20 {
					results, err := c.Exec(ctx, string(r.Plan(texts[g%2], s).Append(nil))).ReadAll()
					if err != nil {
						t.Error(err)
						return
					}
					row := results[0].Rows[0]
					var high, low uint64
					fmt.Sscanf(string(row[len(row)-1]), "%X/%X", &high, &low)
					mu.Lock()
					written[fmt.Sprintf("%020d", high<<32|low)] = fmt.Sprintf("%03s", row[0])
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		checkOrder(t, unlogged, written)
	}
}

// checkOrder fails the test unless positions are distinct and in the order of the counts.
func checkOrder(t *testing.T, kind string, written map[string]string) {
	t.Helper()
	type entry struct{ position, count string }
	var entries []entry
	for p, c := range written {
		entries = append(entries, entry{p, c})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.position, b.position) })
	if len(entries) != 80 {
		t.Errorf("%s: %d positions of 80 writes", kind, len(entries))
	}
	for i, e := range entries {
		if want := fmt.Sprintf("%03d", i+1); e.count != want {
			t.Fatalf("%s: write %s comes at place %s by its log position", kind, e.count, want)
		}
	}
}
