package postgres

import (
	"sync"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
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

// prepare takes the session's transaction out of it. One whose name cannot be told is indeterminate.
func (s *Session) prepare(plan *sqlpostgres.Plan) {
	s.txn.block = false
	if plan == nil || plan.Txn.Global == "" || s.cfg.Prepared == nil {
		s.endTxn(history.Indeterminate)
		return
	}
	if t := s.txn.take(history.Indeterminate, s.now); t != nil {
		s.cfg.Prepared.put(plan.Txn.Global, t)
	}
	s.changesEnd(history.Committed)
}

// endPrepared ends a transaction that some session prepared.
func (s *Session) endPrepared(plan *sqlpostgres.Plan, tag string) {
	if plan == nil || s.cfg.Prepared == nil {
		return
	}
	t := s.cfg.Prepared.take(plan.Txn.Global)
	if t == nil {
		return
	}
	t.Status, t.End = history.Committed, s.now
	if tag == "ROLLBACK PREPARED" {
		t.Status = history.Aborted
	}
	s.ended(t)
}
