package interop

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// endsWord are the bytes that are no part of an atom.
var endsWord = func() (ends [256]bool) {
	for _, c := range []byte(" \t\n\r\f,;\"[](){}") {
		ends[c] = true
	}
	return ends
}()

// word reads up to what ends an atom. It is good until the next one.
func (e *edn) word() ([]byte, error) {
	word := e.atomText[:0]
	for {
		c, err := e.peek()
		if err == io.EOF || err == nil && (endsWord[c] || e.json && c == ':') {
			e.atomText = word
			return word, nil
		}
		if err != nil {
			return nil, e.fail(err)
		}
		word = append(word, c)
		e.take()
		if len(word) > maxWord {
			return nil, at(e.place, "a word has more than %d bytes", maxWord)
		}
	}
}

// maxWord bounds a number, keyword or symbol.
const maxWord = 1 << 12

// atom reads a number, keyword, symbol, boolean or nil.
func (e *edn) atom(t *tree) error {
	begin := e.place
	word, err := e.word()
	if err != nil {
		return err
	}
	if len(word) == 0 {
		c, _ := e.peek()
		return at(begin, "%q begins no value", c)
	}
	i := t.add(null, begin)
	n := &t.nodes[i]
	switch s := string(word); {
	case s == "nil" || e.json && s == "null":
		return nil
	case s == "true" || s == "false":
		n.kind = boolean
	case word[0] == ':':
		if word = word[1:]; len(word) == 0 {
			return at(begin, "a keyword has no name")
		}
		n.kind = keyword
	case word[0] >= '0' && word[0] <= '9' || len(word) > 1 && (word[0] == '-' || word[0] == '+') && word[1] >= '0' &&
		word[1] <= '9':
		n.kind = other
		if n.num, err = strconv.ParseInt(strings.TrimSuffix(s, "N"), 10, 64); err == nil {
			n.kind = integer
			return nil
		}
	default:
		n.kind = other
	}
	if !utf8.Valid(word) {
		return at(begin, "a word is not UTF-8")
	}
	t.text = append(t.text, word...)
	t.endText(i)
	return nil
}

// string reads a string.
func (e *edn) string(t *tree) error {
	begin := e.place
	e.take()
	i := t.add(text, begin)
	for {
		c, err := e.peek()
		if err == io.EOF || len(t.text) > maxValue {
			return at(e.place, "the string that begins at %s does not end", begin)
		}
		if err != nil {
			return e.fail(err)
		}
		if c == '\\' {
			if err := e.escape(t); err != nil {
				return err
			}
			continue
		}
		e.take()
		if c == '"' {
			t.endText(i)
			if !utf8.Valid(t.text[t.nodes[i].from:]) {
				return at(begin, "a string is not UTF-8")
			}
			return nil
		}
		t.text = append(t.text, c)
	}
}

// escape reads a backslash and what it stands for.
func (e *edn) escape(t *tree) error {
	begin := e.place
	e.take()
	c, err := e.peek()
	if err != nil {
		return e.cut(err)
	}
	e.take()
	const letters, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(letters, c); i >= 0 {
		t.text = append(t.text, meant[i])
		return nil
	}
	if c != 'u' {
		return at(begin, "\\%c is no escape", c)
	}
	r, err := e.hex4()
	if err != nil {
		return at(begin, "%w", err)
	}
	if utf16.IsSurrogate(r) {
		if pair, _ := e.r.Peek(2); slices.Equal(pair, []byte(`\u`)) {
			e.take()
			e.take()
			low, err := e.hex4()
			if err != nil {
				return at(begin, "%w", err)
			}
			r = utf16.DecodeRune(r, low)
		}
	}
	t.text = utf8.AppendRune(t.text, r)
	return nil
}

func (e *edn) hex4() (rune, error) {
	digits, _ := e.r.Peek(4)
	n, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil || len(digits) < 4 {
		return 0, errors.New("\\u needs four hexadecimal digits")
	}
	for range digits {
		e.take()
	}
	return rune(n), nil
}
