package wire

// maxKept is how much memory a session keeps between replies, in bytes.
const maxKept = 1 << 20

// Reusable gives the memory of b for what comes next, unless it is so much that it should not be kept.
func Reusable(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}
