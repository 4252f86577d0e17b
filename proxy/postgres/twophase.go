package postgres

import (
	"sync"

	"github.com/isotap/isotap/history"
)

// Prepared are the transactions that sessions prepared (PREPARE TRANSACTION): they have left their session,
// and any other may end them. It is safe for concurrent use; the zero value is empty.
type Prepared struct {
	mu   sync.Mutex
	txns map[string]*history.Txn
}

// put keeps a transaction under its global name.
func (p *Prepared) put(name string, t *history.Txn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.txns == nil {
		p.txns = make(map[string]*history.Txn)
	}
	p.txns[name] = t
}

// take returns the transaction of that name and forgets it; nil when there is none.
func (p *Prepared) take(name string) *history.Txn {
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
