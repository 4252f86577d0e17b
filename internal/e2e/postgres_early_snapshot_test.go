package e2e

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestSnapshotBeforeTheFirstReadIsNoStaleRead has transactions take their snapshots by what reads no row, others write,
// and then read: what they read was the newest when they began.
func TestSnapshotBeforeTheFirstReadIsNoStaleRead(t *testing.T) {
	const read = "SELECT v FROM t WHERE id = 1"
	exec := func(sql string) func(context.Context, *testing.T, *pgconn.PgConn) {
		return func(ctx context.Context, t *testing.T, c *pgconn.PgConn) {
			if _, err := c.Exec(ctx, sql).ReadAll(); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	prepare := func(ctx context.Context, t *testing.T, c *pgconn.PgConn) {
		if _, err := c.Prepare(ctx, "s", read, nil); err != nil {
			t.Fatal(err)
		}
	}
	execute := func(ctx context.Context, t *testing.T, c *pgconn.PgConn) {
		if r := c.ExecPrepared(ctx, "s", nil, nil, nil).Read(); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for _, c := range []struct {
		name             string
		snapshot, reader func(context.Context, *testing.T, *pgconn.PgConn)
	}{
		{"a query without tables", exec("SELECT 1"), exec(read)},
		{"a statement is parsed", prepare, execute},
		{"PREPARE", exec("PREPARE s AS " + read), exec("EXECUTE s")},
		{"DECLARE", exec("DECLARE c CURSOR FOR " + read), exec("FETCH ALL FROM c")},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newPostgresBench(t, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0)")
			ctx := t.Context()
			reader := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol, "default_transaction_isolation", "repeatable read")
			writer := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			b.exec(reader, "BEGIN", read, "COMMIT AND CHAIN")
			c.snapshot(ctx, t, reader.PgConn())
			b.exec(writer, "UPDATE t SET v = v + 1 WHERE id = 1")
			c.reader(ctx, t, reader.PgConn())
			b.exec(reader, "COMMIT")
			holdHealthy(t, b.analyze(), true)
		})
	}
	t.Run("in an implicit transaction", func(t *testing.T) {
		b := newPostgresBench(t, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0)")
		ctx := t.Context()
		reader := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol, "default_transaction_isolation", "repeatable read")
		writer := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
		p := reader.PgConn().StartPipeline(ctx)
		p.SendPrepare("s", read, nil)
		p.SendFlushRequest()
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.GetResults(); err != nil {
			t.Fatal(err)
		}
		b.exec(writer, "UPDATE t SET v = v + 1 WHERE id = 1")
		p.SendQueryPrepared("s", nil, nil, nil)
		if err := p.Sync(); err != nil {
			t.Fatal(err)
		}
		for r, err := p.GetResults(); r != nil || err != nil; r, err = p.GetResults() {
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := r.(*pgconn.ResultReader); ok {
				if all := r.Read(); len(all.Rows) != 1 || string(all.Rows[0][0]) != "0" {
					t.Fatalf("read %s, not the row of the snapshot: %v", all.Rows, all.Err)
				}
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		holdHealthy(t, b.analyze(), true)
	})
	t.Run("another transaction's", func(t *testing.T) {
		b := newPostgresBench(t, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0)")
		exporter := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
		reader := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
		writer := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
		b.exec(exporter, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		var snapshot string
		if err := exporter.QueryRow(t.Context(), "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
			t.Fatal(err)
		}
		b.exec(writer, "UPDATE t SET v = v + 1 WHERE id = 1")
		b.exec(reader, "UPDATE t SET v = v + 1 WHERE id = 1")
		b.exec(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SET TRANSACTION SNAPSHOT '"+snapshot+"'", read, "COMMIT")
		b.exec(exporter, "COMMIT")
		holdHealthy(t, b.analyze(), true)
	})
}
