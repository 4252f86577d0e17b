package session

import "sync/atomic"

// RowMemory bounds what all sessions together hold of replies that are too long to be passed on as they come. The zero
// value and nil have no bound.
type RowMemory struct {
	limit int64
	held  atomic.Int64
}

// NewRowMemory returns a RowMemory of limit bytes; 0: there is no bound.
func NewRowMemory(limit int) *RowMemory { return &RowMemory{limit: int64(limit)} }

// Take reports whether a session may hold n bytes more, and counts them.
func (m *RowMemory) Take(n int) bool {
	if m == nil || m.held.Add(int64(n)) <= m.limit || m.limit == 0 {
		return true
	}
	m.held.Add(-int64(n))
	return false
}

// Give says that n bytes are held no more.
func (m *RowMemory) Give(n int) {
	if m != nil {
		m.held.Add(-int64(n))
	}
}

// Resize changes what a session holds from *held to n bytes, and reports whether there was room. Where there was none,
// *held stays.
func (m *RowMemory) Resize(held *int, n int) bool {
	if n > *held && !m.Take(n-*held) {
		return false
	}
	if n < *held {
		m.Give(*held - n)
	}
	*held = n
	return true
}

// Held returns how many bytes are held.
func (m *RowMemory) Held() int {
	if m == nil {
		return 0
	}
	return int(m.held.Load())
}
