package binlog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/isotap/isotap/history"
)

// An assembly makes transactions of the log's events. It is for one goroutine.
type assembly struct {
	layouts  *layouts
	file     string
	open     *group // nil between transactions
	branches branches
	// stopped says why no event is understood from here on; nil: they are.
	stopped error
}

// A group is a transaction whose end has not been read.
type group struct {
	txn history.LoggedTxn
	// begun says that its rows come between a beginning and an end: a definition has neither.
	begun bool
	// silent are the tables that the statement under way has announced and written no row of.
	silent map[uint64]string
	// tables are the layouts of those that it has announced, by the log's numbers.
	tables map[uint64]*layout
}

// maxWrites bounds what is kept of one transaction.
const maxWrites = 100_000

// endsStatement is the flag of the last event of a statement's rows (STMT_END_F).
const endsStatement = 1

func newAssembly(l *layouts, file string) *assembly {
	return &assembly{layouts: l, file: file, branches: make(branches)}
}

// take takes in an event, and returns the transaction that it ended; nil for none.
func (a *assembly) take(ctx context.Context, e *replication.BinlogEvent) (*history.LoggedTxn, error) {
	if a.stopped != nil {
		return nil, a.stopped
	}
	return a.event(ctx, e, position{a.file, uint64(e.Header.LogPos)})
}

func (a *assembly) event(ctx context.Context, e *replication.BinlogEvent, at position) (*history.LoggedTxn, error) {
	switch event := e.Event.(type) {
	case *replication.RotateEvent:
		a.file = string(event.NextLogName)
	case *replication.FormatDescriptionEvent:
		a.open = nil // the server began anew: what it had not ended it does not end
	case *replication.MariadbGTIDEvent:
		a.open = newGroup(event.GTID.String())
		a.open.begun = !event.IsStandalone()
	case *replication.GTIDEvent:
		a.open = newGroup("")
	case *replication.GtidTaggedLogEvent:
		a.open = newGroup("")
	case *replication.QueryEvent:
		return a.query(event, at)
	case *replication.XIDEvent:
		return a.end(history.Committed, at), nil
	case *replication.TableMapEvent:
		return nil, a.announce(ctx, event)
	case *replication.RowsEvent:
		return nil, a.rows(event)
	case *replication.TransactionPayloadEvent:
		return a.payload(ctx, event, at)
	default:
		if e.Header.EventType == replication.XA_PREPARE_LOG_EVENT {
			return a.prepared(e, at)
		}
	}
	return nil, nil
}

func newGroup(gtid string) *group {
	return &group{txn: history.LoggedTxn{GTID: gtid}, silent: make(map[uint64]string), tables: make(map[uint64]*layout)}
}

// payload takes in the events of a transaction that the server compressed as a whole.
func (a *assembly) payload(ctx context.Context, e *replication.TransactionPayloadEvent,
	at position) (ended *history.LoggedTxn, err error) {
	for _, inner := range e.Events {
		t, err := a.event(ctx, inner, at)
		if err != nil {
			return nil, err
		}
		if t != nil {
			ended = t
		}
	}
	return ended, nil
}

// query takes in a text of the log: the limits of transactions, definitions, and whatever was logged without its rows.
func (a *assembly) query(e *replication.QueryEvent, at position) (*history.LoggedTxn, error) {
	text := strings.ToUpper(strings.TrimSpace(string(e.Query)))
	if t, ends := a.branches.ended(text); ends {
		a.open = nil
		if t != nil {
			t.Position, t.File = at.offset, at.file
		}
		return t, nil
	}
	if a.open == nil {
		a.open = newGroup("")
	}
	switch {
	case text == "BEGIN", strings.HasPrefix(text, "XA START"):
		a.open.begun, a.open.txn.Thread = true, uint64(e.SlaveProxyID)
	case strings.HasPrefix(text, "XA END"), strings.HasPrefix(text, "SAVEPOINT"):
	case text == "COMMIT":
		return a.end(history.Committed, at), nil
	case text == "ROLLBACK":
		// It is here for what it could not undo: which of the rows stayed, the log does not say.
		a.open.txn.Cut = true
		return a.end(history.Committed, at), nil
	case !a.open.begun:
		a.layouts.forget()
		a.open = nil
	case strings.HasPrefix(text, "CREATE"):
		a.layouts.forget() // CREATE TABLE ... SELECT, whose rows follow
	default:
		a.open.txn.Cut = true
	}
	return nil, nil
}

// end ends the open transaction. Of one that wrote nothing that isotap knows nothing remains.
func (a *assembly) end(status history.Status, at position) *history.LoggedTxn {
	g := a.open
	a.open = nil
	if g == nil || len(g.txn.Writes) == 0 && !g.txn.Cut {
		return nil
	}
	g.txn.Status, g.txn.Position, g.txn.File = status, at.offset, at.file
	return &g.txn
}

// prepared keeps what was prepared until it ends.
func (a *assembly) prepared(e *replication.BinlogEvent, at position) (*history.LoggedTxn, error) {
	event, ok := e.Event.(*replication.GenericEvent)
	if !ok {
		return nil, errors.New("an XA PREPARE event that is none")
	}
	name, onePhase, err := preparedName(event.Data)
	if err != nil {
		return nil, err
	}
	if onePhase {
		return a.end(history.Committed, at), nil
	}
	t := a.end(history.Indeterminate, at)
	if t == nil {
		return nil, nil
	}
	if len(a.branches) == maxBranches {
		return nil, fmt.Errorf("more than %d transactions are prepared", maxBranches)
	}
	a.branches[name] = t
	return nil, nil
}

