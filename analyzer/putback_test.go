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
