package postgres

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// descriptionOf is the body of a RowDescription with fields of those names.
func descriptionOf(names ...string) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(names)))
	for _, name := range names {
		b = append(append(b, name...), 0)
		b = append(b, make([]byte, fieldBytes)...)
	}
	return b
}

func TestLayoutFindsColumnsThatNoPlanHas(t *testing.T) {
	const ours = rewrite.PresentColumn
	for _, c := range []struct {
		name   string
		fields []string
		hidden int
		others clientColumns
		want   layout
	}{
		{"the client's alone", []string{"id", "balance"}, 0, anyColumns, layout{known: true}},
		{"as the plan has it", []string{"id", ours}, 1, anyColumns, layout{known: true, hidden: 1}},
		{"one more before the end", []string{ours, "id", ours}, 1, anyColumns, layout{known: true, hidden: 1, cut: []int{0},
			wrong: true}},
		{"none at the end", []string{ours, "id"}, 1, anyColumns, layout{known: true, cut: []int{0}, wrong: true}},
		{"no plan", []string{"id", ours}, 0, anyColumns, layout{known: true, cut: []int{1}, wrong: true}},
		{"none but isotap's", []string{ours, ours}, 2, noColumns, layout{known: true, hidden: 2}},
		{"one of the client's", []string{"id", ours, ours}, 2, noColumns, layout{known: true, hidden: 2, wrong: true}},
		{"more of isotap's", []string{ours, ours}, 1, noColumns, layout{known: true, hidden: 2, wrong: true, none: true}},
		{"isotap's only", []string{ours}, 1, someColumns, layout{known: true, hidden: 1, wrong: true, none: true}},
		{"the client's only", []string{"id"}, 1, noColumns, layout{known: true, wrong: true}},
	} {
		var r descriptionReader
		got := r.layout(descriptionOf(c.fields...), c.hidden, c.others)
		if got.hidden != c.want.hidden || got.wrong != c.want.wrong || !got.known || got.none != c.want.none ||
			!slices.Equal(got.cut, c.want.cut) {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}

// An idle session must not hold on to the buffer that a description came in.
func TestDescriptionReaderKeepsNothingOfABody(t *testing.T) {
	var r descriptionReader
	for _, n := range []int{3, maxDescribed + 1} {
		r.layout(descriptionOf(make([]string, n)...), 0, anyColumns)
		r.exposed(descriptionOf(make([]string, n)...), 0)
		for _, field := range r.last.Fields[:cap(r.last.Fields)] {
			if field.Name != nil {
				t.Fatalf("of %d fields a name is kept", n)
			}
		}
		if cap(r.last.Fields) > 2*maxDescribed {
			t.Errorf("room for %d fields is kept", cap(r.last.Fields))
		}
	}
}

// A wrong plan tells nothing of what a statement has read.
func TestWrongLayoutTakesTheObservationAway(t *testing.T) {
	r := resultInProgress{hidden: 1, cut: []int{2}, plan: &sqlpostgres.Plan{}}
	r.applyLayout(layout{})
	if r.hidden != 1 || r.wrong {
		t.Errorf("a layout that is not known changes %+v", r)
	}
	r.applyLayout(layout{known: true, wrong: true, cut: []int{0, 2}})
	if r.hidden != 0 || !slices.Equal(r.cut, []int{2, 0}) || !r.trims() {
		t.Errorf("the rows are read as %+v", r)
	}
	st := write()
	if r.doubt(st); st.Observation != history.Opaque || st.Reason != history.ReasonMisplanned || st.Accesses != nil {
		t.Errorf("the statement tells %+v", st)
	}
}

func TestTagOfAWrappedStatementIsItsOwn(t *testing.T) {
	tag := func(text string) message { return message{kind: msgCommandComplete, body: append([]byte(text), 0)} }
	plan := &sqlpostgres.Plan{}
	plan.Result.Tag = "UPDATE "
	for _, c := range []struct {
		name   string
		result resultInProgress
		end    message
		absent bool
		want   string
	}{
		{"a wrapped one", resultInProgress{plan: plan, hidden: 1}, tag("SELECT 2"), false, "UPDATE 2\x00"},
		{"one without a row", resultInProgress{plan: plan, hidden: 1}, tag("SELECT 1"), true, "UPDATE 0\x00"},
		{"another one, by its description", resultInProgress{plan: plan, hidden: 1, laid: true, tag: "DELETE "},
			tag("SELECT 2"), false, "DELETE 2\x00"},
		{"none, by its description", resultInProgress{plan: plan, hidden: 1, laid: true}, tag("INSERT 0 2"), false,
			"INSERT 0 2\x00"},
		{"one that goes on", resultInProgress{plan: plan, hidden: 1}, message{kind: msgPortalSuspended}, false, ""},
		{"the client's text", resultInProgress{plan: plan}, tag("SELECT 2"), false, "SELECT 2\x00"},
	} {
		if got := c.result.retagged(c.end, c.absent); string(got.body) != c.want {
			t.Errorf("%s: %q, not %q", c.name, got.body, c.want)
		}
	}
}

// What an Execute with a row limit has shown belongs to the record of the portal's first one.
func TestPiecesOfAPortalAreOneStatement(t *testing.T) {
	x, g := newTransaction(), &pieces{}
	read := func() *history.Stmt {
		return &history.Stmt{Kind: history.Select, Observation: history.Exact, Rows: 2,
			Accesses: []history.Access{{Op: history.Read}}, Predicates: make([]history.Predicate, 1)}
	}
	plan := &sqlpostgres.Plan{}
	plan.Kind = history.Select
	execute := func(g *pieces, plan *sqlpostgres.Plan) {
		t.Helper()
		for _, last := range []bool{false, false, true} {
			if !g.record(x, history.ReadCommitted, plan, read(), last) {
				t.Fatal("it is a statement of its own")
			}
		}
	}
	execute(g, plan)
	limited := &sqlpostgres.Plan{}
	limited.Kind, limited.Predicates = history.Select, []rewrite.Predicate{{Limit: &rewrite.Limit{Rows: 6, Param: -1}}}
	execute(&pieces{}, limited)
	if len(x.open.Stmts) != 2 {
		t.Fatalf("%d statements", len(x.open.Stmts))
	}
	if st := x.open.Stmts[0]; st.Rows != 6 || len(st.Accesses) != 3 || len(st.Predicates) != 1 {
		t.Errorf("%+v", st)
	}
	if st := x.open.Stmts[1]; st.Rows != 6 || len(st.Predicates) != 0 {
		t.Errorf("under a LIMIT that was filled: %+v", st)
	}
	x.take(history.Committed, 1)
	x.record(write(), history.ReadCommitted)
	if g.record(x, history.ReadCommitted, plan, read(), true) {
		t.Error("a piece belongs to a record of another transaction")
	}
}

// An exposing is a planner of a database with isotap's columns.
type exposing struct{ plans }

// TestErrorsLoseIsotapsColumnsAlone has errors with what isotap's columns look like where they do not stand.
func TestErrorsLoseIsotapsColumnsAlone(t *testing.T) {
	const tags = `, 12345678-1234-1234-1234-123456789012, \x000000000000abcd00000000018a2b3c`
	body := func(code, message, detail, hint, routine string) string {
		return "SERROR\x00VERROR\x00C" + code + "\x00M" + message + "\x00D" + detail + "\x00H" + hint + "\x00R" + routine +
			"\x00\x00"
	}
	s := &Session{planner: exposing{}}
	for _, c := range []struct{ name, said, want string }{
		{"of a row", body("23502", "null", "Failing row contains (1, null"+tags+").", "", "ExecConstraints"),
			body("23502", "null", "Failing row contains (1, null).", "", "ExecConstraints")},
		{"cut", body("23514", "check", "Failing row contains (1"+tags+"...).", "", "ExecConstraints"),
			body("23514", "check", "Failing row contains (1).", "", "ExecConstraints")},
		{"before another column", body("23514", "check", "(1"+tags+", 5).", "", "ExecConstraints"),
			body("23514", "check", "(1, 5).", "", "ExecConstraints")},
		{"of a row with a value like them",
			body("23502", "null", "Failing row contains (1, x"+tags+tags+").", "", "ExecConstraints"),
			body("23502", "null", "Failing row contains (1, x"+tags+").", "", "ExecConstraints")},
		{"of a view", body("44000", "v", "Failing row contains (1"+tags+").", "", "ExecWithCheckOptions"),
			body("44000", "v", "Failing row contains (1).", "", "ExecWithCheckOptions")},
		{"a value", body("22P02", `invalid input syntax for type integer: "x`+tags+`"`, "", "", "pg_strtoint32"), ""},
		{"a detail", body("P0001", "no", "x"+tags, "", "exec_stmt_raise"), ""},
		{"a message behind a row", body("23502", "null"+tags, "Failing row contains (1"+tags+").", "", "ExecConstraints"),
			body("23502", "null"+tags, "Failing row contains (1).", "", "ExecConstraints")},
		{"a hint of the server's", body("42703", "no column", "", `Perhaps "t.isotap_rowid".`, "errorMissingColumn"),
			strings.Replace(body("42703", "no column", "", "", "errorMissingColumn"), "H\x00", "", 1)},
		{"a hint of a function's", body("P0001", "no", "", "see isotap_rowid", "exec_stmt_raise"), ""},
	} {
		want := c.want
		if want == "" {
			want = c.said
		}
		got := s.withoutTags(message{kind: msgErrorResponse, body: []byte(c.said),
			raw: appendMessage(nil, msgErrorResponse, []byte(c.said)...)})
		if string(got.body) != want || !bytes.Equal(got.raw, appendMessage(nil, msgErrorResponse, []byte(want)...)) {
			t.Errorf("%s: %q\nnot %q", c.name, got.body, want)
		}
	}
}
