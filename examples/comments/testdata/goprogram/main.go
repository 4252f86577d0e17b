// Command goprogram makes one deposit with the library that LIBRARY names: gorm, or pgx.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"goprogram/sqlcomments"
)

// Account is a row.
type Account struct{ ID, Balance int }

// TableName is GORM's.
func (Account) TableName() string { return "account" }

func main() {
	ctx := sqlcomments.Action(context.Background(), "accounts:deposit")
	deposit := viaGORM
	if os.Getenv("LIBRARY") == "pgx" {
		deposit = viaPgx
	}
	if err := deposit(ctx, os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func viaGORM(ctx context.Context, address string) error {
	dialector, err := dialector(address)
	if err != nil {
		return err
	}
	db, err := gorm.Open(dialector, &gorm.Config{})
	if err != nil {
		return err
	}
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var a Account
		if err := tx.First(&a, 1).Error; err != nil { // READ gorm
			return err
		}
		a.Balance += 10
		return tx.Save(&a).Error // WRITE gorm
	})
}

func dialector(address string) (gorm.Dialector, error) {
	if strings.HasPrefix(address, "postgres:") {
		config, err := pgx.ParseConfig(address)
		if err != nil {
			return nil, err
		}
		return gormpostgres.New(gormpostgres.Config{Conn: sql.OpenDB(sqlcomments.Wrap(stdlib.GetConnector(*config)))}), nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.DBName = "tcp", u.Host, u.User.Username(), u.Path[1:]
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return gormmysql.New(gormmysql.Config{Conn: sql.OpenDB(sqlcomments.Wrap(connector))}), nil
}

func viaPgx(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return pgx.BeginFunc(ctx, sqlcomments.WrapPgx(conn), func(tx pgx.Tx) error {
		var balance int
		err := tx.QueryRow(ctx, "SELECT balance FROM account WHERE id = $1", 1).Scan(&balance) // READ pgx
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE account SET balance = $1 WHERE id = 1", balance+10) // WRITE pgx
		return err
	})
}
