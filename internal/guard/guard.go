// Package guard keeps what a library does with bytes of a peer from ending the process: client libraries index what a server
// sends without looking first.
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