// announce takes in that rows of a table may follow.
func (a *assembly) announce(ctx context.Context, e *replication.TableMapEvent) error {
	if a.open == nil {
		a.open = newGroup("")
		a.open.begun = true
	}
	l, err := a.layouts.of(ctx, e)
	if err != nil {
		return err
	}
	a.open.tables[e.TableID] = l
	if l.watched() {
		a.open.silent[e.TableID] = tableName(e)
	}
	return nil
}

func tableName(e *replication.TableMapEvent) string { return string(e.Schema) + "." + string(e.Table) }

// rows takes in what was written to a table.
func (a *assembly) rows(e *replication.RowsEvent) error {
	g := a.open
	if g == nil || e.Table == nil {
		return errors.New("rows of a table that was not announced")
	}
	delete(g.silent, e.TableID)
	switch l := g.tables[e.TableID]; {
	case l == nil || l.unwatchable:
		g.txn.Cut = true
	case l.watched():
		g.write(e, l)
	}
	if e.Flags&endsStatement != 0 {
		for _, table := range g.silent {
			g.txn.Unlogged = appendNew(g.txn.Unlogged, table)
		}
		clear(g.silent)
	}
	return nil
}

// appendNew appends a text unless it is there.
func appendNew(texts []string, s string) []string {
	for _, t := range texts {
		if t == s {
			return texts
		}
	}
	return append(texts, s)
}

// write adds the rows of an event.
func (g *group) write(e *replication.RowsEvent, l *layout) {
	step := 1
	if e.Type() == replication.EnumRowsEventTypeUpdate {
		step = 2
	}
	table := tableName(e.Table)
	for i := 0; i+step <= len(e.Rows); i += step {
		if len(g.txn.Writes) == maxWrites {
			g.txn.Cut = true
			return
		}
		writes, ok := l.writes(e, i)
		if !ok {
			g.txn.Cut = true
			continue
		}
		for _, w := range writes {
			w.Row.Table = table
			g.txn.Writes = append(g.txn.Writes, w)
		}
	}
	if len(e.Rows)%step != 0 {
		g.txn.Cut = true
	}
}

// writes returns the writes of which row i of an event is the image, or the first of two. It is false where the images
// do not tell. An update after which the row is another one, as the server logs REPLACE, took one away and made one.
func (l *layout) writes(e *replication.RowsEvent, i int) ([]history.LoggedWrite, bool) {
	found, ok := l.identity(e, i)
	if !ok {
		return nil, false
	}
	insert := func(left identity) history.LoggedWrite {
		return history.LoggedWrite{Op: history.InsertRow, Row: history.Row{ID: left.row}, New: left.tag}
	}
	deletion := history.LoggedWrite{Op: history.DeleteRow, Row: history.Row{ID: found.row}, Old: found.tag}
	switch e.Type() {
	case replication.EnumRowsEventTypeInsert:
		return []history.LoggedWrite{insert(found)}, true
	case replication.EnumRowsEventTypeDelete:
		return []history.LoggedWrite{deletion}, true
	case replication.EnumRowsEventTypeUpdate:
		left, ok := l.identity(e, i+1)
		if ok && left.row != found.row {
			return []history.LoggedWrite{deletion, insert(left)}, true
		}
		return []history.LoggedWrite{{Op: history.UpdateRow, Row: history.Row{ID: found.row}, Old: found.tag,
			New: left.tag}}, ok
	}
	return nil, false
}

// An identity is what isotap's columns say in an image of a row.
type identity struct {
	row string
	tag history.Tag
}

// identity reads an image. A row that has no id is known by its key.
func (l *layout) identity(e *replication.RowsEvent, i int) (id identity, ok bool) {
	image := e.Rows[i]
	if len(image) != l.columns {
		return id, false
	}
	if i < len(e.SkippedColumns) {
		for _, skipped := range e.SkippedColumns[i] {
			if skipped == l.row || skipped == l.wList {
				return id, false
			}
		}
	}
	row, known := text(image[l.row])
	if !known {
		id.row, ok = l.keyOf(image)
		return id, ok
	}
	list, known := text(image[l.wList])
	if !known || row == "" {
		return id, false
	}
	tag, err := history.ParseTag(list[strings.LastIndexByte(list, ',')+1:])
	if err != nil {
		return id, false
	}
	return identity{row, tag}, true
}

// keyOf returns the id of a row that has none, from its primary key.
func (l *layout) keyOf(image []any) (string, bool) {
	var b strings.Builder
	for _, i := range l.key {
		value, ok := text(image[i])
		if !ok {
			return "", false
		}
		fmt.Fprintf(&b, "%s%q", keySeparators[b.Len() == 0], value)
	}
	return b.String(), b.Len() > 0
}

// keySeparators stand before the values of a key, the first of which makes an id that isotap_rowid never is.
var keySeparators = map[bool]string{true: "key ", false: ","}
