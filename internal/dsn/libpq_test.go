package dsn

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
)

func postgresAt(address, user, password, database string) Target {
	t := Target{Family: dbms.PostgreSQLFamily, Network: "tcp", Address: address, User: user,
		Password: password, Database: database}
	if strings.HasPrefix(address, "/") {
		t.Network = "unix"
	} else {
		t.TLS.Mode = TLSPrefer
	}
	return t
}

func TestParseReadsPostgreSQLAddresses(t *testing.T) {
	tests := []struct {
		text string
		want Target
	}{
		{"postgres://app:pw@db.example:5433/shop", postgresAt("db.example:5433", "app", "pw", "shop")},
		{"postgresql://app@db.example", postgresAt("db.example:5432", "app", "", "")},
		{"PostgreSQL://app@db.example/", postgresAt("db.example:5432", "app", "", "")},
		{"postgres://", postgresAt("127.0.0.1:5432", "", "", "")},
		{"postgres:///shop?host=/var/run/postgresql", postgresAt("/var/run/postgresql/.s.PGSQL.5432", "", "", "shop")},
		{"postgres://app@/shop?host=%2Ftmp%2F&port=5433&sslmode=require", postgresAt("/tmp/.s.PGSQL.5433", "app", "",
			"shop")},
		{"postgres://app@%2Ftmp:5433/shop", postgresAt("/tmp/.s.PGSQL.5433", "app", "", "shop")},
		{"postgres://u@[::1]:5433/d", postgresAt("[::1]:5433", "u", "", "d")},
		{"postgres://u@[::1]/d", postgresAt("[::1]:5432", "u", "", "d")},
		{"postgres://u:p@ss:w/rd@h/d", postgresAt("h:5432", "u", "p@ss:w/rd", "d")},
		{"postgres://u%40corp:p%3F%25@h/d%C3%A9?application_name=a%20b&options=-c%20x%3D1",
			postgresAt("h:5432", "u@corp", "p?%", "dé")},
		{"postgres:///?user=u&password=p+w&host=h&dbname=d", postgresAt("h:5432", "u", "p+w", "d")},
		{"postgres://h/d?hostaddr=10.0.0.1", postgresAt("h:5432", "", "", "d")},
		{"postgres:///d?hostaddr=10.0.0.1", postgresAt("10.0.0.1:5432", "", "", "d")},
		{"postgresql+psycopg2://app:pw@h/shop", postgresAt("h:5432", "app", "pw", "shop")},
		{"postgis://app@h/shop", postgresAt("h:5432", "app", "", "shop")},
		{"host=h port=5433 dbname=shop user=app password=pw", postgresAt("h:5433", "app", "pw", "shop")},
		{"host = 'h'  dbname='my \\'shop\\\\' password='' user=a\\ b", postgresAt("h:5432", "a b", "", `my 'shop\`)},
		{"dbname=shop", postgresAt("127.0.0.1:5432", "", "", "shop")},
		{"user=app host=/tmp", postgresAt("/tmp/.s.PGSQL.5432", "app", "", "")},
		{"host=::1", postgresAt("[::1]:5432", "", "", "")},
		{"jdbc:postgresql://h:5433/shop?user=app&password=p%26w%2B+1&currentSchema=s",
			postgresAt("h:5433", "app", "p&w+ 1", "shop")},
		{"jdbc:postgresql:shop?user=app", postgresAt("127.0.0.1:5432", "app", "", "shop")},
		{"JDBC:PostgreSQL:/", postgresAt("127.0.0.1:5432", "", "", "")},
	}
	for _, tt := range tests {
		if got, err := Parse(tt.text); err != nil || got != tt.want {
			t.Errorf("Parse(%q) = %+v (password %q), %v; want %+v", tt.text, got, got.Password, err, tt.want)
		}
	}
}

func TestParseReadsLibpqsTLS(t *testing.T) {
	tests := []struct {
		text string
		want TLS
	}{
		{"postgres://h", TLS{Mode: TLSPrefer}},
		{"postgres://h?sslmode=disable", TLS{}},
		{"postgres://h?sslmode=allow", TLS{Mode: TLSAllow}},
		{"postgres://h?sslmode=require", TLS{Mode: TLSRequire}},
		{"postgres://h?sslmode=no-verify", TLS{Mode: TLSRequire}},
		{"postgres://h?sslmode=require&sslrootcert=ca.pem", TLS{Mode: TLSVerifyCA, CA: "ca.pem"}},
		{"postgres://h?sslrootcert=system", TLS{Mode: TLSVerifyFull, CA: "system"}},
		{"host=h sslmode=verify-full sslcert=c.pem sslkey='k.pem'",
			TLS{Mode: TLSVerifyFull, Cert: "c.pem", Key: "k.pem"}},
		{"postgres://h?sslmode=require&sslnegotiation=direct", TLS{Mode: TLSRequire, Direct: true}},
		{"postgres://h?sslmode=require&sslnegotiation=postgres", TLS{Mode: TLSRequire}},
		{"postgres://h?ssl=true", TLS{Mode: TLSRequire}},
		{"jdbc:postgresql://h/?ssl=true", TLS{Mode: TLSVerifyFull}},
		{"jdbc:postgresql://h/?ssl=true&sslmode=verify-ca", TLS{Mode: TLSVerifyCA}},
		{"postgresql+asyncpg://h/?ssl=require", TLS{Mode: TLSRequire}},
		{"postgres:///?host=/tmp&sslmode=verify-full&sslcert=c.pem", TLS{}},
	}
	for _, tt := range tests {
		if got, err := Parse(tt.text); err != nil || got.TLS != tt.want {
			t.Errorf("Parse(%q).TLS = %+v, %v; want %+v", tt.text, got.TLS, err, tt.want)
		}
	}
}

// TestPostgreSQLParseErrorsKeepThePassword: parse says what is wrong with a PostgreSQL address but not the password.
func TestPostgreSQLParseErrorsKeepThePassword(t *testing.T) {
	tests := []struct{ text, says string }{
		{"postgres://u:s3cret@h1,h2/d", "several hosts"},
		{"postgres://u:s3cret@h1:1,h2:2/d", "several hosts"},
		{"postgres://u:s3cret@[::1]:1,[::2]:2/d", "several hosts"},
		{"host=h1,h2 password=s3cret", "several hosts"},
		{"host=h port=1,2 password=s3cret", "several hosts"},
		{"service=shop password=s3cret", "service"},
		{"host=h password='s3cret", "quote"},
		{"host=h s3cret", "name=value"},
		{"postgres://u:s3cret%zz@h/d", "password"},
		{"postgres://u%:s3cret@h/d", "user"},
		{"postgres://u:s3cret@h/d%", "dbname"},
		{"postgres://u:s3cret@h:54e2/d", "port"},
		{"postgres://u:s3cret@/d?host=/tmp&port=x", "port"},
		{"postgres://u:s3cret@::1/d", "brackets"},
		{"postgres://u:s3cret@[::1/d", "["},
		{"postgres://u:s3cret@[::1]x/d", "["},
		{"postgres://u:s3cret@h/d/e", "%2F"},
		{"postgres://u:s3cret@h/d?sslmode=maybe", "parameter sslmode"},
		{"postgres://u:s3cret/d", "password"},
		{"postgres://u:p@x?s3cret@h/d", "%3F"},
		{"postgres://u:s3cret@h?x=%zz", "parameters"},
		{"postgres://u:s3cret@a b/d", "host"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.says) ||
			!strings.Contains(err.Error(), "postgres://user:password@") {
			t.Errorf("Parse(%q): error %v does not say %q, with an example", tt.text, err, tt.says)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Parse(%q): error %v shows the password", tt.text, err)
		}
	}
}

func TestPostgreSQLTargetsReadBackAsTheyWere(t *testing.T) {
	for _, text := range []string{
		"postgres://u:p@h:5433/d?sslmode=verify-full&sslrootcert=a%26b&sslcert=c&sslkey=k",
		"postgres://u:p%40@/d?host=%2Frun%2Fa%20b&port=5433",
		"postgres://h:5432/?sslmode=disable",
		"postgres://h:5432/?sslmode=require&sslnegotiation=direct",
		"postgres://:pw@h:5432/",
	} {
		target, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.URL(); got != text {
			t.Errorf("%s reads back as %s", text, got)
		}
		if target.Password != "" && strings.Contains(target.String(), ":"+target.Password) {
			t.Errorf("%s shows the password", target)
		}
	}
}

func TestRedirectKeepsTheSpellingOfAPostgreSQLAddress(t *testing.T) {
	tests := []struct{ text, network, address, want string }{
		{"postgres://app:pw@db:5432/shop", "tcp", "127.0.0.1:40001",
			"postgres://app:pw@127.0.0.1:40001/shop?sslmode=disable"},
		{"postgresql://app:p%2Fw@db/shop?pool_max_conns=5&sslmode=verify-full&sslrootcert=x&channel_binding=require&application_name=a%20b", "tcp", "127.0.0.1:1",
			"postgresql://app:p%2Fw@127.0.0.1:1/shop?pool_max_conns=5&application_name=a%20b&sslmode=disable"},
		{"postgresql+asyncpg://app@db/shop?prepared_statement_cache_size=0", "tcp", "[::1]:9",
			"postgresql+asyncpg://app@[::1]:9/shop?prepared_statement_cache_size=0"},
		{"postgres:///?host=/tmp&user=app&password=pw&dbname=shop", "tcp", "127.0.0.1:1",
			"postgres://app:pw@127.0.0.1:1/shop?sslmode=disable"},
		{"postgres://app@db/shop?a=b", "unix", "/tmp/tap/.s.PGSQL.7000",
			"postgres://app@/shop?a=b&host=%2Ftmp%2Ftap&port=7000"},
		{"host=db user=app password='p w' dbname=shop sslmode=require options='-c x=1'", "tcp", "127.0.0.1:1",
			"user=app password='p w' dbname=shop options='-c x=1' host=127.0.0.1 port=1 sslmode=disable"},
		{"host=db user=app dbname=shop", "unix", "/tmp/a b/.s.PGSQL.7000",
			"user=app dbname=shop host='/tmp/a b' port=7000"},
		{"jdbc:postgresql://db/shop?user=app&password=p%2Bw&ssl=true", "tcp", "127.0.0.1:1",
			"jdbc:postgresql://127.0.0.1:1/shop?user=app&password=p%2Bw&sslmode=disable"},
		{"jdbc:postgresql:shop?user=app", "unix", "/tmp/.s.PGSQL.7000", "postgres://app@/shop?host=%2Ftmp&port=7000"},
	}
	for _, tt := range tests {
		got, err := Redirect(tt.text, tt.network, tt.address)
		if err != nil || got != tt.want {
			t.Errorf("Redirect(%q, %s) = %q, %v; want %q", tt.text, tt.address, got, err, tt.want)
			continue
		}
		was, _ := Parse(tt.text)
		is, err := Parse(got)
		if err != nil || is.Family != dbms.PostgreSQLFamily || is.Address != tt.address || is.Network != tt.network ||
			is.User != was.User || is.Password != was.Password || is.Database != was.Database {
			t.Errorf("Redirect(%q) gives %q, which reads as %+v, %v", tt.text, got, is, err)
		}
	}
}

func TestRedirectTellsPostgreSQLsDriversOfTLS(t *testing.T) {
	got, err := RedirectTLS("postgres://app@db/shop", "tcp", "127.0.0.1:1", TLSRequire)
	if want := "postgres://app@127.0.0.1:1/shop?sslmode=require"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestRedirectRefusesASocketThatLibpqCannotName(t *testing.T) {
	if got, err := Redirect("postgres://app@db/shop", "unix", "/tmp/tap.sock"); err == nil ||
		!strings.Contains(err.Error(), ".s.PGSQL.5432") {
		t.Errorf("%q, %v", got, err)
	}
}
