package postgres

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/twin"
)

// What the session tells of its transactions to who plays twins (package proxy/twin). Nothing is, where nobody does.

// tellLogin tells who the client is.
func (s *Session) tellLogin() {
	if s.cfg.Twin != nil {
		s.cfg.Twin.LoggedIn(s.who)
	}
}

// asked takes a parameter of the startup message for what another session has to set. Options of the command line are
// taken where they are -c name=value alone.
func asked(who *twin.Login, name, value string) {
	set := func(name, value string) {
		who.Strange = who.Strange || strings.ContainsAny(name+value, `\'`)
		who.Settings = append(who.Settings, "SELECT pg_catalog.set_config('"+name+"', '"+value+"', false)")
	}
	switch {
	case name == "user":
		who.User = value
	case name == "database", name == "replication", name == "application_name", strings.HasPrefix(name, "_pq_."):
	case name == "options":
		words := strings.Fields(value)
		for i := 0; i < len(words); i++ {
			word, ok := strings.CutPrefix(words[i], "-c")
			if ok && word == "" && i+1 < len(words) {
				i++
				word = words[i]
			}
			name, value, assigns := strings.Cut(word, "=")
			if !ok || !assigns {
				who.Strange = true
				return
			}
			set(name, value)
		}
	default:
		set(name, value)
	}
}

// tellSends tells which text is about to be run.
func (s *Session) tellSends(f *form, of *portal) {
	p := f.plan(0)
	if s.cfg.Twin == nil || p == nil {
		return
	}
	st := twin.Statement{Kind: p.Kind, Database: s.settings.database, Txn: s.txn.open,
		Alone:      len(f.statements()) == 1 && !s.listens && !s.pipeline.runs() && !p.Txn.Chains,
		Autocommit: !s.txn.block && s.txn.status == txnIdle, Level: s.txn.levelNow(s.settings.txnLevel())}
	if st.Autocommit && st.Alone && (counts(p) || p.Kind == history.Merge) {
		st.Stmt = history.Stmt{Num: 1, Kind: p.Kind, Locking: p.Locking, Observation: p.Observation, Reason: p.Reason,
			Shape: p.Shape, Sender: p.Sender.Or(s.settings.sender), Start: s.now, Text: written(p, of)}
	}
	s.cfg.Twin.Sends(st)
}

// tellAnswered tells what the statement whose result is complete was answered.
func (s *Session) tellAnswered(st *history.Stmt, succeeded bool) {
	raw := s.tap.Reply(s.toClient)
	if s.cfg.Twin == nil {
		return
	}
	a := twin.Answer{Stmt: st, Text: st.Text, Block: s.txn.block}
	if s.txn.open != nil {
		a.Txn = s.txn.open.ID
	}
	if p := s.result.plan; p != nil {
		a.Changes = succeeded && p.Session.Changes
	}
	if succeeded && raw != nil && s.result.cursor == nil {
		a.Reply = s.result.shown(raw, st)
	}
	s.cfg.Twin.Answered(a)
}

// keepDescription keeps what a client was told of the columns of a statement or portal, by a message that begins
// output.
func (s *Session) keepDescription(x *pendingReply, output []byte) {
	if s.tap == nil || len(output) < headBytes || output[0] != msgRowDescription || x.ofQuery {
		return
	}
	columns := s.descriptions.columns(output[headBytes:])
	if x.kind == pendingDescribeStatement {
		if st := s.names.confirmed.statements[x.name]; st != nil {
			st.told = columns
		}
	} else if p := s.names.confirmed.portals[x.name]; p != nil {
		p.told = columns
	}
}

// columns returns the columns of a description; never nil.
func (r *descriptionReader) columns(body []byte) []twin.Column {
	defer r.forget()
	columns := []twin.Column{}
	for _, f := range r.read(body) {
		columns = append(columns, twin.Column{Name: string(f.Name), Type: f.DataTypeOID, TableOID: f.TableOID,
			AttributeNumber: f.TableAttributeNumber})
	}
	return columns
}

