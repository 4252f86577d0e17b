package sqlcomments

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A Pgx is what pools, connections and transactions of pgx have in common.
type Pgx interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// WrapPgx returns a pool or connection of pgx, used without database/sql, that adds a comment to each statement, as its
// transactions do:
//
//	db := sqlcomments.WrapPgx(pool)
//	db.Exec(sqlcomments.Action(ctx, "orders#create"), ...)
//
// COPY, and what is prepared by a name, keep their text.
func WrapPgx(db Pgx) Pgx { return pgxDB{db} }

type pgxDB struct{ Pgx }

// Begin implements Pgx.
func (d pgxDB) Begin(ctx context.Context) (pgx.Tx, error) { return wrapTx(d.Pgx.Begin(ctx)) }

// BeginTx implements Pgx.
func (d pgxDB) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	return wrapTx(d.Pgx.BeginTx(ctx, o))
}

// Exec implements Pgx.
func (d pgxDB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return d.Pgx.Exec(ctx, sql+comment(ctx), args...)
}

// Query implements Pgx.
func (d pgxDB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return d.Pgx.Query(ctx, sql+comment(ctx), args...)
}

// QueryRow implements Pgx.
func (d pgxDB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return d.Pgx.QueryRow(ctx, sql+comment(ctx), args...)
}

// SendBatch implements Pgx.
func (d pgxDB) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return d.Pgx.SendBatch(ctx, commented(ctx, b))
}

type pgxTx struct{ pgx.Tx }

func wrapTx(tx pgx.Tx, err error) (pgx.Tx, error) {
	if err != nil {
		return nil, err
	}
	return pgxTx{tx}, nil
}

// Begin implements pgx.Tx.
func (t pgxTx) Begin(ctx context.Context) (pgx.Tx, error) { return wrapTx(t.Tx.Begin(ctx)) }

// Exec implements pgx.Tx.
func (t pgxTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.Tx.Exec(ctx, sql+comment(ctx), args...)
}

// Query implements pgx.Tx.
func (t pgxTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.Tx.Query(ctx, sql+comment(ctx), args...)
}

// QueryRow implements pgx.Tx.
func (t pgxTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.Tx.QueryRow(ctx, sql+comment(ctx), args...)
}

// SendBatch implements pgx.Tx.
func (t pgxTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.Tx.SendBatch(ctx, commented(ctx, b))
}

// commented returns the batch, each of its statements with a comment; one, where it is sent again.
func commented(ctx context.Context, b *pgx.Batch) *pgx.Batch {
	said := comment(ctx)
	for _, q := range b.QueuedQueries {
		q.SQL = strings.TrimSuffix(q.SQL, said) + said
	}
	return b
}
