// Package clinic is an application as many are, with three mistakes that no test of its own shows: its tests run one
// after the other, and all pass. `isotap run` in front of them shows the three, and nothing else.
//
//	isotap run --upstream postgres://app@127.0.0.1/clinic -- go test ./examples/go
//
// The other functions do the same jobs right.
package clinic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// A Clinic is the application on its database: PostgreSQL, by pgx, or MySQL and MariaDB, by go-sql-driver.
type Clinic struct {
	DB         *sql.DB
	PostgreSQL bool
}

// ErrTaken, ErrLast and ErrChanged are what requests are refused with.
var (
	ErrTaken   = errors.New("somebody has registered with this address")
	ErrLast    = errors.New("nobody else is on call")
	ErrChanged = errors.New("somebody else has changed it meanwhile")
)

// text writes a statement's ? as the database has them.
func (c *Clinic) text(sql string) string {
	if c.PostgreSQL {
		for n := 1; strings.Contains(sql, "?"); n++ {
			sql = strings.Replace(sql, "?", fmt.Sprintf("$%d", n), 1)
		}
	}
	return sql
}

// inTx runs a request's statements in a transaction.
func (c *Clinic) inTx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := c.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Pay takes an amount from an account's balance. The first mistake: two at once read the same balance, and one payment
// is lost.
func (c *Clinic) Pay(ctx context.Context, account, amount int) error {
	return c.inTx(ctx, func(tx *sql.Tx) error {
		var balance int
		row := tx.QueryRowContext(ctx, c.text("SELECT balance FROM account WHERE id = ?"), account)
		if err := row.Scan(&balance); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, c.text("UPDATE account SET balance = ? WHERE id = ?"), balance-amount, account)
		return err
	})
}

// GoOffCall takes a doctor off call, if another one is left. The second mistake: two doctors at once see each other,
// and nobody is left.
func (c *Clinic) GoOffCall(ctx context.Context, doctor int) error {
	return c.inTx(ctx, func(tx *sql.Tx) error {
		var onCall int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM doctor WHERE on_call = 1").Scan(&onCall); err != nil {
			return err
		}
		if onCall < 2 {
			return ErrLast
		}
		_, err := tx.ExecContext(ctx, c.text("UPDATE doctor SET on_call = 0 WHERE id = ?"), doctor)
		return err
	})
}

// Register makes a patient, unless there is one with the address. The third mistake: two at once find none, and there
// are two.
func (c *Clinic) Register(ctx context.Context, address string) error {
	return c.inTx(ctx, func(tx *sql.Tx) error {
		var id int
		switch err := tx.QueryRowContext(ctx, c.text("SELECT id FROM patient WHERE address = ?"), address).Scan(&id); {
		case err == nil:
			return ErrTaken
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		_, err := tx.ExecContext(ctx, c.text("INSERT INTO patient (address) VALUES (?)"), address)
		return err
	})
}

// PayLocked is Pay with the row locked before it is read.
func (c *Clinic) PayLocked(ctx context.Context, account, amount int) error {
	return c.inTx(ctx, func(tx *sql.Tx) error {
		var balance int
		row := tx.QueryRowContext(ctx, c.text("SELECT balance FROM account WHERE id = ? FOR UPDATE"), account)
		if err := row.Scan(&balance); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, c.text("UPDATE account SET balance = ? WHERE id = ?"), balance-amount, account)
		return err
	})
}

// PayVersioned is Pay with a column that counts the changes: the second of two finds that it has counted on.
func (c *Clinic) PayVersioned(ctx context.Context, account, amount int) error {
	return c.inTx(ctx, func(tx *sql.Tx) error {
		var balance, version int
		row := tx.QueryRowContext(ctx, c.text("SELECT balance, version FROM account WHERE id = ?"), account)
		if err := row.Scan(&balance, &version); err != nil {
			return err
		}
		changed, err := tx.ExecContext(ctx, c.text("UPDATE account SET balance = ?, version = version + 1 WHERE id = ? AND version = ?"),
			balance-amount, account, version)
		if err != nil {
			return err
		}
		if n, err := changed.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrChanged, err)
		}
		return nil
	})
}

// GoOffCallLocked is GoOffCall with all doctors on call locked before they are counted.
func (c *Clinic) GoOffCallLocked(ctx context.Context, doctor int) error {
	return c.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT id FROM doctor WHERE on_call = 1 ORDER BY id FOR UPDATE")
		if err != nil {
			return err
		}
		defer rows.Close()
		onCall := 0
		for rows.Next() {
			onCall++
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		if onCall < 2 {
			return ErrLast
		}
		_, err = tx.ExecContext(ctx, c.text("UPDATE doctor SET on_call = 0 WHERE id = ?"), doctor)
		return err
	})
}

// Subscribe is Register with a unique key, which refuses the second of two: it looks first all the same, to say so in a
// friendly way.
func (c *Clinic) Subscribe(ctx context.Context, address string) error {
	return c.inTx(ctx, func(tx *sql.Tx) error {
		var id int
		switch err := tx.QueryRowContext(ctx, c.text("SELECT id FROM subscriber WHERE address = ?"), address).Scan(&id); {
		case err == nil:
			return ErrTaken
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		_, err := tx.ExecContext(ctx, c.text("INSERT INTO subscriber (address) VALUES (?)"), address)
		return err
	})
}

// CountVisit counts a visit of a page: the database adds.
func (c *Clinic) CountVisit(ctx context.Context, page string) error {
	upsert := "INSERT INTO visits (page, n) VALUES (?, 1) ON DUPLICATE KEY UPDATE n = n + 1"
	if c.PostgreSQL {
		upsert = "INSERT INTO visits (page, n) VALUES ($1, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1"
	}
	_, err := c.DB.ExecContext(ctx, upsert, page)
	return err
}
