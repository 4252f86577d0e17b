package postgres

import (
	"testing"

	"pgregory.net/rapid"
)

// mistakenWrites are writes with several mistakes.
var mistakenWrites = grammar{
	"write": {"UPDATE item a SET <set>, <set> WHERE <wrong>", "UPDATE item a SET <set> WHERE <wrong> AND <wrong>", "DELETE FROM item a WHERE <wrong> AND <wrong> RETURNING <wrong>", "UPDATE item a SET <set> WHERE <right> RETURNING <wrong>",
		"INSERT INTO kv SELECT a.name, <value> FROM item a WHERE <wrong> AND <wrong>", "INSERT INTO kv VALUES ('n', <plain>), (<plain>, 'x')", "INSERT INTO kv VALUES ('a', 'x') ON CONFLICT (k) DO UPDATE SET v = <plain>, k = <plain> WHERE <plain> = 'x'",
		"UPDATE item a SET <set> FROM orders b WHERE <wrong> AND <wrong>", "WITH w AS (DELETE FROM item a WHERE <wrong> RETURNING id) UPDATE item a SET <set> WHERE <wrong>", "WITH w AS (UPDATE item a SET <set> WHERE <wrong> AND <wrong> RETURNING id) SELECT * FROM w WHERE <wrong of w>"},
	"set":         {"stock = <value>", "name = <value>", "nope = 1", "stock = 'x'", "(stock, name) = (SELECT y.qty, y.note FROM orders y WHERE <inner wrong>)", "stock = 3, stock = 4"},
	"value":       {"1", "a.nope", "(SELECT max(y.qty) FROM orders y WHERE <inner wrong>)", "CASE WHEN <wrong> THEN (SELECT max(y.qty) FROM orders y WHERE <inner wrong>) END", "COALESCE(a.stock, (SELECT max(y.qty) FROM orders y WHERE <inner wrong>))", "(SELECT y.note FROM orders y WHERE y.id = a.id)"},
	"plain":       {"'x'", "(SELECT max(y.note) FROM orders y WHERE y.id = 1)", "(SELECT max(y.nope) FROM orders y)", "(SELECT max(y.note) FROM orders y WHERE y.id = 'x')", "(SELECT max(y.note) FROM orders y WHERE q.id = 1)", "nope"},
	"right":       mistaken["right"],
	"wrong":       mistaken["wrong"],
	"inner wrong": mistaken["inner wrong"],
	"wrong of w":  {"w.id > 1", "w.nope = 1", "EXISTS (SELECT FROM orders y WHERE y.id = w.id)", "EXISTS (SELECT FROM orders y WHERE y.nope = w.id)"},
}

// TestRandomMistakesOfWritesAreToldAsTheClients has writes with several mistakes.
func TestRandomMistakesOfWritesAreToldAsTheClients(t *testing.T) {
	tw := newTwins(t)
	rapid.Check(t, func(r *rapid.T) {
		run(t, tw.original, "BEGIN")
		run(t, tw.proxied, "BEGIN")
		d := tw.difference(mistakenWrites.draw(r, "<write>"))
		run(t, tw.original, "ROLLBACK")
		run(t, tw.proxied, "ROLLBACK")
		if d != "" {
			r.Fatal(d)
		}
	})
}
