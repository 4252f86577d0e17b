package recorder

import (
	"context"
	"errors"
	"fmt"

	"github.com/isotap/isotap/history"
)

// A Lookup reads single transactions of a recording. It is for one goroutine, and not for after its
// Reader's Close.
type Lookup struct {
	r        *Reader
	decoders map[history.Run]*decoder
	unpacker *unpacker
}

// Lookup returns a Lookup of the recording.
func (r *Reader) Lookup() (*Lookup, error) {
	u, err := newUnpacker()
	if err != nil {
		return nil, err
	}
	return &Lookup{r: r, decoders: make(map[history.Run]*decoder), unpacker: u}, nil
}

// Close frees what the Lookup holds.
func (l *Lookup) Close() { l.unpacker.close() }

// Txn reads a transaction by its id and session.
func (l *Lookup) Txn(ctx context.Context, id history.TxnID, session history.SessionID) (*history.Txn, error) {
	d, err := l.decoder(ctx, id.Run())
	if err != nil {
		return nil, err
	}
	key := appendTxnKey(nil, keyTxn, id, session)
	packed, err := l.r.get(key)
	if err != nil {
		return nil, fmt.Errorf("read %s of recording %s: %w", keyName(key), l.r.dir, err)
	}
	return l.r.txn(d, key, value{bytes: packed})
}

// decoder returns the decoder of a run, with its dictionary.
func (l *Lookup) decoder(ctx context.Context, run history.Run) (*decoder, error) {
	if d := l.decoders[run]; d != nil {
		return d, nil
	}
	dict, err := l.r.dictionary(ctx, run)
	if err != nil && !errors.Is(err, ErrCorrupt) { // what refers to a string that is missing says so
		return nil, err
	}
	d := &decoder{dict: dict, intern: newInterner(1), unpacker: l.unpacker}
	l.decoders[run] = d
	return d, nil
}
