package known

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/isotap/isotap/workload"
)

// A smallbank is SmallBank (Alomari, Cahill, Fekete and Röhm, ICDE 2008): customers with a savings and a checking
// account, and five programs. At snapshot isolation it is not serializable: a Balance may see a withdrawal from the
// savings, but not a check that did not see it either.
//
// The invariants: money comes and goes only as the programs say; and all who looked at a customer's two accounts can be
// put into one order. For the second, each account counts its changes in a column that SmallBank does not have: of two
// observers, one must not have seen more changes of the savings and the other more of the checking account.
type smallbank struct {
	customers int
	mu        sync.Mutex
	came      int64                  // money that came, less what went
	seen      map[int][]observations // by customer
}

// observations are how many changes of a customer's savings and checking account a transaction saw, its own included.
type observations struct{ savings, checking int64 }

func newSmallbank(o Options) workload.Workload {
	return &smallbank{customers: 4 * o.Scale, seen: make(map[int][]observations)}
}

func (w *smallbank) Setup() (tables, statements []string) {
	tables = []string{"CREATE TABLE account (name VARCHAR(20) PRIMARY KEY, custid INT NOT NULL)"}
	statements = []string{workload.Rows("account (name, custid)", w.customers,
		func(i int) string { return fmt.Sprintf("('%s', %d)", name(i), i) })}
	for _, table := range []string{"savings", "checking"} {
		tables = append(tables, "CREATE TABLE "+table+
			" (custid INT PRIMARY KEY, bal INT NOT NULL, changes INT NOT NULL)")
		statements = append(statements, workload.Rows(table+" (custid, bal, changes)", w.customers,
			func(i int) string { return fmt.Sprintf("(%d, %d, 0)", i, opening) }))
	}
	return tables, statements
}

// name is a customer's.
func name(customer int) string { return fmt.Sprintf("customer %d", customer) }

func (w *smallbank) Programs() []workload.Program {
	return []workload.Program{
		{Name: "Balance", Weight: 3, Run: w.balance},
		{Name: "DepositChecking", Weight: 1, Run: w.depositChecking},
		{Name: "TransactSavings", Weight: 3, Run: w.transactSavings},
		{Name: "Amalgamate", Weight: 2, Run: w.amalgamate},
		{Name: "WriteCheck", Weight: 3, Run: w.writeCheck},
	}
}

// draw returns a customer and an amount.
func (w *smallbank) draw(c *workload.Client) (customer int, amount int64) {
	return 1 + c.Random.IntN(w.customers), int64(1 + c.Random.IntN(100))
}

// An account is what a program read of one of a customer's accounts.
type account struct{ balance, changes int64 }

// read reads a customer's account; table is savings or checking.
func read(ctx context.Context, tx workload.Handle, table string, customer int) (a account, err error) {
	err = tx.Row(ctx, []any{&a.balance, &a.changes}, "SELECT bal, changes FROM "+table+" WHERE custid = ?", customer)
	return a, err
}

// both reads a customer's two accounts.
func both(ctx context.Context, tx workload.Handle, customer int) (savings, checking account, err error) {
	if savings, err = read(ctx, tx, "savings", customer); err == nil {
		checking, err = read(ctx, tx, "checking", customer)
	}
	return savings, checking, err
}

// add changes a balance, in one statement.
func add(ctx context.Context, tx workload.Handle, table string, customer int, amount int64) error {
	return tx.Exec(ctx, "UPDATE "+table+" SET bal = bal + ?, changes = changes + 1 WHERE custid = ?", amount, customer)
}

// find looks a customer's number up by the name, as each program does.
func find(ctx context.Context, tx workload.Handle, customer int) (int, error) {
	id, err := tx.Int(ctx, "SELECT custid FROM account WHERE name = ?", name(customer))
	return int(id), err
}

// note books a transaction that was committed.
func (w *smallbank) note(customer int, came int64, seen ...observations) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.came += came
	w.seen[customer] = append(w.seen[customer], seen...)
}

