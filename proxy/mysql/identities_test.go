package mysql

import (
	"bytes"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func TestIdentitiesAreTakenOutOfRows(t *testing.T) {
	sources := []sqlmysql.Source{{Table: "d.t"}}
	text := appendString(appendString(appendString(nil, "c"), "7"), "0")
	missing := append(appendString(nil, "c"), lenencNull, lenencNull) // of an outer join
	binary := append([]byte{0, 0}, text...)
	types := bytes.Repeat([]byte{gomysql.MYSQL_TYPE_VAR_STRING}, 3)
	room := txnstate.NewUnrecorded(0)
	ids := rowIdentities{of: &room}
	for i, test := range []struct {
		row, rest []byte
		of        reply
	}{
		{text, appendString(nil, "c"), reply{fields: 3}},
		{missing, appendString(nil, "c"), reply{fields: 3}},
		{binary, append([]byte{0, 0}, appendString(nil, "c")...), reply{fields: 3, binary: true, types: types}},
	} {
		rest, err := ids.takeRow(test.row, &test.of, 2, sources, nil)
		if err != nil || !bytes.Equal(rest, test.rest) {
			t.Errorf("row %d: %q is left, want %q (%v)", i+1, rest, test.rest, err)
		}
	}
	if _, err := ids.takeRow(text[:3], &reply{fields: 3}, 2, sources, nil); err == nil {
		t.Error("a row passes that is cut short")
	}
	o := &pendingStatement{plan: &sqlmysql.Plan{Statement: rewrite.Statement{Kind: history.Select},
		Result: sqlmysql.Result{Sources: sources}}}
	o.stmt.Observation = history.Exact
	ids.take(o)
	if len(o.stmt.Accesses) != 2 || o.stmt.Observation != history.Exact {
		t.Fatalf("%v with %v", o.stmt.Observation, o.stmt.Accesses)
	}
	for _, a := range o.stmt.Accesses {
		if a.Row != (history.Row{Table: "d.t", ID: "7"}) || a.Op != history.Read {
			t.Errorf("%+v", a)
		}
	}
	sources[0].Always = true // so that NULLs are those of a row that was written past isotap
	if _, err := ids.takeRow(missing, &reply{fields: 3}, 2, sources, nil); err != nil {
		t.Error(err)
	}
	if ids.take(o); o.stmt.Observation != history.Inexact || o.stmt.Reason != history.ReasonNoIdentity {
		t.Errorf("with a row without identity it is %v, %s", o.stmt.Observation, o.stmt.Reason)
	}
	if ids.forget(); len(ids.list) > 0 || ids.of != &room {
		t.Errorf("%d identities are left for the next statement", len(ids.list))
	}
}

func TestArraysThatLackIdentitiesMakeStatementsInexact(t *testing.T) {
	for name, test := range map[string]struct {
		array  []byte
		warned bool
		want   history.Observation
	}{
		"all rows":              {[]byte(`["1=0", "2=0"]`), false, history.Exact},
		"as many as it can":     {[]byte(`["1=0", "2=0", "3=0"]`), false, history.Inexact},
		"none, with a warning":  {nil, true, history.Inexact},
		"none, without warning": {nil, false, history.Exact},
		"cut":                   {[]byte(`["1=0", "2`), false, history.Inexact},
	} {
		room := txnstate.NewUnrecorded(0)
		ids := rowIdentities{of: &room}
		o := &pendingStatement{plan: &sqlmysql.Plan{Result: sqlmysql.Result{Sources: []sqlmysql.Source{{Array: true,
			Limit: 3}}}}}
		o.stmt.Observation = history.Exact
		ids.addArray(0, &sqlmysql.Source{Array: true, Limit: 3}, test.array)
		if ids.judgeArrays(o, test.warned); o.stmt.Observation != test.want {
			t.Errorf("%s: %v", name, o.stmt.Observation)
		}
	}
}
