package shop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/workload"
)

// A program is one thing that the shop does: a transaction.
type program struct {
	name string
	run  func(ctx context.Context, c *client) error
	// statement, if any, is prepared once and executed at every turn.
	statement string
}

// programs are all that the shop does. The first two are the mistakes. The others share no row with
// them that anybody writes, and are serializable at READ COMMITTED too: each is a single statement, or
// locks what it reads before it writes, or only inserts.
var programs = [...]program{
	{name: "checkout", run: checkout},
	{name: "approve expense", run: approve},
	{name: "transfer", run: transfer},
	{name: "reserve", run: reserve},
	{name: "place order", run: placeOrder},
	{name: "view order", run: viewOrder},
	{name: "read balances", run: readBalances},
	{name: "fill cart", run: fillCart},
	{name: "clean up carts", run: cleanUpCarts},
	{name: "look up price", run: lookUpPrice, statement: "SELECT name, price FROM product WHERE product_id = ?"},
}

// transfer moves money between two accounts. It locks both rows first, the smaller key first, so
// that two transfers cannot wait for each other.
func transfer(ctx context.Context, c *client) error {
	from, to := twoOf(c, accounts)
	amount := 1 + c.Random.IntN(500)
	return c.Transaction(ctx, func(tx workload.Handle) error {
		balance := make(map[int]int)
		for _, account := range []int{min(from, to), max(from, to)} {
			var b int
			if err := tx.Row(ctx, []any{&b}, "SELECT balance FROM account WHERE account_id = ? FOR UPDATE",
				account); err != nil {
				return fmt.Errorf("locking account %d: %w", account, err)
			}
			balance[account] = b
		}
		if balance[from] < amount {
			return workload.ErrDeclined
		}
		balance[from] -= amount
		balance[to] += amount
		for _, account := range []int{from, to} {
			if err := tx.Exec(ctx, "UPDATE account SET balance = ? WHERE account_id = ?", balance[account],
				account); err != nil {
				return fmt.Errorf("writing account %d: %w", account, err)
			}
		}
		return nil
	})
}

// twoOf draws two different numbers from 1 to n.
func twoOf(c *client, n int) (int, int) {
	a, b := 1+c.Random.IntN(n), 1+c.Random.IntN(n-1)
	if b >= a {
		b++
	}
	return a, b
}

// readBalances reads every account in one statement, so at one moment: the sum is always the same.
func readBalances(ctx context.Context, c *client) error {
	var account, balance, sum int
	err := c.Alone().Each(ctx, []any{&account, &balance}, func() { sum += balance },
		"SELECT account_id, balance FROM account ORDER BY account_id")
	if err != nil {
		return fmt.Errorf("reading the balances: %w", err)
	}
	if sum != accounts*openingBalance {
		c.books.torn.Add(1)
	}
	return nil
}

// reserve counts a reservation of an announced product up, in one statement.
func reserve(ctx context.Context, c *client) error {
	product := hotProducts + 1 + c.Random.IntN(products-hotProducts)
	if err := c.Alone().Exec(ctx, "UPDATE stock SET reserved = reserved + 1 WHERE product_id = ?",
		product); err != nil {
		return fmt.Errorf("reserving a product: %w", err)
	}
	c.books.reserved.Add(1)
	return nil
}

// placeOrder inserts an order and its lines.
func placeOrder(ctx context.Context, c *client) error {
	lines := 1 + c.Random.IntN(maxLinesPerOrder)
	var order int64
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		var err error
		if order, err = tx.Insert(ctx, "order_id", "INSERT INTO orders (customer_id) VALUES (?)",
			1+c.Random.IntN(customers)); err != nil {
			return fmt.Errorf("inserting an order: %w", err)
		}
		var values []any
		for line := range lines {
			values = append(values, order, line+1, 1+c.Random.IntN(products), 1+c.Random.IntN(5))
		}
		marks := strings.Join(slices.Repeat([]string{"(?, ?, ?, ?)"}, lines), ", ")
		if err := tx.Exec(ctx, "INSERT INTO order_line (order_id, line_no, product_id, quantity) VALUES "+marks,
			values...); err != nil {
			return fmt.Errorf("inserting order lines: %w", err)
		}
		return nil
	})
	if err == nil {
		c.books.lines.Add(int64(lines))
		c.books.newest.Store(order)
	}
	return err
}

// viewOrder reads a recent order with its lines, in one statement.
func viewOrder(ctx context.Context, c *client) error {
	var order, customer, line, product, quantity int
	err := c.Alone().Each(ctx, []any{&order, &customer, &line, &product, &quantity}, func() {},
		"SELECT o.order_id, o.customer_id, l.line_no, l.product_id, l.quantity"+
			" FROM orders o JOIN order_line l ON l.order_id = o.order_id WHERE o.order_id = ? ORDER BY l.line_no",
		c.books.newest.Load())
	if err != nil {
		return fmt.Errorf("reading an order: %w", err)
	}
	return nil
}

// turnsPerDay is how many turns of a client make one of the shop's days.
const turnsPerDay = 10

// fillCart begins a cart.
func fillCart(ctx context.Context, c *client) error {
	if err := c.Alone().Exec(ctx, "INSERT INTO cart (customer_id, day) VALUES (?, ?)", 1+c.Random.IntN(customers),
		c.turn/turnsPerDay); err != nil {
		return fmt.Errorf("filling a cart: %w", err)
	}
	return nil
}

// cleanUpCarts deletes the carts of the days before yesterday.
func cleanUpCarts(ctx context.Context, c *client) error {
	if err := c.Alone().Exec(ctx, "DELETE FROM cart WHERE day < ?", c.turn/turnsPerDay-1); err != nil {
		return fmt.Errorf("deleting old carts: %w", err)
	}
	return nil
}

// lookUpPrice reads the catalog, which nobody writes.
func lookUpPrice(ctx context.Context, c *client) error {
	var name, price string
	if err := c.statement.QueryRowContext(ctx, 1+c.Random.IntN(products)).Scan(&name, &price); err != nil {
		return fmt.Errorf("looking up a price: %w", err)
	}
	return nil
}
