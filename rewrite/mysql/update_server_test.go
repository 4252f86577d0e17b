package mysql

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

const mixedTable = `CREATE TABLE t (id INT PRIMARY KEY, c1 INT, c2 INT, s VARCHAR(10) COLLATE utf8mb4_general_ci,
	f FLOAT, d DOUBLE,
	n DECIMAL(10,2), ts TIMESTAMP NULL, dt DATETIME(3), e ENUM('', 'x', 'y'), st SET('a', 'b'), bi BIT(5), ch CHAR(5), bn BINARY(4),
	body TEXT, bl BLOB, j JSON, y YEAR, g POINT, up TIMESTAMP(6) NULL ON UPDATE CURRENT_TIMESTAMP(6), nn INT NOT NULL DEFAULT 7,
	ge INT GENERATED ALWAYS AS (c1 + 1) STORED, KEY (c1), UNIQUE KEY (nn, id))`

const mixedRows = `INSERT INTO t (id, c1, c2, s, f, d, n, ts, dt, e, st, bi, ch, bn, body, bl, j, y, g, up) VALUES
	(1, 10, 20, 'a', 0.1, 0.1, 1.10,
		'2020-01-01 00:00:00', '2020-01-01 00:00:00.5', 'x', 'a,b', 3, 'ab', 'ab', 'text',
		x'00ff', _utf8mb4'{"a": 1}', 2020, POINT(1, 2), NULL),
	(2, 20, 10, 'A', 16777216, 1e300, -0.5, NULL, NULL, '', '', 0, '', '', '', '', _utf8mb4'null', NULL, NULL, NULL),
	(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(4, 10, 10, 'a ', -0.1, -0.1, 0,
		'2020-01-01 00:00:01', '2020-01-01', 'y', 'b', 31, 'a', 'a', 'TEXT', 'x', _utf8mb4'[1,2]', 1999, POINT(0, 0), NULL),
	(5, 5, 5, 'ä', 1.0000001, 0, 99999999.99,
		'2038-01-01 00:00:00', '1000-01-01', 'x', 'a', 1, 'x', 'x', 'ä', 'ä', _utf8mb4'1', 0, NULL, NULL)`

