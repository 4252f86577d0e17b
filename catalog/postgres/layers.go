package postgres

import (
	"iter"
	"maps"
)

// A layers is a map that is never changed. One that is made of another shares with it what is the same, so that a
// change among thousands of tables costs as much as one among few.
type layers[K comparable, V any] struct {
	base map[K]V
	top  map[K]layer[V] // what differs from base
}

type layer[V any] struct {
	value V
	gone  bool
}

// leastTop is how many differences a layers may have in any case, and topShare how many at most: one part of the whole.
const (
	leastTop = 16
	topShare = 8
)

// get returns what a key has; the zero value where it has nothing.
func (l layers[K, V]) get(k K) V {
	if t, ok := l.top[k]; ok {
		return t.value
	}
	return l.base[k]
}

// all returns the keys and what they have.
func (l layers[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, t := range l.top {
			if !t.gone && !yield(k, t.value) {
				return
			}
		}
		for k, v := range l.base {
			if _, other := l.top[k]; !other && !yield(k, v) {
				return
			}
		}
	}
}

// edit begins another one, that is to differ from l.
func (l layers[K, V]) edit() *edited[K, V] {
	return &edited[K, V]{layers[K, V]{l.base, maps.Clone(l.top)}}
}

// An edited is a layers that is being made.
type edited[K comparable, V any] struct{ layers[K, V] }

func (e *edited[K, V]) note(k K, t layer[V]) {
	if e.top == nil {
		e.top = make(map[K]layer[V])
	}
	e.top[k] = t
}

func (e *edited[K, V]) set(k K, v V) { e.note(k, layer[V]{value: v}) }

func (e *edited[K, V]) remove(k K) { e.note(k, layer[V]{gone: true}) }

// done returns what was made.
func (e *edited[K, V]) done() layers[K, V] {
	if len(e.top) <= max(leastTop, len(e.base)/topShare) {
		return e.layers
	}
	base := make(map[K]V, len(e.base)+len(e.top))
	maps.Insert(base, e.all())
	return layers[K, V]{base: base}
}
