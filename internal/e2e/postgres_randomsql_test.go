package e2e

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"pgregory.net/rapid"
)

// A postgresStatement is one statement with its parameters, if it has any.
type postgresStatement struct {
	text   string
	params []string // in text
	types  []uint32 // of the parameters
	// ordered says that its rows come in an order that the statement itself settles.
	ordered bool
	// again says that it was prepared before.
	again bool
}

// A postgresWriter writes random SQL for PostgreSQL. Types are right by construction, so that most statements
// succeed; what SQL leaves to the server (an order, a choice) is left out.
type postgresWriter struct {
	chooser
	major   int
	columns bool // tables carry isotap's columns
	s       postgresStatement
	extends bool                         // the statement may have parameters
	named   map[string]postgresStatement // statements that were prepared
}

const oidInt4, oidText = 23, 25

// value returns a literal, or a parameter of that type.
func (w *postgresWriter) value(plain, literal string, oid uint32) string {
	if !w.extends || w.n(2) == 0 {
		return literal
	}
	w.s.params, w.s.types = append(w.s.params, plain), append(w.s.types, oid)
	return "$" + strconv.Itoa(len(w.s.params))
}

func (w *postgresWriter) int() string {
	v := w.oneOf("0", "1", "2", "3", "4", "5", "10", "20", "40", "41")
	return w.value(v, v, oidInt4)
}

func (w *postgresWriter) str() string {
	v := w.oneOf("a", "b", "one", "two", "ONE", "", "é", "x'y", "a,b\\;c", "$1")
	return w.value(v, "'"+strings.ReplaceAll(v, "'", "''")+"'", oidText)
}

func (w *postgresWriter) intOrNull() string {
	if w.n(5) == 0 {
		return "NULL"
	}
	return w.int()
}

func (w *postgresWriter) uuid() string {
	v := "00000000-0000-0000-0000-00000000000" + strconv.Itoa(w.n(7))
	return w.value(v, "'"+v+"'", 2950)
}

// statement writes one statement of any kind.
func (w *postgresWriter) statement(extends bool) postgresStatement {
	w.s, w.extends = postgresStatement{}, extends
	kinds := []func() string{
		w.simpleSelect, w.simpleSelect, w.join, w.aggregate, w.grouping, w.distinct, w.setOperation, w.derived, w.with,
		w.subquery, w.window,
		w.special, w.oddTables, w.locking,
		w.insert, w.insert, w.upsert, w.upsert, w.insertSelect, w.update, w.update, w.updateFrom, w.delete,
		w.deleteUsing, w.writingWith, w.merge,
		w.writeOdd, w.writeOdd, w.transaction, w.transaction, w.transaction, w.setting, w.cursor, w.sqlPrepared,
		w.failing, w.definition, w.calling, w.role,
	}
	text := kinds[w.n(len(kinds))]()
	w.s.text = text
	return w.s
}

// A postgresStep is what a client sends at once.
type postgresStep struct {
	name     string
	ordered  bool
	messages []pgproto3.FrontendMessage
	// inTwo says that they fail, and that the client sends the Sync behind them once it has heard of that.
	inTwo bool
}

// step writes what the client does next.
func (w *postgresWriter) step() postgresStep {
	switch w.n(12) {
	case 0, 1, 2, 3:
		return w.simple(1)
	case 4, 5:
		return w.simple(2 + w.n(3))
	case 6, 7, 8:
		p := pipeline{writer: w, ordered: true}
		p.statement()
		return p.step()
	case 9, 10:
		p := pipeline{writer: w, ordered: true}
		for range 2 + w.n(4) {
			p.statement()
			if w.n(3) == 0 {
				p.add("Sync", &pgproto3.Sync{})
			}
		}
		return p.step()
	}
	return w.copy()
}

// simple writes a Query of several statements.
func (w *postgresWriter) simple(count int) postgresStep {
	s := postgresStep{ordered: true}
	var all []string
	for range count {
		st := w.statement(false)
		all = append(all, st.text)
		s.ordered = s.ordered && st.ordered
	}
	s.name = strings.Join(all, w.oneOf("; ", ";\n-- é\n", ";;")) + w.maybe(4, ";")
	s.messages = texts(s.name)
	return s
}

