package mysql

import (
	"bytes"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
)

func TestMaskedColumnsAreCutOutOfRows(t *testing.T) {
	text := appendString(append(appendString(appendString(nil, "a"), "hidden"), lenencNull), "d")
	types := bytes.Repeat([]byte{gomysql.MYSQL_TYPE_VAR_STRING}, 4)
	// Of four columns the third is NULL: its bit is the one at 2+2.
	binary := appendString(appendString(appendString([]byte{0, 1 << 4}, "a"), "hidden"), "d")
	for name, test := range map[string]struct {
		row, want []byte
		binary    bool
	}{
		"text":   {text, appendString(append(appendString(nil, "a"), lenencNull), "d"), false},
		"binary": {binary, appendString(appendString([]byte{0, 1 << 3}, "a"), "d"), true},
	} {
		m := columnMask{columns: []int{1}, types: types}
		of := &reply{fields: 3, binary: test.binary} // less those that are masked
		got, err := m.maskRow(test.row, of)
		if err != nil || !bytes.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q (%v)", name, got, test.want, err)
		}
		if _, err := m.maskRow(test.row[:len(test.row)-1], of); err == nil {
			t.Errorf("%s: a row passes that is cut short", name)
		}
		var none columnMask
		if got, err := none.maskRow(test.row, of); err != nil || !bytes.Equal(got, test.row) {
			t.Errorf("%s: without a masked column the row is %q (%v)", name, got, err)
		}
	}
}

func TestDescriptionsOfTablesLeaveIsotapsColumnsOut(t *testing.T) {
	of := &reply{fields: 2}
	own := appendString(appendString(nil, rewrite.RowIDColumn), "varbinary(40)")
	if row, err := maskDescription(own, rewrite.Listing, of); row != nil || err != nil {
		t.Errorf("a listing has %q (%v)", row, err)
	}
	client := appendString(appendString(nil, "qty"), "int")
	if row, err := maskDescription(client, rewrite.Listing, of); !bytes.Equal(row, client) || err != nil {
		t.Errorf("a listing has %q for the client's column (%v)", row, err)
	}
	created := "CREATE TABLE `t` (\n  `id` int,\n  `" + rewrite.RowIDColumn + "` varbinary(40),\n  `" +
		rewrite.WListColumn +
		"` varbinary(255)\n) ENGINE=InnoDB"
	row, err := maskDescription(appendString(appendString(nil, "t"), created), rewrite.Definition, of)
	want := appendString(appendString(nil, "t"), "CREATE TABLE `t` (\n  `id` int\n) ENGINE=InnoDB")
	if err != nil || !bytes.Equal(row, want) {
		t.Errorf("%q, want %q (%v)", row, want, err)
	}
}
