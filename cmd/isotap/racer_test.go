package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// race is the program racer of the scripts: an application of Go's MySQL driver, with prepared
// statements, that finds its database in MYSQL_DSN. It gives the exit status.
//
//	racer [-lock] [-other DSN]  two clients at once add 1 and 10 to a counter: each reads it, then writes the sum
//	racer -autocommit           the same without transactions
//	racer -apart                the same as without flags, but one after the other, or half a second later
//	racer -register             two clients at once look for an account, and add it, without transactions
//	racer -serial [-lock]       one client adds 1 to it, and then 10
//	racer -hold FILE            one client adds 1 to it, prints "open", and commits once FILE exists
//	racer -status N             exits with status N
func race(args []string, out io.Writer) int {
	flags := flag.NewFlagSet("racer", flag.ExitOnError)
	other := flags.String("other", os.Getenv("MYSQL_DSN"), "where the second client connects")
	lock := flags.Bool("lock", false, "read the counter FOR UPDATE")
	autocommit := flags.Bool("autocommit", false, "without transactions")
	apart := flags.Bool("apart", false, "one after the other, or half a second later")
	register := flags.Bool("register", false, "add an account")
	serial := flags.Bool("serial", false, "one after the other")
	hold := flags.String("hold", "", "hold a transaction open until this file exists")
	status := flags.Int("status", 0, "exit status")
	_ = flags.Parse(args) // ExitOnError
	err := func() error {
		db, err := sql.Open("mysql", os.Getenv("MYSQL_DSN"))
		if err != nil {
			return err
		}
		defer db.Close()
		ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
		defer cancel()
		switch {
		case *status != 0:
			return nil
		case *hold != "":
			return holdOpen(ctx, db, *hold, out)
		}
		if *serial {
			return errors.Join(add(ctx, db, 1, *lock, func() {}), add(ctx, db, 10, *lock, func() {}))
		}
		second, err := sql.Open("mysql", *other)
		if err != nil {
			return err
		}
		defer second.Close()
		if *apart {
			return raceApart(ctx, []*sql.DB{db, second}, out)
		}
		if *register {
			return registerTwice(ctx, []*sql.DB{db, second})
		}
		return raceTwo(ctx, []*sql.DB{db, second}, *lock, *autocommit, out)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "racer:", err)
		return 1
	}
	return *status
}

// raceTwo has two clients add to the counter. Without locks they meet after both have read; with them
// the second would never get there, so then they meet when both have begun.
func raceTwo(ctx context.Context, dbs []*sql.DB, lock, autocommit bool, out io.Writer) error {
	var meeting, clients sync.WaitGroup
	meeting.Add(len(dbs))
	errs := make([]error, len(dbs))
	for i, db := range dbs {
		clients.Go(func() {
			arrive := sync.OnceFunc(meeting.Done)
			defer arrive() // an error must not leave the other one waiting
			meet := func() { arrive(); meeting.Wait() }
			if autocommit {
				db.SetMaxOpenConns(1)
				errs[i] = addTo(ctx, db, 1+9*i, lock, meet)
				return
			}
			errs[i] = add(ctx, db, 1+9*i, lock, meet)
		})
	}
	clients.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return tell(ctx, dbs[0], out)
}

// raceApart has two clients add to the counter, without any time between reading and writing: the second begins when
// the first has ended, or half a second later.
func raceApart(ctx context.Context, dbs []*sql.DB, out io.Writer) error {
	if err := dbs[1].PingContext(ctx); err != nil {
		return err
	}
	if _, err := dbs[1].ExecContext(ctx, "SELECT 1"); err != nil {
		return err
	}
	first := make(chan error, 1)
	go func() { first <- add(ctx, dbs[0], 1, false, func() {}) }()
	select {
	case err := <-first:
		first <- err
	case <-time.After(500 * time.Millisecond):
	}
	second := add(ctx, dbs[1], 10, false, func() {})
	if err := errors.Join(<-first, second); err != nil {
		return err
	}
	return tell(ctx, dbs[0], out)
}

// tell prints the counter.
func tell(ctx context.Context, db *sql.DB, out io.Writer) error {
	var n int
	if err := db.QueryRowContext(ctx, "SELECT n FROM counter WHERE id = ?", 1).Scan(&n); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "the counter is %d\n", n)
	return err
}

// registerTwice has two clients add an account that neither has found. A unique key may refuse the second.
func registerTwice(ctx context.Context, dbs []*sql.DB) error {
	var looked, clients sync.WaitGroup
	looked.Add(len(dbs))
	errs := make([]error, len(dbs))
	for i, db := range dbs {
		db.SetMaxOpenConns(1)
		clients.Go(func() {
			var id int
			err := db.QueryRowContext(ctx, "SELECT id FROM account WHERE email = 'a@example.org' LIMIT 1").Scan(&id)
			looked.Done()
			if !errors.Is(err, sql.ErrNoRows) {
				errs[i] = fmt.Errorf("account %d: %w", id, err)
				return
			}
			looked.Wait()
			_, err = db.ExecContext(ctx, "INSERT INTO account (email) VALUES ('a@example.org')")
			if refused := new(mysql.MySQLError); errors.As(err, &refused) && refused.Number == duplicateEntry {
				err = nil
			}
			errs[i] = err
		})
	}
	clients.Wait()
	return errors.Join(errs...)
}

// duplicateEntry is the server's error of a unique key.
const duplicateEntry = 1062

func add(ctx context.Context, db *sql.DB, amount int, lock bool, meet func()) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := addTo(ctx, tx, amount, lock, meet); err != nil {
		return err
	}
	return tx.Commit()
}

// A querier is a transaction, or a database whose statements are autocommitted.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// addTo reads the counter and writes the sum.
func addTo(ctx context.Context, tx querier, amount int, lock bool, meet func()) error {
	query := "SELECT n FROM counter WHERE id = ?"
	if lock {
		query += " FOR UPDATE"
		meet()
	}
	query += " /*file='racer.go',line='102',controller='counter',action='add'*/" // as sqlcommenter would say it
	var n int
	if err := tx.QueryRowContext(ctx, query, 1).Scan(&n); err != nil {
		return err
	}
	if !lock {
		meet()
	}
	_, err := tx.ExecContext(ctx, "UPDATE counter SET n = ? WHERE id = 1", n+amount)
	return err
}

// holdOpen commits an update once the file exists.
func holdOpen(ctx context.Context, db *sql.DB, file string, out io.Writer) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE counter SET n = n + ? WHERE id = ?", 1, 1); err != nil {
		return err
	}
	fmt.Fprintln(out, "open")
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		if _, err := os.Stat(file); err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "committed")
	return err
}
