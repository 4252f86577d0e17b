package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/history"
)

// TestCursorsReadWhatTheirDeclarationSaw has clients fetch a counter from a cursor that they declared a while ago,
// and write what they have worked out: the row that they fetch is as old as the cursor. Each update that is lost is
// found, and the server is not accused of giving old rows.
func TestCursorsReadWhatTheirDeclarationSaw(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE counter (id int PRIMARY KEY, v int, n int NOT NULL DEFAULT 0)",
		"INSERT INTO counter VALUES (1, 0), (2, 0), (3, 0)")
	all := b.plant(history.ReadCommitted.String(), func(ctx context.Context, c *pgx.Conn, r *rand.Rand) ([]touched,
		error) {
		x, v := touched{id: 1 + r.IntN(3)}, 0
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf("DECLARE c CURSOR FOR SELECT v, n FROM counter WHERE id = %d",
				x.id)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "SELECT n FROM counter WHERE id = $1", x.id%3+1); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, "FETCH c").Scan(&v, &x.read); err != nil {
				return err
			}
			return tx.QueryRow(ctx, "UPDATE counter SET v = $1, n = n + 1 WHERE id = $2 RETURNING n", v+1,
				x.id).Scan(&x.left)
		})
		return []touched{x}, err
	})
	b.findsEachLostUpdate(all)
}

// TestLockingCursorsLoseNothing has clients fetch from cursors that lock their rows, which are read as they are
// fetched: no update is lost, and none is found.
func TestLockingCursorsLoseNothing(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE counter (id int PRIMARY KEY, v int, n int NOT NULL DEFAULT 0)",
		"INSERT INTO counter VALUES (1, 0), (2, 0)")
	all := b.plant(history.ReadCommitted.String(), func(ctx context.Context, c *pgx.Conn, r *rand.Rand) ([]touched,
		error) {
		x, v := touched{id: 1 + r.IntN(2)}, 0
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf("DECLARE c CURSOR FOR SELECT v, n FROM counter WHERE id = %d "+
				"FOR UPDATE", x.id)); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, "FETCH c").Scan(&v, &x.read); err != nil {
				return err
			}
			return tx.QueryRow(ctx, "UPDATE counter SET v = $1, n = n + 1 WHERE CURRENT OF c RETURNING n",
				v+1).Scan(&x.left)
		})
		return []touched{x}, err
	})
	for _, saw := range all {
		if saw[0].left != saw[0].read+1 {
			t.Fatalf("an update is lost: %+v", saw)
		}
	}
	t.Logf("%d transactions", len(all))
	for _, f := range b.analyze().Findings {
		t.Errorf("found %s: %v", f.Anomaly, f.Explanation)
	}
}
