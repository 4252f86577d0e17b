package mysql

import (
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// texts returns a text of three statements.
func texts(env sqlmysql.Session) *multiStatement {
	text := []byte("a; b; c")
	return newMultiStatement(append([]byte{gomysql.COM_QUERY}, text...), semicolons(text), env)
}

func TestStatementsOfATextGoOneByOne(t *testing.T) {
	m := texts(sqlmysql.Session{})
	for i, want := range []string{"a", " b", " c"} {
		x := &exchange{}
		m.link(x)
		if got := string(m.command()[1:]); got != want || x.more != (i < 2) {
			t.Errorf("statement %d is %q, others follow: %t", i+1, got, x.more)
		}
		end := anotherPart
		if i == 2 {
			end = lastPart
		}
		x.begun, x.seq = true, byte(10*(i+1))
		if got := m.done(x); got != end {
			t.Errorf("on statement %d follows %d, want %d", i+1, got, end)
		}
	}
	if m.seq != 20 {
		t.Errorf("the last statement's reply begins with packet %d, want 20", m.seq)
	}
}

func TestTextEndsAtTheStatementThatFails(t *testing.T) {
	m := texts(sqlmysql.Session{})
	m.done(&exchange{})
	failed := &exchange{reply: reply{failed: true}}
	if got := m.done(failed); got != partSentAgain || string(m.command()[1:]) != " b; c" {
		t.Errorf("%d follows, and the command %q: the client is to see the text behind the error", got, m.command())
	}
	failed.begun = true
	if got := m.done(failed); got != lastPart {
		t.Errorf("%d follows on an error that the client has seen", got)
	}
}

func TestTextIsCutAgainUnderOtherSettings(t *testing.T) {
	env := sqlmysql.Session{Schema: "d"}
	m := texts(env)
	m.done(&exchange{})
	for name, test := range map[string]struct {
		in   settings
		want bool
	}{
		"the same":              {in: settings{known: true, env: env}},
		"not known":             {in: settings{env: env}, want: true},
		"another schema":        {in: settings{known: true, env: sqlmysql.Session{Schema: "e"}}, want: true},
		"another temporary one": {in: settings{known: true, env: sqlmysql.Session{Schema: "d", TempTables: "t"}}},
	} {
		if got := m.outdated(&test.in); got != test.want {
			t.Errorf("%s: outdated: %t", name, got)
		}
	}
	if m.cutAgain(nil, env); string(m.command()[1:]) != " b; c" || !m.last() {
		t.Errorf("a rest that cannot be cut goes as %q", m.command())
	}
}
