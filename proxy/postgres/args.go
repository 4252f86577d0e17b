package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxArg bounds what is recorded of one parameter, in bytes.
const maxArg = 64

// The types whose binary form is read, by oid (pg_type).
const (
	oidBool  = 16
	oidBytea = 17
	oidInt8  = 20
	oidInt2  = 21
	oidInt4  = 23
	oidText  = 25
	oidUUID  = 2950
)

// appendArgs adds the parameters of a Bind to args, as SQL would print them. types are what Parse declared.
func appendArgs(args []string, b *bound, types []byte) []string {
	for i, v := range b.params {
		var oid uint32
		if at := 2 + 4*i; at+4 <= len(types) {
			oid = binary.BigEndian.Uint32(types[at:])
		}
		args = append(args, printArg(v, b.format(i), oid))
	}
	return args
}

// format is that of parameter i, counted from 0.
func (b *bound) format(i int) byte {
	switch n := len(b.formats) / 2; {
	case n == 1:
		return b.formats[1]
	case i < n:
		return b.formats[2*i+1]
	}
	return 0
}

// fillArgs puts the values of parameters where a plan's arguments name them.
func fillArgs(args, values []string) []string {
	if len(values) == 0 {
		return args
	}
	filled := slices.Clone(args)
	for i, a := range filled {
		if n, err := strconv.Atoi(strings.TrimPrefix(a, "$")); err == nil && a[0] == '$' && n > 0 && n <= len(values) {
			filled[i] = values[n-1]
		}
	}
	return filled
}

// printArg prints one parameter. Of a binary one whose type is not declared the length is the only hint.
func printArg(v []byte, format byte, oid uint32) string {
	if v == nil {
		return "NULL"
	}
	cut := v[:min(len(v), maxArg)]
	var b []byte
	switch {
	case format == formatText, oid == oidText && utf8.Valid(cut):
		return string(append(append(append(b, '\''), cut...), '\''))
	case oid == oidBool && len(v) == 1:
		if v[0] == 0 {
			return "false"
		}
		return "true"
	case oid == oidUUID:
		return "'" + string(appendUUID(b, cut)) + "'"
	case oid == oidInt2, oid == oidInt4, oid == oidInt8, oid == 0 && (len(v) == 4 || len(v) == 8):
		return string(appendInt(b, cut))
	}
	return `'\x` + hex.EncodeToString(cut) + "'"
}
