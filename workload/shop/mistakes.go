package shop

import (
	"context"
	"fmt"

	"github.com/isotap/isotap/workload"
)

// checkout sells some units of a product. The mistake: the stock is read, computed with in the
// application and written back, and nothing keeps another checkout from doing the same in between.
// Both write the quantity that they worked out from the same number: one sale is lost from the
// stock. SELECT ... FOR UPDATE, or UPDATE stock SET qty = qty - ?, would be right.
func checkout(ctx context.Context, c *client) error {
	product := 1 + c.Random.IntN(hotProducts)
	// Different quantities for different clients: two that wrote the same number would not change
	// the row twice.
	units := 1 + c.ordinal + c.colleagues*c.Random.IntN(3)
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		var qty int
		if err := tx.Row(ctx, []any{&qty}, "SELECT qty FROM stock WHERE product_id = ?", product); err != nil {
			return fmt.Errorf("reading the stock: %w", err)
		}
		if qty < units {
			return workload.ErrDeclined
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		if err := tx.Exec(ctx, "UPDATE stock SET qty = ? WHERE product_id = ?", qty-units, product); err != nil {
			return fmt.Errorf("writing the stock: %w", err)
		}
		return nil
	})
	if err == nil {
		c.books.sold.Add(int64(units))
	}
	return err
}

// turnsPerDepartment is how long the managers stay with one department. They need not be in the same
// turn to meet: on a busy machine they get out of step.
const turnsPerDepartment = 8

// approve lets a manager approve an expense if all that their department has spent stays within its
// limit. The mistake: the sum over all lines is checked, but only the manager's own line is written,
// so two managers who look at the same time both find room. Reading the lines FOR UPDATE would be
// right, or a row for the department that both must write.
func approve(ctx context.Context, c *client) error {
	department := 1 + c.turn/turnsPerDepartment%departments
	line := managers*(department-1) + c.ordinal + 1
	expense := 230 + 10*c.Random.IntN(3)
	return c.Transaction(ctx, func(tx workload.Handle) error {
		var limit int
		if err := tx.Row(ctx, []any{&limit}, "SELECT spend_limit FROM department WHERE department_id = ?",
			department); err != nil {
			return fmt.Errorf("reading the limit: %w", err)
		}
		spent, err := departmentSpent(ctx, tx, department)
		if err != nil {
			return err
		}
		if spent+expense > limit {
			return workload.ErrDeclined
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		if err := tx.Exec(ctx, "UPDATE budget_line SET spent = spent + ? WHERE line_id = ?", expense,
			line); err != nil {
			return fmt.Errorf("approving an expense: %w", err)
		}
		return nil
	})
}

func departmentSpent(ctx context.Context, tx workload.Handle, department int) (int, error) {
	var line, spent, sum int
	err := tx.Each(ctx, []any{&line, &spent}, func() { sum += spent },
		"SELECT line_id, spent FROM budget_line WHERE department_id = ?", department)
	if err != nil {
		return 0, fmt.Errorf("reading the budget: %w", err)
	}
	return sum, nil
}
