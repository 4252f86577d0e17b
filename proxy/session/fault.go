package session

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A Fault is a panic of isotap's own that was caught. It holds nothing of what clients or the server sent.
type Fault struct {
	What  string // the runtime's words, or the type of what the code panicked with
	Stack string
}

// Caught returns what recover() returned as a fault; nil where nothing panicked. Call it in the deferred function
// that recovers.
func Caught(recovered any) *Fault {
	if recovered == nil {
		return nil
	}
	f := &Fault{What: fmt.Sprintf("%T", recovered), Stack: string(debug.Stack())}
	if err, ok := recovered.(runtime.Error); ok {
		f.What = err.Error()
	}
	return f
}
