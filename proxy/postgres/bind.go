package postgres

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A bound is what a Bind message says, as places in its body.
type bound struct {
	portal, statement string
	head              int // where the parameters' format codes begin
	params            [][]byte
	formats           []byte // of the parameters, two bytes each
	results           int    // where the count of the result's format codes stands
	codes             []byte // the result's format codes, two bytes each
}

// readBind reads the body of a Bind message, with its parameters if they are to be read.
func readBind(body []byte, params bool) (bound, error) {
	r := reader{b: body}
	b := bound{portal: string(r.cString()), statement: string(r.cString())}
	b.head = r.pos
	b.formats = r.bytes(2 * r.uint16())
	n := r.uint16()
	for range n {
		v := r.value()
		if params {
			b.params = append(b.params, v)
		}
		if r.err != nil {
			return b, r.err
		}
	}
	b.results = r.pos
	b.codes = r.bytes(2 * r.uint16())
	if r.err == nil && r.pos != len(body) {
		r.fail("more than a Bind")
	}
	return b, r.err
}

// resultCodes returns the format codes for the result that the form gives under its plan. Of a statement that
// gives the client no rows the server takes any number of codes, and any codes.
func resultCodes(codes []byte, plan *sqlpostgres.Plan, hidden int) []byte {
	switch {
	case hidden == 0:
		return codes
	case plan.Result.Reply == rewrite.Returning:
		return []byte{0, 1} // the client gets none of them, and binary ones cost the server less
	case len(codes) <= 2:
		return codes
	}
	codes = slices.Clone(codes)
	for range hidden {
		codes = append(codes, 0, 1) // binary
	}
	return codes
}

// sendBind sends a Bind message for the statement of that name with these codes.
func (s *Session) sendBind(m message, b *bound, on string, codes []byte) {
	if on == b.statement && bytes.Equal(codes, b.codes) {
		s.toServer = append(s.toServer, m.raw...)
		return
	}
	out, start := beginMessage(s.toServer, msgBind)
	out = append(append(out, b.portal...), 0)
	out = append(append(out, on...), 0)
	if m.more > 0 {
		out = append(out, m.body[b.head:]...)
		binary.BigEndian.PutUint32(out[start+1:], uint32(len(out)-start-1+m.more))
		s.toServer = out
		return
	}
	out = append(out, m.body[b.head:b.results]...)
	out = binary.BigEndian.AppendUint16(out, uint16(len(codes)/2))
	s.toServer = endMessage(append(out, codes...), start)
}

// maxArg bounds what is recorded of one parameter, in bytes.
const maxArg = 64

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

// literals returns the parameters of a Bind as literals of SQL; empty for those that cannot be read. types are those
// that Parse declared, or the server described.
func literals(b *bound, types []byte) []string {
	out := make([]string, len(b.params))
	for i, v := range b.params {
		var oid uint32
		if at := 2 + 4*i; at+4 <= len(types) {
			oid = binary.BigEndian.Uint32(types[at:])
		}
		out[i] = literal(v, b.format(i), oid)
	}
	return out
}

// escapes are those of a literal E'...'.
var escapes = strings.NewReplacer(`\`, `\\`, `'`, `''`)

func literal(v []byte, format byte, oid uint32) string {
	if v == nil {
		return "NULL"
	}
	if format == formatText {
		return "E'" + escapes.Replace(string(v)) + "'"
	}
	switch {
	case oid == oidText, oid == oidVarchar:
		return literal(v, 0, 0)
	case oid == oidInt2 && len(v) == 2, oid == oidInt4 && len(v) == 4, oid == oidInt8 && len(v) == 8:
		return "'" + string(appendInt(nil, v)) + "'"
	case oid == oidUUID && len(v) == 16:
		return "'" + string(appendUUID(nil, v)) + "'"
	case oid == oidBool && len(v) == 1:
		return []string{"'f'", "'t'"}[v[0]&1]
	}
	return ""
}

// widened returns format codes for all columns of a result of which the client knows those that are not cut.
func widened(codes []byte, cut []int) []byte {
	if len(codes) <= 2 || len(cut) == 0 {
		return codes
	}
	codes = slices.Clone(codes)
	for _, at := range cut {
		if 2*at > len(codes) {
			break
		}
		codes = slices.Insert(codes, 2*at, 0, 0)
	}
	return codes
}
