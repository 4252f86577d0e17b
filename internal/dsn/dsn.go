// Package dsn reads the addresses of database servers as people and drivers write them: as URLs, in the forms of Go's,
// Java's and Python's drivers (spelling.go), and as libpq's connection strings (libpq.go, libpqtext.go). tls.go says
// how a connection is encrypted.
//
// A [Target] says where a server is and who logs in. No error and no text form shows a password.
package dsn

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
)

// A Target says where a server is and who logs in. Its text forms never show the password.
type Target struct {
	Family   dbms.Family
	Network  string // "tcp" or "unix"
	Address  string // "host:port", or the path of a socket
	User     string
	Password string `json:"-"`
	Database string // may be empty
	TLS      TLS
}

const defaultPort = "3306"

// Parse reads a server's address as people write it:
//
//	mysql://user:password@host:3306/database
//	mariadb://user@host
//	mysql://user@/database?socket=/run/mysqld/mysqld.sock
//	mysql://user@unix(/run/mysqld/mysqld.sock)/database
//	user:password@tcp(host:3306)/database
//	jdbc:mysql://host:3306/database?user=user&password=password
//	postgres://user:password@host:5432/database?sslmode=require
//	host=/var/run/postgresql user=user dbname=database
//	jdbc:postgresql://host:5432/database?user=user&password=password
//
// PostgreSQL's forms mean what libpq's documentation says of them (34.1.1, Connection Strings), with one host
// only, which defaults to 127.0.0.1, the port to 5432. What follows is the MySQL family's: the schemes are mysql,
// mariadb, tidb and frameworks' own (mysql2, mysql+pymysql); the last but one form is that of Go's driver, in which
// nothing is percent-encoded. The host defaults to 127.0.0.1 and the port to
// 3306. User, password, database and socket may hold percent-encoded bytes; "@", ":" and "/" may stand as
// they are in a password. The parameters ssl-mode (or tls, sslmode), ssl-ca, ssl-cert and ssl-key say how
// the connection is encrypted; all but these and socket are drivers' own and are not looked at.
// No error shows the password: none quotes the address, for what stands at the host's place may be a
// password whose host was forgotten.
func Parse(text string) (Target, error) {
	if form, rest := libpqFormOf(text); form != notLibpq {
		t, err := parseLibpq(form, rest)
		if err != nil {
			return Target{}, fmt.Errorf("%w; write it like postgres://user:password@db.example:5432/shop", err)
		}
		return t, nil
	}
	t, err := parseTarget(text)
	if err != nil {
		return Target{}, fmt.Errorf("%w; write it like mysql://user:password@db.example:3306/shop", err)
	}
	return t, nil
}

func parseTarget(text string) (Target, error) {
	var t Target
	scheme, rest, err := cutScheme(text)
	if err != nil {
		return Target{}, err
	}
	if scheme == "dsn" {
		return t, t.setDSN(rest)
	}
	rest, query, _ := strings.Cut(rest, "?")
	if scheme == "jdbc" {
		query = t.setLogin(query)
	}
	// The last @ ends the user and password, so that a password may hold one.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := t.setUser(rest[:at]); err != nil {
			return Target{}, err
		}
		rest = rest[at+1:]
	}
	if err := t.setPlace(rest); err != nil {
		return Target{}, err
	}
	if err := t.setParameters(query); err != nil {
		return Target{}, err
	}
	return t, nil
}

func (t *Target) setUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	var ok bool
	if t.User, ok = unescape(user); !ok {
		return errors.New("the user in the server's address has a % that two hexadecimal digits do not follow: " +
			"write %25 for a %")
	}
	if t.Password, ok = unescape(password); !ok {
		return errors.New("the password in the server's address has a % that two hexadecimal digits do not follow: " +
			"write %25 for a %")
	}
	return nil
}

// setPlace reads what follows the user: host and port, or a socket, and the database.
func (t *Target) setPlace(text string) error {
	var database string
	if inner, ok := strings.CutPrefix(text, "unix("); ok {
		path, after, closed := strings.Cut(inner, ")")
		if !closed || path == "" {
			return errors.New("the server's address has unix( without a path and a closing )")
		}
		t.Network, t.Address = "unix", path
		if after != "" && after[0] != '/' {
			return errors.New("the server's address goes on after unix(...) with something else than / and the database")
		}
		database = strings.TrimPrefix(after, "/")
	} else {
		var place string
		place, database, _ = strings.Cut(text, "/")
		if inner, ok := strings.CutPrefix(place, "tcp("); ok {
			place = strings.TrimSuffix(inner, ")")
		}
		address, err := hostPort(place)
		if err != nil {
			return err
		}
		t.Network, t.Address = "tcp", address
	}
	var ok bool
	if t.Database, ok = unescape(database); !ok {
		return errors.New("the database in the server's address has a % that two hexadecimal digits do not follow: " +
			"write %25 for a %")
	}
	if strings.Contains(database, "/") {
		return errors.New("the database in the server's address has a /: write %2F for a /")
	}
	return nil
}

