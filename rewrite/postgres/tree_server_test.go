package postgres

import (
	"cmp"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"
)

// jsonTrees are queries that make trees, as programs ask for them: each shows the ids of all rows that it reads but for
// those at the top.
var jsonTrees = grammar{
	"read": {"SELECT i.id, <orders> AS orders FROM item i<of i>", "SELECT i.*, <orders> AS orders, <lines of item> AS ls FROM item i<of i> ORDER BY i.id DESC", "SELECT i.name, i.id, r.x FROM item i LEFT JOIN LATERAL (<lateral>) r ON true<of i><limit>",
		"SELECT i.id, r.x, s.x FROM item i LEFT JOIN LATERAL (<lateral>) r ON true LEFT JOIN LATERAL (<lateral>) AS s ON <true><of i>",
		"SELECT <agg>(r) FROM (<rows>) r", "SELECT COALESCE(<agg>(r.*), '[]'::json<b>) AS x FROM (<rows>) AS r", "WITH w AS (<rows>) SELECT count(r), <agg>(r) AS x FROM (SELECT * FROM w) r", "WITH w AS (<rows>), v AS (SELECT <agg>(w) AS data FROM w) SELECT COALESCE((SELECT v.data FROM v), '[]') AS data",
		"SELECT <agg>(r.x) FROM (<rows>) r", "SELECT <agg>(r ORDER BY r.id DESC) FROM (<rows>) r", "SELECT l.a, (SELECT <agg>(r) FROM (<rows>) r WHERE r.id = l.a) FROM loose l",
		"SELECT json_build_object('id', i.id, 'o', <orders>, 'c', CASE WHEN i.id > <int> THEN <orders> END) FROM item i<of i>", "SELECT q.o FROM (SELECT i.id, <orders> AS o FROM item i) q",
		"SELECT row_to_json((SELECT e FROM (SELECT b.id AS id, r.x AS x) AS e)) AS root FROM (SELECT * FROM item<limited>) AS b LEFT OUTER JOIN LATERAL (<lateral of b>) AS r ON ('true')",
		"SELECT COALESCE(json_agg(root), '[]') AS root FROM (SELECT row_to_json((SELECT e FROM (SELECT b.id AS id, r.x AS x) AS e)) AS root FROM (SELECT * FROM item<limited>) AS b LEFT OUTER JOIN LATERAL (<lateral of b>) AS r ON ('true')) AS t"},
	"b": {"", "::json"},
	"rows": {"SELECT i.id, <orders> AS x FROM item i<of i>", "SELECT i.id, i.name, <orders> AS x, <lines of item> AS y FROM item i<of i>", "SELECT i.id, r.x FROM item i LEFT JOIN LATERAL (<lateral>) r ON true<of i>",
		"SELECT i.id, r.x AS x, <orders> AS z FROM item i LEFT JOIN LATERAL (<lateral>) r ON true<of i>", "SELECT t.id, t.x FROM (SELECT i.id, <orders> AS x FROM item i<of i>) t", "SELECT i.id, <orders> AS x FROM item i ORDER BY i.id LIMIT 2", "SELECT i.id, <orders> AS x FROM item i LIMIT 9"},
	"of i":    {"", "", " WHERE i.id < 3", " WHERE i.stock > <int>"},
	"limit":   {"", "", " LIMIT 2", " LIMIT 7"},
	"limited": {"", " WHERE stock > <int>", " ORDER BY id LIMIT 2"},
	"true":    {"true", "TRUE", "'true'", "true"},
	"agg":     {"json_agg", "json_agg", "jsonb_agg", "json_agg"},
	"orders": {"(SELECT json_agg(ox) FROM (<order rows>) ox)", "(SELECT COALESCE(json_agg(agg), '[]') FROM (<order rows>) AS agg)", "(SELECT json_agg(json_build_object('id', o.id, 'l', <lines>)) FROM orders o<of o>)", "(SELECT jsonb_object_agg(o.id, <lines>) FROM orders o<of o>)",
		"ARRAY(SELECT json_build_array(o.id, <lines>) FROM orders o<of o>)", "(SELECT to_json(ox) FROM (<order rows> ORDER BY o.id LIMIT 1) ox)", "(SELECT json_agg(json_build_object('id', o.id, 'l', <lines>) ORDER BY o.qty) FROM orders o<of o>)", "(SELECT json_agg(ox) FROM (SELECT y.id, y.l FROM (<order rows>) y) ox)",
		"(SELECT json_agg(json_build_object('id', o.id, 'r', r.x)) FROM orders o LEFT JOIN LATERAL (<lines lateral>) r ON true<of o>)", "(SELECT json_agg(json_build_array(o.id, CASE WHEN o.qty > <int> THEN <lines> END)) FROM orders o<of o>)",
		"(SELECT json_agg(json_build_array(o.id, COALESCE(o.note, <lines>::text))) FROM orders o<of o>)", "(SELECT json_agg(o.id) FILTER (WHERE o.qty > 0) FROM orders o WHERE o.item_id = i.id AND o.qty > 0)"},
	"order rows": {"SELECT o.id, o.note FROM orders o<of o>", "SELECT o.id, <lines> AS l FROM orders o<of o>", "SELECT o.id, <lines> AS l, o.qty FROM orders o<of o>", "SELECT o.id, o.note AS l, (SELECT e FROM (SELECT o.id AS k) e) AS e FROM orders o<of o>",
		"SELECT o.id, r.x AS l FROM orders o LEFT JOIN LATERAL (<lines lateral>) AS r ON true<of o>"},
	"of o":          {" WHERE o.item_id = i.id", " WHERE o.item_id = i.id", " WHERE item_id = i.id AND qty > <int>", " WHERE o.qty > <int>"},
	"lines":         {"(SELECT json_agg(json_build_array(l.order_id, l.no)) FROM line l WHERE l.order_id = o.id)", "(SELECT json_agg(z) FROM (SELECT l.* FROM line l WHERE l.order_id = o.id) z)", "(SELECT COALESCE(json_agg(z), '[]') FROM (SELECT order_id, no FROM line WHERE order_id = o.id ORDER BY no DESC) z)", "(SELECT json_agg(a.no ORDER BY a.order_id) FROM line a WHERE a.order_id < o.id)", "(SELECT json_agg(c.b) FROM loose c)"},
	"lines lateral": {"SELECT json_agg(json_build_array(l.order_id, l.no)) AS x FROM line l WHERE l.order_id = o.id", "SELECT COALESCE(json_agg(z), '[]') AS x FROM (SELECT l.* FROM line l WHERE l.order_id = o.id) AS z", "SELECT row_to_json(z) AS x FROM (SELECT * FROM item j WHERE j.id = o.item_id LIMIT 1) z"},
	"lines of item": {"(SELECT json_agg(l.a) FROM loose l WHERE l.a = i.id)", "(SELECT json_agg(l.order_id) FROM line l JOIN orders o ON o.id = l.order_id WHERE o.item_id = i.id)"},
	"lateral":       {"SELECT json_agg(json_build_array(o.id, <lines>)) AS x FROM orders o<of o>", "SELECT COALESCE(json_agg(ox), '[]'::json) AS x FROM (<order rows>) ox", "SELECT COALESCE(jsonb_agg(data), '[]') AS x FROM (SELECT t.data FROM (SELECT jsonb_build_object('id', u.id) AS data FROM (SELECT o.* FROM orders o<of o>) AS u) AS t) AS v", "SELECT COALESCE(json_agg(json_build_array(o.id, r.x)), '[]') AS x FROM orders o LEFT JOIN LATERAL (<lines lateral>) r ON true<of o>", "SELECT jsonb_agg(t.d) AS x FROM (SELECT jsonb_build_object('id', u.id, 'l', r.x) AS d FROM (SELECT o.* FROM orders o<of o>) AS u LEFT JOIN LATERAL (SELECT json_agg(l.no) AS x FROM line l WHERE l.order_id = u.id) r ON true) t"},
	"lateral of b":  {"SELECT COALESCE(json_agg(x), '[]') AS x FROM (SELECT row_to_json((SELECT e FROM (SELECT c.id AS id) AS e)) AS x FROM (SELECT * FROM orders WHERE ((b.id) = (item_id))) AS c) AS s", "SELECT json_agg(o.id) AS x FROM orders o WHERE o.item_id = b.id AND o.id NOT IN (SELECT v.a FROM void v)", "SELECT json_agg(l.a) AS x FROM loose l WHERE l.a >= b.id"},
	"int":           {"0", "1", "2", "3"},
}

