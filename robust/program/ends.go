package program

import "errors"

// maxItems bounds what may become of a program whose ways part and do not meet again.
const maxItems = 2000

// errWays is the error of a program that ends in too many ways.
var errWays = errors.New("it ends in too many ways: leave out COMMIT inside of IF")

// A settler brings the ends of a program to the ends of its branches.
type settler struct{ items int }

// settle returns items of which only the last ends the transaction: behind a branch that ends it in one of its bodies,
// what follows belongs to the other bodies. Inside of loops, COMMIT is passed over: that the loop may go on is taken
// into account.
func (s *settler) settle(items []item) ([]item, error) {
	var out []item
	for i, it := range items {
		if s.items++; s.items > maxItems {
			return nil, errWays
		}
		switch it := it.(type) {
		case end:
			return append(out, it), nil
		case *branch:
			if !it.ends() {
				out = append(out, it)
				continue
			}
			divided := &branch{}
			for _, body := range it.bodies {
				all, err := s.settle(append(append([]item{}, body...), items[i+1:]...))
				if err != nil {
					return nil, err
				}
				divided.bodies = append(divided.bodies, all)
			}
			return append(out, divided), nil
		default:
			out = append(out, it)
		}
	}
	return out, nil
}

// ends reports whether a body of the branch may end the transaction.
func (b *branch) ends() bool {
	for _, body := range b.bodies {
		for _, it := range body {
			if _, ok := it.(end); ok {
				return true
			}
			if inner, ok := it.(*branch); ok && inner.ends() {
				return true
			}
		}
	}
	return false
}
