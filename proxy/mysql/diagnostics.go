package mysql

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// counts are the values of ROW_COUNT() and FOUND_ROWS() behind the client's last statement. isotap's own statements
// change both on the server; from then on the client is told those that are kept here.
type counts struct {
	rowCount  int64
	foundRows uint64
	// Gone says that the server has another value by now. Of ROW_COUNT() any statement of the client's ends that, of
	// FOUND_ROWS() the next one that shows rows, or leaves a number there without.
	rowCountGone, foundRowsGone bool
	// foundRowsUnknown says that the server has the client's FOUND_ROWS(), and this does not: it must be asked before
	// isotap changes it.
	foundRowsUnknown bool
}

// askCounts ends each query of isotap's: what it is about to change is asked first. Text would come in
// character_set_results, bytes do not, and LIMIT overrides sql_select_limit.
const askCounts = ", CAST(ROW_COUNT() AS BINARY), CAST(FOUND_ROWS() AS BINARY) LIMIT 1"

// ask is called when a query that ends with askCounts is sent. It gives what reads the answer:
// the two last values of the row.
func (c *counts) ask() func(r *reader) error {
	rows, found := !c.rowCountGone, !c.foundRowsGone
	c.rowCountGone, c.foundRowsGone, c.foundRowsUnknown = true, true, false
	return func(r *reader) error {
		n, err := strconv.ParseInt(string(r.lenencBytes()), 10, 64)
		if err != nil {
			return fmt.Errorf("parse ROW_COUNT(): %w", err)
		}
		if rows {
			c.rowCount = n
		}
		m, err := strconv.ParseUint(string(r.lenencBytes()), 10, 64)
		if err != nil {
			return fmt.Errorf("parse FOUND_ROWS(): %w", err)
		}
		if found {
			c.foundRows = m
		}
		return nil
	}
}

// take keeps what a client's statement left in ROW_COUNT() and FOUND_ROWS(). replaced says that its rows were not the
// client's, which got an OK packet in their place, lists that they were conditions: SHOW WARNINGS counts none of its
// rows. finds says that a statement without rows leaves what it found in FOUND_ROWS(), as INSERT ... SELECT does.
func (c *counts) take(r *reply, replaced, lists, finds bool) {
	c.rowCountGone = replaced
	switch {
	case r.failed, r.fields > 0 && !replaced:
		c.rowCount = -1
	case replaced:
		c.rowCount = int64(r.rows)
	default:
		c.rowCount = int64(r.ok.affected)
	}
	switch {
	case replaced:
		c.foundRowsGone = true
	case r.fields > 0 && !r.failed && !lists:
		c.foundRows, c.foundRowsGone, c.foundRowsUnknown = r.rows, false, false
	case finds && r.failed:
		c.foundRowsUnknown = c.foundRowsUnknown || !c.foundRowsGone
	case finds:
		c.foundRowsGone, c.foundRowsUnknown = false, true
	}
}

// fill says how the holes of a plan that stand for the two functions are filled.
func (c *counts) fill(v *sqlmysql.Values) {
	v.RowCount, v.RowCountGone = c.rowCount, c.rowCountGone
	v.FoundRows, v.FoundRowsGone = c.foundRows, c.foundRowsGone
}

// conditions is what the client's last statement left for SHOW WARNINGS and its kind, on a server of
// MySQL's. There every statement of isotap's clears the list, and every assignment to a variable in the
// text of a statement adds a warning to it (1287). So isotap's own are taken out of the counts, the list is
// fetched before it is lost, and a client that asks for it is answered by the server as far as the same
// conditions can be raised there again, and from here beyond that. MariaDB keeps its list through what
// isotap runs.
//
// Where cleared is false nothing is kept, since nothing gets lost. Otherwise the list is on the server until gone, with
// added warnings of isotap's before the client's, and from the answer to SHOW WARNINGS on in kept.
type conditions struct {
	// cleared says that the server is one where isotap's statements clear the list.
	cleared bool
	// lost says that a question of isotap's cleared it that does so on every server.
	lost bool

	raised int                 // how many; -1 after an error, which does not say
	added  sqlmysql.Deprecated // how many of isotap's stand among them on the server
	state  string
	// gone says that the server has them no more: they are in kept.
	gone bool
	kept []condition
	// bytes is how long the texts of kept are.
	bytes int
}

