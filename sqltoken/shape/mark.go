package shape

// A Mark is the kind of a plain literal in a [Skeleton]. Statements of one skeleton are planned alike, and so by one
// template.
type Mark byte

// The marks.
const (
	NoMark      Mark = 0x00 // not a plain literal
	IntegerMark Mark = 0x01
	DecimalMark Mark = 0x02
	StringMark  Mark = 0x03
	LargeMark   Mark = 0x04 // an integer that does not fit 32 bits, where that makes it another kind
)

// maxPlainNumber is how many bytes a plain number has at most: such a number fits every type that a
// parser gives it.
const maxPlainNumber = 15

// MarkOfNumber returns the mark of a token that is a number: it is plain when it has digits only, or a point between
// digits.
func MarkOfNumber(s string) Mark {
	mark := IntegerMark
	for i := range len(s) {
		switch {
		case s[i] == '.':
			mark = DecimalMark
		case s[i] < '0' || s[i] > '9':
			return NoMark
		}
	}
	if len(s) > maxPlainNumber || s[0] == '.' || s[len(s)-1] == '.' {
		return NoMark
	}
	return mark
}

// MarkOfString returns the mark of a token that is a string: it is plain when it begins and ends with its only quotes,
// and nothing in it may need to be unescaped.
func MarkOfString(s string) Mark {
	if s[0] != '\'' && s[0] != '"' {
		return NoMark
	}
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' || s[i] == s[0] {
			return NoMark
		}
	}
	return StringMark
}
