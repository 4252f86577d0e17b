package explore

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/isotap/isotap/dbms"
)

// told is a result with all that can be in one.
func told() *Result {
	return &Result{Transactions: 9, Diverged: 1, Programs: 4, Plays: 7, Refused: 2, Wrapped: 1, Took: 1200 * time.Millisecond,
		NotPlayed: map[Reason]int{Failed: 1, Serializable: 2},
		Races: []Race{
			{Program: "UPDATE account", Kind: LostUpdate, Proved: true, Read: "SELECT balance FROM account WHERE id = 1",
				Write: "UPDATE account SET balance = 90 WHERE id = 1", Table: "account", Column: "balance", Racing: "100", Serial: "90",
				Wrote: "90", Row: "id 1", Times: 3},
			{Program: "UPDATE account", Kind: StaleChoice, Read: "SELECT state FROM account", Write: "INSERT INTO log (n) VALUES (1)",
				Table: "account", Column: "state", Racing: "open", Serial: "closed"},
			{Program: "UPDATE account", Kind: StaleChoice, Read: "SELECT state FROM account", Write: "INSERT INTO log (n) VALUES (2)",
				Table: "account", Column: "state", Racing: "open", Serial: "closed"},
			{Program: "UPDATE account", Beside: "UPDATE owner", Kind: LostUpdate, Read: "SELECT balance FROM account",
				Write: "UPDATE account SET balance = 90 WHERE id = 1", Table: "account", Column: "balance", Racing: "100", Serial: "80", Wrote: "90",
				Other: "UPDATE owner SET n = 1"},
			{Program: "INSERT users", Kind: DoubleInsert, Proved: true, Read: "SELECT id FROM users WHERE email = 'a'",
				Write: "INSERT INTO users (email) VALUES ('a')", Table: "users", Row: "email a"},
			{Program: "UPDATE doctor", Beside: "UPDATE doctor", Kind: WriteSkew, Proved: true, Read: "SELECT count(*) FROM doctor",
				Write: "UPDATE doctor SET on_call = false WHERE id = 1", Column: "count", Racing: "2", Serial: "1"},
			{Program: "UPDATE job", Kind: StaleChoice, Proved: true, Read: "SELECT id FROM job LIMIT 1", Write: "UPDATE job SET state = 1", Table: "job"},
			{Program: "UPDATE role", Kind: SameAgain, Proved: true, Read: "SELECT name FROM role WHERE id = 1", Table: "role", Column: "name",
				Write: "UPDATE role SET name = 'b' WHERE id = 1", Racing: "a", Serial: "b", Wrote: "b", Row: "id 1"},
		}}
}

const toldText = `Played on a copy: 9 writing transactions of 4 programs, 7 twins in 1.2s. 5 races are shown.

  1. lost update of account.balance: UPDATE account, twice at once
     Both read 100 and both set 90 (id 1); one after the other, the second reads 90, and sets 80 if it takes 10.
       read   SELECT balance FROM account WHERE id = 1
       write  UPDATE account SET balance = 90 WHERE id = 1
       also   stale choice of account.state (open, then closed), if a client goes that way
     Read it with FOR UPDATE in the transaction that writes, or let the database calculate (SET n = n + 1), or ask for a version in WHERE.

  2. lost update of account.balance: UPDATE account beside UPDATE owner
     It read 100 and set 90 over what the other had set; behind the other it reads 80, and sets 70 if it takes 10.
       read   SELECT balance FROM account
       write  UPDATE account SET balance = 90 WHERE id = 1
       other  UPDATE owner SET n = 1
     Before the write it was answered otherwise than alone: a real client may have gone another way.
     Read it with FOR UPDATE in the transaction that writes, or let the database calculate (SET n = n + 1), or ask for a version in WHERE.

  3. double insert in users: INSERT users, twice at once
     Both looked in users for email a, found none, and both inserted one; one after the other, the second finds it.
       read   SELECT id FROM users WHERE email = 'a'
       write  INSERT INTO users (email) VALUES ('a')
     A unique key refuses the second; ON CONFLICT or ON DUPLICATE KEY then says what to do.

  4. write skew: UPDATE doctor beside UPDATE doctor
     It read 2 and went by that; one after the other, the second reads 1.
       read   SELECT count(*) FROM doctor
       write  UPDATE doctor SET on_call = false WHERE id = 1
     Lock the rows that the decision hangs on (FOR UPDATE; of a count, the rows that it counts, or one that all lock), or run both at SERIALIZABLE and try again when refused.

  5. stale choice in job: UPDATE job, twice at once
     It went by rows that are others once the first has committed.
       read   SELECT id FROM job LIMIT 1
       write  UPDATE job SET state = 1
     Lock the rows that the write hangs on (FOR UPDATE), or ask for them once more in the WHERE of the write.

Both set the same, so that nothing is lost unless they set different values (then FOR UPDATE, or a version):
     role.name (a, both set b): UPDATE role, twice at once

The server refused 2 racing twins: it protects these programs.

Without a twin:
      2  SERIALIZABLE: only its commit would tell, and it cannot be prepared
      1  it failed when it ran, or was rolled back

1 transaction was rolled back, as tests do. What was in them was played as if each savepoint had been a transaction, and
each statement outside of one in autocommit.

1 did otherwise than recorded when they were played again: nothing is told of them.
`

