package postgres

// What isotap adds may hold whole copies of what the client wrote, with edits of their own.

// An excerpt is a text that holds parts of the client's.
type excerpt struct {
	text  string
	parts []taken
}

// A taken part of the client's text, the bytes [from, to), stands in an excerpt from byte at on.
type taken struct{ at, from, to int }

func (x *excerpt) add(s string) { x.text += s }

// take adds the client's tokens [from, to).
func (x *excerpt) take(st *statement, from, to int) {
	t := taken{len(x.text), st.toks[from].Start, st.toks[to-1].End}
	x.parts = append(x.parts, t)
	x.text += st.text[t.from:t.to]
}

// excerpt appends a text with its edits.
func (c *column) excerpt(x *excerpt, edits []edit) {
	at := 0
	for _, e := range edits {
		at = c.between(x, at, e.start)
		if e.from < e.to {
			c.between(x, e.from, e.to)
		} else {
			c.add(edit{text: e.text})
		}
		at = max(at, e.end)
	}
	c.between(x, at, len(x.text))
}

// between appends the bytes [at, to) of an excerpt, and returns the place behind them.
func (c *column) between(x *excerpt, at, to int) int {
	own := func(until int) {
		if until = min(until, to); at < until {
			c.add(edit{text: x.text[at:until]})
			at = until
		}
	}
	for _, t := range x.parts {
		own(t.at)
		if end := min(t.at+t.to-t.from, to); at >= t.at && at < end {
			c.take(x.text[at:end], edit{from: t.from + at - t.at, to: t.from + end - t.at})
			at = end
		}
	}
	own(to)
	return at
}

// take appends bytes of the client's, which an edit copies.
func (c *column) take(text string, e edit) {
	c.edits = append(c.edits, e)
	c.text += text
}

// add appends to the column.
func (c *column) add(e edit) {
	c.edits = append(c.edits, e)
	c.text += e.text
}

// of returns the excerpt of a text that is an excerpt itself, as one of the text that this is of.
func (x *excerpt) of(outer *excerpt) *excerpt {
	y := &excerpt{text: x.text}
	for _, t := range x.parts {
		for _, o := range outer.parts {
			from, to := max(t.from, o.at), min(t.to, o.at+o.to-o.from)
			if from < to {
				y.parts = append(y.parts, taken{t.at + from - t.from, o.from + from - o.at, o.from + to - o.at})
			}
		}
	}
	return y
}

// excerpt returns what is spelled as an excerpt of a statement's text.
func (s spelling) excerpt(st *statement) *excerpt {
	x := &excerpt{}
	for _, e := range s {
		if e.from < e.to {
			x.parts = append(x.parts, taken{len(x.text), e.from, e.to})
		}
		x.text += e.added(st.text)
	}
	return x
}
