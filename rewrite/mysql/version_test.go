package mysql

import "testing"

// TestParseVersionTellsServersApart: parse version tells the servers of the family apart.
func TestParseVersionTellsServersApart(t *testing.T) {
	for greeting, want := range map[string]struct {
		dialect Dialect
		version uint32
	}{
		"10.11.19-MariaDB-0+deb12u1":        {MariaDB, 101119},
		"5.5.5-10.11.19-MariaDB-0+deb12u1":  {MariaDB, 101119},
		"11.8.3-MariaDB":                    {MariaDB, 110803},
		"9.7.4":                             {MySQL, 90704},
		"8.0.36-0ubuntu0.22.04.1":           {MySQL, 80036},
		"8.0.11-TiDB-v8.5.0":                {TiDB, 80500},
		"8.0.11-TiDB-v8.4.0-alpha-12-gabcd": {TiDB, 80400},
		"":                                  {MySQL, 0},
	} {
		dialect, version := ParseVersion(greeting)
		if dialect != want.dialect || version != want.version {
			t.Errorf("ParseVersion(%q) = %v, %d; want %v, %d", greeting, dialect, version, want.dialect, want.version)
		}
	}
}
