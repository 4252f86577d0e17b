package tpcc

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/isotap/isotap/workload"
)

// Programs are the standard's five transactions, in its mix (5.2.3).
func (w *supplier) Programs() []workload.Program {
	return []workload.Program{
		{Name: "NewOrder", Weight: 45, Run: w.newOrder},
		{Name: "Payment", Weight: 43, Run: w.payment},
		{Name: "OrderStatus", Weight: 4, Run: w.orderStatus},
		{Name: "Delivery", Weight: 4, Run: w.delivery},
		{Name: "StockLevel", Weight: 4, Run: w.stockLevel},
	}
}

// A place is where a transaction takes place.
type place struct{ warehouse, district int }

func (w *supplier) place(c *workload.Client) place {
	return place{1 + c.Random.IntN(w.warehouses), 1 + c.Random.IntN(districts)}
}

// A line is an order's.
type line struct{ item, supplier, quantity int }

// lines draws an order's, in the order of their stock, so that two orders do not wait for each other. One order of a
// hundred names an item that there is not.
func (w *supplier) lines(c *workload.Client, home int) []line {
	lines := make([]line, 5+c.Random.IntN(11))
	for i := range lines {
		lines[i] = line{1 + c.Random.IntN(items), home, 1 + c.Random.IntN(10)}
		if c.Random.IntN(100) == 0 {
			lines[i].supplier = 1 + c.Random.IntN(w.warehouses)
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return (a.supplier-b.supplier)*items + a.item - b.item })
	if c.Random.IntN(100) == 0 {
		lines[len(lines)-1].item = items + 1
	}
	return lines
}

