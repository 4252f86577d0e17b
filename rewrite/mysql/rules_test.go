package mysql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken/shape"
)

// TestStrictPlansLeaveCoveredReadsAlone: strict plans leave alone what an index might cover.
func TestStrictPlansLeaveCoveredReadsAlone(t *testing.T) {
	r := New(testSchema(), Options{StrictPlans: true})
	for query, want := range map[string]history.Observation{
		"SELECT id FROM item WHERE price > 2 LIMIT 3":       history.Opaque,
		"SELECT id, name FROM item WHERE price > 2 LIMIT 3": history.Exact,
	} {
		p := r.Plan(query, testSession())
		if p.Observation != want || want == history.Opaque &&
			(p.Reason != history.ReasonPlan || p.Upstream.Pieces != nil || p.Upstream.MayHideLocks) {
			t.Errorf("%s: %v (%s), pieces %v, want %v", query, p.Observation, p.Reason, p.Upstream.Pieces, want)
		}
	}
}

// TestDeepStatementsAreNotParsed would end the process with a stack overflow otherwise.
func TestDeepStatementsAreNotParsed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r := New(testSchema(), Options{})
	const n = 1 << 20
	for _, query := range []string{
		"SELECT " + strings.Repeat("(", maxDepth+1) + "1" + strings.Repeat(")", maxDepth+1) + " FROM item",
		"SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " FROM item",
		"SELECT 1" + strings.Repeat("+1", n) + " FROM item",
		"SELECT " + strings.Repeat("NOT ", n) + "1 FROM item",
		"SELECT " + strings.Repeat("~", n) + "1 FROM item",
		"SELECT name FROM item WHERE id = 1" + strings.Repeat(" OR id = 2", n),
	} {
		if p := r.Plan(query, testSession()); p.Reason != history.ReasonNesting &&
			(p.Reason != history.ReasonSize || len(query) < n) {
			t.Errorf("%.40s...: %v (%s)", query, p.Observation, p.Reason)
		}
	}
}

func TestLargeStatementsAreRewritten(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r := New(testSchema(), Options{})
	p := r.Plan("INSERT INTO item (id, name) VALUES (1, NULL)"+strings.Repeat(", (2, 'x')", 30000), testSession())
	if p.Writes.Inserts != 30001 || p.Shape != "INSERT INTO item (id, name) VALUES (?, ?)" ||
		len(p.Args) != shape.MaxArgs {
		t.Errorf("%v (%s), %d rows, shape %s, %d arguments", p.Observation, p.Reason,
			p.Writes.Inserts, p.Shape, len(p.Args))
	}
	p = r.Plan("SELECT name FROM item WHERE id = 1"+strings.Repeat(" OR id = 2", 20000), testSession())
	if p.Observation != history.Exact {
		t.Errorf("%v (%s)", p.Observation, p.Reason)
	}
}

func TestTooManyParametersAreNotAdded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r := New(testSchema(), Options{})
	query := func(rows int) string {
		return "INSERT INTO item (id) VALUES " + strings.TrimPrefix(strings.Repeat(", (?)", rows), ", ")
	}
	if p := r.Plan(query(maxParams/3), testSession()); p.Observation != history.Exact ||
		p.Params+len(p.Upstream.Hidden) != maxParams {
		t.Errorf("%v (%s) with %d and %d parameters", p.Observation, p.Reason, p.Params, len(p.Upstream.Hidden))
	}
	if p := r.Plan(query(maxParams/3+1), testSession()); p.Reason != history.ReasonParameters ||
		p.Upstream.Hidden != nil || p.Writes.Inserts != 0 {
		t.Errorf("%v (%s) with %d hidden parameters", p.Observation, p.Reason, len(p.Upstream.Hidden))
	}
}

func TestPasswordsAreNotKept(t *testing.T) {
	r := New(testSchema(), Options{})
	for _, query := range []string{
		"CREATE USER u IDENTIFIED BY 'secret'",
		"create or replace user if not exists u identified by password 'secret'",
		"ALTER /* c */ USER u IDENTIFIED VIA x USING 'secret'",
		"GRANT ALL ON *.* TO u IDENTIFIED BY 'secret'",
		"SET PASSWORD = PASSWORD('secret')",
		"SET PASSWORD FOR u = 'secret'",
		"SELECT PASSWORD('secret')",
		"INSERT INTO item (name) VALUES (OLD_PASSWORD('secret'))",
		"CHANGE MASTER TO MASTER_PASSWORD='secret'",
		"START SLAVE USER = 'u' PASSWORD = 'secret'",
		"CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (PASSWORD 'secret')",
		"CREATE TABLE t (id INT) ENGINE = FEDERATED CONNECTION = 'mysql://u:secret@h/d/t'",
		"SELECT 1; SET PASSWORD = 'secret'",
		"/*!50003 CREATE USER u IDENTIFIED BY 'secret' */",
		"CREATE USER u IDENTIFIED BY 'secret",
		"EXECUTE IMMEDIATE 'SET PASSWORD = ''secret'''",
		"PREPARE s FROM \"CREATE USER u IDENTIFIED BY 'secret'\"",
	} {
		p := r.Plan(query, testSession())
		if strings.Contains(p.Shape, "secret") || strings.Contains(strings.Join(p.Args, " ")+p.Text, "secret") {
			t.Errorf("%s: shape %q, arguments %q", query, p.Shape, p.Args)
		}
	}
}

