package txnstate

import (
	"sync"

	"github.com/isotap/isotap/history"
)

// maxPrepared bounds the transactions that are kept: a coordinator that forgets its branches leaves them for good.
const maxPrepared = 10_000

// Prepared are the transactions that sessions prepared (PREPARE TRANSACTION, XA PREPARE) and that have left their
// session: any other may end them. It is safe for concurrent use; the zero value is empty.
type Prepared struct {
	mu   sync.Mutex
	txns map[string]*history.Txn
}

// Put keeps a transaction under its global name. It returns one of which nobody will know how it ended: that which had
// the name, as somebody past isotap must have ended it, or t itself where too many are kept; nil for none.
func (p *Prepared) Put(name string, t *history.Txn) (lost *history.Txn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.txns == nil {
		p.txns = make(map[string]*history.Txn)
	}
	lost = p.txns[name]
	if lost == nil && len(p.txns) >= maxPrepared {
		return t
	}
	p.txns[name] = t
	return lost
}

// Take returns the transaction of that name and forgets it; nil when there is none.
func (p *Prepared) Take(name string) *history.Txn {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.txns[name]
	delete(p.txns, name)
	return t
}

// Rest returns the transactions that nobody has ended, as indeterminate ones, and forgets them.
func (p *Prepared) Rest() []*history.Txn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var rest []*history.Txn
	for _, t := range p.txns {
		t.Status = history.Indeterminate
		rest = append(rest, t)
	}
	p.txns = nil
	return rest
}
