//go:build !unix

package proxy

import (
	"errors"
	"net"
)

// A rawReader is for Unix: elsewhere a read needs its buffer while it waits.
type rawReader struct{}

func newRawReader(net.Conn) *rawReader { return nil }

func (*rawReader) readInto(*side) (int, error) { return 0, errors.ErrUnsupported }
