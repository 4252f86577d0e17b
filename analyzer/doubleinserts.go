package analyzer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// doubleInserts finds requests that looked for one thing in vain, at the same time, and inserted it each, or set a row
// that was there to it.
//
// The conditions of a statement are held against no row that came behind its transaction. So what was looked for, and
// what was inserted, is told by the texts: both requests ask for the same, and each inserts a row with these values.
type doubleInserts struct {
	*requests
}

// A looker is a request that looked for rows of a table, in one of its transactions, and inserted or set one in a later
// one.
type looker struct {
	request      int32
	look, insert int32  // its transactions
	shape        int32  // of the statement that looked
	table        string // its class
}

// A foundNone is a looker that did not find what it then inserted, or set a row to.
type foundNone struct {
	looker
	stmt    uint32 // that looked
	looked  int64  // when it was sent
	version int32  // of the row that it inserted or set
	thing   string // what it looked for: the values, and the table
	forOne  bool   // it asked whether the thing is there, rather than for a list
	values  string // of the row that it inserted, but for times; empty where they are not known
}

// recentLooks is how many looks of a request are held against what it inserts: the latest.
const recentLooks = 16

// recentInserts is how many earlier inserts of one thing are held against another.
const recentInserts = 64

// find looks through the given requests.
func (d *doubleInserts) find(requests []int32) error {
	var all []looker
	for _, n := range requests {
		all = append(all, d.lookersOf(d.members[n])...)
	}
	slices.SortStableFunc(all, func(a, b looker) int {
		return cmp.Or(cmp.Compare(a.shape, b.shape), strings.Compare(a.table, b.table),
			cmp.Compare(d.o.txns[a.look].run, d.o.txns[b.look].run), cmp.Compare(d.o.txns[a.look].start, d.o.txns[b.look].start))
	})
	for len(all) > 0 {
		n := d.atOnce(all)
		if err := d.among(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// lookersOf returns a request's pairs of a look and a later insert into the same table, by the shapes alone.
func (d *doubleInserts) lookersOf(txns []int32) []looker {
	type look struct {
		txn, shape int32
		table      string
	}
	var looks []look
	var all []looker
	for _, t := range txns {
		family := d.a.engine(d.o.id(t).Run()).Family()
		before := len(looks)
		for _, shape := range d.o.shapesOf(t) {
			if shape < 0 {
				continue
			}
			of := statementShape{family, d.o.programs.classes[shape].first}
			if l := d.lookup(of); l != nil {
				looks = append(looks, look{t, shape, tableClass(l.table)})
			}
			ins := d.values(of)
			if ins == nil || !d.o.txns[t].installed {
				continue
			}
			for _, l := range looks[max(0, before-recentLooks):before] {
				if l.table == tableClass(ins.table) {
					all = append(all, looker{d.of[t], l.txn, t, l.shape, l.table})
				}
			}
		}
	}
	return all
}

// tableClass returns what tables have in common whose shapes are of one class.
func tableClass(table string) string { return strings.ToLower(FoldTable(table)) }

// atOnce returns how many of the lookers, from the first on, belong together: they are of one kind, and each began to
// look before the last of those before it had inserted.
func (d *doubleInserts) atOnce(all []looker) int {
	first := &all[0]
	until := d.o.txns[first.insert].end
	for i := range all {
		x := &all[i]
		if x.shape != first.shape || x.table != first.table || d.o.txns[x.look].run != d.o.txns[first.look].run ||
			d.o.txns[x.look].start > until {
			return i
		}
		until = max(until, d.o.txns[x.insert].end)
	}
	return len(all)
}

// among finds the double inserts among lookers that may have been at it at once. Of several for one thing each but the
// first is told, beside the earliest that it did not know of.
func (d *doubleInserts) among(lookers []looker) error {
	if !slices.ContainsFunc(lookers, func(x looker) bool { return x.request != lookers[0].request }) {
		return nil
	}
	same := make(map[string][]*foundNone)
	told := make(map[int32]bool) // by version
	for _, x := range lookers {
		f, err := d.foundNone(x)
		if err != nil {
			return err
		}
		if f != nil && !told[f.version] {
			told[f.version] = true
			same[f.thing] = append(same[f.thing], f)
		}
	}
	var all [][]*foundNone
	for _, fs := range same {
		slices.SortStableFunc(fs, func(a, b *foundNone) int { return cmp.Compare(d.o.txns[a.insert].end, d.o.txns[b.insert].end) })
		all = append(all, fs)
	}
	slices.SortFunc(all, func(a, b []*foundNone) int { return cmp.Compare(d.o.txns[a[0].insert].end, d.o.txns[b[0].insert].end) })
	for _, fs := range all {
		for i, f := range fs {
			earlier := fs[max(0, i-recentInserts):i]
			if j := slices.IndexFunc(earlier, func(e *foundNone) bool { return d.unaware(e, f) }); j >= 0 {
				d.add(earlier[j], f)
			}
		}
	}
	return nil
}

// foundNone returns what a looker did not find, and inserted; nil where it found something, or inserted something else.
func (d *doubleInserts) foundNone(x looker) (*foundNone, error) {
	looking, err := d.loaded.get(x.look)
	if err != nil {
		return nil, err
	}
	inserting, err := d.loaded.get(x.insert)
	if err != nil {
		return nil, err
	}
	family := d.a.engine(looking.ID.Run()).Family()
	for _, read := range d.o.ofShape(x.look, looking, x.shape) {
		l := d.lookup(statementShape{family, read.Shape})
		if l == nil || read.Void || read.Unseen || read.Observation != history.Exact ||
			foundRows(read) || read.Error != (history.Error{}) {
			continue // among them one that failed
		}
		for i := range inserting.Stmts {
			write := &inserting.Stmts[i]
			ins := d.values(statementShape{family, write.Shape})
			if ins == nil || write.Void || write.Affected != 1 {
				continue
			}
			by := l.finds(read.Args, ins, write.Args)
			version := d.writtenBy(x, write.Num)
			if by == nil || version < 0 || ins.update && len(by) == 0 {
				continue // who looks for any row does not set one to that
			}
			f := &foundNone{looker: x, stmt: read.Num, looked: read.Start, version: version, forOne: l.forOne(read.Args),
				thing: l.thing(read.Args, ins) + d.o.rows.row(d.o.rowOf(version)).Table}
			if !ins.update {
				f.values, _ = ins.lasting(write.Args)
			}
			return f, nil
		}
	}
	return nil, nil
}

// foundRows reports whether a statement found rows.
func foundRows(s *history.Stmt) bool {
	return slices.ContainsFunc(s.Accesses, func(a history.Access) bool { return !a.Absent && !a.Gone })
}

// writtenBy returns the version that a statement of a looker's inserted or set; -1 for none, or where the request took
// it back: it deleted the row that it had inserted, or wrote once more the one that it had set.
func (d *doubleInserts) writtenBy(x looker, stmt uint32) int32 {
	from, to := d.o.accessesOf(x.insert)
	for v := from; v < to; v++ {
		a := &d.o.accesses[v]
		if a.stmt != stmt || a.op != history.InsertRow && a.op != history.UpdateRow || a.is(void) {
			continue
		}
		next := d.o.links[v].next
		if next >= 0 && int(next) < len(d.o.accesses) && d.of[d.o.accesses[next].txn] == x.request &&
			(a.op == history.UpdateRow || d.o.accesses[next].op == history.DeleteRow) {
			return none
		}
		return v
	}
	return none
}

// unaware reports whether two lookers made one thing of two rows, and neither can have known of the other's.
func (d *doubleInserts) unaware(e, f *foundNone) bool {
	txns := d.o.txns
	switch {
	case e.request == f.request, d.o.rowOf(e.version) == d.o.rowOf(f.version):
		return false
	case f.looked > txns[e.insert].end, e.looked > txns[f.insert].end:
		return false // it found none after the other had put it there: somebody took it away
	case d.goneBefore(e.version, f.insert), d.goneBefore(f.version, e.insert):
		return false
	}
	return e.forOne && f.forOne || e.values != "" && e.values == f.values
}

// goneBefore reports whether a row was no more what a version made it when a transaction began: it had been deleted, or
// written again where an UPDATE had made it that.
func (d *doubleInserts) goneBefore(version, txn int32) bool {
	next := d.o.links[version].next
	if next < 0 || int(next) >= len(d.o.accesses) {
		return false
	}
	a := &d.o.accesses[next]
	again := a.op == history.DeleteRow || d.o.accesses[version].op == history.UpdateRow
	return again && d.o.txns[a.txn].end < d.o.txns[txn].start
}

func (d *doubleInserts) add(e, f *foundNone) {
	missed := func(a, b *foundNone) dep {
		d.o.looks[look{a.look, b.version}] = a.stmt
		return dep{from: a.look, to: b.insert, kind: rw, access: none, version: none, next: b.version}
	}
	within := func(x *foundNone) dep {
		return dep{from: x.insert, to: x.look, kind: rq, access: none, version: none, next: none}
	}
	anomaly := DoubleInsert
	if d.o.accesses[e.version].op == history.UpdateRow || d.o.accesses[f.version].op == history.UpdateRow {
		anomaly = DoubleSet
	}
	d.c.add(anomaly, Unprotected, []dep{missed(e, f), within(f), missed(f, e), within(e)})
}
