package analyzer

import (
	"slices"
	"strings"
)

// besides tells what else went wrong between the two transactions of a lost update that harms nobody by itself: in some
// table each looked for rows that the other one wrote, and did not find them. It is empty where there is nothing.
//
// The mishap of two transactions has one name, that of the row (see the package comment, Minimal explanations). What
// they did beside it may be the worse part: each changes an order's time, and each inserts a payment of it.
func (t *explainer) besides() (string, error) {
	a, b := t.g.witness[0].from, t.g.witness[0].to
	there, err := t.missed(a, b)
	if err != nil {
		return "", err
	}
	back, err := t.missed(b, a)
	if err != nil {
		return "", err
	}
	both := slices.DeleteFunc(there, func(table string) bool { return !slices.Contains(back, table) })
	if len(both) == 0 {
		return "", nil
	}
	return strings.Join(both, ", ") + ": each of two transactions looked for rows there, did not find what the other one " +
		"wrote, and wrote its own.", nil
}

// missed returns the tables in which a transaction looked for rows in vain that another one wrote, in the order in
// which it did.
func (t *explainer) missed(by, writer int32) (tables []string, err error) {
	o := t.a.order
	o.deps(by, func(d dep) {
		if err != nil || d.from != by || d.to != writer || !o.byPredicate(&d) || d.inexact {
			return
		}
		var e Edge
		if e, err = t.a.edgeOf(d, t.loaded); err != nil {
			return
		}
		if table := plainName(e.Row.Table); !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	})
	return tables, err
}

// plainName returns a table's name without its schema and what tells its lives apart.
func plainName(table string) string {
	name, _, _ := strings.Cut(table[strings.LastIndexByte(table, '.')+1:], "@")
	return name
}
