package mysql

import "testing"

func TestFilesNamesTellTheirTables(t *testing.T) {
	for name, want := range map[string]string{"shop/stock": "shop.stock", "a@002db/c@0020d": "a-b.c d",
		"shop/part#P#p0": "shop.part", "shop/part#p#p0#sp#s": "shop.part", "odd/t@0g": "", "SYS_FOREIGN": ""} {
		if table, ok := tableOfFile(name); table != want && ok || ok != (want != "") {
			t.Errorf("%s is of %q, %v; want %q", name, table, ok, want)
		}
	}
}
