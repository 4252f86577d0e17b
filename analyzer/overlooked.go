package analyzer

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// overlooked takes in a write over a row that another request inserted after this one had asked for such rows: it did
// not get this one, and goes by what it got. What the row then has it may have looked at again: not its values.
func (r *requests) overlooked(txns []int32, t, write int32) error {
	over := r.o.base(write)
	if over < 0 || int(over) >= len(r.o.accesses) || r.o.accesses[over].op != history.InsertRow || r.o.accesses[over].is(inexact) ||
		!r.ofAnother(t, over) {
		return nil
	}
	family := r.a.engine(r.o.id(t).Run()).Family()
	read, known := r.latestRead(write)
	if !known {
		return nil
	}
	inserted, err := r.left(family, over)
	if err != nil || inserted == nil {
		return err
	}
	now, err := r.deed(family, t, write)
	if err != nil || now == nil {
		return err
	}
	columns := setOtherwise(family, inserted, now, read)
	if len(columns) == 0 {
		return nil
	}
	x, stmt, err := r.lookedBefore(txns, t, over, columns)
	if err != nil || stmt == 0 {
		return err
	}
	other := r.o.owner(over)
	r.o.looks[look{x, over}] = stmt
	r.told[write] = true
	r.c.add(StaleOverwrite, Unprotected, []dep{
		{from: x, to: other, kind: rw, access: none, version: none, next: over},
		{from: other, to: t, kind: ww, access: none, version: over, next: write},
		{from: t, to: x, kind: rq, access: none, version: none, next: none}})
	return nil
}

// latestRead returns the shape of the statement with which a request read the row last that it writes, empty for none.
// It reports whether that is known.
func (r *requests) latestRead(write int32) (shape string, known bool) {
	at := r.find(r.o.accesses[write].row)
	if at < 0 {
		return "", true
	}
	access := r.reads[at].access
	if access < 0 {
		return "", false // it wrote the row itself
	}
	a := &r.o.accesses[access]
	n := r.o.shapeOf(a.txn, a.stmt)
	if n < 0 {
		return "", false
	}
	return r.o.programs.classes[n].first, true
}

// setOtherwise returns the columns that an INSERT gave one constant, and an UPDATE another; not those that the read
// between the two shows.
func setOtherwise(family dbms.Family, inserted, now *deed, read string) (columns []string) {
	for _, s := range now.sets {
		was := inserted.settingOf(s.column)
		if was != nil && s.differs(was) && !tellsTime(s.column) && (read == "" || !shows(family, read, s.column)) {
			columns = append(columns, s.column)
		}
	}
	return columns
}

// lookedBefore returns the transaction and the statement with which a request asked for rows as the one that another
// inserted then, and for one of the columns; statement 0 for none. Of its transactions the latest count.
func (r *requests) lookedBefore(txns []int32, t, inserted int32, columns []string) (x int32, num uint32, err error) {
	writer, err := r.loaded.get(r.o.owner(inserted))
	if err != nil {
		return 0, 0, err
	}
	insert := stmt(writer, r.o.tagOf(inserted).stmt)
	missed := missedRow{family: r.a.engine(writer.ID.Run()).Family(), args: insert.Args, until: writer.End, columns: columns}
	if missed.rowValues = rowValuesOf(missed.family, insert.Shape); missed.rowValues == nil {
		return 0, 0, nil
	}
	earlier := txns[:slices.Index(txns, t)]
	for _, x := range slices.Backward(earlier[max(0, len(earlier)-recentLooks):]) {
		if num, err = r.missedBy(x, &missed); err != nil || num != 0 {
			return x, num, err
		}
	}
	return 0, 0, nil
}

// A missedRow is a row that a request may have asked for before it was there.
type missedRow struct {
	*rowValues
	family  dbms.Family
	args    []string // of the INSERT
	until   int64    // when that had ended
	columns []string // of which the request wants to know one
}

// missedBy returns the statement of a transaction that asked for a row before it was there; 0 for none.
func (r *requests) missedBy(t int32, row *missedRow) (num uint32, err error) {
	for _, shape := range r.o.shapesOf(t) {
		if shape < 0 {
			continue
		}
		of := statementShape{row.family, r.o.programs.classes[shape].first}
		l := r.lookup(of)
		if l == nil || len(l.keys) == 0 || tableClass(l.table) != tableClass(row.table) ||
			!slices.ContainsFunc(row.columns, func(c string) bool { return shows(row.family, of.text, c) }) {
			continue
		}
		x, err := r.loaded.get(t)
		if err != nil {
			return 0, err
		}
		for _, s := range r.o.ofShape(t, x, shape) {
			if r.missed(s, row) {
				return s.Num, nil
			}
		}
	}
	return 0, nil
}

// missed reports whether a SELECT asked for a row before it was there.
func (r *requests) missed(s *history.Stmt, row *missedRow) bool {
	if s.Void || s.Unseen || s.Observation != history.Exact || s.Error != (history.Error{}) || s.Start >= row.until {
		return false
	}
	l := r.lookup(statementShape{row.family, s.Shape})
	return l != nil && (l.limit < 0 || !foundRows(s)) && l.finds(s.Args, row.rowValues, row.args) != nil
}
