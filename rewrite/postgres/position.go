package postgres

import "unicode/utf8"

// Position returns the place in the client's text that a place in the text that went upstream stands for. Both
// count characters from 1, as the fields P of ErrorResponse and NoticeResponse do; multibyte says that
// client_encoding is UTF8, in any other a byte counts as a character. A place in what was added becomes the
// one where it was added.
func (s *Script) Position(upstream int, multibyte bool) int {
	if s.Pieces == nil || upstream < 1 {
		return upstream
	}
	at := offset(s.Append(nil), upstream-1, multibyte)
	return count(s.text[:s.origin(at)], multibyte) + 1
}

// origin returns the byte of the client's text that byte at of the text that went upstream comes from.
func (s *Script) origin(at int) int {
	grown := 0 // by the splices before
	for _, p := range s.Splices {
		from := p.At + grown
		switch {
		case at < from:
			return at - grown
		case at < from+p.Added:
			return p.At
		}
		grown += p.Added - p.Cut
	}
	return min(at-grown, len(s.text))
}

// offset returns the byte at which character n, counted from 0, begins. Behind the end there is one for each.
func offset(text []byte, n int, multibyte bool) int {
	if !multibyte {
		return n
	}
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at + n
}

func count(text string, multibyte bool) int {
	if multibyte {
		return utf8.RuneCountInString(text)
	}
	return len(text)
}
