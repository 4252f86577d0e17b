package recorder

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/isotap/isotap/history"
)

// Definition queues how a table was defined, and waits while the queue is full.
func (w *Writer) Definition(ctx context.Context, d history.Definition) error {
	size := int64(128 + len(d.Database) + len(d.Name) + len(d.SQL) + len(d.References) + len(d.Missing))
	return w.queue.put(ctx, item{definition: &d, size: size})
}

// maxDefinition bounds the texts of a definition, in bytes: a value must fit into a batch.
const maxDefinition = chunkBytes

func (b *batch) addDefinition(d *history.Definition) {
	if len(d.Name)+len(d.SQL)+len(d.References) > maxDefinition {
		d = &history.Definition{Database: d.Database, At: d.At, Missing: "a definition is too long to be recorded"}
	}
	value := binary.AppendVarint(nil, d.At)
	for _, text := range definitionTexts(d) {
		value = appendText(value, *text)
	}
	b.put(func(k []byte) []byte { return appendNumberKey(k, keyDefinition, b.run, b.definitions) }, value)
	b.definitions++
}

// definitionTexts returns the texts of a definition in the order in which they are stored.
func definitionTexts(d *history.Definition) []*string {
	return []*string{&d.Database, &d.Name, &d.SQL, &d.References, &d.Missing}
}

// Definitions streams how the tables were defined that the run used, in the order in which it was read. Recordings of
// earlier versions have none.
func (r *Reader) Definitions(ctx context.Context, run history.Run) iter.Seq2[history.Definition, error] {
	return func(yield func(history.Definition, error) bool) {
		for key, value := range r.values(ctx, appendRunKey(nil, keyDefinition, run)) {
			d, err := decodeDefinition(value)
			if err != nil {
				err = r.corrupt(key, err)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func decodeDefinition(v value) (d history.Definition, err error) {
	if v.err != nil {
		return d, v.err
	}
	in := cursor{b: v.bytes}
	d.At = in.varint()
	for _, text := range definitionTexts(&d) {
		*text = string(in.text())
	}
	return d, in.end()
}
