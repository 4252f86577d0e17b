package recorder

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/isotap/isotap/history"
)

// sysbench makes transactions as a proxy would record them of sysbench's oltp_read_write: ten selects
// of one row, four of a range of 100, two updates, a delete and the insert that puts the row back,
// between BEGIN and COMMIT. It keeps the rows' lists as a server would, cut to 255 bytes, so
// the versions and lists that it reports have the sizes of real ones.
type sysbench struct {
	rng    *rand.Rand
	run    history.Run
	seq    uint32
	tables [][]simRow
	clock  int64
}

type simRow struct {
	id   string
	list []history.Tag
}

func newSysbench(run history.Run, tables, rows int) *sysbench {
	s := &sysbench{rng: rand.New(rand.NewPCG(1, 2)), run: run}
	for t := range tables {
		list := make([]simRow, rows)
		for i := range list {
			list[i] = simRow{id: fmt.Sprintf("%X", 1<<56|0x6543210<<24|t<<20|i), list: []history.Tag{{}}}
		}
		s.tables = append(s.tables, list)
	}
	return s
}

const rangeSize = 100

func (s *sysbench) txn(session history.SessionID) *history.Txn {
	s.seq++
	t := &history.Txn{
		ID: history.MakeTxnID(s.run, s.seq), Session: session, Status: history.Committed,
		Level: history.RepeatableRead, Start: s.clock,
	}
	table := s.rng.IntN(len(s.tables))
	name := "sbtest.sbtest" + strconv.Itoa(table+1)
	add := func(kind history.Kind, shape string, args ...string) *history.Stmt {
		start := s.clock
		s.clock += 100_000 + s.rng.Int64N(400_000)
		t.Stmts = append(t.Stmts, history.Stmt{
			Num: uint32(len(t.Stmts) + 1), Kind: kind, Shape: shape, Args: args, Start: start, End: s.clock,
			Observation: history.Exact,
		})
		s.clock += 20_000 + s.rng.Int64N(50_000)
		return &t.Stmts[len(t.Stmts)-1]
	}
	add(history.Begin, "BEGIN").Observation = history.Nothing
	for range 10 {
		i := s.row(table)
		s.read(add(history.Select, "SELECT c FROM "+name+" WHERE id=?", strconv.Itoa(i)), name, table, i, 1)
	}
	for _, shape := range []string{"SELECT c FROM %s WHERE id BETWEEN ? AND ?",
		"SELECT SUM(k) FROM %s WHERE id BETWEEN ? AND ?",
		"SELECT c FROM %s WHERE id BETWEEN ? AND ? ORDER BY c",
		"SELECT DISTINCT c FROM %s WHERE id BETWEEN ? AND ? ORDER BY c"} {
		i := s.row(table)
		st := add(history.Select, fmt.Sprintf(shape, name), strconv.Itoa(i), strconv.Itoa(i+rangeSize-1))
		s.read(st, name, table, i, rangeSize)
	}
	i := s.row(table)
	s.write(t, add(history.Update, "UPDATE "+name+" SET k=k+1 WHERE id=?", strconv.Itoa(i)),
		history.UpdateRow, name, table, i)
	i = s.row(table)
	s.write(t, add(history.Update, "UPDATE "+name+" SET c=? WHERE id=?", "'83868641912-28773972837-6073",
		strconv.Itoa(i)), history.UpdateRow, name, table, i)
	i = s.row(table)
	s.write(t, add(history.Delete, "DELETE FROM "+name+" WHERE id=?", strconv.Itoa(i)),
		history.DeleteRow, name, table, i)
	s.insert(t, add(history.Insert, "INSERT INTO "+name+" (id, k, c, pad) VALUES (?, ?, ?, ?)", strconv.Itoa(i),
		strconv.Itoa(s.row(table)),
		"'31451373586-15688153734-7972", "'67847967377-48000963322-6260"), name, table, i)
	add(history.Commit, "COMMIT").Observation = history.Nothing
	t.End = s.clock
	return t
}

func (s *sysbench) row(table int) int { return s.rng.IntN(len(s.tables[table]) - rangeSize) }

func (s *sysbench) read(st *history.Stmt, name string, table, from, n int) {
	st.Rows = uint64(n)
	for _, r := range s.tables[table][from : from+n] {
		st.Accesses = append(st.Accesses, access(history.Read, name, r))
	}
}

func access(op history.Op, table string, r simRow) history.Access {
	last := len(r.list) - 1
	return history.Access{Row: history.Row{Table: table, ID: r.id}, Op: op,
		Version: r.list[last], Prior: r.list[:last:last]}
}

// maxListTags is how many tags of this test fit into a list of 255 bytes.
const maxListTags = 20

func (s *sysbench) write(t *history.Txn, st *history.Stmt, op history.Op, name string, table, i int) {
	r := &s.tables[table][i]
	st.Affected = 1
	st.Accesses = append(st.Accesses, access(op, name, *r))
	r.list = append(r.list[max(0, len(r.list)-maxListTags+1):len(r.list):len(r.list)],
		history.Tag{Txn: t.ID, Stmt: st.Num})
}

func (s *sysbench) insert(t *history.Txn, st *history.Stmt, name string, table, i int) {
	tag := history.Tag{Txn: t.ID, Stmt: st.Num}
	r := simRow{id: tag.String() + ":0", list: []history.Tag{tag}}
	st.Affected = 1
	st.Accesses = append(st.Accesses, history.Access{Row: history.Row{Table: name, ID: r.id}, Op: history.InsertRow})
	s.tables[table][i] = r
}
