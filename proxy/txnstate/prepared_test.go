package txnstate

import (
	"fmt"
	"sync"
	"testing"

	"github.com/isotap/isotap/history"
)

// Sessions prepare and end each other's transactions at the same time; each one ends once.
func TestPreparedTransactionEndsOnce(t *testing.T) {
	var p Prepared
	if p.Take("none") != nil || p.Rest() != nil {
		t.Error("nothing was prepared")
	}
	const names, takers = 50, 4
	var wg sync.WaitGroup
	taken := make([]map[string]*history.Txn, takers)
	for n := range names {
		wg.Go(func() { p.Put(fmt.Sprint(n), &history.Txn{Status: history.Committed}) })
	}
	for i := range taken {
		taken[i] = make(map[string]*history.Txn)
		wg.Go(func() {
			for n := range names {
				if txn := p.Take(fmt.Sprint(n)); txn != nil {
					taken[i][fmt.Sprint(n)] = txn
				}
			}
		})
	}
	wg.Wait()
	rest := p.Rest()
	ended := make(map[*history.Txn]bool)
	for _, txn := range rest {
		if txn.Status != history.Indeterminate {
			t.Errorf("a transaction that nobody ended has status %v", txn.Status)
		}
		ended[txn] = true
	}
	total := len(rest)
	for _, of := range taken {
		total += len(of)
		for _, txn := range of {
			ended[txn] = true
		}
	}
	if total != names || len(ended) != names || len(p.Rest()) != 0 {
		t.Errorf("%d transactions ended %d times", len(ended), total)
	}
}