func (w *smallbank) balance(ctx context.Context, c *workload.Client) error {
	customer, _ := w.draw(c)
	var savings, checking account
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		id, err := find(ctx, tx, customer)
		if err == nil {
			savings, checking, err = both(ctx, tx, id)
		}
		return err
	})
	if err == nil {
		w.note(customer, 0, observations{savings.changes, checking.changes})
	}
	return err
}

func (w *smallbank) depositChecking(ctx context.Context, c *workload.Client) error {
	customer, amount := w.draw(c)
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		id, err := find(ctx, tx, customer)
		if err != nil {
			return err
		}
		return add(ctx, tx, "checking", id, amount)
	})
	if err == nil {
		w.note(customer, amount)
	}
	return err
}

// transactSavings pays in, or out if there is enough.
func (w *smallbank) transactSavings(ctx context.Context, c *workload.Client) error {
	customer, amount := w.draw(c)
	amount -= 50
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		id, err := find(ctx, tx, customer)
		if err != nil {
			return err
		}
		savings, err := read(ctx, tx, "savings", id)
		if err != nil {
			return err
		}
		if savings.balance+amount < 0 {
			return workload.ErrDeclined
		}
		return add(ctx, tx, "savings", id, amount)
	})
	if err == nil {
		w.note(customer, amount)
	}
	return err
}

// amalgamate moves all that a customer has to another's checking account.
func (w *smallbank) amalgamate(ctx context.Context, c *workload.Client) error {
	from, to := two(c, w.customers)
	var savings, checking account
	err := c.Transaction(ctx, func(tx workload.Handle) (err error) {
		for _, customer := range []int{from, to} {
			if _, err := find(ctx, tx, customer); err != nil {
				return err
			}
		}
		if savings, checking, err = both(ctx, tx, from); err != nil {
			return err
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		for _, table := range []string{"savings", "checking"} {
			if err := tx.Exec(ctx, "UPDATE "+table+" SET bal = 0, changes = changes + 1 WHERE custid = ?",
				from); err != nil {
				return err
			}
		}
		return add(ctx, tx, "checking", to, savings.balance+checking.balance)
	})
	if err == nil {
		w.note(from, 0, observations{savings.changes, checking.changes},
			observations{savings.changes + 1, checking.changes + 1})
	}
	return err
}

// writeCheck pays a check, with a penalty of 1 if both accounts together have not enough.
func (w *smallbank) writeCheck(ctx context.Context, c *workload.Client) error {
	customer, amount := w.draw(c)
	var savings, checking account
	paid := amount
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		paid = amount
		id, err := find(ctx, tx, customer)
		if err != nil {
			return err
		}
		if savings, checking, err = both(ctx, tx, id); err != nil {
			return err
		}
		if savings.balance+checking.balance < amount {
			paid++
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		return add(ctx, tx, "checking", id, -paid)
	})
	if err == nil {
		w.note(customer, -paid, observations{savings.changes, checking.changes},
			observations{savings.changes, checking.changes + 1})
	}
	return err
}

func (w *smallbank) Check(ctx context.Context, h workload.Handle) ([]workload.Check, error) {
	var customer, balance, sum int64
	for _, table := range []string{"savings", "checking"} {
		if err := h.Each(ctx, []any{&customer, &balance}, func() { sum += balance }, "SELECT custid, bal FROM "+table+
			" ORDER BY custid"); err != nil {
			return nil, err
		}
	}
	return []workload.Check{
		{Name: "sum of all balances", Want: int64(2*w.customers*opening) + w.came, Got: sum},
		{Name: "looks out of order", Got: w.disorder()},
	}, nil
}

// disorder counts the looks at a customer's accounts that saw fewer changes of the checking account than another which
// saw fewer of the savings.
func (w *smallbank) disorder() (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seen := range w.seen {
		slices.SortFunc(seen, func(a, b observations) int {
			return cmp.Or(cmp.Compare(a.savings, b.savings), cmp.Compare(a.checking, b.checking))
		})
		var most int64
		for _, o := range seen {
			if o.checking < most {
				n++
			}
			most = max(most, o.checking)
		}
	}
	return n
}
