package history

import "cmp"

// A Sender is what comments of a statement say of the client's program that sent it, as sqlcommenter, Marginalia and
// their like write them, or what its connection says, by application_name or attributes. What these do not say is
// empty.
type Sender struct {
	Place string // file:line, or the file alone
	// Action is what the program was doing, in its framework's words: "orders#create", "polls:vote", "/pay/:id".
	Action string
	// Request is the id of the request, or of its trace, which the statements of one request have in common.
	Request string
}

// Or returns the sender with what another one says where it says nothing.
func (s Sender) Or(other Sender) Sender {
	return Sender{cmp.Or(s.Place, other.Place), cmp.Or(s.Action, other.Action), cmp.Or(s.Request, other.Request)}
}

// IsZero reports whether nothing is said.
func (s Sender) IsZero() bool { return s == Sender{} }
