package postgres

import (
	"encoding/binary"
	"slices"
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
