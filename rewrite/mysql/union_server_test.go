package mysql

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// collected runs a UNION that collects what it reads, and returns what the client sees of it, and the identities of the
// rows that were collected, each once.
func (s *readServer) collected(p *Plan) (result sight, ids []string) {
	s.t.Helper()
	s.exec(CaptureRead) // drops what was collected before
	v := Values{Tag: history.Tag{Txn: history.MakeTxnID(history.MaxRun-1, 7), Stmt: 1}}
	result = s.see(literal(p, v), p.HiddenColumns(), false)
	result.warnings = s.warned(p.Upstream.Deprecated.Sum())
	value, err := s.exec(CaptureRead).GetString(0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	entries, uncollected, err := ParseCapture([]byte(value))
	if err != nil || uncollected > 0 {
		s.t.Fatalf("%d uncollected, %v", uncollected, err)
	}
	s.arrays = nil
	for _, e := range entries {
		if e.Array != "" {
			s.arrays = append(s.arrays, e)
			continue
		}
		if e.Tag != v.Tag || e.Outcome != Seen || e.Source > len(p.Result.Sources) {
			s.t.Fatalf("an entry is %+v", e)
		}
		if e.RowID != "" {
			ids = append(ids, e.RowID)
		}
	}
	slices.Sort(ids)
	return result, slices.Compact(ids)
}

// unionServer has so many rows that plans differ, and statistics that stay as they are.
func unionServer(t *testing.T) *readServer {
	t.Helper()
	testdb.Only(t, "others collect nothing in reads", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.exec(CaptureInit)
	s.exec("INSERT INTO e (id, dep, pay, note, isotap_rowid, isotap_wlist) SELECT 100 + (n * 37) % 500, n % 7, n % 11, " +
		"CONCAT('n', n % 5), CONCAT('e', 100 + (n * 37) % 500), '0' FROM (" + testdb.Numbers(60) + ") AS numbers")
	s.exec("ALTER TABLE d STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
	s.exec("ALTER TABLE e STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
	s.exec("ANALYZE TABLE d, e")
	s.exec("SET GLOBAL innodb_status_output_locks = ON")
	return s
}

// TestUnionsTellTheRowsThatTheyRead draws UNIONs, and holds what a client sees of them, their plans and locks, and the
// rows that they tell against those of the client's text and of its queries.
func TestUnionsTellTheRowsThatTheyRead(t *testing.T) {
	s := unionServer(t)
	rewritten, locked, limited, ordered, others := 0, 0, 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		var query, first string
		var want []string
		columns := rapid.IntRange(1, 2).Draw(r, "columns")
		for i := range rapid.IntRange(2, 3).Draw(r, "queries") {
			if i > 0 {
				query += one(" UNION ", " UNION ", " UNION DISTINCT ", " UNION ALL ", " INTERSECT ", " EXCEPT ")
			}
			text, identities := drawUnited(r, columns)
			query += text
			if i == 0 {
				first = text
			}
			for _, q := range identities {
				result := s.exec(q)
				for row := range result.Values {
					if id, _ := result.GetString(row, 0); id != "" {
						want = append(want, id)
					}
				}
			}
		}
		query += one("", "", " ORDER BY 1", " ORDER BY 2 DESC, 1", " ORDER BY "+orderOf(first)) + one("", "", " LIMIT 3", " LIMIT 40")
		p := s.rewriter.Plan(query, s.session)
		if !p.Result.Collects {
			return
		}
		rewritten++
		if p.Result.Limit != nil {
			limited++
		}
		if strings.Contains(query, "ORDER BY") {
			ordered++
		}
		if strings.Contains(query, "INTERSECT") || strings.Contains(query, "EXCEPT") {
			others++
		}
		covered := p.Upstream.MayHideLocks // by an index, as other reads
		original := s.original(query, false)
		original.warnings = s.warned(0)
		proxied, got := s.collected(p)
		slices.Sort(want)
		want = slices.Compact(want)
		// As many rows as LIMIT lets through are told as inexact.
		if p.Result.Limit != nil && uint64(len(original.rows)) >= p.Result.Limit.Rows {
			want = slices.DeleteFunc(want, func(id string) bool { return !slices.Contains(got, id) })
		}
		if !slices.Equal(got, want) {
			r.Fatalf("%s tells %v, not %v", query, got, want)
		}
		if !slices.Equal(original.rows, proxied.rows) ||
			!slices.Equal(original.columns, proxied.columns) || original.warnings != proxied.warnings {
			r.Fatalf("%s: %v, not %v", query, proxied, original)
		}
		if as, is := s.flags(query, 0), s.flags(literal(p, Values{}), p.HiddenColumns()); !slices.Equal(as, is) {
			r.Fatalf("%s has the flags %x, not %x", query, is, as)
		}
		if rapid.IntRange(0, 3).Draw(r, "locks") == 0 && !covered {
			as, is := s.locksOf("SERIALIZABLE", query), s.locksOf("SERIALIZABLE", literal(p, Values{}))
			if locked += min(len(as), 1); !slices.Equal(as, is) {
				r.Fatalf("%s has more locks\n%s\nand lacks\n%s", query, less(is, as), less(as, is))
			}
		}
		if as, is := s.explained(query), s.explained(literal(p, Values{})); as != is && !covered {
			r.Fatalf("%s has the plan\n%s, not\n%s", query, is, as)
		}
	})
	if t.Logf("%d were rewritten, %d with ORDER BY, %d with LIMIT, %d with INTERSECT or EXCEPT, of %d the locks were compared", rewritten, ordered,
		limited, others, locked); rewritten == 0 || rewritten > 50 && locked == 0 {
		t.Error("no query was rewritten, or locked its rows")
	}
}

// orderOf returns the columns of a query's list that are no expressions, all of them if the order is to be total.
func orderOf(query string) string {
	list, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(query, "("), "SELECT "), " FROM")
	return strings.ReplaceAll(list, "e.id", "id")
}

