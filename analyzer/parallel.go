package analyzer

import (
	"runtime"
	"sync"
)

// workers is how many goroutines work on what can be divided.
func workers() int { return runtime.GOMAXPROCS(0) }

// fewItems is what one goroutine has done before others have begun.
const fewItems = 1 << 14

// inParts divides n items among goroutines, each of which works on a stretch of them, and returns when all have done.
// There are no more parts than [workers].
func inParts(n int, work func(part, from, to int)) {
	parts := workers()
	if n < fewItems || parts == 1 {
		work(0, 0, n)
		return
	}
	var group sync.WaitGroup
	for part := range parts {
		group.Go(func() { work(part, n*part/parts, n*(part+1)/parts) })
	}
	group.Wait()
}

// stepSize is how many items a pass takes at once where each of them leads to other places in memory, and these to
// others again.
const stepSize = 256

// inSteps calls work with one step after the other. Work looks at a whole step for the first place each, then for
// the next ones: what lies in no cache is then waited for together, and not one after the other.
func inSteps(from, to int, work func(from, to int)) {
	for ; from < to; from += stepSize {
		work(from, min(from+stepSize, to))
	}
}
