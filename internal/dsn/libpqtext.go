package dsn

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A libpqForm is a way to write an address of PostgreSQL's.
type libpqForm uint8

const (
	notLibpq      libpqForm = iota
	libpqURL                // postgres://user@host/database?name=value
	libpqKeywords           // host=h user=u dbname='d'
	libpqJDBC               // jdbc:postgresql://host/database?user=u
)

// libpqSchemes are those of libpq and of frameworks; a + and a driver may follow, as in SQLAlchemy's
// postgresql+psycopg2.
var libpqSchemes = []string{"postgres", "postgresql", "pgsql", "postgis"}

const jdbcPrefix = "jdbc:postgresql:"

// keyword is what an address in keywords begins with. libpq has more of them, but none needs to come first
// for a text to be recognized: those of a place or a login do.
var keyword = regexp.MustCompile(`^\s*(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|application_name|connect_timeout|options)\s*=`)

// libpqFormOf tells an address of PostgreSQL's from others, and returns what follows its scheme.
func libpqFormOf(text string) (form libpqForm, rest string) {
	if len(text) >= len(jdbcPrefix) && strings.EqualFold(text[:len(jdbcPrefix)], jdbcPrefix) {
		rest = text[len(jdbcPrefix):]
		if !strings.HasPrefix(rest, "//") { // a database alone, of the server on this machine
			return libpqJDBC, "/" + strings.TrimPrefix(rest, "/")
		}
		return libpqJDBC, rest[len("//"):]
	}
	if keyword.MatchString(text) {
		return libpqKeywords, text
	}
	scheme, rest, ok := strings.Cut(text, "://")
	scheme, _, _ = strings.Cut(strings.ToLower(scheme), "+")
	if !ok || !slices.Contains(libpqSchemes, scheme) {
		return notLibpq, ""
	}
	return libpqURL, rest
}

// A libpqSetting is one parameter of an address.
type libpqSetting struct {
	name, value string
	raw         string // how it is written, where it is written as name=value
}

// libpqSettings are what an address says, by the names of libpq's parameters; the last of a name counts.
type libpqSettings []libpqSetting

func (s libpqSettings) get(name string) string {
	for _, setting := range slices.Backward(s) {
		if setting.name == name {
			return setting.value
		}
	}
	return ""
}

func readLibpq(form libpqForm, rest string) (libpqSettings, error) {
	if form == libpqKeywords {
		return readKeywords(rest)
	}
	rest, query, _ := strings.Cut(rest, "?")
	s, err := readLibpqPlace(rest)
	if err != nil {
		return nil, err
	}
	return s.readQuery(query, form == libpqJDBC)
}

// readLibpqPlace reads user:password@host:port/database, of which each part may be left out.
func readLibpqPlace(text string) (libpqSettings, error) {
	var login string
	// The last @ ends the password, so that it may hold one.
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		login, text = text[:at], text[at+1:]
	}
	user, password, _ := strings.Cut(login, ":")
	place, database, _ := strings.Cut(text, "/")
	if strings.Contains(database, "/") {
		return nil, errors.New("the database in the server's address has a /: write %2F for a /")
	}
	host, port, err := cutHostPort(place)
	if err != nil {
		return nil, err
	}
	var s libpqSettings
	for _, part := range [][2]string{{"user", user}, {"password", password}, {"host", host}, {"port", port},
		{"dbname", database}} {
		value, ok := unescape(part[1])
		if !ok {
			return nil, fmt.Errorf("the %s in the server's address has a %% "+
				"that two hexadecimal digits do not follow: write %%25 for a %%", part[0])
		}
		s = append(s, libpqSetting{name: part[0], value: value})
	}
	return s, nil
}

// cutHostPort parts host:port, of which each may be missing; an IPv6 address stands in brackets.
func cutHostPort(place string) (host, port string, err error) {
	host, port, _ = strings.Cut(place, ":")
	if inner, ok := strings.CutPrefix(place, "["); ok {
		var after string
		if host, after, ok = strings.Cut(inner, "]"); !ok {
			return "", "", errors.New("the server's address has a [ without its ]")
		}
		var found bool
		port, found = strings.CutPrefix(after, ":")
		if after != "" && !found && !strings.HasPrefix(after, ",") {
			return "", "", errors.New("the server's address goes on after [...] with something else than : and the port")
		}
	}
	if !strings.Contains(place, ",") && strings.Contains(port, ":") {
		return "", "", errors.New("the server's address does not name its host as host:port " +
			"(an IPv6 address goes in brackets)")
	}
	return host, port, nil
}

