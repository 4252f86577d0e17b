package main

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// copyCommand is the first argument of a bench that was started as the bare copy; the second is the
// server's address.
const copyCommand = "copy"

// serveCopies is the least that a proxy in Go does: two goroutines for each client, one for each
// direction, that read and write. It announces its address as isotap does, and ends with the process.
func serveCopies(upstream string, announce io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(announce, "%s%s, the server is %s\n", announcement, l.Addr(), upstream)
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		server, err := net.Dial("tcp", upstream)
		if err != nil {
			return err
		}
		go copyBoth(client, server)
	}
}

func copyBoth(client, server net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		both.Go(func() {
			copyPlain(way[0], way[1])
			way[0].Close()
		})
	}
	both.Wait()
}

// copyPlain reads and writes. io.Copy between two sockets, which isotap off uses, is splice(2) on Linux.
func copyPlain(dst io.Writer, src io.Reader) {
	b := make([]byte, 64<<10)
	for {
		n, err := src.Read(b)
		if n > 0 {
			if _, err := dst.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
