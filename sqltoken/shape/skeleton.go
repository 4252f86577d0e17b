package shape

import "encoding/binary"

// A Skeleton is a text without its plain literals, and beside it where each of them stood and of what kind it was.
// Texts with one skeleton differ in the values of these literals only; they are cut into the same tokens. What stands
// in the text cannot look like a place: places are not in it. The zero Skeleton is empty.
type Skeleton struct {
	text, places []byte
	pos          int
}

// NewSkeleton returns an empty skeleton that uses the memory of room.
func NewSkeleton(room []byte) Skeleton {
	half := cap(room) / 2
	return Skeleton{text: room[:0:half], places: room[half:half:cap(room)]}
}

// placeBytes is what one place takes: how far it is from the one before, and the mark.
const placeBytes = 5

// Leave leaves out the literal text[start:end], which stands behind those that were left out before.
func (k *Skeleton) Leave(text string, start, end int, m Mark) {
	k.text = append(k.text, text[k.pos:start]...)
	k.places = append(binary.LittleEndian.AppendUint32(k.places, uint32(start-k.pos)), byte(m))
	k.pos = end
}

// Key ends the skeleton of a text and returns it as a key: the text that was left, the places, and how many bytes
// these take, so that the two can be told apart.
func (k *Skeleton) Key(text string) []byte {
	k.text = append(append(k.text, text[k.pos:]...), k.places...)
	return binary.LittleEndian.AppendUint32(k.text, uint32(len(k.places)/placeBytes))
}