// warned returns what the server says of the last statement, without as many of MySQL's warnings about assignments as
// isotap's own assignments get, which the proxy takes away.
func (s *readServer) warned(own int) string {
	r := s.exec("SHOW WARNINGS")
	var lines []string
	for i := range r.Values {
		code, _ := r.GetString(i, 1)
		message, _ := r.GetString(i, 2)
		if code == "1287" && own > 0 && s.session.Dialect == MySQL {
			own--
			continue
		}
		lines = append(lines, code+" "+message)
	}
	return strings.Join(lines, "\n")
}

// flags returns those of a query's columns but the last.
func (s *readServer) flags(query string, hidden int) (all []uint16) {
	fields := s.exec(query).Fields
	for _, f := range fields[:len(fields)-hidden] {
		all = append(all, f.Flag)
	}
	return all
}

// explained returns the plan of a query, as a table. MariaDB says that what assigns is not to be cached.
func (s *readServer) explained(query string) string {
	var lines []string
	r := s.exec("EXPLAIN " + query)
	for i := range r.Values {
		var cells []string
		for j := range r.Fields {
			cell, _ := r.GetString(i, j)
			cells = append(cells, cell)
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "UNCACHEABLE ", "")
}

// drawUnited draws a query of a UNION with so many columns, and the queries of the ids of the rows that it reads.
func drawUnited(r *rapid.T, columns int) (text string, identities []string) {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
	lists := [][]string{nil, {"note", "pay", "e.id + pay", "UPPER(note)", "pay > 3", "dep", "e.id"}, {"note, dep", "e.id, pay", "dep, note", "pay, 'x'", "note, pay"}}
	from, of := "e", []string{"e"}
	where := one("", " WHERE e.id > 300", " WHERE dep = 3", " WHERE dep IN (1, 2, 5) AND note < 'n3'", " WHERE e.id < 4",
		" WHERE pay > 8", " WHERE e.id = 3", " WHERE e.id > 5000", " WHERE 1 = 0")
	switch rapid.IntRange(0, 7).Draw(r, "from") {
	case 0:
		from, of = "e JOIN d ON d.id = dep", []string{"e", "d"}
	case 1:
		from, of = "d LEFT JOIN e ON e.dep = d.id AND pay > 5", []string{"e", "d"}
		lists = [][]string{nil, {"boss", "note", "CONCAT(name, boss)"}, {"boss, pay", "note, boss"}}
	case 2:
		from, of, where = "d", []string{"d"}, one("", " WHERE d.id = 2", " WHERE boss > 2")
		lists = [][]string{nil, {"boss", "boss + d.id"}, {"d.id, boss", "boss, name"}}
	case 3:
		return one([]string{"SELECT 'n1'", "SELECT 'n1', 3"}[columns-1], []string{"SELECT 7", "SELECT NULL, 1"}[columns-1]), nil
	}
	for _, table := range of {
		identities = append(identities, "SELECT IFNULL("+table+".isotap_rowid, '') FROM "+from+where)
	}
	text = "SELECT " + one(lists[columns]...) + " FROM " + from + where
	if rapid.IntRange(0, 4).Draw(r, "braces") == 0 {
		text = "(" + text + ")"
	}
	return text, identities
}

// TestOtherSetOperationsCollectNothing has what the server may execute in another way, or end early, left alone.
func TestOtherSetOperationsCollectNothing(t *testing.T) {
	s := unionServer(t)
	for _, query := range []string{
		"SELECT note, dep FROM e UNION SELECT name, id FROM d ORDER BY 1", "SELECT note FROM e UNION SELECT boss FROM d LIMIT 1, 2",
		"SELECT note FROM e UNION SELECT name FROM d UNION ALL SELECT name FROM d ORDER BY 1",
		"(SELECT note FROM e LIMIT 2) UNION SELECT boss FROM d", "SELECT note FROM e UNION SELECT COUNT(*) FROM d",
		"SELECT DISTINCT note FROM e UNION SELECT boss FROM d", "SELECT note FROM e INTERSECT SELECT boss FROM d",
		"SELECT dep FROM e UNION SELECT boss FROM d", "SELECT note FROM (SELECT note FROM e) x UNION SELECT boss FROM d",
		"SELECT note FROM e FOR UPDATE UNION SELECT boss FROM d", "SELECT @a := note FROM e UNION SELECT boss FROM d",
		"SELECT /*+ MAX_EXECUTION_TIME(9) */ note FROM e UNION SELECT boss FROM d"} {
		if p := s.rewriter.Plan(query, s.session); p.Result.Collects {
			t.Errorf("%s collects its rows", query)
		}
	}
}
