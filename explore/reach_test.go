package explore

import (
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

func TestNothingIsPlayedThatReachesOutOfTheCopy(t *testing.T) {
	const my, pg = dbms.MySQLFamily, dbms.PostgreSQLFamily
	for _, tt := range []struct {
		family dbms.Family
		kind   history.Kind
		text   string
		want   reach
	}{
		{pg, history.Select, "SELECT 1", withinRows},
		{pg, history.Update, "UPDATE a SET n = 1", withinRows},
		{pg, history.Set, "SET LOCAL lock_timeout = 1", withinRows},
		{pg, history.Other, "LOCK TABLE a IN EXCLUSIVE MODE", withinRows},
		{my, history.Other, "LOCK TABLES a WRITE", beyond},
		{my, history.Set, "SET GLOBAL max_connections = 1", beyond},
		{my, history.Set, "SET @@global.max_connections = 1", beyond},
		{my, history.Set, "SET PASSWORD = 'x'", beyond},
		{pg, history.Select, "SELECT pg_advisory_xact_lock(1)", withinDatabase},
		{my, history.Select, "SELECT GET_LOCK('a', 1)", beyond},
		{pg, history.Select, "SELECT dblink('', '')", beyond},
		{pg, history.Select, "SELECT pg_terminate_backend(1)", beyond},
		{my, history.Select, "SELECT 1 INTO OUTFILE '/tmp/x'", beyond},
		{pg, history.Copy, "COPY a FROM STDIN", beyond},
		{pg, history.Other, "DO ''", beyond},
		{pg, history.Other, "LISTEN a", beyond},
		{my, history.Call, "CALL p()", withinDatabase},
		{pg, history.DDL, "CREATE UNIQUE INDEX CONCURRENTLY i ON a (n)", withinDatabase},
		{pg, history.DDL, "CREATE SCHEMA s", withinDatabase},
		{my, history.DDL, "CREATE SCHEMA s", beyond},
		{my, history.DDL, "DROP DATABASE shop", beyond},
		{pg, history.DDL, "ALTER SYSTEM SET fsync = off", beyond},
		{pg, history.DDL, "CREATE ROLE r", beyond},
		{my, history.DDL, "GRANT ALL ON *.* TO u", beyond},
		{my, history.DDL, "TRUNCATE a", withinDatabase},
	} {
		tokens, err := sqltoken.Statement(tt.family, tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachOf(tt.family, tt.kind, tokens); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.text, got, tt.want)
		}
	}
}

// TestWhatNamesADatabaseIsNotPlayed: on a copy it would change the client's own.
func TestWhatNamesADatabaseIsNotPlayed(t *testing.T) {
	result := exploreSerial(t, dbms.MySQLFamily, "int AUTO_INCREMENT", []string{"BEGIN",
		"SELECT balance FROM account WHERE id = 1", "UPDATE {db}.account SET balance = 90 WHERE id = 1", "COMMIT"})
	if result.NotPlayed[ReachesOut] != 1 || result.Plays != 0 {
		t.Errorf("%+v", result)
	}
}
