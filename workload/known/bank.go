package known

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/isotap/isotap/workload"
)

// A bank moves money between accounts: both are read, and written back as the application computed it. Audits read the
// accounts in two statements. The invariants: no money is made or lost, which each audit sees too, and no account is
// overdrawn.
type bank struct {
	accounts int
	wrong    atomic.Int64 // audits whose sum was not what it should be
}

// opening is what each account has to begin with.
const opening = 1000

func newBank(o Options) workload.Workload { return &bank{accounts: 6 * o.Scale} }

func (w *bank) Setup() (tables, statements []string) {
	return []string{"CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)"},
		[]string{workload.Rows("account (id, balance)", w.accounts,
			func(i int) string { return fmt.Sprintf("(%d, %d)", i, opening) })}
}

func (w *bank) Programs() []workload.Program {
	return []workload.Program{{Name: "transfer", Weight: 3, Run: w.transfer}, {Name: "audit", Weight: 1, Run: w.audit}}
}

func (w *bank) transfer(ctx context.Context, c *workload.Client) error {
	from, to := two(c, w.accounts)
	amount := int64(1 + c.Random.IntN(opening/2))
	return c.Transaction(ctx, func(tx workload.Handle) error {
		var balances [2]int64
		for i, account := range []int{from, to} {
			var err error
			if balances[i], err = tx.Int(ctx, "SELECT balance FROM account WHERE id = ?", account); err != nil {
				return err
			}
		}
		if balances[0] < amount {
			return workload.ErrDeclined
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		balances[0], balances[1] = balances[0]-amount, balances[1]+amount
		accounts := [2]int{from, to}
		if from > to { // one order for all, so that two transfers do not wait for each other
			accounts, balances = [2]int{to, from}, [2]int64{balances[1], balances[0]}
		}
		for i, account := range accounts {
			if err := tx.Exec(ctx, "UPDATE account SET balance = ? WHERE id = ?", balances[i], account); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *bank) audit(ctx context.Context, c *workload.Client) error {
	var sum int64
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		var id, balance int64
		sum = 0
		add := func() { sum += balance }
		if err := tx.Each(ctx, []any{&id, &balance}, add, "SELECT id, balance FROM account WHERE id <= ? ORDER BY id",
			w.accounts/2); err != nil {
			return err
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		return tx.Each(ctx, []any{&id, &balance}, add, "SELECT id, balance FROM account WHERE id > ? ORDER BY id",
			w.accounts/2)
	})
	if err == nil && sum != w.money() {
		w.wrong.Add(1)
	}
	return err
}

// money is how much there is in all.
func (w *bank) money() int64 { return int64(w.accounts) * opening }

func (w *bank) Check(ctx context.Context, h workload.Handle) ([]workload.Check, error) {
	var id, balance, sum, overdrawn int64
	err := h.Each(ctx, []any{&id, &balance}, func() {
		sum += balance
		if balance < 0 {
			overdrawn++
		}
	}, "SELECT id, balance FROM account ORDER BY id")
	return []workload.Check{
		{Name: "sum of the balances", Want: w.money(), Got: sum},
		{Name: "audits that did not add up", Got: w.wrong.Load()},
		{Name: "accounts overdrawn", Got: overdrawn},
	}, err
}
