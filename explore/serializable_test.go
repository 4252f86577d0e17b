package explore

import (
	"errors"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
)

// TestSerializableTwinsArePreparedToLearnWhetherTheyCommit has PostgreSQL refuse at COMMIT what races, unless the other
// one is at a level that it does not watch.
func TestSerializableTwinsArePreparedToLearnWhetherTheyCommit(t *testing.T) {
	const begin = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	offCall := func(begin, id string) []string {
		return []string{begin, "SELECT count(*) FROM account WHERE version = 0", "UPDATE account SET version = 1 WHERE id = " + id, "COMMIT"}
	}
	both := func(first, second string) []string {
		return append(append(offCall(first, "1"), "UPDATE account SET version = 0"), offCall(second, "2")...)
	}
	for name, c := range map[string]struct {
		statements []string
		races      []Kind
	}{
		"a number is read, and set": {[]string{begin, "SELECT balance FROM account WHERE id = 1",
			"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, nil},
		"nobody is found, and one is inserted": {[]string{begin, "SELECT id FROM users WHERE email = 'ann@example.org' LIMIT 1",
			"INSERT INTO users (email) VALUES ('ann@example.org')", "COMMIT"}, nil},
		"two doctors go off call":                            {both(begin, begin), nil},
		"two doctors go off call, one at another level":      {both("BEGIN", begin), []Kind{WriteSkew}},
		"two doctors go off call, the second at another one": {both(begin, "BEGIN"), []Kind{WriteSkew}},
	} {
		t.Run(name, func(t *testing.T) {
			result := exploreSerial(t, dbms.PostgreSQLFamily, "serial", c.statements)
			var told []Kind
			for _, r := range result.Races {
				told = append(told, r.Kind)
			}
			if len(told) != len(c.races) || len(told) > 0 && told[0] != c.races[0] || result.Diverged > 0 || result.NotPlayed[Serializable] > 0 {
				t.Errorf("told is %+v, want %v; %+v", result.Races, c.races, result)
			}
			if len(c.races) == 0 && result.Refused == 0 {
				t.Errorf("nothing was refused: %+v", result)
			}
		})
	}
}

// TestWhatABrokenOffPlayPreparedIsGivenUp prepares what a play would have rolled back.
func TestWhatABrokenOffPlayPreparedIsGivenUp(t *testing.T) {
	_, target := newTarget(t, dbms.PostgreSQLFamily, []string{"CREATE TABLE t (id int)"})
	server, err := runner.Server(target)
	if err != nil {
		t.Fatal(err)
	}
	server.Database = target.Database
	err = withConnection(t.Context(), server, func(conn *replay.Connection) error {
		s, err := readSchema(conn, dbms.PostgreSQLFamily)
		if err != nil {
			return err
		}
		for _, sql := range []string{"BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION '" + s.gid + "'"} {
			if _, err := ask(conn, sql); err != nil {
				return err
			}
		}
		p := &pass{stage: stage{control: conn, schema: s}}
		if err := errors.Join(p.giveUpPrepared(), p.giveUpPrepared()); err != nil {
			return err
		}
		left, err := ask(conn, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
		if err == nil && len(left.Rows) > 0 {
			t.Errorf("%v is left", left.Rows)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatCannotBePreparedIsNotRefused has refusals for others, and another error of PREPARE TRANSACTION.
func TestWhatCannotBePreparedIsNotRefused(t *testing.T) {
	for state, want := range map[string][2]bool{"40001": {true, true}, "23505": {true, true}, "0A000": {false, false}} {
		p := &play{tried: &replay.Result{Status: replay.Failed, State: state}}
		if refused, known := p.refused(); refused != want[0] || known != want[1] {
			t.Errorf("%s: refused %t, known %t", state, refused, known)
		}
	}
}