// newOrder is 2.4.
func (w *supplier) newOrder(ctx context.Context, c *workload.Client) error {
	at, customer := w.place(c), 1+c.Random.IntN(customers)
	lines := w.lines(c, at.warehouse)
	return c.Transaction(ctx, func(tx workload.Handle) error {
		var discount, tax, order int
		var last, credit string
		if err := tx.Row(ctx, []any{&discount, &last, &credit},
			"SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
			at.warehouse, at.district, customer); err != nil {
			return err
		}
		if err := tx.Row(ctx, []any{&tax}, "SELECT w_tax FROM warehouse WHERE w_id = ?", at.warehouse); err != nil {
			return err
		}
		if err := tx.Row(ctx, []any{&order, &tax},
			"SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE", at.warehouse,
			at.district); err != nil {
			return err
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		if err := tx.Exec(ctx, "UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?", order+1,
			at.warehouse, at.district); err != nil {
			return err
		}
		if err := tx.Exec(ctx, "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt) VALUES (?, ?, ?, ?, ?)",
			at.warehouse, at.district, order, customer, len(lines)); err != nil {
			return err
		}
		if err := tx.Exec(ctx, "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)", at.warehouse,
			at.district, order); err != nil {
			return err
		}
		for i, l := range lines {
			if err := l.order(ctx, tx, at, order, i+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// order takes a line's item from the stock and inserts it.
func (l line) order(ctx context.Context, tx workload.Handle, at place, order, number int) error {
	price, err := tx.Int(ctx, "SELECT i_price FROM item WHERE i_id = ?", l.item)
	if errors.Is(err, sql.ErrNoRows) {
		return workload.ErrDeclined
	}
	if err != nil {
		return err
	}
	quantity, err := tx.Int(ctx, "SELECT s_quantity FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE", l.supplier,
		l.item)
	if err != nil {
		return err
	}
	if quantity -= int64(l.quantity); quantity < 10 {
		quantity += 91
	}
	remote := 0
	if l.supplier != at.warehouse {
		remote = 1
	}
	if err := tx.Exec(ctx, "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, "+
		"s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
		quantity, l.quantity, remote, l.supplier, l.item); err != nil {
		return err
	}
	return tx.Exec(ctx, "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, "+
		"ol_delivered, ol_quantity, ol_amount) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
		at.warehouse, at.district, order, number, l.item, l.supplier, l.quantity, int64(l.quantity)*price)
}

// find returns a customer's number: of the customers of a last name that of the middle one, as six times of ten, or the
// number that was drawn.
func find(ctx context.Context, tx workload.Handle, at place, drawn int, byName bool) (int, error) {
	if !byName {
		return drawn, nil
	}
	var id int
	var first string
	var ids []int
	err := tx.Each(ctx, []any{&id, &first}, func() { ids = append(ids, id) },
		"SELECT c_id, c_first FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
		at.warehouse, at.district, lastName(drawn))
	if err != nil || len(ids) == 0 {
		return drawn, err
	}
	return ids[(len(ids)-1)/2], nil
}

// payment is 2.5.
func (w *supplier) payment(ctx context.Context, c *workload.Client) error {
	at, drawn, amount, byName := w.place(c), 1+c.Random.IntN(customers), 100+c.Random.IntN(5000), c.Random.IntN(10) < 6
	return c.Transaction(ctx, func(tx workload.Handle) error {
		if err := w.receive(ctx, c, tx, at, amount); err != nil {
			return err
		}
		id, err := find(ctx, tx, at, drawn, byName)
		if err != nil {
			return err
		}
		if err := tx.Exec(ctx, "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, "+
			"c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
			amount, amount, at.warehouse, at.district, id); err != nil {
			return err
		}
		var credit, data string
		if err := tx.Row(ctx, []any{&credit, &data},
			"SELECT c_credit, c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", at.warehouse,
			at.district, id); err != nil {
			return err
		}
		if credit == "BC" {
			data = ("paid; " + data)[:min(len(data)+6, 500)]
			if err := tx.Exec(ctx, "UPDATE customer SET c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", data,
				at.warehouse, at.district, id); err != nil {
				return err
			}
		}
		return tx.Exec(ctx, "INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount) "+
			"VALUES (?, ?, ?, ?, ?, ?)", at.warehouse, at.district, id, at.warehouse, at.district, amount)
	})
}

// receive adds a payment to what the warehouse and the district have received.
func (w *supplier) receive(ctx context.Context, c *workload.Client, tx workload.Handle, at place, amount int) error {
	if !w.plant {
		if err := tx.Exec(ctx, "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", amount,
			at.warehouse); err != nil {
			return err
		}
	} else {
		ytd, err := tx.Int(ctx, "SELECT w_ytd FROM warehouse WHERE w_id = ?", at.warehouse)
		if err != nil {
			return err
		}
		if err := c.Think(ctx); err != nil {
			return err
		}
		if err := tx.Exec(ctx, "UPDATE warehouse SET w_ytd = ? WHERE w_id = ?", ytd+int64(amount),
			at.warehouse); err != nil {
			return err
		}
	}
	return tx.Exec(ctx, "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", amount, at.warehouse,
		at.district)
}

// orderStatus is 2.6.
func (w *supplier) orderStatus(ctx context.Context, c *workload.Client) error {
	at, drawn, byName := w.place(c), 1+c.Random.IntN(customers), c.Random.IntN(10) < 6
	return c.Transaction(ctx, func(tx workload.Handle) error {
		id, err := find(ctx, tx, at, drawn, byName)
		if err != nil {
			return err
		}
		order, err := tx.Int(ctx, "SELECT o_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? "+
			"ORDER BY o_id DESC LIMIT 1", at.warehouse, at.district, id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		var item, quantity, amount int
		return tx.Each(ctx, []any{&item, &quantity, &amount}, func() {},
			"SELECT ol_i_id, ol_quantity, ol_amount FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
			at.warehouse, at.district, order)
	})
}

// delivery is 2.7: the oldest open order of each district.
func (w *supplier) delivery(ctx context.Context, c *workload.Client) error {
	at, carrier := w.place(c), 1+c.Random.IntN(10)
	return c.Transaction(ctx, func(tx workload.Handle) error {
		for d := range districts {
			if err := deliver(ctx, tx, place{at.warehouse, d + 1}, carrier); err != nil {
				return err
			}
		}
		return nil
	})
}

// deliver delivers a district's oldest open order, if it has one.
func deliver(ctx context.Context, tx workload.Handle, at place, carrier int) error {
	order, err := tx.Int(ctx, "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? "+
		"ORDER BY no_o_id LIMIT 1 FOR UPDATE", at.warehouse, at.district)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := tx.Exec(ctx, "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", at.warehouse,
		at.district, order); err != nil {
		return err
	}
	customer, err := tx.Int(ctx, "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", at.warehouse,
		at.district, order)
	if err != nil {
		return err
	}
	if err := tx.Exec(ctx, "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", carrier,
		at.warehouse, at.district, order); err != nil {
		return err
	}
	if err := tx.Exec(ctx, "UPDATE order_line SET ol_delivered = 1 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
		at.warehouse, at.district, order); err != nil {
		return err
	}
	amount, err := tx.Int(ctx, "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? "+
		"AND ol_o_id = ?", at.warehouse, at.district, order)
	if err != nil {
		return err
	}
	return tx.Exec(ctx, "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 "+
		"WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", amount, at.warehouse, at.district, customer)
}

// stockLevel is 2.8: how many items of the last twenty orders are short.
func (w *supplier) stockLevel(ctx context.Context, c *workload.Client) error {
	at, threshold := w.place(c), 10+c.Random.IntN(11)
	return c.Transaction(ctx, func(tx workload.Handle) error {
		next, err := tx.Int(ctx, "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", at.warehouse,
			at.district)
		if err != nil {
			return err
		}
		_, err = tx.Int(ctx, "SELECT COUNT(DISTINCT s_i_id) FROM order_line "+
			"JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id"+
			" WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?", at.warehouse,
			at.district, next-20, next, threshold)
		return err
	})
}
