package postgres

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
)

// answerWith is the server's answer to the question about a session's settings.
func answerWith(database, role, path, level, txn string) *answer {
	a := &answer{}
	for _, v := range []string{database, role, path, level, txn, "150004", "on", "UTF8"} {
		a.values = append(a.values, []byte(v))
	}
	return a
}

func TestSettingsAreReadFromTheAnswer(t *testing.T) {
	x := settings{stale: true, unsure: true}
	txn, problem := x.read(answerWith("shop", "alice", "{pg_catalog,app}", "repeatable read", "serializable"))
	if problem != "" || txn != history.Serializable || x.stale || x.unsure || !x.known || x.database != "shop" ||
		x.env.Role != "alice" || x.env.Version != 15 || x.level != history.RepeatableRead || x.env.Backslashes {
		t.Errorf("%q, the transaction is %v: %+v", problem, txn, x)
	}
	if got := x.searchPath(); !slices.Equal(got, []string{"app"}) {
		t.Errorf("names are looked for in %q", got)
	}
}

func TestSettingsAreUnknownAfterAStrangeAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		a    *answer
	}{
		{"an error", &answer{failed: &serverError{code: "57014"}}},
		{"too few values", &answer{values: [][]byte{nil}}},
		{"no array", answerWith("shop", "alice", "app", "serializable", "serializable")},
	} {
		x := settings{known: true}
		if _, problem := x.read(c.a); problem == "" || x.known || x.searchPath() != nil {
			t.Errorf("%s: %q, known %v", c.name, problem, x.known)
		}
	}
}

// TestACanceledQuestionIsAskedAgain: a cancel request that came late ended it.
func TestACanceledQuestionIsAskedAgain(t *testing.T) {
	x := settings{known: true}
	canceled := &answer{failed: &serverError{code: sqlstateQueryCanceled}}
	for range maxCanceled {
		if x.read(canceled); !x.stale || x.known {
			t.Fatalf("not asked again: %+v", x)
		}
	}
	if x.read(canceled); x.stale {
		t.Error("asked for ever")
	}
	x.read(answerWith("shop", "alice", "{pg_catalog,app}", "repeatable read", "serializable"))
	if !x.known || x.canceled != 0 {
		t.Errorf("%+v", x)
	}
	if x.read(&answer{failed: &serverError{code: "42501"}}); x.stale {
		t.Error("asked again though the server refuses")
	}
}

// A transaction that asks for no level has an unknown one while nobody has asked the server what the default is now.
func TestChangedSettingsLeaveTheLevelUnknown(t *testing.T) {
	x := settings{known: true, level: history.Serializable}
	if x.txnLevel() != history.Serializable {
		t.Errorf("the level is %v", x.txnLevel())
	}
	x.txnEnds()
	if x.stale {
		t.Error("a transaction that changes no setting has the server asked")
	}
	x.changed()
	if x.txnLevel() != history.LevelUnknown {
		t.Errorf("the level is %v", x.txnLevel())
	}
	x.read(answerWith("shop", "alice", "{app}", "serializable", "serializable"))
	if x.txnEnds(); !x.stale || x.txnLevel() != history.LevelUnknown {
		t.Error("a rollback may have taken the change back, but nobody asks")
	}
}

// A function that changed nothing when it ran first is trusted to go on so.
func TestHarmlessCallIsNotAskedAboutAgain(t *testing.T) {
	var c calls
	c.ran = append(c.ran, "SELECT f()")
	c.answered(false)
	if _, ok := c.harmless["SELECT f()"]; ok || len(c.ran) > 0 {
		t.Errorf("a call that changed settings is harmless: %v, %v", c.harmless, c.ran)
	}
	c.ran = append(c.ran, "SELECT f()")
	c.answered(true)
	if _, ok := c.harmless["SELECT f()"]; !ok {
		t.Error("a call that changed nothing is not harmless")
	}
}

func TestParameterStatusChangesHowTextsAreRead(t *testing.T) {
	var x settings
	for _, p := range [][2]string{{"standard_conforming_strings", "off"}, {"client_encoding", "LATIN1"},
		{"DateStyle", "ISO, MDY"}} {
		x.parameter([]byte(p[0] + "\x00" + p[1] + "\x00"))
	}
	if !x.env.Backslashes || x.env.Encoding != "LATIN1" || x.literals.DateStyle != "ISO, MDY" || x.stale {
		t.Errorf("%+v", x)
	}
	if x.parameter([]byte("search_path\x00app\x00")); !x.stale {
		t.Error("the server is not asked where names are looked for now")
	}
	x.stale = false
	if x.parameter([]byte("search_path")); x.stale {
		t.Error("a message that is cut short counts")
	}
}
