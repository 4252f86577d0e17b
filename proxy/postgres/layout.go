package postgres

import (
	"encoding/binary"

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
func layoutOf(description []byte, hidden int) layout {
	l := layout{hidden: hidden, known: true}
	r := reader{b: description}
	fields := r.uint16()
	atEnd := 0
	for i := range fields {
		ours := rewrite.IsColumn(string(r.cString()))
		r.bytes(fieldBytes)
		if r.err != nil {
			return l
		}
		switch {
		case i >= fields-hidden && ours:
			atEnd++
		case ours:
			l.cut, l.wrong = append(l.cut, i), true
		}
	}
	if l.wrong && atEnd < hidden { // the client's own stand among them: nothing is where the plan has it
		l = layout{known: true, wrong: true}
		r := reader{b: description, pos: 2}
		for i := range fields {
			if rewrite.IsColumn(string(r.cString())) {
				l.cut = append(l.cut, i)
			}
			r.bytes(fieldBytes)
		}
	}
	return l
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
