package postgres

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A key must be one text in both formats: a row that one client reads as text is the row that another changes by a
// binary parameter.
func TestKeyIsTheSameInBothFormats(t *testing.T) {
	m := pgtype.NewMap()
	rapid.Check(t, func(t *rapid.T) {
		oid := rapid.SampledFrom([]uint32{oidInt2, oidInt4, oidInt8, oidUUID}).Draw(t, "type")
		item, value := sqlpostgres.ItemKeyInt, any(int64(int16(rapid.Int16().Draw(t, "int2"))))
		switch oid {
		case oidInt4:
			value = int64(rapid.Int32().Draw(t, "int4"))
		case oidInt8:
			value = rapid.Int64().Draw(t, "int8")
		case oidUUID:
			var id [16]byte
			copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
			item, value = sqlpostgres.ItemKeyUUID, id
		}
		var keys, literals [2]string
		for format := range keys {
			v, err := m.Encode(oid, int16(format), value, nil)
			if err != nil {
				t.Fatal(err)
			}
			keys[format] = string(appendKey(nil, item, v, byte(format)))
			literals[format] = literal(v, byte(format), oid)
		}
		if keys[formatText] != keys[formatBinary] {
			t.Errorf("%v is the key %q as text and %q as binary", value, keys[formatText], keys[formatBinary])
		}
		if literals[formatText] != "E"+literals[formatBinary] {
			t.Errorf("%v is the literal %s as text and %s as binary", value, literals[formatText], literals[formatBinary])
		}
	})
}

func TestKeysPartsAreToldApart(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"plain", "plain"}, {`a,b`, `a\,b`}, {`a\`, `a\\`}, {"a;b", `a\;b`}, {"", ""},
	} {
		if got := string(appendKey(nil, sqlpostgres.ItemKeyText, []byte(c.value), formatText)); got != c.want {
			t.Errorf("%q becomes %q, not %q", c.value, got, c.want)
		}
	}
}

func TestIdentitiesAreReadInBothFormats(t *testing.T) {
	tid := func(v []byte, format byte) (uint64, bool) { return readTID(v, format) }
	id := func(v []byte, format byte) (uint64, bool) { return readNumber(v, format, 4) }
	lsn := func(v []byte, format byte) (uint64, bool) { return readLSN(v, format) }
	truth := func(v []byte, format byte) (uint64, bool) {
		b, ok := readBool(v, format)
		return map[bool]uint64{true: 1}[b && ok], ok
	}
	for _, c := range []struct {
		name   string
		read   func([]byte, byte) (uint64, bool)
		format byte
		value  string
		want   uint64
		ok     bool
	}{
		{"tid", tid, formatText, "(3,4)", 3<<16 | 4, true},
		{"tid", tid, formatText, "(4294967295,65535)", 1<<48 - 1, true},
		{"tid", tid, formatText, "(0,65536)", 0, false},
		{"tid", tid, formatText, "(4294967296,1)", 0, false},
		{"tid", tid, formatText, "3,4", 0, false},
		{"tid", tid, formatText, "(,)", 0, false},
		{"tid", tid, formatText, "(3;4)", 0, false},
		{"tid", tid, formatText, "", 0, false},
		{"tid", tid, formatBinary, "\x00\x00\x00\x03\x00\x04", 3<<16 | 4, true},
		{"tid", tid, formatBinary, "\x00\x00\x00\x03\x00", 0, false},
		{"xid", id, formatText, "4294967295", 1<<32 - 1, true},
		{"xid", id, formatText, "4294967296", 0, false},
		{"xid", id, formatText, "-1", 0, false},
		{"xid", id, formatText, "", 0, false},
		{"xid", id, formatBinary, "\x00\x00\x01\x00", 256, true},
		{"xid", id, formatBinary, "\x01\x00", 0, false},
		{"pg_lsn", lsn, formatText, "16/B374D848", 0x16B374D848, true},
		{"pg_lsn", lsn, formatText, "16B374D848", 0, false},
		{"pg_lsn", lsn, formatText, "1FFFFFFFF/0", 0, false},
		{"pg_lsn", lsn, formatBinary, "\x00\x00\x00\x16\xb3\x74\xd8\x48", 0x16B374D848, true},
		{"pg_lsn", lsn, formatBinary, "16/B374D848", 0, false},
		{"bool", truth, formatText, "t", 1, true},
		{"bool", truth, formatText, "f", 0, true},
		{"bool", truth, formatText, "true", 0, false},
		{"bool", truth, formatText, "y", 0, false},
		{"bool", truth, formatBinary, "\x01", 1, true},
		{"bool", truth, formatBinary, "\x02", 0, false},
	} {
		got, ok := c.read([]byte(c.value), c.format)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s %q in format %d: %#x, %v", c.name, c.value, c.format, got, ok)
		}
	}
}

// What isotap cannot print as the server would is shown as its bytes, never as another value.
func TestBinaryValuesOfWrongLengthStayBytes(t *testing.T) {
	for _, c := range []struct {
		oid     uint32
		value   []byte
		printed string
	}{
		{oidInt4, binary.BigEndian.AppendUint32(nil, 7), "7"},
		{oidInt4, []byte{1, 2, 3}, "010203"},
		{oidBool, []byte{1}, "true"},
		{oidBool, []byte{0}, "false"},
		{oidBool, []byte{0, 1}, `'\x0001'`},
		{oidUUID, []byte{0xab}, "'ab'"},
		{oidText, []byte("a"), "'a'"},
		{oidText, []byte{0xff}, `'\xff'`},
		{0, binary.BigEndian.AppendUint64(nil, 1<<63), fmt.Sprint(int64(-1 << 63))},
		{0, []byte{1}, `'\x01'`},
		{oidInt8, nil, "NULL"},
	} {
		if got := printArg(c.value, formatBinary, c.oid); got != c.printed {
			t.Errorf("%x of type %d is printed as %s, not %s", c.value, c.oid, got, c.printed)
		}
	}
	for _, oid := range []uint32{oidInt2, oidInt4, oidInt8, oidUUID, oidBool} {
		if got := literal([]byte{1, 2, 3}, formatBinary, oid); got != "" {
			t.Errorf("three bytes of type %d are the literal %s", oid, got)
		}
	}
}
