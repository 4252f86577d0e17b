package proxyserver

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/dbms"
)

func TestPostgreSQLProgramsFindIsotapWhateverTheirEnvironmentSays(t *testing.T) {
	place := Environment{"family": dbms.PostgreSQLFamily.Title(), "url": "postgres://app:pw@127.0.0.1:7777/shop",
		"host": "127.0.0.1", "port": "7777", "sslmode": "disable",
		"user": "app", "password": "pw", "database": "shop"}
	found := []string{"DATABASE_URL=" + place["url"], "PGHOST=127.0.0.1", "PGPORT=7777", "PGSSLMODE=disable"}
	for name, tt := range map[string]struct{ env, more []string }{
		"nothing":      {nil, []string{"PGUSER=app", "PGPASSWORD=pw", "PGDATABASE=shop"}},
		"another user": {[]string{"PGUSER=tester"}, []string{"PGUSER=tester", "PGDATABASE=shop"}},
		"a password file": {[]string{"PGPASSFILE=/p", "PGDATABASE=other"},
			[]string{"PGPASSFILE=/p", "PGDATABASE=other"}},
		"another way to the server": {[]string{"PGHOSTADDR=10.0.0.1", "PGSERVICE=prod", "HOME=/h"},
			[]string{"HOME=/h", "PGUSER=app", "PGPASSWORD=pw", "PGDATABASE=shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := place.Environment(tt.env), slices.Concat(found, tt.more)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}
