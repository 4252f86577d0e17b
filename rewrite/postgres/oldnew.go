package postgres

import "strings"

// versionNames are the names that a RETURNING clause gives to the version that was there before and to the one
// that is there now, from PostgreSQL 18 on. RETURNING WITH (OLD AS o, NEW AS n) gives others; the grammar
// does not know it, and reads blanks there: text[from:to], counted from the statement's start.
type versionNames struct {
	old, new string
	from, to int
}

// versionNames finds the names.
func (st *statement) versionNames() versionNames {
	v := versionNames{old: "old", new: "new"}
	at := st.find(0, "RETURNING")
	if at < 0 || !st.is(at+1, "WITH") || !st.mark(at+2, "(") {
		return v
	}
	for i := at + 2; ; i += 4 {
		name, ok := st.ident(i + 3)
		if !ok || !st.is(i+2, "AS") || !st.is(i+1, "OLD", "NEW") {
			return v
		}
		if st.is(i+1, "OLD") {
			v.old = name
		} else {
			v.new = name
		}
		switch start, _ := st.span(); {
		case st.mark(i+4, ","):
		case st.mark(i+4, ")"):
			v.from, v.to = st.toks[at+1].Start-start, st.toks[i+4].End-start
			return v
		default:
			return v
		}
	}
}

// hidden returns the statement's text with blanks in the place of WITH (...). A text that does not have it there, as a
// part of the statement, stays as it is.
func (v *versionNames) hidden(text string) string {
	if v.to == 0 || v.to > len(text) || !strings.EqualFold(text[v.from:v.from+len("WITH")], "WITH") {
		return text
	}
	b := []byte(text)
	for i := v.from; i < v.to; i++ {
		b[i] = ' '
	}
	return string(b)
}

// hide reports whether one of the statement's tables hides a version by its name.
func (v *versionNames) hide(ref string) bool { return ref == v.old || ref == v.new }
