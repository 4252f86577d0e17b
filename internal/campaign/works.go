//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/isotap/isotap/history"
)

// A work is a transaction that clients run again and again, each time with another marker.
type work struct {
	name       string
	parameters string // of the driver
	run        func(ctx context.Context, c *sql.Conn, slot int, marker string) error
	stmts      []stmtShape // as the recording must have it
}

// stmtShape is a statement's verb and what it did to how many rows.
type stmtShape struct {
	kind history.Kind
	op   history.Op
	rows int
}

const (
	asText   = "interpolateParams=true"
	prepared = "interpolateParams=false"
)

// sharedSlot is the row that all explicit transactions change.
const sharedSlot = 0

var works = []work{
	{"text INSERT", asText, one("INSERT INTO entry (marker) VALUES (?)"),
		[]stmtShape{{history.Insert, history.InsertRow, 1}}},
	{"prepared INSERT", prepared, func(ctx context.Context, c *sql.Conn, _ int, marker string) error {
		_, err := c.ExecContext(ctx, "INSERT INTO entry (marker) VALUES (?), (?)", marker, marker)
		return err
	}, []stmtShape{{history.Insert, history.InsertRow, 2}}},
	{"text UPDATE", asText, updateSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"prepared UPDATE", prepared, updateSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"text transaction", asText, transact, transaction},
	{"prepared transaction", prepared, transact, transaction},
}

var transaction = []stmtShape{{kind: history.Begin}, {history.Select, history.Read, 1},
	{history.Update, history.UpdateRow, 1},
	{history.Insert, history.InsertRow, 1}, {kind: history.Commit}}

func one(statement string) func(context.Context, *sql.Conn, int, string) error {
	return func(ctx context.Context, c *sql.Conn, _ int, marker string) error {
		_, err := c.ExecContext(ctx, statement, marker)
		return err
	}
}

func updateSlot(ctx context.Context, c *sql.Conn, slot int, marker string) error {
	_, err := c.ExecContext(ctx, "UPDATE slot SET marker = ? WHERE id = ?", marker, slot)
	return err
}

func transact(ctx context.Context, c *sql.Conn, _ int, marker string) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var was string
	if err := tx.QueryRowContext(ctx, "SELECT marker FROM slot WHERE id = ? FOR UPDATE",
		sharedSlot).Scan(&was); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE slot SET marker = ? WHERE id = ?", marker, sharedSlot); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO entry (marker) VALUES (?)", marker); err != nil {
		return err
	}
	return tx.Commit()
}

// load runs a work's transactions on one connection to the address until one fails, and tells of each that was
// committed. The markers are of the load, a number, and the slot.
func (f *family) load(ctx context.Context, address string, w *work, number, slot int,
	committed func(marker string)) error {
	db, err := f.open(address, w.parameters)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 1; ; n++ {
		marker := fmt.Sprintf("m%d-%d-%d", number, slot, n)
		if err := w.run(ctx, c, slot, marker); err != nil {
			return err
		}
		committed(marker)
	}
}

// The parameters of pgx.
const (
	pgxText     = "default_query_exec_mode=simple_protocol"
	pgxPrepared = "default_query_exec_mode=cache_statement"
)

var postgresWorks = []work{
	{"text INSERT", pgxText, one("INSERT INTO entry (marker) VALUES ($1)"),
		[]stmtShape{{history.Insert, history.InsertRow, 1}}},
	{"prepared INSERT", pgxPrepared, one("INSERT INTO entry (marker) VALUES ($1), ($1)"),
		[]stmtShape{{history.Insert, history.InsertRow, 2}}},
	{"text UPDATE", pgxText, updatePostgresSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"prepared UPDATE", pgxPrepared, updatePostgresSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"text transaction", pgxText, transactOnPostgres, transaction},
	{"prepared transaction", pgxPrepared, transactOnPostgres, transaction},
}

func updatePostgresSlot(ctx context.Context, c *sql.Conn, slot int, marker string) error {
	_, err := c.ExecContext(ctx, "UPDATE slot SET marker = $1 WHERE id = $2", marker, slot)
	return err
}

func transactOnPostgres(ctx context.Context, c *sql.Conn, _ int, marker string) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var was string
	if err := tx.QueryRowContext(ctx, "SELECT marker FROM slot WHERE id = $1 FOR UPDATE",
		sharedSlot).Scan(&was); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE slot SET marker = $1 WHERE id = $2", marker, sharedSlot); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO entry (marker) VALUES ($1)", marker); err != nil {
		return err
	}
	return tx.Commit()
}
