package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// directus puts an API before tables, in Node.js, on PostgreSQL by knex. Its package has no tests, so that the suite
// are requests to its API.
var directus = application{name: "directus", version: directusVersion, engine: "postgres", install: installDirectus,
	prepare: func(ctx context.Context, dir string) error {
		return commandWith(ctx, dir, directusEnv(), "node", directusProgram, "bootstrap")
	},
	suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
		return withDirectus(ctx, dir, func(c *client) error { return directusRequests(ctx, c, verdicts) })
	},
	crowd: func(ctx context.Context, dir string, books io.Writer) error {
		return withDirectus(ctx, dir, func(c *client) error { return directusAtOnce(ctx, c, books) })
	}}

const (
	directusVersion  = "11.13.4"
	directusPassword = "field-password"
)

var directusProgram = filepath.Join("node_modules", "directus", "cli.js")

func installDirectus(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, directusProgram)); err == nil {
		return nil
	}
	return command(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "directus@"+directusVersion, "pg@8")
}

func directusEnv() []string {
	return []string{"DB_CLIENT=pg", "DB_CONNECTION_STRING=" + os.Getenv("DATABASE_URL"), "SECRET=field", "KEY=field",
		"ADMIN_EMAIL=admin@example.org", "ADMIN_PASSWORD=" + directusPassword, "TELEMETRY=false", "LOG_LEVEL=warn",
		"RATE_LIMITER_ENABLED=false"}
}

// withDirectus starts it, and stops it behind f, which gets an administrator's client.
func withDirectus(ctx context.Context, dir string, f func(*client) error) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	base := "http://" + address
	return program{path: "node", args: []string{directusProgram, "start"}, dir: dir, log: filepath.Join(dir, "directus.log"),
		env: append(directusEnv(), "HOST=127.0.0.1", "PORT="+address[len("127.0.0.1:"):]), ready: base + "/server/ping",
	}.while(ctx, func() error {
		var login struct {
			Data struct {
				AccessToken string `json:"access_token"`
			}
		}
		if err := newClient(base, nil).call(ctx, http.MethodPost, "/auth/login",
			values{"email": "admin@example.org", "password": directusPassword}, &login); err != nil {
			return err
		}
		return f(newClient(base, header("Authorization", "Bearer "+login.Data.AccessToken)))
	})
}

// collection returns what makes a table with a title and a number.
func collection(name string, single bool) values {
	return values{"collection": name, "schema": values{}, "meta": values{"singleton": single}, "fields": []values{
		{"field": "id", "type": "integer", "schema": values{"is_primary_key": true, "has_auto_increment": true}},
		{"field": "title", "type": "string", "schema": values{}}, {"field": "amount", "type": "integer", "schema": values{}}}}
}

// directusRequests sends what editors do, twice, one request after the other.
func directusRequests(ctx context.Context, c *client, verdicts io.Writer) error {
	sent := 0
	s := serial{c, verdicts, &sent}
	for _, round := range []string{"one", "two"} {
		var item struct{ Data struct{ ID any } }
		var role, user, folder struct{ Data struct{ ID string } }
		articles := "articles_" + round
		path := func(of, in string) func() string {
			return func() string {
				return of + "/" + map[string]string{"role": role.Data.ID, "user": user.Data.ID, "folder": folder.Data.ID,
					"item": fmt.Sprint(item.Data.ID)}[in]
			}
		}
		if err := s.all(ctx, []request{
			{"create a collection", http.MethodPost, at("/collections"), collection(articles, false), nil},
			{"create a singleton", http.MethodPost, at("/collections"), collection("page_"+round, true), nil},
			{"set a singleton", http.MethodPatch, at("/items/page_" + round), values{"title": "first " + round}, nil},
			{"set a singleton again", http.MethodPatch, at("/items/page_" + round), values{"title": "second " + round}, nil},
			{"create an item", http.MethodPost, at("/items/" + articles), values{"title": "Item " + round, "amount": 1}, &item},
			{"change an item", http.MethodPatch, path("/items/"+articles, "item"), values{"title": "Changed " + round}, nil},
			{"change an item's amount", http.MethodPatch, path("/items/"+articles, "item"), values{"amount": 7}, nil},
			{"create a role", http.MethodPost, at("/roles"), values{"name": "role " + round}, &role},
			{"create a user", http.MethodPost, at("/users"), values{"email": round + "@example.org", "password": "secret-word"}, &user},
			{"give a user a name", http.MethodPatch, path("/users", "user"), values{"first_name": round}, nil},
			{"create a folder", http.MethodPost, at("/folders"), values{"name": "folder " + round}, &folder},
			{"rename a folder", http.MethodPatch, path("/folders", "folder"), values{"name": "renamed " + round}, nil},
			{"name the project", http.MethodPatch, at("/settings"), values{"project_name": "Project " + round}, nil},
			{"comment", http.MethodPost, at("/comments"), values{"collection": articles, "item": "1", "comment": "of " + round}, nil},
			{"save a view", http.MethodPost, at("/presets"), values{"collection": articles, "layout": "tabular"}, nil},
			{"delete an item", http.MethodDelete, path("/items/"+articles, "item"), nil, nil},
			{"delete a folder", http.MethodDelete, path("/folders", "folder"), nil, nil},
		}); err != nil {
			return err
		}
	}
	return nil
}

// directusPairs is how often two requests are sent at once.
const directusPairs = 20

// directusAtOnce sends requests two at a time, and counts in the tables what came of them.
func directusAtOnce(ctx context.Context, c *client, books io.Writer) (err error) {
	tables, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tables.Close(ctx)) }()
	singles, fields, names := 0, 0, 0
	for n := range directusPairs {
		single := fmt.Sprintf("single_%d", n)
		send := func(method, path string, body any) func() error {
			return func() error { return c.call(ctx, method, path, body, nil) }
		}
		errs := []error{send(http.MethodPost, "/collections", collection(single, true))()}
		for _, pair := range [][2]func() error{
			{send(http.MethodPatch, "/items/"+single, values{"title": "one"}), send(http.MethodPatch, "/items/"+single, values{"amount": 2})},
			{send(http.MethodPatch, "/items/"+single, values{"title": "later"}), send(http.MethodPatch, "/items/"+single, values{"amount": 3})},
			{send(http.MethodPost, "/users", values{"email": single + "@example.org"}), send(http.MethodPost, "/users", values{"email": single + "@example.org"})},
		} {
			errs = append(errs, atOnce(pair[0], pair[1])...)
		}
		if err := unlessRefused(errs); err != nil {
			return err
		}
		var rows, kept, users int
		if err := errors.Join(
			tables.QueryRow(ctx, "SELECT count(*), count(*) FILTER (WHERE title = 'later' AND amount = 3) FROM "+single).Scan(&rows, &kept),
			tables.QueryRow(ctx, "SELECT count(*) FROM directus_users WHERE email = $1", single+"@example.org").Scan(&users)); err != nil {
			return err
		}
		if rows != 1 {
			singles++
		}
		if kept == 0 {
			fields++
		}
		if users != 1 {
			names++
		}
	}
	fmt.Fprintf(books, "  a singleton set for the first time at once: two rows in %d of %d\n", singles, directusPairs)
	fmt.Fprintf(books, "  two fields of a row set at once: one is gone in %d of %d\n", fields, directusPairs)
	fmt.Fprintf(books, "  users with one address created at once: not one in %d of %d\n", names, directusPairs)
	return nil
}
