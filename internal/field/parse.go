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

// parse is a server for the data of apps, in Node.js, on PostgreSQL by statements of its own. Its package has no tests,
// so that the suite are requests to its API.
var parse = application{name: "parse-server", version: parseVersion, engine: "postgres", install: installParse,
	prepare: func(ctx context.Context, dir string) error {
		return withParse(ctx, dir, func(c *client) error {
			return c.call(ctx, http.MethodPost, "/schemas/Item", values{"className": "Item", "fields": values{
				"name": values{"type": "String"}, "n": values{"type": "Number"}, "tags": values{"type": "Array"}}}, nil)
		})
	},
	suite: func(ctx context.Context, dir string, verdicts io.Writer) error {
		return withParse(ctx, dir, func(c *client) error { return parseRequests(ctx, c, verdicts) })
	},
	crowd: func(ctx context.Context, dir string, books io.Writer) error {
		return withParse(ctx, dir, func(c *client) error { return parseAtOnce(ctx, c, books) })
	}}

const parseVersion = "8.2.4"

var parseProgram = filepath.Join("node_modules", "parse-server", "bin", "parse-server")

func installParse(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, parseProgram)); err == nil {
		return nil
	}
	return command(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "parse-server@"+parseVersion)
}

// withParse starts it, and stops it behind f, which gets a client that may do everything.
func withParse(ctx context.Context, dir string, f func(*client) error) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	base := "http://" + address + "/parse"
	return program{path: "node", dir: dir, log: filepath.Join(dir, "parse.log"), ready: base + "/health",
		args: []string{parseProgram, "--appId", "field", "--masterKey", "field", "--databaseURI", os.Getenv("DATABASE_URL"),
			"--host", "127.0.0.1", "--port", address[len("127.0.0.1:"):]},
	}.while(ctx, func() error {
		return f(newClient(base, func(r *http.Request) {
			r.Header.Set("X-Parse-Application-Id", "field")
			r.Header.Set("X-Parse-Master-Key", "field")
		}))
	})
}

// change returns an operation on what a field holds.
func change(op string, key string, value any) values { return values{"__op": op, key: value} }

// parseRequests sends what an app does, twice, one request after the other.
func parseRequests(ctx context.Context, c *client, verdicts io.Writer) error {
	sent := 0
	s := serial{c, verdicts, &sent}
	for _, round := range []string{"one", "two"} {
		var item, user, role struct{ ObjectID string }
		in := func(of string, id *string) func() string { return func() string { return of + "/" + *id } }
		if err := s.all(ctx, []request{
			{"create an object", http.MethodPost, at("/classes/Item"), values{"name": round, "n": 1, "tags": []string{"a"}}, &item},
			{"rename an object", http.MethodPut, in("/classes/Item", &item.ObjectID), values{"name": "new " + round}, nil},
			{"count up", http.MethodPut, in("/classes/Item", &item.ObjectID), values{"n": change("Increment", "amount", 2)}, nil},
			{"add a tag", http.MethodPut, in("/classes/Item", &item.ObjectID), values{"tags": change("AddUnique", "objects", []string{round})}, nil},
			{"add a field", http.MethodPut, in("/classes/Item", &item.ObjectID), values{"field_" + round: "x"}, nil},
			{"create a class", http.MethodPost, at("/classes/Kind_" + round), values{"name": round}, nil},
			{"sign up", http.MethodPost, at("/users"), values{"username": round, "password": "secret-word", "email": round + "@example.org"}, &user},
			{"change a user", http.MethodPut, in("/users", &user.ObjectID), values{"phone": "1"}, nil},
			{"create a role", http.MethodPost, at("/roles"), values{"name": "role_" + round, "ACL": values{"*": values{"read": true}}}, &role},
			{"give a role", http.MethodPut, in("/roles", &role.ObjectID), values{"users": change("AddRelation", "objects",
				[]values{{"__type": "Pointer", "className": "_User", "objectId": user.ObjectID}})}, nil},
			{"set the configuration", http.MethodPut, at("/config"), values{"params": values{"color_" + round: "red"}}, nil},
			{"delete an object", http.MethodDelete, in("/classes/Item", &item.ObjectID), nil, nil},
		}); err != nil {
			return err
		}
	}
	return nil
}

// parsePairs is how often two requests are sent at once.
const parsePairs = 40

// parseAtOnce sends requests two at a time, and counts in the tables what came of them.
func parseAtOnce(ctx context.Context, c *client, books io.Writer) (err error) {
	tables, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tables.Close(ctx)) }()
	fields, counts, tags, users, settings := 0, 0, 0, 0, 0
	for n := range parsePairs {
		var item struct{ ObjectID string }
		if err := c.call(ctx, http.MethodPost, "/classes/Item", values{"name": "old", "n": 0, "tags": []string{}}, &item); err != nil {
			return err
		}
		put := func(path string, body values) func() error {
			return func() error { return c.call(ctx, http.MethodPut, path, body, nil) }
		}
		object := "/classes/Item/" + item.ObjectID
		signUp := func() error {
			return c.call(ctx, http.MethodPost, "/users", values{"username": fmt.Sprintf("u%d", n), "password": "secret-word"}, nil)
		}
		var errs []error
		for _, pair := range [][2]func() error{
			{put(object, values{"n": change("Increment", "amount", 1)}), put(object, values{"n": change("Increment", "amount", 1)})},
			{put(object, values{"tags": change("AddUnique", "objects", []string{"a"})}),
				put(object, values{"tags": change("AddUnique", "objects", []string{"b"})})},
			{put(object, values{"name": "new"}), put(object, values{"other": "new"})},
			{put("/config", values{"params": values{fmt.Sprintf("a%d", n): 1}}), put("/config", values{"params": values{fmt.Sprintf("b%d", n): 1}})},
			{signUp, signUp},
		} {
			errs = append(errs, atOnce(pair[0], pair[1])...)
		}
		if err := unlessRefused(errs); err != nil {
			return err
		}
		var count float64
		var tagged, signedUp int
		var kept bool
		if err := errors.Join(tables.QueryRow(ctx, `SELECT n, jsonb_array_length(tags), name = 'new' AND other = 'new' FROM "Item" WHERE "objectId" = $1`,
			item.ObjectID).Scan(&count, &tagged, &kept),
			tables.QueryRow(ctx, `SELECT count(*) FROM "_User" WHERE username = $1`, fmt.Sprintf("u%d", n)).Scan(&signedUp)); err != nil {
			return err
		}
		var config struct{ Params map[string]any }
		if err := c.call(ctx, http.MethodGet, "/config", nil, &config); err != nil {
			return err
		}
		for _, wrong := range []struct {
			is bool
			of *int
		}{{count != 2, &counts}, {tagged != 2, &tags}, {!kept, &fields}, {signedUp != 1, &users},
			{config.Params[fmt.Sprintf("a%d", n)] == nil || config.Params[fmt.Sprintf("b%d", n)] == nil, &settings}} {
			if wrong.is {
				*wrong.of++
			}
		}
	}
	for _, of := range []struct {
		what  string
		wrong int
	}{{"counted up at once: a count is lost", counts}, {"two tags added at once: one is gone", tags},
		{"two fields set at once: one is gone", fields}, {"one name signed up at once: not one user", users},
		{"two settings of the configuration set at once: one is gone", settings}} {
		fmt.Fprintf(books, "  %s in %d of %d\n", of.what, of.wrong, parsePairs)
	}
	return nil
}