// TestUpdateCaptureIsTransparentAndExact runs updates as they are and rewritten, and demands the same
// counts, warnings, errors and contents; and that exactly the rows whose contents changed are tagged
// and captured with the list that they had.
func TestUpdateCaptureIsTransparentAndExact(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, tc := range []struct {
		name     string
		query    string
		settings []string
	}{
		{"equal values", "UPDATE t SET c1 = c1, s = s, f = f, n = n", nil},
		{"some equal values", "UPDATE t SET c1 = 10", nil},
		{"string to number", "UPDATE t SET c1 = '10'", nil},
		{"collation equal, bytes not", "UPDATE t SET s = 'A'", nil},
		{"trailing space", "UPDATE t SET s = 'a '", nil},
		{"char pads", "UPDATE t SET ch = 'a  '", nil},
		{"binary pads", "UPDATE t SET bn = 'a'", nil},
		{"float", "UPDATE t SET f = 0.1", nil},
		{"float beyond six digits", "UPDATE t SET f = f + 1", nil},
		{"float last bit", "UPDATE t SET f = 16777218 WHERE id = 2", nil},
		{"float sign of zero", "UPDATE t SET f = f * 0, d = d * -0e0", nil},
		{"double", "UPDATE t SET d = 0.1e0", nil},
		{"double last bit", "UPDATE t SET d = d + 1e-17", nil},
		{"decimal rounds", "UPDATE t SET n = 1.104", nil},
		{"timestamp from string", "UPDATE t SET ts = '2020-01-01'", nil},
		{"timestamp zone", "UPDATE t SET ts = FROM_UNIXTIME(1577836800)", []string{"SET time_zone = '+05:30'"}},
		{"datetime fraction", "UPDATE t SET dt = '2020-01-01 00:00:00.5004'", nil},
		{"enum by number", "UPDATE t SET e = 2", nil},
		{"enum invalid beside empty", "UPDATE t SET e = 'nope'", []string{"SET sql_mode = ''"}},
		{"set", "UPDATE t SET st = 'b,a'", nil},
		{"bit", "UPDATE t SET bi = b'00011'", nil},
		{"text", "UPDATE t SET body = 'text'", nil},
		{"blob", "UPDATE t SET bl = x'00ff'", nil},
		{"json", `UPDATE t SET j = '{"a":1}'`, nil},
		{"json same bytes", `UPDATE t SET j = '{"a": 1}'`, nil},
		{"year", "UPDATE t SET y = 20", nil},
		{"geometry", "UPDATE t SET g = POINT(1, 2)", nil},
		{"on update column", "UPDATE t SET c2 = 10, up = up", nil},
		{"truncation", "UPDATE t SET s = 'a12345678901234', c1 = 99999999999", []string{"SET sql_mode = ''"}},
		{"truncation, strict", "UPDATE t SET s = 'a12345678901234'", nil},
		{"null into not null", "UPDATE t SET nn = NULL", []string{"SET sql_mode = ''"}},
		{"default", "UPDATE t SET nn = DEFAULT, c1 = DEFAULT(c1)", nil},
		{"rand", "UPDATE t SET c1 = FLOOR(RAND(3) * 3)", nil},
		{"user variable", "UPDATE t SET c1 = (@n := IFNULL(@n, 0) + 1) ORDER BY id", nil},
		{"user variable that is not set", "UPDATE t SET c1 = (@m := IFNULL(@m, 0) + 1) ORDER BY id", nil},
		{"user variable in where", "UPDATE t SET c2 = 3 WHERE (@n := IFNULL(@n, 0) + 1) < 3 ORDER BY id", nil},
		{"self reference", "UPDATE t SET c1 = c2, c2 = c1", nil},
		{"increment", "UPDATE t SET c1 = c1 + 1, c2 = c1 + 1", nil},
		{"twice the same column", "UPDATE t SET c1 = c1 + 1, c1 = c1 - 1", nil},
		{"key", "UPDATE t SET id = id + 100", nil},
		{"key shift in order", "UPDATE t SET id = id + 1 ORDER BY id DESC", nil},
		{"duplicate key", "UPDATE t SET id = 3 WHERE id > 3", nil},
		{"scan of the updated index", "UPDATE t FORCE INDEX (c1) SET c1 = c1 + 5 WHERE c1 >= 5", nil},
		{"order and limit", "UPDATE t SET c2 = 99 ORDER BY c1 DESC, id LIMIT 2", nil},
		{"limit skips equal rows", "UPDATE t SET c1 = 10 ORDER BY id LIMIT 2", nil},
		{"nulls", "UPDATE t SET c1 = NULL, s = NULL", nil},
		{"null to empty", "UPDATE t SET s = IFNULL(s, ''), bl = IFNULL(bl, '')", nil},
		{"null to N", "UPDATE t SET s = IFNULL(s, 'N')", nil},
		{"values that look like separators", "UPDATE t SET s = ',N,', ch = ''", nil},
		{"subquery", "UPDATE t SET c1 = (SELECT COUNT(*) FROM (SELECT 1 UNION SELECT 2) x) WHERE id = (SELECT 4)", nil},
		{"alias", "UPDATE t AS x SET x.c1 = x.c2 WHERE x.id > 1", nil},
		{"generated column", "UPDATE t SET c1 = 11, ge = DEFAULT", nil},
		{"no row", "UPDATE t SET c1 = 1 WHERE id = 77", nil},
		{"comments and semicolon", "UPDATE t SET c1 = 1 /* x */ WHERE id = 1 -- y\n ;", nil},
		{"division by zero", "UPDATE t SET c1 = 1 / 0", []string{"SET sql_mode = 'ERROR_FOR_DIVISION_BY_ZERO'"}},
		{"latin1 session", "UPDATE t SET s = 'A', c1 = '10'", []string{"SET NAMES latin1"}},
		{"cp1251 session", "UPDATE t SET s = 'A'", []string{"SET NAMES cp1251"}},
		{"binary session", "UPDATE t SET s = 'A'", []string{"SET NAMES binary"}},
		{"utf16 connection", "UPDATE t SET s = 'A', body = 'text'", []string{"SET character_set_connection = utf16"}},
		{"utf16 connection, one text", "UPDATE t SET body = 'text'", []string{"SET character_set_connection = utf16"}},
		{"ansi mode", `UPDATE t SET "s" = 'A' || 'b'`, []string{"SET sql_mode = 'ANSI'"}},
		{"no backslash escapes", `UPDATE t SET s = '\' WHERE id < 3`,
			[]string{"SET sql_mode = 'NO_BACKSLASH_ESCAPES'"}},
		{"padded chars", "UPDATE t SET ch = 'ab'", []string{"SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if onTiDB() && (strings.HasPrefix(tc.name, "cp1251") || strings.HasPrefix(tc.name, "utf16")) {
				t.Skip("TiDB has no such charset")
			}
			checkUpdate(t, tc.query, tc.settings...)
			if !choosesRows.MatchString(tc.query) {
				for id := 1; id <= 5; id++ { // of one row: it has a form of its own
					checkUpdate(t, tc.query+" WHERE id = "+strconv.Itoa(id), tc.settings...)
				}
			}
		})
	}
}