// The most conditions that a server keeps (max_error_count), and that have room in memory: a message has at most 512
// characters.
const (
	maxConditions     = 65535
	maxConditionBytes = 64 << 20
)

// A condition is a row of SHOW WARNINGS.
type condition struct{ level, code, message []byte }

const (
	// warningOfDeprecated is the number of MySQL's warning about assignments in expressions, VALUES() and others.
	warningOfDeprecated = "1287"
	// ofAssignment and ofValues are how its texts of these begin, in each language.
	ofAssignment, ofValues = "Setting user variables", "'VALUES "
)

// newConditions returns those of a session with such a server.
func newConditions(server sqlmysql.Dialect) conditions {
	return conditions{cleared: server == sqlmysql.MySQL}
}

// addedBy is how many warnings of isotap's the server counts when it reads the text of a plan.
func (c *conditions) addedBy(plan *sqlmysql.Plan, rewritten bool) sqlmysql.Deprecated {
	if !rewritten || !c.cleared {
		return sqlmysql.Deprecated{}
	}
	return plan.Upstream.Deprecated
}

// take takes note of what a client's statement raised, or a command that has no plan. The server counts added warnings
// of isotap's among it.
func (c *conditions) take(r *reply, plan *sqlmysql.Plan, added sqlmysql.Deprecated) {
	switch {
	case r.failed:
		*c = conditions{cleared: c.cleared, raised: -1, added: added, state: r.err.state}
	case plan == nil || plan.Session.Conditions < sqlmysql.KeepsConditions:
		*c = conditions{cleared: c.cleared, raised: int(r.ok.warnings), added: added}
	}
}

// clears reports whether what isotap ran clears the list, or did.
func (c *conditions) clears() bool { return c.cleared || c.lost }

// lose notes that a statement of isotap's is about to clear the list. It reports whether the list has to be fetched
// before: the rows of SHOW WARNINGS then go to keep.
func (c *conditions) lose() (fetch bool) {
	if !c.clears() || c.gone {
		return false
	}
	c.gone = true
	return c.raised != 0
}

// keep takes a row of SHOW WARNINGS.
func (c *conditions) keep(payload []byte) error {
	r := reader{b: payload}
	row := condition{bytes.Clone(r.lenencBytes()), bytes.Clone(r.lenencBytes()), bytes.Clone(r.lenencBytes())}
	if r.err != nil {
		return fmt.Errorf("parse a row of SHOW WARNINGS: %w", r.err)
	}
	if c.isOwn(row) {
		return nil
	}
	if c.bytes += len(row.level) + len(row.code) + len(row.message); len(c.kept) == maxConditions ||
		c.bytes > maxConditionBytes {
		return fmt.Errorf("%w: more than %d rows, or %d bytes, of SHOW WARNINGS", errMalformed,
			maxConditions, maxConditionBytes)
	}
	c.kept = append(c.kept, row)
	return nil
}

// isOwn reports whether a condition is one of isotap's that was not met yet.
func (c *conditions) isOwn(row condition) bool {
	if string(row.code) != warningOfDeprecated {
		return false
	}
	left := &c.added.Values
	if bytes.HasPrefix(row.message, []byte(ofAssignment)) {
		left = &c.added.Assignments
	} else if !bytes.HasPrefix(row.message, []byte(ofValues)) {
		return false
	}
	if *left == 0 {
		return false
	}
	*left--
	return true
}

// right reports whether the server has the conditions that a statement asks for, if it does.
func (c *conditions) right(plan *sqlmysql.Plan) bool {
	return !c.clears() || plan.Session.Conditions == sqlmysql.NoConditions || !c.gone && c.added.Sum() == 0
}

// maxRaised bounds the statement that raises as many conditions as there were.
const maxRaised = 10_000

// maxSignalled is how many characters of a message SIGNAL takes.
const maxSignalled = 128

