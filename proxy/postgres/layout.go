package postgres

import (
	"encoding/binary"

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

// layoutOf reads off a description where columns of isotap's stand in a result that by its plan has so many of them at
// its end.
func layoutOf(description *pgproto3.RowDescription, hidden int) layout {
	l := layout{hidden: hidden, known: true}
	fields := len(description.Fields)
	atEnd := 0
	for i := range description.Fields {
		ours := rewrite.IsColumn(string(description.Fields[i].Name))
		switch {
		case i >= fields-hidden && ours:
			atEnd++
		case ours:
			l.cut, l.wrong = append(l.cut, i), true
		}
	}
	if l.wrong && atEnd < hidden { // the client's own stand among them: nothing is where the plan has it
		l = layout{known: true, wrong: true}
		for i := range description.Fields {
			if rewrite.IsColumn(string(description.Fields[i].Name)) {
				l.cut = append(l.cut, i)
			}
		}
	}
	return l
}

// A descriptionReader reads descriptions into the same memory, one after the other.
type descriptionReader struct{ last pgproto3.RowDescription }

// maxDescribed is how many fields a reader keeps the memory for.
const maxDescribed = 64

// read reads a description. What it returns is valid until the next one is read, and as long as the body is; one that
// cannot be read has no fields.
func (r *descriptionReader) read(body []byte) *pgproto3.RowDescription {
	if cap(r.last.Fields) > maxDescribed {
		r.last.Fields = nil
	}
	if r.last.Decode(body) != nil {
		r.last.Fields = r.last.Fields[:0]
	}
	return &r.last
}

// exposed returns the places of isotap's columns in a description of as many visible columns.
func exposed(description []byte, visible int) (places []int) {
	r := reader{b: description}
	r.uint16()
	for i := range visible {
		name := string(r.cString())
		field := r.bytes(fieldBytes)
		if r.err != nil {
			return nil
		}
		switch oid := binary.BigEndian.Uint32(field[6:]); {
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
