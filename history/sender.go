package history

// A Sender is what comments of a statement say of the client's program that sent it, as sqlcommenter, Marginalia and
// their like write them. What they do not say is empty.
type Sender struct {
	Place string // file:line, or the file alone
	// Action is what the program was doing, in its framework's words: "orders#create", "polls:vote", "/pay/:id".
	Action string
	// Request is the id of the request, or of its trace, which the statements of one request have in common.
	Request string
}

// IsZero reports whether nothing is said.
func (s Sender) IsZero() bool { return s == Sender{} }
