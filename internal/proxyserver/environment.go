package proxyserver

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/proxy/session"
)

// An Environment is how a client program reaches isotap, by the names that [Expand] knows: host, port, socket
// (empty where isotap does not listen so), user, password, database, url, dsn. Beside them it has the
// server's family and the sslmode that PostgreSQL's clients need.
type Environment map[string]string

// Environment returns where isotap is. The login is that of Options.Upstream; url has the form of Options.URL.
func (srv *Server) Environment() (Environment, error) {
	network, address := srv.Addr().Network(), srv.Addr().String()
	p := Environment{"family": srv.upstream.Family.Title(), "user": srv.upstream.User,
		"password": srv.upstream.Password,
		"database": srv.upstream.Database,
		"host":     "", "port": "", "socket": "", "sslmode": srv.sslMode(network).String()}
	if network == "tcp" {
		var err error
		if p["host"], p["port"], err = net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("the proxy's own address: %w", err)
		}
	} else {
		p["host"], p["socket"] = "localhost", address
	}
	if socket := srv.addrOf("unix"); socket != nil {
		p["socket"] = socket.String()
	}
	url := srv.url
	if url == "" {
		url = srv.upstream.URL()
	}
	var err error
	if p["url"], err = dsn.RedirectTLS(url, network, address, srv.sslMode(network)); err != nil {
		return nil, err
	}
	p["dsn"] = p["url"]
	if srv.upstream.Family == dbms.MySQLFamily {
		p["dsn"] = srv.config(srv.upstream.Database).FormatDSN()
	} else if network == "unix" {
		p["host"], p["port"], err = dsn.LibpqAddress(network, address)
	}
	return p, err
}

// sslMode is how isotap's clients are to use TLS, in libpq's words.
func (srv *Server) sslMode(network string) dsn.TLSMode {
	switch {
	case network == "unix", srv.tls == session.NoTLS:
		return dsn.TLSDisable
	case srv.tls == session.MustTLS:
		return dsn.TLSRequire
	}
	return dsn.TLSPrefer
}

// Environment returns a client program's environment, env, with the variables that programs look at telling where
// isotap is: DATABASE_URL, and for the MySQL family MYSQL_DSN (as Go's driver has it), MYSQL_HOST, MYSQL_TCP_PORT
// and MYSQL_UNIX_PORT, for PostgreSQL what [Place.libpq] says.
func (p Environment) Environment(env []string) []string {
	env = append(slices.Clone(env), "DATABASE_URL="+p["url"])
	if p["family"] == dbms.PostgreSQLFamily.Title() {
		return p.libpq(env)
	}
	env = append(env, "MYSQL_DSN="+p["dsn"], "MYSQL_HOST="+p["host"])
	if p["socket"] != "" {
		env = append(env, "MYSQL_UNIX_PORT="+p["socket"])
	}
	if p["port"] != "" {
		env = append(env, "MYSQL_TCP_PORT="+p["port"])
	}
	return env
}

// libpq sets libpq's PGHOST, PGPORT and PGSSLMODE, and where the environment has no login or database of its own
// those of --upstream. PGHOSTADDR and PGSERVICE would count more than PGHOST. They are taken out, not emptied:
// lib/pq refuses an environment that has them at all.
func (p Environment) libpq(env []string) []string {
	env = slices.DeleteFunc(env, func(v string) bool { return isOne(v, "PGHOSTADDR", "PGSERVICE") })
	said := func(names ...string) bool {
		return slices.ContainsFunc(env, func(v string) bool { return isOne(v, names...) })
	}
	var login []string
	if !said("PGUSER", "PGPASSWORD", "PGPASSFILE") {
		login = []string{"PGUSER=" + p["user"], "PGPASSWORD=" + p["password"]}
	}
	if !said("PGDATABASE") {
		login = append(login, "PGDATABASE="+p["database"])
	}
	for _, v := range login {
		if name, value, _ := strings.Cut(v, "="); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "PGHOST="+p["host"], "PGPORT="+p["port"], "PGSSLMODE="+p["sslmode"])
}

// isOne reports whether NAME=value sets one of the names.
func isOne(variable string, names ...string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains(names, name)
}

// placeholders are the names of a Place in the order in which people are told of them.
var placeholders = []string{"host", "port", "user", "password", "database", "url", "dsn", "socket"}

// CheckTemplate returns what is wrong with a NAME=template for [Place.Expand], before there is a place.
func CheckTemplate(text string) error {
	none := Environment{}
	for _, name := range placeholders {
		none[name] = ""
	}
	_, err := none.Expand(text)
	return err
}

// Expand fills in a NAME=template: {host} and its kind stand for what the place has under the name,
// {{ and }} for braces.
func (p Environment) Expand(text string) (string, error) {
	name, template, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", fmt.Errorf("%q is not NAME=template, such as DB_HOST={host}", text)
	}
	var b strings.Builder
	for rest := template; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		brace := rest[i : i+1]
		rest = rest[i+1:]
		if strings.HasPrefix(rest, brace) {
			b.WriteString(brace)
			rest = rest[1:]
			continue
		}
		word, after, closed := strings.Cut(rest, "}")
		if brace == "}" || !closed {
			return "", fmt.Errorf("%s has a lone %s: write %s%s for the character itself", name, brace, brace, brace)
		}
		value, known := p[word]
		if !known || !slices.Contains(placeholders, word) {
			return "", fmt.Errorf("%s: {%s} is none of {%s}", name, word, strings.Join(placeholders, "} {"))
		}
		b.WriteString(value)
		rest = after
	}
	return name + "=" + b.String(), nil
}

// DSN is isotap as Go's drivers have it (go-sql-driver's, pgx), for the given database.
func (srv *Server) DSN(database string) string {
	if srv.upstream.Family == dbms.MySQLFamily {
		return srv.config(database).FormatDSN()
	}
	target := srv.upstream
	target.Database, target.Network, target.Address = database, srv.Addr().Network(), srv.Addr().String()
	target.TLS = dsn.TLS{Mode: srv.sslMode(target.Network)}
	return target.URL()
}

func (srv *Server) config(database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = srv.upstream.User, srv.upstream.Password, database
	c.Net, c.Addr = srv.Addr().Network(), srv.Addr().String()
	if srv.tls == session.MustTLS && c.Net == "tcp" {
		c.TLSConfig = "skip-verify"
	}
	return c
}
