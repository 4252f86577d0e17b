package dsn

import (
	"strings"
	"testing"
)

func TestParseReadsOtherSpellings(t *testing.T) {
	at := func(network, address, user, password, database string) Target {
		return Target{Network: network, Address: address, User: user, Password: password, Database: database}
	}
	tests := []struct {
		text string
		want Target
	}{
		{"tidb://root@h:4000/test", at("tcp", "h:4000", "root", "", "test")},
		{"mysql2://app:pw@h/shop?pool=5", at("tcp", "h:3306", "app", "pw", "shop")},
		{"mysql+pymysql://app:pw@h/shop?charset=utf8mb4", at("tcp", "h:3306", "app", "pw", "shop")},
		{"app:pw@tcp(h:3307)/shop?parseTime=true&loc=Asia%2FTokyo", at("tcp", "h:3307", "app", "pw", "shop")},
		{"app:p%zz@:w/?rd@tcp([::1]:3307)/shop", at("tcp", "[::1]:3307", "app", "p%zz@:w/?rd", "shop")},
		{"app@unix(/run/mysqld/mysqld.sock)/shop", at("unix", "/run/mysqld/mysqld.sock", "app", "", "shop")},
		{"app:pw@/shop", at("tcp", "127.0.0.1:3306", "app", "pw", "shop")},
		{"app@(h)/", at("tcp", "h:3306", "app", "", "")},
		{"app:a://b@tcp(h)/d", at("tcp", "h:3306", "app", "a://b", "d")},
		{"/shop", at("tcp", "127.0.0.1:3306", "", "", "shop")},
		{"tcp(h)/d%41", at("tcp", "h:3306", "", "", "d%41")},
		{"jdbc:mysql://h:3307/shop?user=app&password=p%26w%2B+1&serverTimezone=UTC",
			at("tcp", "h:3307", "app", "p&w+ 1", "shop")},
		{"JDBC:MariaDB://h/shop?user=app", at("tcp", "h:3306", "app", "", "shop")},
		{"jdbc:mysql://app:pw@h/shop", at("tcp", "h:3306", "app", "pw", "shop")},
	}
	for _, tt := range tests {
		if got, err := Parse(tt.text); err != nil || got != tt.want {
			t.Errorf("Parse(%q) = %+v (password %q), %v; want %+v", tt.text, got, got.Password, err, tt.want)
		}
	}
}

func TestParseErrorsShowAnExample(t *testing.T) {
	for _, text := range []string{"", "localhost", "u:p@h/d", "oracle://h/d", "mysql://h:x/d", "u@tcp(h:x)/d"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "write it like mysql://user:password@") {
			t.Errorf("Parse(%q): %v shows no example", text, err)
		}
	}
}

func TestRedirectKeepsWhatIsTheDrivers(t *testing.T) {
	tests := []struct{ text, network, address, want string }{
		{"mysql://app:pw@db:3306/shop", "tcp", "127.0.0.1:40001", "mysql://app:pw@127.0.0.1:40001/shop"},
		{"mysql2://app:p%2Fw@db/shop?pool=5&ssl-mode=PREFERRED&encoding=utf8mb4", "tcp", "127.0.0.1:1",
			"mysql2://app:p%2Fw@127.0.0.1:1/shop?pool=5&encoding=utf8mb4"},
		{"mysql+pymysql://app@db/shop?charset=utf8mb4", "tcp", "[::1]:9",
			"mysql+pymysql://app@[::1]:9/shop?charset=utf8mb4"},
		{"tidb://root@db:4000/test", "tcp", "127.0.0.1:1", "mysql://root@127.0.0.1:1/test"},
		{"app:p@w@tcp(db)/shop?parseTime=true", "tcp", "127.0.0.1:1", "mysql://app:p%40w@127.0.0.1:1/shop"},
		{"jdbc:mysql://db/shop?user=app&password=pw", "tcp", "127.0.0.1:1", "mysql://app:pw@127.0.0.1:1/shop"},
		{"mysql://root@/shop?socket=/run/mysqld/mysqld.sock&a=b", "tcp", "127.0.0.1:1",
			"mysql://root@127.0.0.1:1/shop?a=b"},
		{"mysql://root@db/shop", "unix", "/tmp/tap.sock", "mysql://root@/shop?socket=%2Ftmp%2Ftap.sock"},
	}
	for _, tt := range tests {
		got, err := Redirect(tt.text, tt.network, tt.address)
		if err != nil || got != tt.want {
			t.Errorf("Redirect(%q, %s) = %q, %v; want %q", tt.text, tt.address, got, err, tt.want)
			continue
		}
		was, _ := Parse(tt.text)
		is, err := Parse(got)
		if err != nil || is.Address != tt.address || is.Network != tt.network || is.User != was.User ||
			is.Password != was.Password || is.Database != was.Database {
			t.Errorf("Redirect(%q) gives %q, which reads as %+v, %v", tt.text, got, is, err)
		}
	}
}
