package postgres

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// What a COPY FROM wrote is read once its transaction has committed, on another connection: the rows that are of the
// transaction, by the command that left them. They are taken for the COPY's only if there are as many as the server
// said, and none that another command may have left. Otherwise the COPY stays what it was: not observed.

// maxCopied bounds the rows that are read of a transaction's COPYs, as its client waits.
const maxCopied = 5_000

// A copiedStmt is a COPY FROM of a transaction whose rows can be read.
type copiedStmt struct {
	num uint32 // of the statement
	how *sqlpostgres.Copied
}

// copied takes note of the COPY that was recorded last.
func (t *transaction) copied(how *sqlpostgres.Copied, num uint32) {
	if how != nil && t.open != nil && num > 0 {
		t.copies = append(t.copies, copiedStmt{num, how})
	}
}

// questions are those for the rows of a transaction's COPYs: one for each table.
func (s *Session) questions(t *history.Txn, copies []copiedStmt) (all []session.Question) {
	if len(copies) == 0 || t.Status != history.Committed || !tellsAllElse(t, copies) {
		return nil
	}
	xid := xidOf(t)
	slices.SortStableFunc(copies, func(a, b copiedStmt) int { return cmp.Compare(a.how.Table, b.how.Table) })
	total := uint64(0)
	for len(copies) > 0 {
		n := 1
		for n < len(copies) && copies[n].how.Table == copies[0].how.Table {
			n++
		}
		x := &copying{txn: t, how: copies[0].how, xid: xid}
		x.add(copies[:n])
		copies = copies[n:]
		switch rows := x.rows(); {
		case x.mayBeGone():
		case rows == 0:
			x.give(nil, 0)
		case xid != 0 && total+rows <= maxCopied:
			total += rows
			all = append(all, x.question(s.settings.database))
		}
	}
	return all
}

// tellsAllElse reports whether the other statements of a transaction told all that they wrote. Others may have taken
// the rows of a COPY away, and changed as many.
func tellsAllElse(t *history.Txn, copies []copiedStmt) bool {
	return !slices.ContainsFunc(t.Stmts, func(st history.Stmt) bool {
		return !st.Void && (st.Observation == history.Inexact || st.Observation == history.Opaque) &&
			!slices.ContainsFunc(copies, func(c copiedStmt) bool { return c.num == st.Num })
	})
}

// xidOf returns the id of a transaction, which is that of its rows outside of savepoints; 0: it is not known.
func xidOf(t *history.Txn) (xid uint32) {
	var left []uint32
	for i := range t.Stmts {
		st := &t.Stmts[i]
		if st.XID != 0 && st.XID != history.NoXID {
			return st.XID
		}
		for j := range st.TupleIDs {
			left = append(left, st.TupleIDs[j].NewXID)
		}
	}
	left = slices.DeleteFunc(left, func(id uint32) bool { return id == 0 })
	if len(left) == 0 || slices.ContainsFunc(left, func(id uint32) bool { return id != left[0] }) ||
		slices.ContainsFunc(t.Stmts, func(st history.Stmt) bool { return st.Kind == history.Savepoint }) {
		return 0
	}
	return left[0]
}

// A copying are the COPYs of a transaction into one table.
type copying struct {
	txn   *history.Txn
	how   *sqlpostgres.Copied
	xid   uint32
	stmts []*history.Stmt
}

// add adds those of them that nothing has undone.
func (x *copying) add(copies []copiedStmt) {
	for _, c := range copies {
		if i := int(c.num) - 1; i < len(x.txn.Stmts) && x.txn.Stmts[i].Num == c.num && !x.txn.Stmts[i].Void {
			x.stmts = append(x.stmts, &x.txn.Stmts[i])
		}
	}
}

// mayBeGone reports whether another statement of the transaction changed or deleted rows of the table: the COPYs' may
// be gone, and a cascade may have changed as many.
func (x *copying) mayBeGone() bool {
	return slices.ContainsFunc(x.txn.Stmts, func(st history.Stmt) bool {
		return slices.ContainsFunc(st.Accesses, func(a history.Access) bool {
			return a.Row.Table == x.how.Source.Table && (a.Op == history.UpdateRow || a.Op == history.DeleteRow)
		})
	})
}