// copy writes a COPY and its data.
func (w *postgresWriter) copy() postgresStep {
	data := w.oneOf("71\t710\n72\t\\N\n", "1\t710\n", "73\n", "x\t1\n", "")
	text := w.oneOf("COPY t1 (id, a) FROM STDIN", "COPY pt (id) FROM STDIN", "COPY tr FROM STDIN",
		"COPY nowhere FROM STDIN",
		"COPY (SELECT * FROM t1 ORDER BY id) TO STDOUT", "COPY t2 TO STDOUT (FORMAT csv, HEADER)",
		"COPY (UPDATE t2 SET v = v + 1 RETURNING k1) TO STDOUT",
		"UPDATE t1 SET b = 'before'; COPY t1 (id, a) FROM STDIN; SELECT id FROM t1 ORDER BY id")
	messages := append(texts(text), &pgproto3.CopyData{Data: []byte(data)})
	if w.n(4) == 0 && (data == "" || !w.columns) { // row by row, a duplicate is found before it
		messages = append(messages, &pgproto3.CopyFail{Message: "enough"})
	} else {
		messages = append(messages, &pgproto3.CopyDone{})
	}
	return postgresStep{name: text + "\n" + data, messages: messages}
}

// A pipeline is a step of the extended protocol.
type pipeline struct {
	writer   *postgresWriter
	names    []string
	messages []pgproto3.FrontendMessage
	ordered  bool
}

func (p *pipeline) add(name string, m pgproto3.FrontendMessage) {
	p.names, p.messages = append(p.names, name), append(p.messages, m)
}

func (p *pipeline) step() postgresStep {
	p.add("Sync", &pgproto3.Sync{})
	return postgresStep{name: "{" + strings.Join(p.names, " | ") + "}", messages: p.messages, ordered: p.ordered}
}

// statement prepares and runs a statement, or runs one that was prepared before.
func (p *pipeline) statement() {
	w := p.writer
	name := w.oneOf("", "", "a", "b", "c")
	st, again := w.named[name]
	if again = again && name != "" && w.n(4) > 0; !again {
		st = w.statement(true)
		if w.named == nil {
			w.named = make(map[string]postgresStatement)
		}
		w.named[name] = st
		if name != "" {
			p.add("Close "+name, &pgproto3.Close{ObjectType: 'S', Name: name})
		}
		m := &pgproto3.Parse{Name: name, Query: st.text}
		if w.n(2) == 0 {
			m.ParameterOIDs = st.types
		}
		p.add("Parse "+name+" "+st.text, m)
	}
	if again { // after an error it may be the statement that had the name before
		st.ordered, st.again = false, true
	}
	if w.n(3) == 0 {
		p.add("Describe S "+name, &pgproto3.Describe{ObjectType: 'S', Name: name})
	}
	p.run(name, st)
}

// run binds a statement and executes the portal.
func (p *pipeline) run(name string, st postgresStatement) {
	w := p.writer
	portal := w.oneOf("", "", "p")
	if portal != "" {
		p.add("Close portal", &pgproto3.Close{ObjectType: 'P', Name: portal})
	}
	b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: name}
	for _, v := range st.params {
		b.Parameters = append(b.Parameters, []byte(v))
	}
	// One code for all columns, none, or as many as there often are.
	b.ResultFormatCodes = rapid.SampledFrom([][]int16{nil, nil, {0}, {1}, {1}, {0, 1}, {1, 0},
		{1, 1, 0}}).Draw(w.t, "formats")
	p.add("Bind "+portal+" "+name+" "+strings.Join(st.params, ","), b)
	if w.n(2) == 0 {
		p.add("Describe P "+portal, &pgproto3.Describe{ObjectType: 'P', Name: portal})
	}
	var limit uint32
	verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimLeft(st.text, "(")), " ")
	if st.ordered || !st.again && !slices.Contains([]string{"SELECT", "WITH", "TABLE", "VALUES", "MERGE"}, verb) &&
		!strings.Contains(st.text, "RETURNING") {
		limit = uint32([]int{0, 0, 1, 2}[w.n(4)])
	}
	p.ordered = p.ordered && st.ordered
	p.add("Execute "+portal+" "+strconv.Itoa(int(limit)), &pgproto3.Execute{Portal: portal, MaxRows: limit})
	if limit > 0 && verb == "SELECT" {
		p.add("Execute "+portal+" again", &pgproto3.Execute{Portal: portal})
	}
}
