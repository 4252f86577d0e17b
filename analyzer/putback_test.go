package analyzer

import "testing"

// TestRowsPutBackAccuseNobody: a version is met again that was replaced before, as after a server lost a write. Who
// replaced it may be told by nothing but the list of one who rolled back.
func TestRowsPutBackAccuseNobody(t *testing.T) {
	for name, text := range map[string]string{
		"replaced by a known write": "T1 committed RC s1 1-10 | u x 0 @2-3\nT2 committed RC s1 30-40 | r x 0 @31-32",
		"replaced by an unknown write, told by who rolled back": "T1 committed RC s1 1-10 | o @2-3\n" +
			"T2 aborted RC s2 11-20 | r x 0,T1.1 @12-13\nT3 committed RC s1 30-40 | r x 0 @31-32",
		"replaced by an unknown write, told behind": "T1 committed RC s1 1-10 | o @2-3\n" +
			"T2 committed RC s2 11-50 | r x 0,T1.1 @12-13\nT3 committed RC s1 30-40 | r x 0 @31-32",
		"replaced by an unknown write, told in the middle of a list": "T1 committed RC s1 1-10 | o @2-3\n" +
			"T2 committed RC s2 11-20 | o @12-13\nT3 aborted RC s3 21-25 | r x 0,T1.1,T2.1 @22-23\n" +
			"T4 committed RC s1 30-40 | r x 0 @31-32",
	} {
		for _, putBack := range []bool{false, true} {
			info := scriptInfo()
			info.PutBack = putBack
			r := analyze(t, info, script(t, text))
			if violations := len(r.Findings) > 0 && r.Findings[0].Class == Violation; violations == putBack {
				t.Errorf("%s, rows may have been put back %t: findings %q", name, putBack, names(r))
			}
		}
	}
}

// TestWhoMetARowPutBackForCertain has histories of servers that kept their word, in which it is not known for certain
// who met a row before it was put back, or that it was.
func TestWhoMetARowPutBackForCertain(t *testing.T) {
	for name, text := range map[string]string{
		"an inexact access tells of no row that was put back": "T1 committed SR s1 1-10 | u x 0 @2-3\n" +
			"T2 committed SR s2 30-31 | d~ x 0 @30-31\nT3 committed SR s3 20-50 | u x T4.1 @44-45\n" +
			"T4 committed SR s4 32-40 | u x F.1 @32-33 | u y 0 @34-35\n" +
			"T5 committed SR s5 60-70 | r x T1.1,F.1,T4.1,T3.1 @61-62 | r y T4.2 @63-64",
		"a version of who ran when the row was put back": "T1 committed SR s1 1-10 | u x 0 @2-3\n" +
			"T2 committed SR s2 30-31 | r x 0 @30-31\nT3 committed SR s3 20-50 | u x T4.1 @44-45\n" +
			"T4 committed SR s4 32-40 | u x F.1 @32-33 | u y 0 @34-35\n" +
			"T5 committed SR s5 60-70 | r x 0,F.1,T4.1,T3.1 @61-62 | r y T4.2 @63-64",
	} {
		info := scriptInfo()
		info.PutBack = true
		if r := analyze(t, info, script(t, text)); len(r.Findings) > 0 {
			t.Errorf("%s: findings %q", name, names(r))
		}
	}
}
