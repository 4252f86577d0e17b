package plancache

import "sort"

// An Anchor is a place in a text, told from its tokens: so many bytes behind the start of a token or, when it is not
// inside the token, behind its end. Texts that differ in their literals only have the same anchors.
type Anchor struct {
	token  int // -1: before all of them
	inside bool
	bytes  int
}

// A Token is one of a text's tokens, of either family.
type Token interface{ Span() (start, end int) }

// AnchorOf returns the anchor of a place in the text of some tokens: the last one that begins at or before it.
func AnchorOf[T Token](tokens []T, pos int) Anchor {
	i := sort.Search(len(tokens), func(i int) bool {
		start, _ := tokens[i].Span()
		return start > pos
	}) - 1
	if i < 0 {
		return Anchor{token: -1, bytes: pos}
	}
	start, end := tokens[i].Span()
	if pos < end {
		return Anchor{token: i, inside: true, bytes: pos - start}
	}
	return Anchor{token: i, bytes: pos - end}
}

// PlaceOf returns the place of an anchor in the text of these tokens.
func PlaceOf[T Token](tokens []T, a Anchor) int {
	if a.token < 0 {
		return a.bytes
	}
	start, end := tokens[a.token].Span()
	if a.inside {
		return start + a.bytes
	}
	return end + a.bytes
}