// choosesRows finds out whether an UPDATE chooses rows already.
var choosesRows = regexp.MustCompile(` (WHERE|ORDER BY|LIMIT) `)

// checkUpdate runs an UPDATE as it is and rewritten.
func checkUpdate(t *testing.T, query string, settings ...string) {
	t.Helper()
	tw := newTwins(t, append(settings, "SET timestamp = 1700000000.5, @n = NULL")...)
	for _, s := range settings {
		if mode, ok := strings.CutPrefix(s, "SET sql_mode = "); ok {
			tw.session.SetSQLMode(strings.ReplaceAll(strings.Trim(mode, "'"), "ANSI", "ANSI_QUOTES,PIPES_AS_CONCAT"))
		}
	}
	tw.create(mixedTable, mixedRows)
	before, _ := tw.versions()
	tag := tw.nextTag()
	want := tw.outcome(tw.original, query)
	p := tw.rewriter.Plan(query, tw.session)
	if p.Upstream.Pieces == nil && onTiDB() {
		if got := tw.outcome(tw.proxied, tw.observed(query)); got != want {
			t.Errorf("masked %+v\noriginal  %+v", got, want)
		}
		return
	}
	p = tw.plan(query)
	got := tw.outcome(tw.proxied, literal(p, Values{Tag: tag})).without(p.Upstream.Deprecated.Sum())
	if got != want {
		t.Errorf("%s:\nrewritten %+v\noriginal  %+v", query, got, want)
	}
	entries, uncollected := tw.captured()
	if uncollected != 0 {
		t.Errorf("%d entries were not collected", uncollected)
	}
	if want.code == 0 {
		tw.checkEntries(before, entries, tag)
	}
}

// checkEntries demands that the rows whose values differ from before, and no others, carry the tag
// behind the initial version and have one entry. Rows that were matched but stay as they were have an
// entry that says so.
func (tw *twins) checkEntries(before map[string]string, entries []CaptureEntry, tag history.Tag) {
	tw.t.Helper()
	after, wlists := tw.versions()
	seen, captured := make(map[string]bool), make(map[string]bool)
	for _, e := range entries {
		if seen[e.RowID] {
			tw.t.Errorf("row %s was captured twice", e.RowID)
		}
		seen[e.RowID], captured[e.RowID] = true, e.Outcome == Changed
		if e.Tag != tag || len(e.WList) != 1 || !e.WList[0].Initial() {
			tw.t.Errorf("entry %+v does not replace the initial version by %v", e, tag)
		}
	}
	for id, values := range after {
		changed := values != before[id]
		if changed != captured[id] {
			tw.t.Errorf("row %s changed: %v, captured: %v; %s -> %s", id, changed, captured[id], before[id], values)
		}
		want := "0"
		if changed {
			want = "0," + tag.String()
		}
		if wlists[id] != want {
			tw.t.Errorf("row %s has the wList %q, not %q", id, wlists[id], want)
		}
	}
}

