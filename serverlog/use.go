package serverlog

import "fmt"

// Use says whether isotap reads the server's log.
type Use uint8

const (
	// Off: it does not.
	Off Use = iota
	// Auto: it does where that can be, and says where it cannot.
	Auto
	// Require: isotap does not start without.
	Require
)

// ParseUse reads the words of the configuration: "auto", "off" or "require".
func ParseUse(s string) (Use, error) {
	switch s {
	case "off":
		return Off, nil
	case "auto":
		return Auto, nil
	case "require":
		return Require, nil
	}
	return Off, fmt.Errorf("server_log %q is none of auto, off, require", s)
}