// raising returns a statement that leaves conditions like the kept ones, for a statement that asks so: the same one,
// when it is alone, otherwise as many. An error among several is the same one where it is asked for what it says, and
// where their number is asked for, the only error.
func (c *conditions) raising(asked sqlmysql.Conditions) string {
	n := len(c.kept)
	if n == 0 {
		return "DO 0"
	}
	last := c.kept[n-1]
	failed := string(last.level) == "Error"
	if n > 1 && (!failed || asked == sqlmysql.CountsConditions || asked == sqlmysql.ShowsCount) {
		b := []byte("DO CAST('' AS SIGNED)")
		for range min(max(n, c.raised), maxRaised) - 2 {
			b = append(b, ",CAST('' AS SIGNED)"...)
		}
		if failed {
			return string(append(b, ",(SELECT 1 UNION SELECT 2)"...))
		}
		return string(append(b, ",CAST('' AS SIGNED)"...))
	}
	state := sqlstateWarning
	if failed && len(c.state) == len(state) {
		state = c.state
	} else if failed {
		state = sqlstateGeneral
	}
	message := []rune(string(last.message))
	message = message[:min(len(message), maxSignalled)]
	return fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO = %s, MESSAGE_TEXT = _utf8mb4 X'%X'",
		state, last.code, string(message))
}

// listed returns the kept conditions as the rows of the client's SHOW WARNINGS or SHOW ERRORS; nil when the
// server's own are right. The statement's text is in a session of env.
func (c *conditions) listed(plan *sqlmysql.Plan, text []byte, env *sqlmysql.Session, binary bool) [][]byte {
	if plan.Session.Conditions != sqlmysql.ListsConditions || !c.clears() || !c.gone || len(c.kept) == 0 {
		return nil
	}
	list := sqlmysql.ReadConditionList(string(text), env)
	rows := [][]byte{}
	for _, kept := range c.kept {
		switch {
		case list.Errors && string(kept.level) != "Error":
		case list.Skip > 0:
			list.Skip--
		case list.Take > 0:
			list.Take--
			rows = append(rows, kept.row(binary))
		}
	}
	return rows
}

// row returns the condition as a row of SHOW WARNINGS.
func (c *condition) row(inBinary bool) []byte {
	var b []byte
	if inBinary {
		b = append(b, 0, 0) // the marker, and the NULL bitmap of three columns
	}
	b = append(appendLenenc(b, uint64(len(c.level))), c.level...)
	if inBinary {
		code, _ := strconv.ParseUint(string(c.code), 10, 32) // the server's number
		b = binary.LittleEndian.AppendUint32(b, uint32(code))
	} else {
		b = append(appendLenenc(b, uint64(len(c.code))), c.code...)
	}
	return append(appendLenenc(b, uint64(len(c.message))), c.message...)
}

// endWithoutAdded returns the EOF packet behind a prepared statement's definitions without the warnings that
// isotap's part of the statement caused.
func endWithoutAdded(payload []byte, added int) []byte {
	if added == 0 || len(payload) < 3 {
		return payload
	}
	b := bytes.Clone(payload)
	warnings := binary.LittleEndian.Uint16(b[1:])
	binary.LittleEndian.PutUint16(b[1:], warnings-min(uint16(added), warnings))
	return b
}

// endRowsWithoutAdded returns the packet that ends definitions or rows without the warnings that isotap's part of the
// statement caused, and corrects end accordingly.
func endRowsWithoutAdded(payload []byte, end *okPacket, added int, caps uint32) []byte {
	if endsWithOK(payload, caps) {
		return withoutAdded(payload, end, added)
	}
	end.warnings -= min(uint16(added), end.warnings)
	return endWithoutAdded(payload, added)
}

// withoutAdded returns an OK packet without the warnings that isotap's part of the statement caused, and
// corrects ok accordingly.
func withoutAdded(payload []byte, ok *okPacket, added int) []byte {
	warnings := ok.warnings - min(uint16(added), ok.warnings)
	b := bytes.Clone(payload[:len(payload)-len(ok.tail)-2])
	b = binary.LittleEndian.AppendUint16(b, warnings)
	// Servers put the info's length before it, whatever was agreed; behind it may stand the session's state.
	tail := len(b)
	r := reader{b: ok.tail}
	info := r.lenencBytes()
	if head, found := bytes.CutSuffix(info, strconv.AppendUint([]byte("Warnings: "), uint64(ok.warnings), 10)); found {
		info = strconv.AppendUint(append(bytes.Clone(head), "Warnings: "...), uint64(warnings), 10)
		b = append(appendLenenc(b, uint64(len(info))), info...)
		b = append(b, r.rest()...)
	} else {
		b = append(b, ok.tail...)
	}
	ok.warnings, ok.tail = warnings, b[tail:]
	return b
}
