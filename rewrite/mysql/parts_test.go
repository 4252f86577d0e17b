package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestTextsAreCutOnlyWhereTheMeaningStays names texts by what they are cut into; none where they are not.
func TestTextsAreCutOnlyWhereTheMeaningStays(t *testing.T) {
	for _, c := range []struct {
		text, mode, charset string
		want                []string
	}{
		{text: "UPDATE item SET stock=1; DELETE FROM item", want: []string{"UPDATE item SET stock=1",
			" DELETE FROM item"}},
		{text: "UPDATE item SET stock=1 WHERE id=1 --; DELETE FROM item"},
		{text: "SELECT 1; UPDATE item SET stock=1 --; DELETE FROM item",
			want: []string{"SELECT 1", " UPDATE item SET stock=1 --; DELETE FROM item"}},
		{text: "SELECT 1 -- ;\n; SELECT 2", want: []string{"SELECT 1 -- ;\n", " SELECT 2"}},
		{text: "SELECT 1 --\x7f; SELECT 2\n; SELECT 3", want: []string{"SELECT 1 --\x7f; SELECT 2\n", " SELECT 3"}},
		{text: "SELECT 1 --\xa0; SELECT 2", charset: "latin1"},
		{text: "SELECT 1 # ;\n; SELECT 2", want: []string{"SELECT 1 # ;\n", " SELECT 2"}},
		{text: "SELECT 1 /* ; */; SELECT 2", want: []string{"SELECT 1 /* ; */", " SELECT 2"}},
		{text: "SELECT 1; SELECT 2 /* ;"},
		{text: "SELECT '\\'; SELECT 2; -- '"},
		{text: "SELECT '\\'; SELECT 2", mode: "NO_BACKSLASH_ESCAPES", want: []string{"SELECT '\\'", " SELECT 2"}},
		{text: "SELECT '\xbf\\'; SELECT 2", charset: "gbk"},
		{text: "IF 1 THEN SELECT 1; END IF; SELECT 2"},
		{text: "SELECT 1; BEGIN NOT ATOMIC SELECT 1; END; SELECT 2",
			want: []string{"SELECT 1", " BEGIN NOT ATOMIC SELECT 1; END; SELECT 2"}},
		{text: "SET STATEMENT max_statement_time=1 FOR SELECT 1; SELECT 2"},
		{text: "BEGIN; SELECT 1; COMMIT", want: []string{"BEGIN", " SELECT 1", " COMMIT"}},
		{text: "CREATE PROCEDURE p() BEGIN SELECT 1; END; SELECT 1"},
		{text: "SELECT 1; SELECT 2", mode: "ORACLE"},
	} {
		s := testSession()
		s.SetSQLMode(c.mode)
		if c.charset != "" {
			s.Charset = c.charset
		}
		var got []string
		from := 0
		for _, end := range New(testSchema(), Options{}).Plan(c.text, s).Upstream.Parts {
			got = append(got, c.text[from:end])
			from = end + 1
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q is cut into %q, want %q", c.text, got, c.want)
		}
	}
}

func TestLongTextsAreNotParsed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	row := ",(1,'a')"
	insert := "INSERT INTO item (id, name) VALUES (0,'')" + strings.Repeat(row, maxTokens/len(row)*2)
	for _, c := range []struct {
		text string
		ends bool
	}{
		{text: insert},
		{text: insert + "; COMMIT", ends: true},
		{text: insert + ",(1,';')"},
	} {
		p := New(testSchema(), Options{}).Plan(c.text, testSession())
		if p.Observation != history.Opaque || p.Reason != history.ReasonSize || p.Kind == history.Insert == c.ends ||
			p.Txn.Ends != c.ends || p.Schema.Changes != c.ends || p.Upstream.Pieces != nil {
			t.Errorf("a text of %d bytes is %v %v (%s), ends %v", len(c.text), p.Kind,
				p.Observation, p.Reason, p.Txn.Ends)
		}
	}
	if p := New(testSchema(), Options{}).Plan(insert+",(?,?)", testSession()); p.Params != 2 {
		t.Errorf("%d parameters behind the bound, want 2", p.Params)
	}
}
