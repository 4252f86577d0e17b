package dsn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/mutate"
)

func TestParseReadsWhatPeopleWrite(t *testing.T) {
	tests := []struct {
		text string
		want Target
	}{
		{"mysql://app:pw@db.example:3307/shop", Target{dbms.MySQLFamily, "tcp", "db.example:3307", "app", "pw", "shop",
			TLS{}}},
		{"mariadb://app@db.example", Target{dbms.MySQLFamily, "tcp", "db.example:3306", "app", "", "", TLS{}}},
		{"MySQL://app@db.example/", Target{dbms.MySQLFamily, "tcp", "db.example:3306", "app", "", "", TLS{}}},
		{"mysql://root@/shop?socket=/run/mysqld/mysqld.sock",
			Target{dbms.MySQLFamily, "unix", "/run/mysqld/mysqld.sock", "root", "", "shop", TLS{}}},
		{"mysql://root@localhost/shop?unix_socket=%2Frun%2Fx.sock", Target{dbms.MySQLFamily, "unix", "/run/x.sock",
			"root", "", "shop", TLS{}}},
		{"mysql://root:pw@unix(/run/mysqld/mysqld.sock)/shop?parseTime=true",
			Target{dbms.MySQLFamily, "unix", "/run/mysqld/mysqld.sock", "root", "pw", "shop", TLS{}}},
		{"mysql://root@unix(/run/x.sock)", Target{dbms.MySQLFamily, "unix", "/run/x.sock", "root", "", "", TLS{}}},
		{"mysql://root@tcp(10.0.0.1:3307)/shop", Target{dbms.MySQLFamily, "tcp", "10.0.0.1:3307", "root", "", "shop",
			TLS{}}},
		{"mysql://u@[::1]:3307/d", Target{dbms.MySQLFamily, "tcp", "[::1]:3307", "u", "", "d", TLS{}}},
		{"mysql://u@[::1]/d", Target{dbms.MySQLFamily, "tcp", "[::1]:3306", "u", "", "d", TLS{}}},
		{"mysql:///d", Target{dbms.MySQLFamily, "tcp", "127.0.0.1:3306", "", "", "d", TLS{}}},
		{"mysql://u@:3307", Target{dbms.MySQLFamily, "tcp", "127.0.0.1:3307", "u", "", "", TLS{}}},
		{"mysql://u:p@ss:w/rd@h/d", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "p@ss:w/rd", "d", TLS{}}},
		{"mysql://u%40corp:p%3F%25@h/d%C3%A9", Target{dbms.MySQLFamily, "tcp", "h:3306", "u@corp", "p?%", "dé", TLS{}}},
		{"mysql://u:p@h/d?charset=utf8mb4&tls=false", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "p", "d", TLS{}}},
		{"mysql://u@h/d?ssl-mode=PREFERRED", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "", "d",
			TLS{Mode: TLSPrefer}}},
		{"mysql://u@h/d?sslMode=VERIFY_IDENTITY&ssl-ca=/a/ca.pem", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "",
			"d", TLS{Mode: TLSVerifyFull, CA: "/a/ca.pem"}}},
		{"mysql://u@h/d?ssl_ca=ca.pem&ssl_cert=c.pem&ssl_key=k.pem", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "",
			"d", TLS{TLSVerifyCA, "ca.pem", "c.pem", "k.pem", false}}},
		{"mysql://u@h/d?tls=true", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "", "d", TLS{Mode: TLSVerifyFull}}},
		{"mysql://u@h/d?tls=skip-verify", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "", "d",
			TLS{Mode: TLSRequire}}},
		{"mysql://u@h/d?ssl=true", Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "", "d", TLS{Mode: TLSRequire}}},
	}
	for _, tt := range tests {
		if got, err := Parse(tt.text); err != nil || got != tt.want {
			t.Errorf("Parse(%q) = %+v (password %q), %v; want %+v", tt.text, got, got.Password, err, tt.want)
		}
	}
}

// TestParseErrorsKeepThePassword: parse errors say what is wrong but not the password.
func TestParseErrorsKeepThePassword(t *testing.T) {
	tests := []struct{ text, says string }{
		{"u:s3cret@h/d", "scheme"},
		{"", "scheme"},
		{"postgres:u:s3cret@h/d", "scheme"},
		{"jdbc:oracle://h/d?user=u&password=s3cret", "neither"},
		{"jdbc:mysql:s3cret", "scheme"},
		{"u:s3cret@tcp(h:33o6)/d", "port"},
		{"u:s3cret@unix()/d", "path"},
		{"u:s3cret@tcp(h)", "scheme"},
		{"oracle://u:s3cret@h/d", "neither"},
		{"mysql://u:s3cret%zz@h/d", "password"},
		{"mysql://u%:s3cret@h/d", "user"},
		{"mysql://u:s3cret@h:33o6/d", "port"},
		{"mysql://u:s3cret@h:0/d", "port"},
		{"mysql://u:s3cret@h:99999/d", "65535"},
		{"mysql://u:s3cret@::1/d", "brackets"},
		{"mysql://u:s3cret@h/d/e", "%2F"},
		{"mysql://u:s3cret@h/d%", "database"},
		{"mysql://u:s3cret@unix(/x", "closing"},
		{"mysql://u:s3cret@unix()/x", "path"},
		{"mysql://u:s3cret@unix(/x)y", "after unix"},
		{"mysql://u:s3cret@h/d?tls=custom", "parameter tls"},
		{"mysql://u:s3cret@h/d?a=%zz", "parameters"},
		{"mysql://u:s3cret/d", "password"},
		{"mysql://u:p@x?s3cret@h/d", "%3F"},
		{"mysql://u:p@[s3cret/d", "host"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("Parse(%q): error %v does not say %q", tt.text, err, tt.says)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Parse(%q): error %v shows the password", tt.text, err)
		}
	}
}

func TestTargetNeverShowsItsPassword(t *testing.T) {
	target := Target{dbms.MySQLFamily, "tcp", "h:3306", "u", "s3cret", "d", TLS{}}
	j, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{target.String(), fmt.Sprintf("%v %+v %#v %s", target, target, &target, target),
		string(j)} {
		if strings.Contains(text, "s3cret") {
			t.Errorf("%s shows the password", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"mysql://u:p@h:1/d", "mysql://u@unix(/a)/d", "mariadb://@/?socket=/a",
		"mysql://%41@[::1]/%2f?tls=0",
		"postgres://u:p@%2Fa:1/d?sslmode=require&sslrootcert=%41", "host=a user='b \\'c' port=7",
		"jdbc:postgresql:d?ssl=true"} {
		f.Add(s)
	}
	mutate.Fuzz(f, func(t *testing.T, text string) {
		target, err := Parse(text)
		if err != nil {
			return
		}
		target.Password = ""
		again, err := Parse(target.String())
		if err != nil || again != target {
			t.Errorf("%q reads as %v, which reads as %v, %v", text, target, again, err)
		}
	})
}
