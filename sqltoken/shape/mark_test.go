package shape

import "testing"

func TestOnlyPlainLiteralsHaveMarks(t *testing.T) {
	for s, want := range map[string]Mark{
		"7": IntegerMark, "123456789012345": IntegerMark, "1234567890123456": NoMark, "1.5": DecimalMark,
		".5": NoMark, "5.": NoMark, "1e3": NoMark, "0x1F": NoMark, "1_000": NoMark,
	} {
		if got := MarkOfNumber(s); got != want {
			t.Errorf("number %s has mark %d, want %d", s, got, want)
		}
	}
	for s, want := range map[string]Mark{
		"''": StringMark, "'a b'": StringMark, `"a'b"`: StringMark, "'it''s'": NoMark, `'a\'`: NoMark,
		"E'a'": NoMark, "x'41'": NoMark, "$$a$$": NoMark,
	} {
		if got := MarkOfString(s); got != want {
			t.Errorf("string %s has mark %d, want %d", s, got, want)
		}
	}
}
