package rewrite

import "runtime"

// longText is from how many bytes on a text waits for a slot to be parsed in.
const longText = 64 << 10

// parseSlots has one for each processor: more texts at once would not be parsed sooner.
var parseSlots = make(chan struct{}, runtime.GOMAXPROCS(0))

// ParseSlot waits until a text of that many bytes may be parsed, and returns what gives the slot back. Trees take
// hundreds of times the memory of their texts; so few of long ones exist at a time. It is safe for concurrent use.
func ParseSlot(bytes int) (done func()) {
	if bytes < longText {
		return func() {}
	}
	parseSlots <- struct{}{}
	return func() { <-parseSlots }
}
