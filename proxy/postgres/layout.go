package postgres

import (
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/rewrite"
)

// A layout is where columns of isotap's stand in a result.
type layout struct {
	hidden int   // at its end, as the plan has it
	cut    []int // before these
	wrong  bool  // the plan does not know of some
	known  bool  // it was read off a description
}

// A descriptionReader reads bodies of RowDescription messages, one after the other, into the same memory. It keeps
// nothing of a body.
type descriptionReader struct{ last pgproto3.RowDescription }

// maxDescribed is how many fields a reader keeps the memory for.
const maxDescribed = 64

// read returns the fields of a description; none where it cannot be read. Call forget once they were looked at.
func (r *descriptionReader) read(body []byte) []pgproto3.FieldDescription {
	if r.last.Decode(body) != nil {
		return nil
	}
	return r.last.Fields
}

// forget lets go of the body: the names of fields are parts of it.
func (r *descriptionReader) forget() {
	if cap(r.last.Fields) > maxDescribed {
		r.last.Fields = nil
	}
	clear(r.last.Fields)
}

// layout returns where columns of isotap's stand in a result that by its plan has so many of them at its end.
func (r *descriptionReader) layout(body []byte, hidden int) layout {
	defer r.forget()
	l := layout{hidden: hidden, known: true}
	fields := r.read(body)
	atEnd := 0
	for i := range fields {
		ours := rewrite.IsColumn(string(fields[i].Name))
		switch {
		case i >= len(fields)-hidden && ours:
			atEnd++
		case ours:
			l.cut, l.wrong = append(l.cut, i), true
		}
	}
	if l.wrong && atEnd < hidden { // the client's own stand among them: nothing is where the plan has it
		l = layout{known: true, wrong: true}
		for i := range fields {
			if rewrite.IsColumn(string(fields[i].Name)) {
				l.cut = append(l.cut, i)
			}
		}
	}
	return l
}

// exposed returns the places of isotap's columns among the visible columns of a description, which has hidden ones
// behind them.
func (r *descriptionReader) exposed(body []byte, hidden int) (places []int) {
	defer r.forget()
	fields := r.read(body)
	for i := range max(len(fields)-hidden, 0) {
		switch name, oid := string(fields[i].Name), fields[i].DataTypeOID; {
		case name == rewrite.RowIDColumn && oid == oidUUID, name == rewrite.WListColumn && oid == oidBytea:
			places = append(places, i)
		}
	}
	return places
}

// skipField passes over a field of a description, skipValue over a value of a row.
func skipField(r *reader) {
	r.cString()
	r.bytes(fieldBytes)
}

func skipValue(r *reader) {
	if n := int32(r.uint32()); n > 0 {
		r.bytes(int(n))
	}
}

// fieldBytes is how long a field of a RowDescription is behind its name.
const fieldBytes = 4 + 2 + 4 + 2 + 4 + 2
