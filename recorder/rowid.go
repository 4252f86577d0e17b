package recorder

import (
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
)

// An idForm is a way to write a row id as a number. Every form gives back exactly the text it was
// given; ids that no form fits are stored raw.
type idForm uint8

const (
	formRaw    idForm = iota // as text
	formTag                  // "TXN.STMT:ORDINAL", the ids of INSERT ... VALUES
	formDec                  // decimal, as UUID_SHORT() prints it
	formHex                  // hexadecimal in lower case
	formHEX                  // hexadecimal in upper case, as HEX() prints it
	formBase36               // base 36 in lower case
	formBASE36               // base 36 in upper case, as CONV() prints it
	numForms
)

var formBase = [numForms]int{formDec: 10, formHex: 16, formHEX: 16, formBase36: 36, formBASE36: 36}

func (f idForm) upper() bool { return f == formHEX || f == formBASE36 }

// parse reads a number whose text is what append would write for it.
func (f idForm) parse(id string) (n uint64, ok bool) {
	if id == "" || id[0] == '0' && len(id) > 1 {
		return 0, false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '0' && c <= '9':
		case c >= 'a' && c <= 'z' && !f.upper():
		case c >= 'A' && c <= 'Z' && f.upper():
		default:
			return 0, false
		}
	}
	n, err := strconv.ParseUint(id, formBase[f], 64)
	return n, err == nil
}

// append writes what parse read.
func (f idForm) append(b []byte, n uint64) []byte {
	start := len(b)
	b = strconv.AppendUint(b, n, formBase[f])
	if f.upper() {
		for i := start; i < len(b); i++ {
			if b[i] >= 'a' {
				b[i] -= 'a' - 'A'
			}
		}
	}
	return b
}

// formOf chooses the form for an id: the previous id's if it fits, so that ids such as "199" and
// "19a" of one table do not alternate between forms.
func (s *idState) formOf(id string) idForm {
	if s.form != formRaw && s.fits(s.form, id) {
		return s.form
	}
	for f := formTag; f < numForms; f++ {
		if s.fits(f, id) {
			return f
		}
	}
	return formRaw
}

// fits reports whether an id can be written in a form other than raw.
func (s *idState) fits(f idForm, id string) bool {
	if f == formTag {
		_, _, ok := parseTagID(id)
		return ok
	}
	_, ok := f.parse(id)
	return ok
}

// maxOrdinal bounds ordinals so that their differences fit above a flag bit.
const maxOrdinal = 1 << 61

// parseTagID reads a tag, a colon and an ordinal in base 36, if the text is what [appendTagID] would
// write for them.
func parseTagID(id string) (tag history.Tag, ordinal uint64, ok bool) {
	text, ord, ok := strings.Cut(id, ":")
	// The shortest tag has six digits of run, one of counter, a dot and one of statement. Checking
	// that first keeps ParseTag's errors off the path of other ids.
	if !ok || len(text) < 9 || text[6] == '.' {
		return history.Tag{}, 0, false
	}
	tag, err := history.ParseTag(text)
	if err != nil {
		return history.Tag{}, 0, false
	}
	ordinal, ok = formBase36.parse(ord)
	// ParseTag also takes capital letters.
	return tag, ordinal, ok && ordinal < maxOrdinal && !hasUpper(text)
}

func hasUpper(s string) bool {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

// appendTagID writes what parseTagID reads.
func appendTagID(b []byte, tag history.Tag, ordinal uint64) []byte {
	b = append(tag.Append(b), ':')
	return strconv.AppendUint(b, ordinal, 36)
}
