package rewrite

import "runtime"

// longText is from how many bytes on a text waits for its turn to be parsed.
const longText = 64 << 10

// turns has one turn for each processor: more texts at once would not be parsed sooner.
var turns = make(chan struct{}, runtime.GOMAXPROCS(0))

// Turn waits until a text of that many bytes may be parsed, and returns what ends its turn. Trees take hundreds of
// times the memory of their texts; so few of long ones exist at a time. It is safe for concurrent use.
func Turn(bytes int) (done func()) {
	if bytes < longText {
		return func() {}
	}
	turns <- struct{}{}
	return func() { <-turns }
}
