package recorder

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/isotap/isotap/history"
)

// Matches queues what matches a predicate, and waits while the queue is full. The versions are of the Writer's run.
func (w *Writer) Matches(ctx context.Context, m history.Matches) error {
	return w.queue.put(ctx, item{matches: &m, size: int64(256 + len(m.Predicate.Where) + 24*len(m.Versions))})
}

func (b *batch) addMatches(m *history.Matches) {
	value := appendText(nil, m.Database)
	p := &m.Predicate
	for _, text := range append([]*string{&p.Table, &p.Of, &p.As, &p.Where}, p.Settings.Texts()...) {
		value = appendText(value, *text)
	}
	value = binary.AppendUvarint(value, uint64(len(m.Versions)))
	for _, v := range m.Versions {
		for _, n := range []uint64{uint64(v.Txn.Seq()), uint64(v.Stmt), uint64(v.Access)} {
			value = binary.AppendUvarint(value, n)
		}
	}
	b.put(func(k []byte) []byte { return appendNumberKey(k, keyMatches, b.run, b.matches) }, value)
	b.matches++
}

// Matches streams what the run's predicates match, in the order in which it was found.
func (r *Reader) Matches(ctx context.Context, run history.Run) iter.Seq2[history.Matches, error] {
	return func(yield func(history.Matches, error) bool) {
		for key, value := range r.values(ctx, appendRunKey(nil, keyMatches, run)) {
			m, err := decodeMatches(run, value)
			if err != nil {
				err = r.corrupt(key, err)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// minVersionBytes is the fewest bytes that a version takes.
const minVersionBytes = 3

func decodeMatches(run history.Run, v value) (m history.Matches, err error) {
	if v.err != nil {
		return m, v.err
	}
	in := cursor{b: v.bytes}
	p := &m.Predicate
	for _, text := range append([]*string{&m.Database, &p.Table, &p.Of, &p.As, &p.Where}, p.Settings.Texts()...) {
		*text = string(in.text())
	}
	for range in.count(minVersionBytes) {
		m.Versions = append(m.Versions, history.VersionRef{Txn: history.MakeTxnID(run, uint32(in.uvarint())),
			Stmt: uint32(in.uvarint()), Access: int(in.uvarint())})
	}
	return m, in.end()
}
