package shop

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// The sizes of the shop. The checkout sells hotProducts only; the others are announced, and can be
// reserved but not sold.
const (
	hotProducts      = 2
	products         = 10
	stockQuantity    = 1_000_000
	departments      = 20
	spendLimit       = 2250 // nine expenses: two managers in step both find room for the last
	managers         = 2    // of every department; each has a budget line of their own
	accounts         = 8
	openingBalance   = 10_000
	abandonedCarts   = 50
	customers        = 1000
	maxLinesPerOrder = 3
)

var tables = []string{
	`CREATE TABLE product (
		product_id INT PRIMARY KEY,
		name VARCHAR(40) NOT NULL,
		price DECIMAL(10,2) NOT NULL
	) ENGINE=InnoDB`,
	`CREATE TABLE stock (
		product_id INT PRIMARY KEY,
		qty INT NOT NULL,
		reserved INT NOT NULL DEFAULT 0
	) ENGINE=InnoDB`,
	`CREATE TABLE department (
		department_id INT PRIMARY KEY,
		spend_limit INT NOT NULL
	) ENGINE=InnoDB`,
	`CREATE TABLE budget_line (
		line_id INT PRIMARY KEY,
		department_id INT NOT NULL,
		spent INT NOT NULL,
		KEY (department_id)
	) ENGINE=InnoDB`,
	`CREATE TABLE account (
		account_id INT PRIMARY KEY,
		balance INT NOT NULL
	) ENGINE=InnoDB`,
	`CREATE TABLE orders (
		order_id INT AUTO_INCREMENT PRIMARY KEY,
		customer_id INT NOT NULL,
		ordered_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
	) ENGINE=InnoDB`,
	`CREATE TABLE order_line (
		order_id INT NOT NULL,
		line_no INT NOT NULL,
		product_id INT NOT NULL,
		quantity INT NOT NULL,
		PRIMARY KEY (order_id, line_no)
	) ENGINE=InnoDB`,
	`CREATE TABLE cart (
		cart_id INT AUTO_INCREMENT PRIMARY KEY,
		customer_id INT NOT NULL,
		day INT NOT NULL
	) ENGINE=InnoDB`,
}

// Setup creates the shop's tables in the connection's database and fills them. Tables of the same
// names must not be there.
func Setup(ctx context.Context, db *sql.DB) error {
	for _, statement := range slices.Concat(tables, openingRows()) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			head, _, _ := strings.Cut(statement, "(")
			return fmt.Errorf("setting up the shop (%s): %w", strings.TrimSpace(head), err)
		}
	}
	return nil
}

func openingRows() []string {
	return []string{
		insert("product (product_id, name, price)", products, func(i int) string {
			return fmt.Sprintf("(%d, 'product %d', %d.99)", i, i, 4+i)
		}),
		insert("stock (product_id, qty)", products, func(i int) string {
			return fmt.Sprintf("(%d, %d)", i, stockQuantity)
		}),
		insert("department (department_id, spend_limit)", departments, func(i int) string {
			return fmt.Sprintf("(%d, %d)", i, spendLimit)
		}),
		insert("budget_line (line_id, department_id, spent)", departments*managers, func(i int) string {
			return fmt.Sprintf("(%d, %d, 0)", i, (i-1)/managers+1)
		}),
		insert("account (account_id, balance)", accounts, func(i int) string {
			return fmt.Sprintf("(%d, %d)", i, openingBalance)
		}),
		insert("cart (customer_id, day)", abandonedCarts, func(i int) string {
			return fmt.Sprintf("(%d, %d)", i, -i)
		}),
	}
}

// insert writes one statement for n rows, numbered from 1.
func insert(table string, n int, row func(i int) string) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = row(i + 1)
	}
	return "INSERT INTO " + table + " VALUES " + strings.Join(rows, ", ")
}
