package dsn

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
)

// schemes are those of the MySQL family as frameworks write them; a + and a driver may follow, as in
// SQLAlchemy's mysql+pymysql.
var schemes = []string{"mysql", "mysql2", "mariadb", "tidb"}

// cutScheme takes the scheme off an address: jdbc:mysql://, mysql2://, mysql+pymysql://. An address
// without one is the DSN of Go's driver, if it is an address at all.
func cutScheme(text string) (scheme, rest string, err error) {
	bare := text
	if len(text) >= len("jdbc:") && strings.EqualFold(text[:len("jdbc:")], "jdbc:") {
		scheme, bare = "jdbc", text[len("jdbc:"):]
	}
	name, rest, ok := strings.Cut(bare, "://")
	if !ok || strings.ContainsAny(name, "@:/(") {
		if scheme == "" && looksLikeDSN(text) {
			return "dsn", text, nil
		}
		return "", "", errors.New("the server's address has no scheme")
	}
	name, _, _ = strings.Cut(strings.ToLower(name), "+")
	if !slices.Contains(schemes, name) {
		return "", "", errors.New("the server's address begins neither with mysql:// nor with mariadb:// " +
			"nor with tidb:// nor with postgres://")
	}
	if scheme == "" {
		scheme = name
	}
	return scheme, rest, nil
}

// looksLikeDSN reports whether a text without a scheme is user:password@protocol(address)/database.
func looksLikeDSN(text string) bool {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return false
	}
	place := text[:slash]
	place = place[strings.LastIndexByte(place, '@')+1:]
	return place == "" || strings.HasSuffix(place, ")")
}

// setDSN reads user:password@protocol(address)/database?parameters as Go's driver does: nothing before
// the parameters is percent-encoded, the last slash ends the address, the last @ before it the password.
func (t *Target) setDSN(text string) error {
	slash := strings.LastIndexByte(text, '/')
	database, query, _ := strings.Cut(text[slash+1:], "?")
	place := text[:slash]
	if at := strings.LastIndexByte(place, '@'); at >= 0 {
		t.User, t.Password, _ = strings.Cut(place[:at], ":")
		place = place[at+1:]
	}
	if strings.HasPrefix(place, "(") {
		place = "tcp" + place
	}
	if err := t.setPlace(place + "/" + escape(database)); err != nil {
		return err
	}
	return t.setParameters(query)
}

// setLogin takes the login out of a JDBC address's parameters, and leaves the others.
func (t *Target) setLogin(query string) (others string) {
	var rest []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		text, err := url.QueryUnescape(value)
		switch {
		case err != nil:
			rest = append(rest, parameter)
		case name == "user":
			t.User = text
		case name == "password":
			t.Password = text
		default:
			rest = append(rest, parameter)
		}
	}
	return strings.Join(rest, "&")
}

// Redirect returns the address text, which [Parse] reads, for a server elsewhere: scheme, login,
// database and the parameters that are a driver's own stay as they were, the place and what belongs to it
// (socket, TLS) do not. From a DSN or a JDBC address of the MySQL family it makes a mysql:// URL. The server
// elsewhere speaks no TLS: see [RedirectTLS].
func Redirect(text, network, address string) (string, error) {
	return RedirectTLS(text, network, address, TLSDisable)
}

// RedirectTLS is [Redirect] to a server that wants its clients to use TLS so. PostgreSQL's drivers must be
// told, since not all of them try what the server can; the MySQL family's are left to find out.
func RedirectTLS(text, network, address string, mode TLSMode) (string, error) {
	t, err := Parse(text)
	if err != nil {
		return "", err
	}
	if t.Family == dbms.PostgreSQLFamily {
		return redirectLibpq(text, t, network, address, mode)
	}
	u := url.URL{Scheme: "mysql", Host: address, Path: "/" + t.Database}
	if t.User != "" || t.Password != "" {
		u.User = url.User(t.User)
		if t.Password != "" {
			u.User = url.UserPassword(t.User, t.Password)
		}
	}
	var kept []string
	if scheme, _, _ := strings.Cut(text, "://"); !strings.ContainsAny(scheme, ":@/(") {
		if !strings.EqualFold(scheme, "tidb") { // a scheme of ours, which drivers do not know
			u.Scheme = scheme
		}
		if _, query, ok := strings.Cut(text, "?"); ok {
			kept = driversOwn(query)
		}
	}
	if network == "unix" {
		u.Host = ""
		kept = append(kept, "socket="+url.QueryEscape(address))
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return "", err
	}
	u.RawQuery = strings.Join(kept, "&")
	return u.String(), nil
}

// driversOwn returns the parameters that say nothing of the place.
func driversOwn(query string) []string {
	var own []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		name = strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
		if name == "" || name == "socket" || name == "unixsocket" || name == "tls" || strings.Contains(name, "ssl") {
			continue
		}
		own = append(own, parameter)
	}
	return own
}
