package dsn

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/isotap/isotap/dbms"
)

const (
	libpqPort = "5432"
	// libpqSocket is what the name of a server's socket begins with; its port follows.
	libpqSocket = "/.s.PGSQL."
	// systemRoots is what sslrootcert says for the system's own authorities.
	systemRoots = "system"
)

// parseLibpq reads an address of PostgreSQL's, whose form and rest [libpqFormOf] gave.
func parseLibpq(form libpqForm, rest string) (Target, error) {
	s, err := readLibpq(form, rest)
	if err != nil {
		return Target{}, err
	}
	t := Target{Family: dbms.PostgreSQLFamily, User: s.get("user"), Password: s.get("password"),
		Database: s.get("dbname")}
	if err := s.place(&t); err != nil {
		return Target{}, err
	}
	if t.Network == "unix" { // which libpq never encrypts
		return t, nil
	}
	t.TLS, err = s.tls(form == libpqJDBC)
	return t, err
}

// place gives the target its address.
func (s libpqSettings) place(t *Target) error {
	if s.get("service") != "" {
		return errors.New("the server's address names a service, whose file isotap does not read: name its host")
	}
	host, port := cmp.Or(s.get("host"), s.get("hostaddr")), cmp.Or(s.get("port"), libpqPort)
	if strings.Contains(host+port, ",") {
		return errors.New("the server's address names several hosts: isotap stands before one server, so name that one")
	}
	var err error
	if !strings.HasPrefix(host, "/") {
		t.Network = "tcp"
		t.Address, err = joinHostPort(host, port)
		return err
	}
	t.Network, t.Address = "unix", strings.TrimRight(host, "/")+libpqSocket+port
	return checkPort(port)
}

// tls reads how the connection is encrypted, by libpq's rules: prefer where nothing is said, and whoever
// names an authority wants it asked.
func (s libpqSettings) tls(jdbc bool) (TLS, error) {
	t := TLS{Mode: TLSPrefer, CA: s.get("sslrootcert"), Cert: s.get("sslcert"), Key: s.get("sslkey")}
	name := "sslmode"
	if s.get(name) == "" {
		name = "ssl"
	}
	if s.get(name) != "" {
		var err error
		if t.Mode, err = parseSSLMode(s.get(name), jdbc); err != nil {
			return TLS{}, fmt.Errorf("the parameter %s in the server's address: %w", name, err)
		}
	}
	switch t.Direct = s.get("sslnegotiation") == "direct"; {
	case t.CA == systemRoots:
		t.Mode = TLSVerifyFull
	case t.CA != "" && t.Mode == TLSRequire:
		t.Mode = TLSVerifyCA
	}
	if t.Direct && t.Mode < TLSRequire {
		return TLS{}, errors.New("the parameter sslnegotiation=direct in the server's address needs sslmode=require, " +
			"verify-ca or verify-full")
	}
	return t, nil
}

// parseSSLMode reads libpq's sslmode, and what other drivers say: ssl=true checks the certificate in JDBC
// alone, Node's no-verify never does.
func parseSSLMode(text string, jdbc bool) (TLSMode, error) {
	switch strings.ToLower(text) {
	case "allow":
		return TLSAllow, nil
	case "no-verify":
		return TLSRequire, nil
	case "true", "1", "on", "yes":
		if jdbc {
			return TLSVerifyFull, nil
		}
		return TLSRequire, nil
	}
	return ParseTLSMode(text)
}

// libpqURL is the target's text form, without the password.
func (t Target) libpqURL() string {
	var b strings.Builder
	b.WriteString("postgres://")
	if t.User != "" || t.Password != "" {
		b.WriteString(escape(t.User) + "@")
	}
	var parameters []string
	if host, port, ok := cutSocket(t.Address); t.Network == "unix" && ok {
		parameters = append(parameters, "host="+escape(host), "port="+port)
	} else {
		b.WriteString(t.Address)
	}
	b.WriteString("/" + escape(t.Database))
	if t.Network != "unix" && t.TLS.Mode != TLSPrefer {
		parameters = append(parameters, "sslmode="+t.TLS.Mode.String())
	}
	if t.TLS.Direct {
		parameters = append(parameters, "sslnegotiation=direct")
	}
	for _, p := range [][2]string{{"sslrootcert", t.TLS.CA}, {"sslcert", t.TLS.Cert}, {"sslkey", t.TLS.Key}} {
		if p[1] != "" {
			parameters = append(parameters, p[0]+"="+escape(p[1]))
		}
	}
	if len(parameters) > 0 {
		b.WriteString("?" + strings.Join(parameters, "&"))
	}
	return b.String()
}

// cutSocket returns a socket's directory and port, as libpq has them in the place of a host and its port.
func cutSocket(path string) (directory, port string, ok bool) {
	at := strings.LastIndex(path, libpqSocket)
	if at < 0 {
		return "", "", false
	}
	directory, port = path[:at], path[at+len(libpqSocket):]
	return cmp.Or(directory, "/"), port, checkPort(port) == nil
}
