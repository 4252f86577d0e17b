package proxy

// A socketReader reads a socket, by a buffer that it has of the side no sooner than there is something to read.
type socketReader interface {
	readInto(s *side) (n int, err error)
}
