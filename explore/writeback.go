package explore

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/replay"
)

// A writeBack is what an UPDATE makes of a row that its call had read, without a lock: it sets columns to other values,
// and gives others back what was read in them. What somebody else sets in those meanwhile is undone, as by forms and
// objects that are stored whole.
type writeBack struct {
	sets, back []string // columns of the UPDATE's table
}

// writeBacks have, by the shapes of UPDATEs, what each call of them made of its row.
type writeBacks map[string][]writeBack

// take notes the UPDATEs of an instance, by what its statements were answered.
func (w writeBacks) take(s *schema, in *instance, replies []*replay.Result) {
	for at := range in.statements {
		st := &in.statements[at]
		if st.recorded.Kind != history.Update || st.void || len(st.sets) < 2 {
			continue
		}
		if b, ok := s.writesBack(in, at, replies); ok {
			w[st.recorded.Shape] = append(w[st.recorded.Shape], b)
		}
	}
}

// writesBack returns what an UPDATE makes of its row, by the last read of it; false where there is none, or where the
// row was locked.
func (s *schema) writesBack(in *instance, write int, replies []*replay.Result) (b writeBack, ok bool) {
	st := &in.statements[write]
	key, value, ok := s.keyOf(st)
	if !ok {
		return b, false
	}
	for at := write - 1; at >= 0; at-- {
		read, r := &in.statements[at], replies[at]
		if r == nil || read.recorded.Kind != history.Select {
			continue
		}
		row := s.rowWith(r, key, value)
		if row == nil {
			continue
		}
		if read.recorded.Locking != history.NoLock {
			return b, false
		}
		for j := range r.Columns {
			of, known := s.shown(&r.Columns[j])
			if !known || !strings.EqualFold(of.table, st.target) {
				continue
			}
			set, sets := st.assigns(of)
			switch {
			case !sets:
			case same(set, row[j]):
				b.back = append(b.back, of.name)
			default:
				b.sets = append(b.sets, of.name)
			}
		}
		return b, true
	}
	return b, false
}

// rowWith returns the row of a result that has a value in a column; nil where there is none.
func (s *schema) rowWith(r *replay.Result, key column, value string) []replay.Value {
	at := slices.IndexFunc(r.Columns, func(c replay.Column) bool {
		of, known := s.shown(&c)
		return known && of == key
	})
	if at < 0 {
		return nil
	}
	i := slices.IndexFunc(r.Rows, func(row []replay.Value) bool { return same(value, row[at]) })
	if i < 0 {
		return nil
	}
	return r.Rows[i]
}

// same reports whether a value of a statement's text is the one that the server showed: numbers and truth have several
// forms.
func same(text string, shown replay.Value) bool {
	if shown.Null || text == shown.Text {
		return !shown.Null
	}
	a, err := strconv.ParseFloat(text, 64)
	b, err2 := strconv.ParseFloat(shown.Text, 64)
	if err == nil && err2 == nil {
		return a == b
	}
	p, err := strconv.ParseBool(strings.ToLower(text))
	q, err2 := strconv.ParseBool(strings.ToLower(shown.Text))
	return err == nil && err2 == nil && p == q
}

// lost returns the columns that some call of an UPDATE sets, and that another one, which sets something else, writes
// back as it had read them, in the order in which they were first set.
func (w writeBacks) lost(shape string) (columns []string) {
	for _, b := range w[shape] {
		for _, c := range b.sets {
			if !slices.Contains(columns, c) && w.undoing(shape, c) != "" {
				columns = append(columns, c)
			}
		}
	}
	return columns
}

// undoing returns a column that a call sets which writes another column back; empty where no call does.
func (w writeBacks) undoing(shape, column string) string {
	for _, b := range w[shape] {
		if slices.Contains(b.back, column) && len(b.sets) > 0 {
			return b.sets[0]
		}
	}
	return ""
}

// tell makes lost updates of races in which both calls set the same, where other calls of the same UPDATE write that
// column back.
func (w writeBacks) tell(races []Race) {
	for i := range races {
		r := &races[i]
		if r.Kind != SameAgain || r.Beside != "" {
			continue
		}
		lost := w.lost(r.shapes[1])
		if !slices.Contains(lost, r.Column) {
			continue
		}
		r.Kind, r.UndoneBy = LostUpdate, w.undoing(r.shapes[1], r.Column)
		r.Likewise = slices.DeleteFunc(lost, func(c string) bool { return c == r.Column })
	}
}