// TestTreesTellTheRowsThatTheyShow deletes each row of each table: what a tree gives is another thing then if, and only
// if, the row was told.
func TestTreesTellTheRowsThatTheyShow(t *testing.T) {
	tw := newTwins(t)
	exact, all := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		text := jsonTrees.draw(r, "<read>")
		for _, conn := range []*pgconn.PgConn{tw.original, tw.proxied} {
			run(t, conn, "BEGIN")
			defer run(t, conn, "ROLLBACK")
			run(t, conn, "SAVEPOINT unwritten")
		}
		all++
		p, hidden, _, ok := tw.exactly(r, text)
		if !ok {
			return
		}
		exact++
		if row := tw.ofUse(text, p, hidden); row != "" {
			r.Fatalf("%s\ndoes not tell %s", text, row)
		}
		if row := tw.ofNoUse(text, p, hidden); row != "" {
			r.Fatalf("%s\ntells %s", text, row)
		}
	})
	if exact == 0 {
		t.Error("no statement is exact")
	}
	t.Logf("%d of %d are exact", exact, all)
}

// ofNoUse returns a row that was told, without which the statement gives the same; empty where there is none.
func (tw *twins) ofNoUse(text string, p *Plan, hidden [][]string) string {
	ask := func() []string {
		defer run(tw.t, tw.proxied, "ROLLBACK TO unwritten")
		return tw.ask(text)
	}
	want := ask()
	for i, s := range p.Result.Sources {
		if s.Present || s.Table == "public.item" { // of which the ids need not be shown
			continue
		}
		for _, row := range told(p, hidden, i) {
			place := strings.Split(row, ";")
			run(tw.t, tw.proxied, "DELETE FROM "+s.Table+" WHERE ctid = '"+place[1]+"'")
			if slices.Equal(ask(), want) {
				return s.Table + " " + row
			}
		}
	}
	return ""
}