// shown returns what a client got for a statement, out of the messages that it got since the one before; nil where that
// cannot be told.
func (c *resultInProgress) shown(raw []byte, st *history.Stmt) *twin.Reply {
	reply := &twin.Reply{Affected: st.Affected}
	var codes []byte
	if c.portal != nil {
		codes, reply.Columns = c.portal.codes, c.portal.told
		if reply.Columns == nil && c.portal.of != nil {
			reply.Columns = c.portal.of.told
		}
	}
	var read descriptionReader
	for len(raw) >= headBytes {
		size, err := sizeOf(raw, serverLimit)
		if err != nil || size > len(raw) {
			return nil
		}
		body := raw[headBytes:size]
		switch raw[0] {
		case msgRowDescription:
			if c.portal == nil || reply.Columns == nil && codes == nil {
				reply.Columns = read.columns(body)
			}
		case msgDataRow:
			row, ok := shownRow(body, reply.Columns, codes)
			if !ok {
				return nil
			}
			reply.Rows = append(reply.Rows, row)
		}
		raw = raw[size:]
	}
	if reply.Columns == nil && st.Kind == history.Select || uint64(len(reply.Rows)) != st.Rows {
		return nil
	}
	return reply
}

// shownRow reads a row as text.
func shownRow(body []byte, columns []twin.Column, codes []byte) (row []twin.Value, ok bool) {
	r := reader{b: body}
	if r.uint16() != len(columns) {
		return nil, false
	}
	for i := range columns {
		v := r.value()
		value := twin.Value{Null: v == nil, Text: string(v)}
		binary := len(codes) == 2 && codes[1] == 1 || len(codes) > 2 && 2*i+1 < len(codes) && codes[2*i+1] == 1
		if binary && v != nil {
			if value.Text, ok = textOf(v, columns[i].Type); !ok {
				return nil, false
			}
		}
		row = append(row, value)
	}
	return row, r.err == nil
}

// textTypes are those whose binary form is the text.
var textTypes = []uint32{pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.JSONOID,
	pgtype.XMLOID, pgtype.UnknownOID, pgtype.QCharOID}

// textOf returns a value in binary form as the server prints it; false for a type that is not read. Moments, which
// no two plays have in common, are given as they are.
func textOf(v []byte, oid uint32) (text string, ok bool) {
	switch {
	case slices.Contains(textTypes, oid):
		return string(v), true
	case oid == oidBool && len(v) == 1:
		return []string{"f", "t"}[v[0]&1], true
	case oid == oidInt2 && len(v) == 2, (oid == oidInt4 || oid == pgtype.OIDOID) && len(v) == 4, oid == oidInt8 && len(v) == 8:
		return string(appendInt(nil, v)), true
	case oid == oidUUID && len(v) == 16:
		return string(appendUUID(nil, v)), true
	case oid == pgtype.Float4OID && len(v) == 4:
		return formatFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(v))), 32), true
	case oid == pgtype.Float8OID && len(v) == 8:
		return formatFloat(math.Float64frombits(binary.BigEndian.Uint64(v)), 64), true
	case oid == pgtype.NumericOID:
		return numericText(v)
	case oid == pgtype.JSONBOID && len(v) > 0 && v[0] == 1:
		return string(v[1:]), true
	case slices.Contains([]uint32{pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.TimeOID, pgtype.TimetzOID}, oid):
		return string(v), true
	case oid == pgtype.DateOID && len(v) == 4:
		var d pgtype.Date
		if err := (pgtype.DateCodec{}).PlanScan(nil, oid, pgtype.BinaryFormatCode, &d).Scan(v, &d); err != nil {
			return "", false
		}
		return d.Time.Format("2006-01-02"), true
	}
	return "", false
}

func formatFloat(f float64, bits int) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// numericText prints a numeric with as many digits behind its point as it has.
func numericText(v []byte) (text string, ok bool) {
	var n pgtype.Numeric
	if err := (pgtype.NumericCodec{}).PlanScan(nil, pgtype.NumericOID, pgtype.BinaryFormatCode, &n).Scan(v, &n); err != nil {
		return "", false
	}
	value, err := n.Value()
	text, ok = value.(string)
	return text, ok && err == nil
}
