package mutate

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
)

// A source makes inputs of others.
type source struct {
	random *rand.Rand
	kept   []input
	// wandering are inputs that came of others, some of them changed many times.
	wandering [256]input
	own       [][]byte // the words of the kept inputs
	words     [][]byte // further ones
	longest   int      // bytes that a value may have
}

// maxOwn is how many words of the kept inputs are known.
const maxOwn = 1 << 13

// newSource returns a source of inputs that are made of those that are kept, and of words.
func newSource(random *rand.Rand, kept []input, words []string) *source {
	s := &source{random: random, kept: kept}
	for _, w := range words {
		s.words = append(s.words, []byte(w))
	}
	seen := make(map[string]bool)
	for _, in := range kept {
		for _, v := range in {
			text, ok := textOf(v)
			if s.longest = max(s.longest, len(text)); !ok {
				continue
			}
			for at := 0; at < len(text) && len(s.own) < maxOwn; {
				_, end := token(text, at)
				if word := text[at:end]; !seen[string(word)] {
					seen[string(word)] = true
					s.own = append(s.own, word)
				}
				at = end
			}
		}
	}
	s.longest = min(2*s.longest+128, max(1<<14, s.longest))
	return s
}

// textOf returns the bytes of a value that is made of some.
func textOf(v any) ([]byte, bool) {
	switch v := v.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}

// next returns an input that was made of one or two.
func (s *source) next() input {
	in, other := s.pick().clone(), s.pick()
	for i, v := range in {
		if len(in) == 1 || s.random.IntN(2) == 0 {
			in[i] = s.change(v, other[i])
		}
	}
	if s.random.IntN(8) == 0 {
		s.wandering[s.random.IntN(len(s.wandering))] = in.clone()
	}
	return in
}

// pick returns a kept input, or a wandering one.
func (s *source) pick() input {
	if s.random.IntN(2) == 0 {
		if in := s.wandering[s.random.IntN(len(s.wandering))]; in != nil {
			return in
		}
	}
	return s.kept[s.random.IntN(len(s.kept))]
}

// change returns another value of the type; other is one of it. It may change the bytes of the first.
func (s *source) change(v, other any) any {
	switch v := v.(type) {
	case []byte:
		o, _ := other.([]byte)
		return s.text(v, o)
	case string:
		o, _ := other.(string)
		return string(s.text([]byte(v), []byte(o)))
	case bool:
		return s.random.IntN(2) == 0
	}
	n := reflect.New(reflect.TypeOf(v)).Elem()
	switch before := reflect.ValueOf(v); {
	case n.CanInt():
		n.SetInt(truncated(s.number(uint64(before.Int())), n.Type().Bits()))
	case n.CanUint():
		n.SetUint(s.number(before.Uint()) & (math.MaxUint64 >> (64 - n.Type().Bits())))
	default:
		return v
	}
	return n.Interface()
}

// truncated is a number of so many bits, whose first one is the sign.
func truncated(n uint64, bits int) int64 {
	return int64(n<<(64-bits)) >> (64 - bits)
}

// number returns another number than n, most often.
func (s *source) number(n uint64) uint64 {
	switch s.random.IntN(5) {
	case 0:
		return n + 1
	case 1:
		return n - 1
	case 2:
		return s.random.Uint64N(40)
	case 3:
		return uint64(1)<<s.random.IntN(64) - s.random.Uint64N(2)
	default:
		return n ^ 1<<s.random.IntN(64)
	}
}

// text changes bytes once or a few times. It may change those it is given.
func (s *source) text(b, other []byte) []byte {
	for {
		if s.random.IntN(2) == 0 {
			b = s.token(b, other)
		} else {
			b = s.bytes(b, other)
		}
		if len(b) > s.longest {
			b = b[:s.longest]
		}
		if s.random.IntN(3) == 0 {
			return b
		}
	}
}

