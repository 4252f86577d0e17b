package main

import "os"

// forwarded are the signals that a command gets from isotap.
var forwarded = []os.Signal{os.Interrupt}