func TestArgumentsAreCutAtCharacters(t *testing.T) {
	r := New(testSchema(), Options{})
	for pad := range 5 {
		p := r.Plan("SELECT '"+strings.Repeat("x", pad)+strings.Repeat("€", 40)+"'", testSession())
		if n := len(p.Args[0]); n > shape.MaxArg || n < shape.MaxArg-2 || strings.ContainsRune(p.Args[0], '\uFFFD') {
			t.Errorf("argument %q of %d bytes", p.Args[0], n)
		}
	}
}

// panickingSchema stands for a schema that is being reloaded wrongly; nothing of it must be needed for
// statements without tables.
type panickingSchema struct{}

func (panickingSchema) Table(schema, name string) *Table {
	panic(fmt.Sprintf("asked for %s.%s", schema, name))
}

func TestTransactionControlDoesNotAskForTables(t *testing.T) {
	r := New(panickingSchema{}, Options{})
	for _, query := range []string{"BEGIN", "COMMIT", "SET autocommit = 0", "SELECT 1", "SHOW TABLES",
		"SELECT ROW_COUNT()"} {
		if p := r.Plan(query, testSession()); p.Observation != history.Nothing {
			t.Errorf("%s: %v (%s)", query, p.Observation, p.Reason)
		}
	}
}

// TestLexerCutsTextAsTheServerDoes lists spellings whose tokens are easily mistaken.
func TestLexerCutsTextAsTheServerDoes(t *testing.T) {
	for text, want := range map[string]string{
		"a.b.c":               "a . b . c",
		"a . select":          "a . select",
		"t.1a":                "t . 1a",
		"1.5 .5 5. 1e5 1e+5":  "1.5 .5 5. 1e5 1e+5",
		"1e x 1x 0x1F 0xG":    "1e x 1x 0x1F 0xG",
		"0b01 0b2":            "0b01 0b2",
		"x'41' N'a' b'1' _u'": "x'41' N'a' b'1' _u '",
		"'a''b' 'a\\'b'":      "'a''b' 'a\\'b'",
		"`a``b` \"a\"\"b\"":   "`a``b` \"a\"\"b\"",
		"a--b":                "a - - b",
		"a-- b\nc":            "a c",
		"a--\nc":              "a c",
		"a#b\nc":              "a c",
		"a/*b*/c":             "a c",
		"a/**/b/*":            "a b",
		"a/*/b*/c":            "a c",
		"a<=>b<=c<>d!=e:=f":   "a <=> b <= c <> d != e := f",
		"a->>'x'->'y'":        "a ->> 'x' -> 'y'",
		"@a @`b c` @'d' @@e":  "@a @`b c` @'d' @@e",
		"@@session.`x`=1":     "@@session.`x` = 1",
		"'u'@'h'":             "'u' @'h'",
		"(a,?)":               "( a , ? )",
		"größe":               "größe",
	} {
		st := scan(text, false, false)
		var got []string
		for i := range st.Tokens {
			got = append(got, st.tok(i))
		}
		if !slices.Equal(got, strings.Split(want, " ")) && strings.Join(got, " ") != want {
			t.Errorf("%q is cut into %q, want %q", text, got, want)
		}
	}
}

// TestExecutableCommentsTellTheirShape has what stands in executable comments in shapes, without its values.
func TestExecutableCommentsTellTheirShape(t *testing.T) {
	for text, want := range map[string]string{
		"/*!40101 SET NAMES utf8 */":                                               "/*!40101 SET NAMES utf8 */",
		"/*!40103 SET TIME_ZONE='+00:00' */;":                                      "/*!40103 SET TIME_ZONE = ? */",
		"/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */": "/*M!100616 SET @OLD_NOTE_VERBOSITY = @@NOTE_VERBOSITY, NOTE_VERBOSITY = ? */",
		"SELECT /*!40001 SQL_NO_CACHE */ * FROM t WHERE id = 7":                    "SELECT /*!40001 SQL_NO_CACHE */ * FROM t WHERE id = ?",
		"SELECT id FROM t WHERE id = 1 /*! OR s = 'x' */":                          "SELECT id FROM t WHERE id = ? /*! OR s = ? */",
		"/*! SELECT 'cut */":                                                       "/*! ... */",
		"/*!50003 CREATE USER u IDENTIFIED BY 'secret' */":                         "CREATE USER",
		"/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER x */":       "/*!50003 CREATE */ /*!50017 DEFINER = `a` @`b` */ /*!50003 TRIGGER x */",
		"CREATE USER u /*!50003 IDENTIFIED BY 'secret' */":                         "CREATE USER",
		"ALTER /*!50003 USER u IDENTIFIED BY */ 'secret'":                          "ALTER USER",
		"/* plain */ SELECT 1 /*+ hint */":                                         "SELECT ?",
	} {
		got, args := scan(text, false, false).shape()
		if got != want {
			t.Errorf("%s has the shape\n%s, not\n%s", text, got, want)
		}
		if strings.Contains(got+strings.Join(args, ""), "secret") {
			t.Errorf("%s tells a password: %s, %q", text, got, args)
		}
	}
}
