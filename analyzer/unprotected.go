package analyzer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// unprotected says why no level counts, and how it is known which transactions are of one request.
func (t *explainer) unprotected() string {
	i := slices.IndexFunc(t.f.Witness, func(e Edge) bool { return e.Kind == RQ })
	return "No isolation level protects what a request does between two transactions. Which of them are of one request: " +
		t.sameRequest(&t.f.Witness[i]) + "."
}

// sameRequest says how it is known that two transactions are of one request.
func (t *explainer) sameRequest(e *Edge) string {
	if id := requestOf(e.From); id != "" {
		return "comments of their statements name " + id
	}
	return "a guess, they follow each other at once on one connection"
}

// protect advises what keeps a request from being overtaken between its transactions.
func (t *explainer) protect() []string {
	if t.f.Anomaly == DoubleInsert {
		return t.refuseSecond()
	}
	read, write := t.f.Witness[0].FromStmt, t.f.Witness[1].ToStmt
	fixes := []string{fmt.Sprintf("Read and write in one transaction, and lock what is read: %s FOR UPDATE.", shapeOf(read))}
	if read.Locking != history.NoLock {
		fixes[0] = fmt.Sprintf("Read and write in one transaction: the lock of %s is gone when its own ends.", shapeOf(read))
	}
	if d := deedOf(t.family, write); d != nil && slices.ContainsFunc(d.sets, func(s setting) bool { return s.amount() }) {
		fixes = append(fixes, "Or let the server compute the value from what the row then holds, as in SET n = n + 1.")
	}
	return append(fixes, "Or let the UPDATE change the row only if it is as it was read, by a column that counts its versions, "+
		"and do it all again where it changes none.")
}

// refuseSecond advises what keeps one thing from being inserted twice.
func (t *explainer) refuseSecond() []string {
	key := "of the columns that it looks for"
	if table, by := t.lookedFor(); len(by) > 0 {
		columns := make([]string, 0, len(by))
		for _, s := range by {
			columns = append(columns, s.column)
		}
		key = fmt.Sprintf("of %s (%s)", table, strings.Join(columns, ", "))
	}
	does := "ON CONFLICT"
	if t.family == dbms.MySQLFamily {
		does = "ON DUPLICATE KEY UPDATE"
	}
	return []string{"A unique key " + key + " refuses the second, whatever clients do; " + does + " then says what comes of it."}
}
