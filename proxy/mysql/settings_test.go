package mysql

import (
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// settingsRow is a server's answer to what settingsQuery asks every server.
func settingsRow(more ...string) (row []byte) {
	for _, v := range append([]string{"READ-COMMITTED", "NO_BACKSLASH_ESCAPES", "utf8mb4", "shop", "1048576", "1024",
		noSelectLimit}, more...) {
		row = appendString(row, v)
	}
	return row
}

func TestSettingsAreKnownOnceTheyAreAnswered(t *testing.T) {
	in := settings{stale: true, tempTables: "t"}
	in.ask()
	if in.stale || in.known || in.level != history.LevelUnknown {
		t.Fatalf("while they are asked for: %+v", in)
	}
	r := reader{b: settingsRow("behind")}
	if err := in.take(&r, settingsQuery{dialect: sqlmysql.MySQL}); err != nil {
		t.Fatal(err)
	}
	if !in.known || in.level != history.ReadCommitted || in.env.Schema != "shop" || in.env.MaxPacket != 1<<20 ||
		!in.env.NoBackslashEscapes || in.env.TempTables != "t" || in.selectLimit {
		t.Errorf("%+v", in)
	}
	if rest := string(r.lenencBytes()); rest != "behind" {
		t.Errorf("the reader stands at %q", rest)
	}
}

func TestSettingsThatCannotBeReadStayUnknown(t *testing.T) {
	for name, row := range map[string][]byte{
		"cut short": settingsRow()[:20], "no row": nil,
		"no number": []byte(strings.Replace(string(settingsRow()), "1048576", "a lot!!", 1)),
		"no level":  []byte(strings.Replace(string(settingsRow()), "READ-COMMITTED", "READ-SOMETHING", 1)),
	} {
		in := settings{}
		in.ask()
		if err := in.take(&reader{b: row}, settingsQuery{}); err == nil || in.known {
			t.Errorf("%s: known: %t, error %v", name, in.known, err)
		}
	}
}

func TestConflictsFollowFromEachServersSettings(t *testing.T) {
	for name, test := range map[string]struct {
		query settingsQuery
		more  []string
		want  history.Conflicts
	}{
		"not asked for": {settingsQuery{dialect: sqlmysql.MariaDB}, nil, history.ConflictsUnknown},
		"MariaDB, on": {settingsQuery{dialect: sqlmysql.MariaDB, conflicts: true}, []string{"1"},
			history.ConflictsRefused},
		"MariaDB, off": {settingsQuery{dialect: sqlmysql.MariaDB, conflicts: true}, []string{"0"},
			history.ConflictsAccepted},
		"TiDB": {settingsQuery{dialect: sqlmysql.TiDB, conflicts: true}, []string{"optimistic", "ON"},
			history.ConflictsAtCommit},
		"TiDB, repeated": {settingsQuery{dialect: sqlmysql.TiDB, conflicts: true}, []string{"optimistic", "OFF"},
			history.ConflictsAccepted},
		"TiDB, locking": {settingsQuery{dialect: sqlmysql.TiDB, conflicts: true}, []string{"pessimistic", "ON"},
			history.ConflictsAccepted},
	} {
		var in settings
		if err := in.take(&reader{b: settingsRow(test.more...)}, test.query); err != nil || in.conflicts != test.want {
			t.Errorf("%s: %v, want %v (%v)", name, in.conflicts, test.want, err)
		}
		// As many columns are asked for as are read.
		if got := strings.Count(test.query.sql(), "CAST("); got != 7+len(test.more) {
			t.Errorf("%s: %d columns", name, got)
		}
	}
}

// TestAnInterruptedQuestionIsAskedAgain: a KILL QUERY that came late ended it. Otherwise the session's statements would
// go unobserved, and what they write be taken for older versions by all that read it.
func TestAnInterruptedQuestionIsAskedAgain(t *testing.T) {
	for _, code := range []uint16{gomysql.ER_QUERY_INTERRUPTED, erStatementTimeout, erQueryTimeout} {
		in := settings{}
		for range maxInterrupted {
			if in.ask(); !in.failed(code) || !in.stale {
				t.Fatalf("error %d: not asked again: %+v", code, in)
			}
		}
		if in.ask(); in.failed(code) {
			t.Errorf("error %d: asked for ever", code)
		}
		if err := in.take(&reader{b: settingsRow()}, settingsQuery{}); err != nil || !in.known || in.interrupted != 0 {
			t.Errorf("error %d: %v: %+v", code, err, in)
		}
	}
	var in settings
	if in.ask(); in.failed(gomysql.ER_ACCESS_DENIED_ERROR) {
		t.Error("asked again though the server refuses")
	}
}

// TestTimesThatAStatementRanBetween: they follow from the session's time behind it and how long it took, unless clocks
// were set or the session's time stands still.
func TestTimesThatAStatementRanBetween(t *testing.T) {
	for name, c := range map[string]struct {
		micros, ahead string
		since         int64
		want          moments
	}{
		"within the second":       {"500000", "7", 4e6, moments{"100", "100.495000", "100.500008"}},
		"from the second before":  {"2000", "0", 4e6, moments{"", "99.997000", "100.002001"}},
		"a time that stands":      {"500000", "90000000", 4e6, moments{second: "100"}},
		"a time to come":          {"500000", "-4", 4e6, moments{second: "100"}},
		"clocks were set":         {"500000", "-1", 4e6, moments{second: "100"}},
		"a statement of an hour":  {"500000", "0", 3600e9, moments{}},
		"what is no number":       {"500000", "x", 4e6, moments{second: "100"}},
		"what is no microsecond ": {"x", "0", 4e6, moments{}},
	} {
		var in settings
		row := appendString(appendString(appendString(nil, "100"), c.micros), c.ahead)
		if got := in.takeMoments(&reader{b: row}, c.since, true); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestASecondIsKnownWhereNothingCameBetween: what the session's time was when a statement began follows from what it is
// behind it, and from how long that took.
func TestASecondIsKnownWhereNothingCameBetween(t *testing.T) {
	for name, c := range map[string]struct {
		before, second, micros string
		since                  int64
		want                   string
	}{
		"within the second":      {"99", "100", "500000", 498e6, "100"},
		"perhaps before it":      {"99", "100", "500000", 499.5e6, ""},
		"the same as before":     {"100", "100", "0", 1e12, "100"},
		"nothing before":         {"", "100", "0", 0, ""},
		"a clock that was set":   {"200", "100", "10", 1e6, ""},
		"what is no microsecond": {"100", "100", "x", 0, ""},
	} {
		in := settings{told: c.before}
		row := appendString(appendString(nil, c.second), c.micros)
		if got := in.takeMoments(&reader{b: row}, c.since, false).second; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	in := settings{told: "100"}
	if in.ask(); in.told != "" {
		t.Error("what was told before the settings changed still counts")
	}
}

func TestLeftJoinsAreAllDoneWhereTheServerSaysSo(t *testing.T) {
	asks := settingsQuery{dialect: sqlmysql.MariaDB, joins: true}
	for value, want := range map[string]bool{"0": false, "1": true} {
		var in settings
		if err := in.take(&reader{b: settingsRow(value)}, asks); err != nil || in.env.JoinsAll != want {
			t.Errorf("%s: %t (%v)", value, in.env.JoinsAll, err)
		}
	}
	if got := strings.Count(asks.sql(), "CAST("); got != 8 {
		t.Errorf("%d columns", got)
	}
}

func TestOnlyAServerThatSaysSoLogsNoStatements(t *testing.T) {
	asks := settingsQuery{dialect: sqlmysql.MariaDB, binlog: true}
	for name, test := range map[string]struct {
		query settingsQuery
		more  []string
		want  bool
	}{
		"not asked for": {settingsQuery{dialect: sqlmysql.MySQL}, nil, true},
		"statements":    {asks, []string{"STATEMENT"}, true},
		"mixed":         {asks, []string{"MIXED"}, false},
		"rows":          {asks, []string{"ROW"}, false},
	} {
		var in settings
		if err := in.take(&reader{b: settingsRow(test.more...)}, test.query); err != nil || in.logsStatements != test.want {
			t.Errorf("%s: %t (%v)", name, in.logsStatements, err)
		}
		if got := strings.Count(test.query.sql(), "CAST("); got != 7+len(test.more) {
			t.Errorf("%s: %d columns", name, got)
		}
	}
}
