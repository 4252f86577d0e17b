package dbms_test

import (
	"testing"

	"github.com/isotap/isotap/dbms"
)

func TestNamesAreReadAsTheyAreWritten(t *testing.T) {
	for _, e := range dbms.Engines {
		for _, name := range []string{e.String(), e.Title()} {
			if got, err := dbms.ParseEngine(name); err != nil || got != e {
				t.Errorf("%s is read as %q, %v", name, got, err)
			}
			if got, err := dbms.ParseFamily(name); err != nil || got != e.Family() {
				t.Errorf("%s is of the family %s, %v", name, got, err)
			}
		}
	}
	for _, f := range dbms.Families {
		for _, name := range []string{f.String(), f.Title()} {
			if got, err := dbms.ParseFamily(name); err != nil || got != f {
				t.Errorf("the family %s is read as %s, %v", name, got, err)
			}
		}
	}
}

func TestTextsOfRecordingsStay(t *testing.T) {
	for _, c := range []struct {
		engine              dbms.Engine
		text, title, family string
	}{
		{dbms.MariaDB, "mariadb", "MariaDB", "mysql"},
		{dbms.MySQL, "mysql", "MySQL", "mysql"},
		{dbms.TiDB, "tidb", "TiDB", "mysql"},
		{dbms.PostgreSQL, "postgresql", "PostgreSQL", "postgresql"},
		{"cockroachdb", "cockroachdb", "cockroachdb", "mysql"},
		{"", "", "", "mysql"},
	} {
		e := c.engine
		if e.String() != c.text || e.Title() != c.title || e.Family().String() != c.family {
			t.Errorf("%q is %q, %q, of %q", string(e), e.String(), e.Title(), e.Family())
		}
	}
}

func TestOtherNamesAreRefused(t *testing.T) {
	for _, name := range []string{"", "oracle", "mariadb118", "mysql "} {
		if e, err := dbms.ParseEngine(name); err == nil {
			t.Errorf("%q is read as %s", name, e)
		}
		if f, err := dbms.ParseFamily(name); err == nil {
			t.Errorf("%q is read as the family %s", name, f)
		}
	}
	if e, err := dbms.ParseEngine("Postgres"); err != nil || e != dbms.PostgreSQL {
		t.Errorf("postgres is read as %q, %v", e, err)
	}
}
