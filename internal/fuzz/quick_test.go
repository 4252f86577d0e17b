package fuzz

import (
	"net/url"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
)

// TestScriptsLoseNoTimeOnPostgreSQL asks sessions of a superuser, and of one who may not set all.
func TestScriptsLoseNoTimeOnPostgreSQL(t *testing.T) {
	p := testdb.PostgreSQL(t)
	database := testdb.NewPostgreSQLDatabase(t)
	super := testdb.OpenPostgreSQL(t, database)
	if _, err := super.Exec("CREATE ROLE hunter LOGIN PASSWORD 'hunts'; GRANT CREATE ON DATABASE " + database + " TO hunter"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = super.Exec("DROP OWNED BY hunter; DROP ROLE hunter") })
	all, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	all.Path = "/" + database
	few := *all
	few.User = url.UserPassword("hunter", "hunts")
	for _, c := range []struct {
		name, url string
		want      []string
	}{{"superuser", all.String(), []string{"off", "2ms"}}, {"another", few.String(), []string{"off", "1s"}}} {
		t.Run(c.name, func(t *testing.T) {
			s, err := quickly(t.Context(), openStage(t, c.url))
			if err != nil {
				t.Fatal(err)
			}
			sc := &scenario.Scenario{Sessions: []scenario.Session{{Name: "A"}}, Steps: []scenario.Step{
				{Session: "A", SQL: "SHOW jit"}, {Session: "A", SQL: "SHOW deadlock_timeout"}}}
			tr, err := s.Direct(t.Context(), sc, history.ReadCommitted)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if got := tr.Results[i].Rows[0][0].Text; got != want {
					t.Errorf("%s: %s, want %s", tr.Results[i].SQL, got, want)
				}
			}
		})
	}
}
