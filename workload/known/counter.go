package known

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/isotap/isotap/workload"
)

// A counter counts in a table, each transaction one number up by one, as an application does that computes on its own
// side. The invariant: the numbers are as high in all as there were transactions.
type counter struct {
	rows    int
	counted atomic.Int64
}

func newCounter(o Options) workload.Workload { return &counter{rows: 2 * o.Scale} }

func (w *counter) Setup() (tables, statements []string) {
	return []string{"CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)"},
		[]string{workload.Rows("counter (id, n)", w.rows, func(i int) string { return fmt.Sprintf("(%d, 0)", i) })}
}

func (w *counter) Programs() []workload.Program {
	return []workload.Program{{Name: "count", Weight: 1, Run: w.count}}
}

func (w *counter) count(ctx context.Context, c *workload.Client) error {
	id := 1 + c.Random.IntN(w.rows)
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		n, err := tx.Int(ctx, "SELECT n FROM counter WHERE id = ?", id)
		if err != nil {
			return err
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		return tx.Exec(ctx, "UPDATE counter SET n = ? WHERE id = ?", n+1, id)
	})
	if err == nil {
		w.counted.Add(1)
	}
	return err
}

func (w *counter) Check(ctx context.Context, h workload.Handle) ([]workload.Check, error) {
	var id, n, sum int64
	err := h.Each(ctx, []any{&id, &n}, func() { sum += n }, "SELECT id, n FROM counter ORDER BY id")
	return []workload.Check{{Name: "sum of the counters", Want: w.counted.Load(), Got: sum}}, err
}