func TestPreparedUpdateIsCapturedOnEveryExecution(t *testing.T) {
	testdb.Only(t, "others do not observe it", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	tw := newTwins(t, "SET timestamp = 1700000000.5")
	tw.create(mixedTable, mixedRows)
	const query = "UPDATE t SET c1 = ?, s = CONCAT(?, s) WHERE id = ?"
	p := tw.plan(query)
	text, _ := prepared(p, Values{}, nil)
	stmt, err := tw.proxied.PrepareContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	for i, client := range [][]any{{1, "x", 1}, {1, "", 1}, {2, "y", 4}, {"3", "z", 5}} {
		tag := tw.nextTag()
		_, args := prepared(p, Values{Tag: tag}, client)
		r, err := stmt.ExecContext(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := r.RowsAffected()
		want, _ := exec(t, tw.original, query, client...).RowsAffected()
		if got != want {
			t.Errorf("execution %d: %d rows affected, the original affects %d", i, got, want)
		}
		entries, _ := tw.captured()
		if len(entries) != 1 || entries[0].Tag != tag || (entries[0].Outcome == Same) != (want == 0) {
			t.Errorf("execution %d: captured %+v, want one entry with tag %v for %d changed rows", i, entries, tag,
				want)
		}
	}
	if got, want := tw.contents(tw.proxied), tw.contents(tw.original); got != want {
		t.Errorf("table after the rewritten statements:\n%s\nafter the originals:\n%s", got, want)
	}
}

func TestRollbackKeepsCapturedEntries(t *testing.T) {
	tw := newTwins(t)
	tw.create(mixedTable, mixedRows)
	tag := tw.nextTag()
	exec(t, tw.proxied, "BEGIN")
	exec(t, tw.proxied, literal(tw.plan("UPDATE t SET c2 = 77 WHERE id < 3"), Values{Tag: tag}))
	exec(t, tw.proxied, "ROLLBACK")
	entries, _ := tw.captured()
	if len(entries) != 2 || entries[0].RowID != "r1" || entries[1].RowID != "r2" {
		t.Errorf("captured %+v, want r1 and r2", entries)
	}
	if again, _ := tw.captured(); len(again) != 0 {
		t.Errorf("CaptureRead left %+v", again)
	}
}

func TestRowsWithoutIdentityAreTaggedAndReported(t *testing.T) {
	tw := newTwins(t)
	tw.create(mixedTable, mixedRows)
	exec(t, tw.proxied, "UPDATE t SET isotap_rowid = NULL, isotap_wlist = NULL WHERE id = 1")
	tag := tw.nextTag()
	exec(t, tw.proxied, literal(tw.plan("UPDATE t SET c2 = 77 WHERE id = 1"), Values{Tag: tag}))
	entries, _ := tw.captured()
	if len(entries) != 1 || entries[0].RowID != "" || entries[0].WList != nil || entries[0].Tag != tag {
		t.Errorf("captured %+v, want one entry without row id and list", entries)
	}
	if _, got := rows(t, tw.proxied, "SELECT isotap_wlist FROM t WHERE id = 1"); got[0] != `"0,`+tag.String()+`"` {
		t.Errorf("the row's list is %s", got[0])
	}
}

func TestUninitialisedCaptureStillTagsRows(t *testing.T) {
	tw := newTwins(t)
	tw.create(mixedTable, mixedRows)
	exec(t, tw.proxied, "SET @isotap = NULL, @isotap_b = NULL, @isotap_l = NULL, @isotap_n = NULL")
	tag := tw.nextTag()
	exec(t, tw.proxied, literal(tw.plan("UPDATE t SET c2 = 77 WHERE id = 1"), Values{Tag: tag}))
	if _, got := rows(t, tw.proxied, "SELECT isotap_wlist FROM t WHERE id = 1"); got[0] != `"0,`+tag.String()+`"` {
		t.Errorf("the row's list is %s", got[0])
	}
}

// TestListIsCutAtWholeTags updates one row until its list no longer fits, in a column of every size
// around the length of some tags.
func TestListIsCutAtWholeTags(t *testing.T) {
	for _, size := range []int{minWList, 45, 60, 61, 62, 63, 64, 255} {
		tw := newTwins(t)
		tw.create("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0)")
		table := tw.describe(size)
		tw.rewriter = New(tables{table.Name: table}, Options{})
		exec(t, tw.proxied, "ALTER TABLE t MODIFY "+tw.wListDefinition(size))
		p := tw.plan("UPDATE t SET v = v + 1")
		all := []history.Tag{{}}
		for i := range 40 {
			tag := tw.nextTag()
			tag.Stmt = uint32(1) << (i % 32) // of various lengths
			all = append(all, tag)
			exec(t, tw.proxied, literal(p, Values{Tag: tag}))
			_, wlists := tw.versions()
			list, err := history.ParseWList(wlists["r1"])
			if err != nil || len(wlists["r1"]) > size {
				t.Fatalf("size %d, update %d: list %q: %v", size, i, wlists["r1"], err)
			}
			for j := range list {
				if list[len(list)-1-j] != all[len(all)-1-j] {
					t.Fatalf("size %d, update %d: list %v is not the end of %v", size, i, list, all)
				}
			}
			if len(list) < min(2, len(all)) {
				t.Fatalf("size %d, update %d: the replaced version is not in %v", size, i, list)
			}
		}
		entries, _ := tw.captured()
		if len(entries) != 40 {
			t.Errorf("size %d: %d entries, want 40", size, len(entries))
		}
	}
}

func manyRows(t *testing.T, n int) *twins {
	tw := newTwins(t)
	tw.create("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t (id, v) SELECT n, 0 FROM ("+
		testdb.Numbers(n)+") AS s")
	return tw
}

func TestHundredThousandRowsAreCaptured(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	tw := manyRows(t, 100_000)
	query := literal(tw.plan("UPDATE t SET v = v + 1"), Values{Tag: tw.nextTag()})
	start := time.Now()
	exec(t, tw.original, "UPDATE t SET v = v + 1")
	plain := time.Since(start)
	start = time.Now()
	exec(t, tw.proxied, query)
	took := time.Since(start)
	entries, uncollected := tw.captured()
	t.Logf("original %v, captured %v, read and parsed %v", plain, took, time.Since(start)-took)
	if len(entries) != 100000 || uncollected != 0 {
		t.Errorf("%d entries and %d uncollected, want 100000 and 0", len(entries), uncollected)
	}
}

func TestCollectingStopsAtAQuarterOfMaxPacket(t *testing.T) {
	tw := manyRows(t, 20_000)
	tw.session.MaxPacket = 1 << 20
	tag := tw.nextTag()
	r := exec(t, tw.proxied, literal(tw.plan("UPDATE t SET v = v + 1"), Values{Tag: tag}))
	if n, _ := r.RowsAffected(); n != 20000 {
		t.Errorf("%d rows affected, want 20000", n)
	}
	entries, uncollected := tw.captured()
	if uint64(len(entries))+uncollected != 20000 || uncollected == 0 || len(entries) < 5000 {
		t.Errorf("%d entries and %d uncollected, want 20000 together and some of both", len(entries), uncollected)
	}
	if _, got := rows(t, tw.proxied, "SELECT COUNT(*) FROM t WHERE isotap_wlist = '0,"+tag.String()+
		"'"); got[0] != `"20000"` {
		t.Errorf("%s rows are tagged, want 20000", got[0])
	}
	tw.session.MaxPacket = 16 << 20
	exec(t, tw.proxied, literal(tw.plan("UPDATE t SET v = v + 1 WHERE id = 1"), Values{Tag: tag}))
	if entries, uncollected := tw.captured(); len(entries) != 1 || uncollected != 0 {
		t.Errorf("after CaptureRead: %d entries and %d uncollected, want 1 and 0", len(entries), uncollected)
	}
}