// hostPort fills in what text leaves out of host:port.
func hostPort(text string) (string, error) {
	host, port := text, defaultPort
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		host = text[1 : len(text)-1]
	} else if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", errors.New("the server's address does not name its host as host:port (an IPv6 address goes in brackets)")
		}
	}
	return joinHostPort(host, port)
}

// joinHostPort checks host and port, and fills in the host that is left out.
func joinHostPort(host, port string) (string, error) {
	if strings.ContainsAny(host, "[]()%#?@/ ") {
		return "", errors.New("the host in the server's address has a character that host names do not have")
	}
	if err := checkPort(port); err != nil {
		return "", err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func checkPort(port string) error {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("the port in the server's address is not a number from 1 to 65535 (if it is the password: " +
			"@ and the host are missing behind it)")
	}
	return nil
}

func (t *Target) setParameters(query string) error {
	if strings.Contains(query, "@") {
		return errors.New("the server's address has an @ after the ?: write %3F for a ? in a password, " +
			"%40 for an @ in a parameter")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters after the ? in the server's address are not name=value&name=value")
	}
	chosen := false
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values.Get(name)
		switch kind := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)); kind {
		case "socket", "unixsocket":
			if value != "" {
				t.Network, t.Address = "unix", value
			}
		case "tls", "ssl", "usessl", "sslmode":
			chosen = true
			if t.TLS.Mode, err = parseTLSParameter(kind, value); err != nil {
				return fmt.Errorf("the parameter %s in the server's address: %w", name, err)
			}
		case "sslca":
			t.TLS.CA = value
		case "sslcert":
			t.TLS.Cert = value
		case "sslkey":
			t.TLS.Key = value
		}
	}
	if !chosen && t.TLS.CA != "" {
		t.TLS.Mode = TLSVerifyCA // as MySQL's clients have it
	}
	return nil
}

// parseTLSParameter reads what drivers say of TLS: Go's tls=true checks the certificate, others' ssl=true
// does not.
func parseTLSParameter(kind, value string) (TLSMode, error) {
	switch strings.ToLower(value) {
	case "true", "1", "on", "yes":
		if kind == "tls" {
			return TLSVerifyFull, nil
		}
		return TLSRequire, nil
	}
	return ParseTLSMode(value)
}

func unescape(s string) (string, bool) {
	s, err := url.PathUnescape(s)
	return s, err == nil
}

// String returns the target as [Parse] reads it, without the password.
func (t Target) String() string {
	if t.Family == dbms.PostgreSQLFamily {
		return t.libpqURL()
	}
	var b strings.Builder
	b.WriteString("mysql://")
	if t.User != "" || t.Password != "" {
		b.WriteString(escape(t.User) + "@")
	}
	if t.Network != "unix" {
		b.WriteString(t.Address)
	}
	b.WriteString("/" + escape(t.Database))
	parameters := url.Values{}
	if t.Network == "unix" {
		parameters.Set("socket", t.Address)
	}
	if t.TLS != (TLS{}) {
		parameters.Set("ssl-mode", t.TLS.Mode.String())
	}
	for name, file := range map[string]string{"ssl-ca": t.TLS.CA, "ssl-cert": t.TLS.Cert, "ssl-key": t.TLS.Key} {
		if file != "" {
			parameters.Set(name, file)
		}
	}
	if len(parameters) > 0 {
		b.WriteString("?" + parameters.Encode())
	}
	return b.String()
}

// escape leaves only letters, digits, "-", "_", "." and "~" as they are: PathEscape keeps @ and :,
// QueryEscape makes a space a plus.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// GoString keeps the password out of %#v too.
func (t Target) GoString() string { return fmt.Sprintf("dsn.Target(%s)", t) }

// URL returns the target as [Parse] reads it, with the password: only for who is to log in.
func (t Target) URL() string {
	if t.Password == "" {
		return t.String()
	}
	login := "://" + escape(t.User)
	return strings.Replace(t.String(), login+"@", login+":"+escape(t.Password)+"@", 1)
}