// TestTreesOfApplicationsLookTheSame prepares and runs the statements of testdata/applications as they are, and as
// isotap sends them.
func TestTreesOfApplicationsLookTheSame(t *testing.T) {
	tw := newTwins(t)
	tw.session.Extended, tw.session.Untyped = true, true
	text, err := os.ReadFile("testdata/applications/trees")
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "observe\n") {
		text, _, ok := strings.Cut(part, "\n----")
		if !ok {
			continue
		}
		script := tw.rewriter.Plan(text, tw.session)
		d, err := tw.original.Prepare(t.Context(), "", text, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var args []string
		for _, oid := range d.ParamOIDs {
			args = append(args, map[uint32]string{25: "pen"}[oid])
			args[len(args)-1] = cmp.Or(args[len(args)-1], "1")
		}
		want, wantRows := prepared(t, tw.original, text, args)
		got, gotRows := prepared(t, tw.proxied, string(script.Append(nil)), args)
		if !slices.Equal(got.ParamOIDs, want.ParamOIDs) {
			t.Errorf("%s: parameters of types %d, not %d", text, got.ParamOIDs, want.ParamOIDs)
		}
		for i := range want.Fields {
			if got.Fields[i].Name != want.Fields[i].Name || got.Fields[i].DataTypeOID != want.Fields[i].DataTypeOID ||
				got.Fields[i].TableAttributeNumber != want.Fields[i].TableAttributeNumber {
				t.Errorf("%s: the column %+v is not %+v", text, got.Fields[i], want.Fields[i])
			}
		}
		if len(gotRows) < len(wantRows) {
			t.Fatalf("%s: %d rows, not %d", text, len(gotRows), len(wantRows))
		}
		for i, row := range wantRows {
			if !reflect.DeepEqual(gotRows[i][:len(row)], row) {
				t.Errorf("%s: %q is not %q", text, gotRows[i][:len(row)], row)
			}
		}
	}
}
