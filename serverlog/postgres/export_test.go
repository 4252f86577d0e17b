package postgres

import "time"

// SetTick has the server waited for so long at once, and returns what it was.
func SetTick(d time.Duration) (was time.Duration) {
	was, tick = tick, d
	return was
}