// rows is how many rows the server said that they wrote.
func (x *copying) rows() (n uint64) {
	for _, st := range x.stmts {
		n += st.Affected
	}
	return n
}

func (x *copying) question(database string) session.Question {
	return session.Question{Database: database, Query: x.how.Query, Columns: 1 + len(x.how.Source.Physical.Items),
		Args: []string{strconv.FormatUint(uint64(x.xid), 10), x.how.Table}, Take: x.take}
}

// A copiedRow is a row as it was read.
type copiedRow struct {
	command uint64 // of the transaction, that left it
	rowIdentity
	id string
}

// take reads an answer and records its rows with the statements that left them.
func (x *copying) take(lsn string, values [][]string) {
	at, ok := readLSN([]byte(lsn), formatText)
	rows, read := x.read(values)
	if !ok || !read {
		return
	}
	x.give(rows, at)
}

// give records rows with the statements that left them, if there are as many groups of rows as statements, each of the
// size that the server told. The log was shorter than lsn when they were left.
func (x *copying) give(rows []copiedRow, lsn uint64) {
	slices.SortStableFunc(rows, func(a, b copiedRow) int { return cmp.Compare(a.command, b.command) })
	var of [][]copiedRow
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].command == rows[0].command {
			n++
		}
		of, rows = append(of, rows[:n]), rows[n:]
	}
	wrote := slices.DeleteFunc(slices.Clone(x.stmts), func(st *history.Stmt) bool { return st.Affected == 0 })
	if !slices.EqualFunc(wrote, of, func(st *history.Stmt, rows []copiedRow) bool { return st.Affected == uint64(len(rows)) }) {
		return
	}
	for _, st := range x.stmts {
		st.Observation, st.Reason = history.Exact, history.Reason{}
	}
	for i, st := range wrote {
		x.put(st, of[i], lsn)
	}
}

// put puts rows into the COPY that left them.
func (x *copying) put(st *history.Stmt, rows []copiedRow, lsn uint64) {
	st.Accesses, st.TupleIDs = make([]history.Access, len(rows)), make([]history.TupleID, len(rows))
	st.Images = make([]string, len(rows))
	for i := range rows {
		tuple := rows[i].tuple
		tuple.LSN = lsn
		if tuple.Leaf == 0 {
			tuple.Leaf = x.how.Source.Physical.OID
		}
		st.Accesses[i] = history.Access{Row: history.Row{Table: x.how.Source.Table, ID: rows[i].id}, Op: history.InsertRow}
		st.TupleIDs[i], st.Images[i] = tuple, rows[i].image
	}
}

// read reads the rows, without those that other statements told; ok is false where one cannot be read.
func (x *copying) read(values [][]string) (rows []copiedRow, ok bool) {
	known := make(map[uint64]bool)
	for i := range x.txn.Stmts {
		for j, tuple := range x.txn.Stmts[i].TupleIDs {
			if x.txn.Stmts[i].Accesses[j].Row.Table == x.how.Source.Table {
				known[tuple.NewID] = true
			}
		}
	}
	for _, v := range values {
		row, ok := x.readRow(v)
		if !ok {
			return nil, false
		}
		if !known[row.tuple.NewID] {
			rows = append(rows, row)
		}
	}
	return rows, true
}

// readRow reads a row.
func (x *copying) readRow(values []string) (row copiedRow, ok bool) {
	if row.command, ok = readNumber([]byte(values[0]), formatText, 4); !ok {
		return row, false
	}
	var key []byte
	keys := 0
	for i, item := range x.how.Source.Physical.Items {
		v := []byte(values[1+i])
		if item >= sqlpostgres.ItemKeyInt && item <= sqlpostgres.ItemKeyHex {
			if keys++; keys > 1 {
				key = append(key, ',')
			}
			key = appendKey(key, item, v, formatText)
		} else if !row.take(item, v, formatText) {
			return row, false
		}
	}
	row.id = string(key)
	return row, true
}
