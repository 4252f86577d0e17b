// Package guard keeps panics over what somebody else wrote from ending the process: client libraries index what a
// server sends without looking first, and walks over syntax trees meet nodes that they do not know.
package guard

import "fmt"

// A Panic is the error that a panic became.
type Panic struct {
	Library string
	Value   any // what it panicked with
}

// Error says which library panicked, and with what.
func (p *Panic) Error() string {
	return fmt.Sprintf("%s panicked, as on malformed packets: %v", p.Library, p.Value)
}

// Call calls the library. A panic in do, not one in a goroutine that do starts, becomes a [*Panic]: what do used of the
// library is to be dropped.
func Call(library string, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{library, v}
		}
	}()
	return do()
}

// Whole runs a walk over a syntax tree, and reports whether it came to its end. A parser that is not ours may give
// nodes that the walk does not know, or leave out those that it counts on: it panics, and what it found up to there is
// not all that there is. The caller then assumes what is safe.
func Whole(walk func()) (whole bool) {
	defer func() {
		if recover() != nil {
			whole = false
		}
	}()
	walk()
	return true
}