// readQuery adds the parameters of a URL to s. Unlike JDBC, libpq takes a plus for what it is.
func (s libpqSettings) readQuery(query string, jdbc bool) (libpqSettings, error) {
	if strings.Contains(query, "@") {
		return nil, errors.New("the server's address has an @ after the ?: write %3F for a ? in a password, " +
			"%40 for an @ in a parameter")
	}
	unescape := url.PathUnescape
	if jdbc {
		unescape = url.QueryUnescape
	}
	for raw := range strings.SplitSeq(query, "&") {
		if raw == "" {
			continue
		}
		name, text, _ := strings.Cut(raw, "=")
		value, err := unescape(text)
		if err != nil {
			return nil, errors.New("the parameters after the ? in the server's address are not name=value&name=value")
		}
		s = append(s, libpqSetting{name, value, raw})
	}
	return s, nil
}

// readKeywords reads name = value pairs. A value with spaces stands in single quotes; a backslash takes the
// character after it for what it is.
func readKeywords(text string) (libpqSettings, error) {
	var s libpqSettings
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, after, ok := strings.Cut(text, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n'\\") {
			return nil, errors.New("the server's address is not name=value name=value " +
				"(a value with spaces goes in single quotes)")
		}
		after = strings.TrimSpace(after)
		value, length, err := readKeywordValue(after)
		if err != nil {
			return nil, fmt.Errorf("%s in the server's address: %w", name, err)
		}
		s = append(s, libpqSetting{name, value, name + "=" + after[:length]})
		text = after[length:]
	}
	return s, nil
}

func readKeywordValue(text string) (value string, length int, err error) {
	quoted := strings.HasPrefix(text, "'")
	var b strings.Builder
	i := 0
	if quoted {
		i++
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case quoted && c == '\'':
			return b.String(), i + 1, nil
		case !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			return b.String(), i, nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", 0, errors.New("the quote is not closed")
	}
	return b.String(), i, nil
}

// LibpqAddress returns the host and port by which PostgreSQL's clients (PGHOST, PGPORT) find a listener. That of
// a unix socket is its directory: the name in it must be .s.PGSQL.PORT.
func LibpqAddress(network, address string) (host, port string, err error) {
	if network != "unix" {
		return net.SplitHostPort(address)
	}
	path, err := filepath.Abs(address)
	if err != nil {
		return "", "", fmt.Errorf("the socket %s: %w", address, err)
	}
	host, port, ok := cutSocket(path)
	if !ok {
		return "", "", fmt.Errorf("PostgreSQL's clients find no socket %s: its name must be .s.PGSQL. and a port, "+
			"such as .s.PGSQL.5432", path)
	}
	return host, port, nil
}

// redirectLibpq is [RedirectTLS] for an address of PostgreSQL's that reads as t.
func redirectLibpq(text string, t Target, network, address string, mode TLSMode) (string, error) {
	host, port, err := LibpqAddress(network, address)
	if err != nil {
		return "", err
	}
	form, rest := libpqFormOf(text)
	s, err := readLibpq(form, rest)
	if err != nil {
		return "", err
	}
	switch {
	case form == libpqKeywords:
		kept := append(s.kept(), "host="+quoteKeyword(host), "port="+port)
		if network != "unix" {
			kept = append(kept, "sslmode="+mode.String())
		}
		return strings.Join(kept, " "), nil
	case form == libpqJDBC && network != "unix": // for sockets it has no words
		return redirectedURL("jdbc:postgresql://"+address, t, append(s.kept(), "sslmode="+mode.String())), nil
	}
	scheme := "postgres"
	if form == libpqURL {
		scheme, _, _ = strings.Cut(text, "://")
	}
	kept := slices.DeleteFunc(s.kept(), func(raw string) bool {
		name, _, _ := strings.Cut(raw, "=")
		return name == "user" || name == "password" || name == "dbname"
	})
	var login string
	if t.User != "" || t.Password != "" {
		login = escape(t.User)
		if t.Password != "" {
			login += ":" + escape(t.Password)
		}
		login += "@"
	}
	if network == "unix" {
		return redirectedURL(scheme+"://"+login, t, append(kept, "host="+url.QueryEscape(host), "port="+port)), nil
	}
	// A driver of a framework's may not know sslmode.
	if s.get("sslmode") != "" || !strings.Contains(scheme, "+") {
		kept = append(kept, "sslmode="+mode.String())
	}
	return redirectedURL(scheme+"://"+login+address, t, kept), nil
}

func redirectedURL(start string, t Target, parameters []string) string {
	start += "/" + escape(t.Database)
	if len(parameters) > 0 {
		start += "?" + strings.Join(parameters, "&")
	}
	return start
}

// kept returns the parameters, as they are written, that say nothing of the place and its encryption.
func (s libpqSettings) kept() []string {
	var kept []string
	for _, setting := range s {
		switch setting.name {
		case "host", "hostaddr", "port", "requirepeer", "channel_binding", "gssencmode":
			continue
		}
		if setting.raw != "" && !strings.Contains(setting.name, "ssl") {
			kept = append(kept, setting.raw)
		}
	}
	return kept
}

func quoteKeyword(value string) string {
	if value != "" && !strings.ContainsAny(value, " \t\r\n\\'") {
		return value
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
