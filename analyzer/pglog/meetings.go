package pglog

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// A meeting is that of a recorded transaction's statement, by its index, with a version, which it read, replaced, left
// or deleted.
type meeting struct {
	node, stmt int32
	deleted    bool
}

// A rowWrites has the writes of a row by a transaction of the log, by their numbers, in the log's order.
type rowWrites struct {
	id     string
	writes []int32
	// after[n] and before[n] are between which statements the last of the first n writes came: behind all that met a
	// version from before it (-1: none did), and before all that met what it left, or a later one (atEnd).
	after, before []int32
}

// rowsOf returns the rows whose names are known that a transaction of the log wrote, in its order.
func (r *Resolver) rowsOf(l *logged) []rowWrites {
	var rows []rowWrites
	numbers := make(map[tableRow]int)
	for i, at := range l.nodes {
		n := &r.nodes[at]
		if !n.named() {
			continue
		}
		of, ok := numbers[n.tableRow()]
		if !ok {
			of = len(rows)
			numbers[n.tableRow()] = of
			rows = append(rows, rowWrites{id: n.row.ID})
		}
		rows[of].writes = append(rows[of].writes, int32(i))
	}
	for i := range rows {
		slices.SortStableFunc(rows[i].writes, func(a, b int32) int {
			return cmp.Compare(l.writes[a].TupleID.LSN, l.writes[b].TupleID.LSN)
		})
	}
	return rows
}

// A shownState is a version, or that a version was deleted, as a statement meets it.
type shownState struct {
	node    int32
	deleted bool
}

// A point is between the writes of a row: so many of them had been done.
type point struct{ row, done int32 }

// points returns between which writes each version was there that they left, replaced or deleted.
func (r *Resolver) points(l *logged, rows []rowWrites) map[shownState]point {
	points := make(map[shownState]point)
	add := func(node int32, deleted bool, row, done int) {
		k := shownState{node, deleted}
		if _, ok := points[k]; !ok {
			points[k] = point{int32(row), int32(done)}
		}
	}
	for row := range rows {
		for i, w := range rows[row].writes {
			at := l.nodes[w]
			if l.writes[w].Op == history.DeleteRow {
				add(at, true, row, i+1)
				add(at, false, row, i)
				continue
			}
			add(at, false, row, i+1)
			if before := r.nodes[at].before; before != none {
				add(before, false, row, i)
			}
		}
	}
	return points
}

// met has rows know between which statements their writes came, and returns the versions that statements met.
func (r *Resolver) met(l *logged, rows []rowWrites, meetings []meeting) map[int32]bool {
	for i := range rows {
		of := &rows[i]
		of.after = slices.Repeat([]int32{-1}, len(of.writes)+1)
		of.before = slices.Repeat([]int32{atEnd}, len(of.writes)+1)
	}
	points := r.points(l, rows)
	met := make(map[int32]bool, len(meetings))
	for _, m := range meetings {
		met[m.node] = true
		p, ok := points[shownState{m.node, m.deleted}]
		if !ok {
			continue
		}
		of := &rows[p.row]
		if int(p.done) < len(of.writes) {
			of.after[p.done+1] = max(of.after[p.done+1], m.stmt)
		}
		of.before[p.done] = min(of.before[p.done], m.stmt)
	}
	for i := range rows {
		of := &rows[i]
		for n := 1; n < len(of.after); n++ {
			of.after[n] = max(of.after[n], of.after[n-1])
		}
		for n := len(of.before) - 2; n >= 0; n-- {
			of.before[n] = min(of.before[n], of.before[n+1])
		}
	}
	return met
}
