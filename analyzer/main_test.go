package analyzer

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets more garbage gather. The random tests make a hundred thousand small histories, and where page faults
// are dear, giving a heap of a few MiB back to the system and taking it again is a fifth of their time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
