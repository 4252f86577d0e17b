package mysql

import "testing"

// TestStatementsWithoutRowsMayLeaveWhatTheyFound holds which statements leave a number in FOUND_ROWS() without rows, as
// it was measured.
func TestStatementsWithoutRowsMayLeaveWhatTheyFound(t *testing.T) {
	for text, want := range map[string][3]bool{ // on MariaDB, on MySQL, on TiDB
		"INSERT INTO kv SELECT 'a', 1":                          {true, true, false},
		"REPLACE INTO kv (SELECT name, 1 FROM item)":            {true, true, false},
		"INSERT INTO kv VALUES ('a', 1)":                        {},
		"INSERT INTO kv VALUES ('a', (SELECT 1))":               {true, true, false},
		"SELECT id INTO @a FROM item":                           {true, true, false},
		"SELECT id FROM item":                                   {},
		"DO 1":                                                  {false, true, false},
		"DO (SELECT 1)":                                         {true, true, false},
		"SET @x = (SELECT 1)":                                   {true, false, false},
		"UPDATE item SET stock = 1":                             {false, true, false},
		"UPDATE item, orders SET stock = 1":                     {true, true, false},
		"UPDATE item SET stock = 1 WHERE id IN (1, 2)":          {false, true, false},
		"UPDATE item SET stock = (SELECT MAX(qty) FROM orders)": {true, true, false},
		"DELETE FROM item WHERE id = 1":                         {},
		"DELETE item FROM item JOIN orders USING (id)":          {true, true, false},
		"CREATE TABLE c SELECT id FROM item":                    {true, false, false},
		"COMMIT":                                                {},
	} {
		for d, dialect := range []Dialect{MariaDB, MySQL, TiDB} {
			s := Session{Dialect: dialect, Schema: "shop", Charset: "utf8mb4"}
			if got := New(testSchema(), Options{}).Plan(text, s).Session.FindsRows; got != want[d] {
				t.Errorf("%s, dialect %d: %t", text, dialect, got)
			}
		}
	}
}
