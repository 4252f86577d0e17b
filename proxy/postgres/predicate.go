package postgres

import (
	"encoding/binary"
	"strings"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// closed returns the predicates of a plan with the parameters of a portal in their places; nil portal: there are none.
// A predicate of a parameter whose value cannot be read is left out.
func (s *Session) closed(p *sqlpostgres.Plan, portal *portal) []history.Predicate {
	var out []history.Predicate
	var literals []string
	if portal != nil {
		literals = portal.literals
	}
	for i := range p.Predicates {
		open := &p.Predicates[i]
		if where, ok := open.Close(literals); ok {
			out = append(out, history.Predicate{Table: open.Table, Of: open.Of, As: open.As, Where: where,
				Settings: s.settings.literals})
		}
	}
	return out
}

// unambiguous says that what the session shows of dates, times and intervals means the same to every other session.
func unambiguous(s history.LiteralSettings) bool {
	return strings.HasPrefix(s.DateStyle, "ISO") && s.IntervalStyle != "sql_standard"
}

// oidVarchar is the type varchar (pg_type).
const oidVarchar = 1043

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
