package mysql

import (
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// executeHead is the length of COM_STMT_EXECUTE up to its NULL bitmap: command, statement id, flags
// and iteration count (https://mariadb.com/kb/en/com_stmt_execute/).
const executeHead = 1 + 4 + 1 + 4

// directExecute is the statement id by which MariaDB's clients mean the one prepared last.
const directExecute = 0xffffffff

// A prepared is a statement that the client prepared. Its id is the server's own.
//
// Beside it the server may have variants that the client does not see: its own text (originalID), that with values
// filled in (filledID), the companion. Each is closed with it, and whatever the client sends for the statement goes to
// the one that was executed last (executedID).
type prepared struct {
	id        uint32
	text      []byte // as the client wrote it
	plan      *sqlmysql.Plan
	env       sqlmysql.Session // that the plan holds for
	rewritten bool
	masked    []int  // its columns that the client does not see, as they were described, but for those at the end
	params    int    // that the client knows of
	types     []byte // of the client's parameters, two bytes each, as last bound
	long      []bool // parameters that came by COM_STMT_SEND_LONG_DATA
	// originalID is the id of the client's own text, once the rewritten one had to be left alone; 0 until then, and id
	// where it could not be prepared.
	originalID uint32
	// plain is the plan's form of the client's own text that was prepared last, if it has one.
	plain string
	// refusal is why the client's own text could not be prepared: it is the answer to the client's next execution.
	refusal *serverError
	// filledID is the id of the text with values in the place of ROW_COUNT() and FOUND_ROWS(), prepared
	// for one execution; filledUnused until that.
	filledID     uint32
	filledUnused bool
	// malformed says that the execution under way has parameters that isotap cannot read.
	malformed bool
	// companion is the variant that shows what this one read, and companionCommand executes it with the parameters of
	// this one's last execution; nil when there is none.
	companion        *prepared
	companionCommand []byte

	executedID uint32  // the variant that was executed last; 0: none was
	cursor     *cursor // that this left open over trimmed rows
}

// maxPrepared is how many bytes the prepared statements of a session may take: of others nothing is kept, and they go
// unobserved.
const maxPrepared = 32 << 20

// unknownStatement is the plan of a prepared statement of which nothing is kept. It may be anything.
var unknownStatement = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque,
	Reason: history.ReasonTooManyPrepared}, Txn: sqlmysql.TxnEffect{Ends: true},
	Session: sqlmysql.SessionEffect{Changes: true}, Schema: sqlmysql.SchemaEffect{Changes: true}}

// bytes returns about how much memory the statement takes, with its plan, and its parameters' types once they are
// known.
func (p *prepared) bytes() int { return 1<<10 + 4*len(p.text) + 4*p.params }

// preparedStatements are those that the client has prepared and not closed. Together they take at most maxPrepared
// bytes; once there were more, incomplete is set, and a statement that is not found may be one that the server has.
type preparedStatements struct {
	byID       map[uint32]*prepared
	bytes      int // about how many these take
	incomplete bool
	last       uint32 // the id of the one prepared last; 0 where that failed
}

func newPreparedStatements() preparedStatements {
	return preparedStatements{byID: make(map[uint32]*prepared)}
}

// reset forgets all of them, as RESET CONNECTION and CHANGE USER do.
func (t *preparedStatements) reset() {
	t.byID, t.bytes, t.incomplete = make(map[uint32]*prepared), 0, false
}

// find returns the statement that a client means by id, and its own id; nil where nothing is kept of it. direct says
// that directExecute is no id.
func (t *preparedStatements) find(id uint32, direct bool) (uint32, *prepared) {
	if id == directExecute && direct {
		id = t.last
	}
	return id, t.byID[id]
}

// add adds a statement, which is now the one prepared last. Servers may give an id again.
func (t *preparedStatements) add(p *prepared) {
	t.last = p.id
	t.remove(p.id)
	if t.bytes+p.bytes() > maxPrepared {
		t.incomplete = true
		return
	}
	t.byID[p.id], t.bytes = p, t.bytes+p.bytes()
}

// remove forgets a statement.
func (t *preparedStatements) remove(id uint32) {
	if p := t.byID[id]; p != nil {
		t.bytes -= p.bytes()
		delete(t.byID, id)
	}
}

// A cursor is what COM_STMT_FETCH must know of the statement that opened it.
type cursor struct {
	stmt   *pendingStatement
	types  []byte // of the columns
	fields int
	hidden int // of these, at the end
	// mask tells the columns that a row has beside those.
	mask columnMask
}

// ownText is the text that goes upstream for a statement that the client prepares, where isotap leaves it
// alone.
func (p *prepared) ownText() []byte {
	if p.plan.Upstream.Plain != "" {
		return []byte(p.plan.Upstream.Plain)
	}
	return p.text
}