func TestTextSaysWhatWasShown(t *testing.T) {
	var b bytes.Buffer
	if err := told().Text(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != toldText {
		t.Errorf("%s", b.String())
	}
}

// TestStatementsAreShownBriefly: what rows are chosen from, and by, stays.
func TestStatementsAreShownBriefly(t *testing.T) {
	list := strings.Repeat(`"t"."c" AS "t_c", `, 9) + `"t"."d"`
	joins := strings.Repeat(` LEFT JOIN u ON u.id = t.u_id AND u.kind IN ('a', 'b')`, 6)
	for _, c := range []struct{ text, want string }{
		{"SELECT n FROM t WHERE id = 1", "SELECT n FROM t WHERE id = 1"},
		{"SELECT DISTINCT " + list + ` FROM "t" WHERE id = 1`, `SELECT DISTINCT ... FROM "t" WHERE id = 1`},
		{"SELECT (SELECT max(n) FROM u), " + list + " FROM t", "SELECT ... FROM t"},
		{"SELECT x FROM (SELECT " + list + " FROM t) d WHERE x = 1", "SELECT x FROM (SELECT ... FROM t) d WHERE x = 1"},
		{"SELECT n FROM t" + joins + " WHERE t.id = 1 ORDER BY n", "SELECT n FROM t JOIN ... WHERE t.id = 1 ORDER BY n"},
		{"SELECT n FROM (SELECT n FROM t" + joins + ") d LIMIT 1", "SELECT n FROM (SELECT n FROM t JOIN ...) d LIMIT 1"},
		{"SELECT n FROM t" + joins, "SELECT n FROM t JOIN ..."},
		{"INSERT INTO t VALUES ('" + strings.Repeat("x", 200) + "', 1)", "INSERT INTO t VALUES ('" + strings.Repeat("x", 79) + "...', 1)"},
		{"SELECT 'it is not closed", "SELECT 'it is not closed"},
	} {
		if got := brief(dbms.PostgreSQLFamily, c.text); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.text, got, c.want)
		}
	}
}

func TestJSONIsDocumentedAndReadBack(t *testing.T) {
	page, err := os.ReadFile("../docs/explore.md")
	if err != nil {
		t.Fatal(err)
	}
	for prefix, of := range map[string]reflect.Type{"": reflect.TypeFor[document](), "races[].": reflect.TypeFor[raceDocument]()} {
		for i := range of.NumField() {
			name := prefix + of.Field(i).Tag.Get("json")
			if !strings.Contains(string(page), "`"+name) {
				t.Errorf("docs/explore.md does not describe %s", name)
			}
		}
	}
	var b bytes.Buffer
	if err := told().JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Races) != 8 || got.Races[0].Sentence != told().Races[0].Sentence() || got.NotPlayed[Serializable] != 2 {
		t.Errorf("%+v", got)
	}
}

func TestSilenceSaysWhatItMeans(t *testing.T) {
	for _, tt := range []struct {
		r    Result
		want string
	}{
		{Result{}, "Nothing was written, so there is nothing to tell.\n"},
		{Result{Transactions: 2, NotPlayed: map[Reason]int{Serializable: 2}}, "Nothing can be told of them.\n"},
		{Result{Transactions: 2, Judged: 1, Diverged: 1}, "No race is shown by those that could be judged.\n"},
		{Result{Transactions: 2, Judged: 1, NotPlayed: map[Reason]int{Failed: 1}}, "No race is shown by those that could be judged.\n"},
		{Result{Transactions: 5, Judged: 3, NotPlayed: map[Reason]int{Enough: 2}}, "No two of them at once race.\n"},
	} {
		if got := tt.r.silence(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.r, got, tt.want)
		}
	}
}

// TestTextsCannotSteerATerminal has statements and values with what a terminal acts on.
func TestTextsCannotSteerATerminal(t *testing.T) {
	r := &Result{Transactions: 1, Programs: 1, Plays: 1, Judged: 1, Races: []Race{{Program: "UPDATE a\x1b[2J", Kind: LostUpdate,
		Proved: true, Read: "SELECT\n\tn FROM a\x1b]0;x\x07", Write: "UPDATE a SET n = '\u202e\x9b'", Table: "a", Column: "n\r",
		Racing: "1\x1b", Serial: "2\n", Wrote: "3", Row: "id \x00"}}}
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	if at := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
		t.Errorf("there is %q in\n%q", b.String()[at], b.String())
	}
	if want := "read   SELECT n FROM a ]0;x\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}

// TestWhatWasFoundIsNotCalledNone has both look, find some rows, and insert one more.
func TestWhatWasFoundIsNotCalledNone(t *testing.T) {
	r := Race{Kind: DoubleInsert, Table: "booking", Row: "room 7", some: true}
	if got := r.Sentence(); strings.Contains(got, "none") || !strings.Contains(got, "found the same rows") {
		t.Error(got)
	}
	for _, step := range (&Race{Kind: StaleChoice, Read: "SELECT id FROM job LIMIT 1", Write: "UPDATE job SET state = 1"}).steps() {
		if step.Says == "finds none" {
			t.Errorf("%+v", step)
		}
	}
}
