package shop

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/isotap/isotap/workload"
)

// An Outcome is what a run did by the shop's own books, held against what the database says.
type Outcome struct {
	Clients      int
	Transactions int // committed and declined ones
	Elapsed      time.Duration
	Programs     []workload.ProgramCount // those that had a client

	// The first mistake: UnitsSold by the checkouts, and by how much the stock fell. A checkout that
	// was lost leaves the stock too high.
	UnitsSold, StockDecrease int64
	// The second mistake: departments that this run brought over their limit, and by how much in all.
	OverLimit int
	Overrun   int64

	// Checks of the programs that are correct.
	Checks []workload.Check
}

// LostUnits is how many units were sold without leaving the stock.
func (o Outcome) LostUnits() int64 { return o.UnitsSold - o.StockDecrease }

// String returns the outcome as a few lines of text.
func (o Outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d transactions by %d clients in %.1f s\n", o.Transactions, o.Clients, o.Elapsed.Seconds())
	for _, p := range o.Programs {
		b.WriteString(p.String())
	}
	fmt.Fprintf(&b, "Stock:   %d units sold, but the stock fell by %d: %d units are missing.\n", o.UnitsSold,
		o.StockDecrease, o.LostUnits())
	fmt.Fprintf(&b, "Budgets: %d of %d departments went over their limit, by %d in all.\n", o.OverLimit, departments,
		o.Overrun)
	for _, c := range o.Checks {
		b.WriteString(c.String())
	}
	return b.String()
}

// outcome closes the books.
func (b *books) outcome(before, after *state, elapsed time.Duration) Outcome {
	o := Outcome{
		Clients: b.config.Clients, Transactions: b.done, Elapsed: elapsed,
		UnitsSold: b.sold.Load(), StockDecrease: before.quantity - after.quantity,
		Checks: []workload.Check{
			{Name: "sum of all balances", Want: before.balances, Got: after.balances},
			{Name: "balance reads that did not add up", Want: 0, Got: b.torn.Load()},
			{Name: "reservations", Want: before.reserved + b.reserved.Load(), Got: after.reserved},
			{Name: "order lines", Want: before.orderLines + b.lines.Load(), Got: after.orderLines},
		},
	}
	for department, over := range after.overrun {
		if over > max(before.overrun[department], 0) {
			o.OverLimit++
			o.Overrun += over - max(before.overrun[department], 0)
		}
	}
	for _, n := range b.programs {
		if n.clients > 0 {
			o.Programs = append(o.Programs, n.Of(n.program.name, n.clients))
		}
	}
	return o
}

// A state is what the database says while nobody works.
type state struct {
	quantity, reserved, balances, orderLines int64
	overrun                                  map[int]int64 // by department: spent beyond the limit, negative below it
}

func takeStock(ctx context.Context, db *sql.DB) (*state, error) {
	s := &state{overrun: make(map[int]int64)}
	for _, sum := range []struct {
		query string
		into  *int64
	}{
		{"SELECT SUM(qty) FROM stock", &s.quantity},
		{"SELECT SUM(reserved) FROM stock", &s.reserved},
		{"SELECT SUM(balance) FROM account", &s.balances},
		{"SELECT COUNT(*) FROM order_line", &s.orderLines},
	} {
		if err := db.QueryRowContext(ctx, sum.query).Scan(sum.into); err != nil {
			return nil, fmt.Errorf("%s: %w", sum.query, err)
		}
	}
	if err := s.readBudgets(ctx, db); err != nil {
		return nil, fmt.Errorf("reading the budgets: %w", err)
	}
	return s, nil
}

func (s *state) readBudgets(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SELECT d.department_id, SUM(b.spent) - d.spend_limit"+
		" FROM department d JOIN budget_line b ON b.department_id = d.department_id GROUP BY d.department_id, d.spend_limit")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var department int
		var over int64
		if err := rows.Scan(&department, &over); err != nil {
			return err
		}
		s.overrun[department] = over
	}
	return rows.Err()
}