// bytes changes bytes without a look at what they are.
func (s *source) bytes(b, other []byte) []byte {
	if len(b) == 0 {
		return append(b, other...)
	}
	at := s.random.IntN(len(b))
	switch s.random.IntN(7) {
	case 0:
		b[at] ^= 1 << s.random.IntN(8)
	case 1:
		b[at] = byte(s.random.Uint32())
	case 2:
		b[at] = notable[s.random.IntN(len(notable))]
	case 3: // less
		return slices.Delete(b, at, at+1+s.random.IntN(min(len(b)-at, 16)))
	case 4: // more
		piece := s.piece(other)
		return slices.Insert(b, at, piece...)
	case 5: // a number, which may be a length
		s.integer(b[at:])
	case 6: // crossed
		return append(b[:at], other[s.random.IntN(len(other)+1):]...)
	}
	return b
}

// notable are bytes that many decoders and lexers do something at.
const notable = "\x00\x01\x7f\x80\xfb\xfc\xfd\xfe\xff'\"`\\;$@#-/*.,:(){}[] \n0e?"

// piece returns a few bytes of others.
func (s *source) piece(b []byte) []byte {
	if len(b) == 0 {
		return []byte{byte(s.random.Uint32())}
	}
	at := s.random.IntN(len(b))
	return b[at : at+1+s.random.IntN(min(len(b)-at, 32))]
}

// integer overwrites a number at the beginning of b, as wide as it may be, in either order of bytes.
func (s *source) integer(b []byte) {
	var little [8]byte
	copy(little[:], b)
	width := min(1<<s.random.IntN(4), len(b))
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], s.number(binary.LittleEndian.Uint64(little[:])&(math.MaxUint64>>(64-8*width))))
	if s.random.IntN(2) == 0 {
		slices.Reverse(n[:width])
	}
	copy(b, n[:width])
}

// token changes a token of b: a word, or a byte that is in none.
func (s *source) token(b, other []byte) []byte {
	if len(b) == 0 {
		return append(b, s.word()...)
	}
	from, to := token(b, s.random.IntN(len(b)))
	switch s.random.IntN(8) {
	case 0, 1:
		return slices.Replace(b, from, to, s.word()...)
	case 2, 3:
		return s.swapKnown(b)
	case 4:
		word := s.word()
		if len(s.words) > 0 || s.random.IntN(2) == 0 {
			word = append(append([]byte{' '}, word...), ' ')
		}
		return slices.Insert(b, from, word...)
	case 5:
		return slices.Delete(b, from, to)
	case 6: // it stands elsewhere, too
		at, _ := token(b, s.random.IntN(len(b)))
		return slices.Insert(b, at, bytes.Clone(b[from:to])...)
	default: // crossed, from the beginning of a token to that of one
		if len(other) == 0 {
			return b[:to]
		}
		begin, _ := token(other, s.random.IntN(len(other)))
		return append(b[:from], other[begin:]...)
	}
}

// swapKnown puts a word where a known one is, which need be no token: a message of a script.
func (s *source) swapKnown(b []byte) []byte {
	for range 4 {
		known := s.word()
		if len(known) < 2 {
			continue
		}
		if at := bytes.Index(b, known); at >= 0 {
			end := at + len(known)*s.random.IntN(2) // in its place, or before it
			return slices.Replace(b, at, end, s.word()...)
		}
	}
	return b
}

// word returns a word.
func (s *source) word() []byte {
	if len(s.words) > 0 && (len(s.own) == 0 || s.random.IntN(2) == 0) {
		return s.words[s.random.IntN(len(s.words))]
	}
	if len(s.own) == 0 {
		return nil
	}
	return s.own[s.random.IntN(len(s.own))]
}

// token returns where the token that holds a byte begins and ends.
func token(b []byte, at int) (from, to int) {
	from, to = at, at+1
	if !inWord(b[at]) {
		return from, to
	}
	for from > 0 && inWord(b[from-1]) {
		from--
	}
	for to < len(b) && inWord(b[to]) {
		to++
	}
	return from, to
}

// inWord reports whether a byte is one of a word, a number, or a character beyond ASCII.
func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
