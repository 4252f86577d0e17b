package recorder

import (
	"context"
	"iter"

	"github.com/isotap/isotap/history"
)

// A Text is a statement with all of its values.
type Text struct {
	Txn  history.TxnID
	Num  uint32 // see history.Stmt
	Text string
}

// texts adds those of a transaction's statements that have one.
func (b *batch) texts(t *history.Txn) {
	for i := range t.Stmts {
		s := &t.Stmts[i]
		if s.Text == "" || len(s.Text) > chunkBytes {
			continue
		}
		b.packed = b.packer.pack(b.packed[:0], []byte(s.Text))
		b.put(func(k []byte) []byte { return appendTextKey(k, t.ID, t.Session, s.Num) }, b.packed)
	}
}

// Texts streams the statements of a run that were recorded with all of their values, in no order. Where that was not
// asked for there are none.
func (r *Reader) Texts(ctx context.Context, run history.Run) iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		u, err := newUnpacker()
		if err != nil {
			yield(Text{}, err)
			return
		}
		defer u.close()
		for key, value := range r.values(ctx, appendRunKey(nil, keyText, run)) {
			t, err := decodeText(u, key, value)
			if err != nil {
				err = r.corrupt(key, err)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

func decodeText(u *unpacker, key []byte, v value) (t Text, err error) {
	if v.err != nil {
		return t, v.err
	}
	numbers, err := keyNumbers(key, maxKeyNumbers)
	if err != nil {
		return t, err
	}
	text, err := u.unpack(v.bytes)
	return Text{history.MakeTxnID(history.Run(numbers[0]), numbers[2]), numbers[3], string(text)}, err
}
