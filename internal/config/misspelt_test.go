package config

import (
	"strings"
	"testing"
)

func TestMisspeltVariablesAreNamed(t *testing.T) {
	flags := []string{"fail-on", "upstream", "min-coverage"}
	for variable, want := range map[string]string{
		"ISOTAP_FAIL_ON=none":                          "",
		"ISOTAP_UPSTREAM=":                             "",
		"HOME=/root":                                   "",
		"ISOTAP_TEST_PG18_URL=postgres://":             "",
		"ISOTAP_MYSQLD=/usr/sbin/mysqld":               "",
		"ISOTAP_SERVICE_HOST=10.0.0.1":                 "",
		"ISOTAP_PORT=tcp://10.0.0.1:3306":              "",
		"ISOTAP_PORT_3306_TCP_ADDR=10.0.0.1":           "",
		"ISOTAP_FAILON=none":                           "did you mean ISOTAP_FAIL_ON?",
		"ISOTAP_MIN_COVERGE=10":                        "did you mean ISOTAP_MIN_COVERAGE?",
		"ISOTAP_SOMETHING_ENTIRELY_DIFFERENT=whatever": "no verb has a flag --something-entirely-different",
	} {
		err := Misspelt([]string{"A=b", variable}, flags)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", variable, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", variable, err, want)
		}
	}
}
