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
	if t.f.Anomaly == SilentRevert {
		return "No isolation level protects what a request reads in one transaction and sets in another. Where it read the row is " +
			"not known: the values alone tell that it was before the change, and somebody may have meant to take it back."
	}
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
	if t.f.Anomaly == DoubleInsert || t.f.Anomaly == DoubleSet {
		return t.refuseSecond()
	}
	if t.f.Anomaly == StaleDecision {
		return t.checkAgain()
	}
	if t.f.Anomaly == SilentRevert {
		return []string{"Let the UPDATE set the columns that change, and no others.",
			"Or let it change the row only if it is as it was read, by a column that counts its versions."}
	}
	if t.f.Witness[0].NotFound {
		return []string{"Look again, and lock what is found, in the transaction that sets the row: what was not there may be by then.",
			"Or insert it with what is done where it is there already, and let a unique key find that."}
	}
	read, write := t.f.Witness[0].FromStmt, t.f.Witness[1].ToStmt
	fixes := []string{"Read and write " + lockRead(read)}
	if d := deedOf(t.family, write); d != nil && slices.ContainsFunc(d.sets, func(s setting) bool { return s.amount() }) {
		fixes = append(fixes, "Or let the server compute the value from what the row then holds, as in SET n = n + 1.")
	}
	return append(fixes, "Or let the UPDATE change the row only if it is as it was read, by a column that counts its versions, "+
		"and do it all again where it changes none.")
}

// lockRead says how what a request reads stays as it is until it writes.
func lockRead(read *history.Stmt) string {
	if read.Locking != history.NoLock {
		return fmt.Sprintf("in one transaction: the lock of %s is gone when its own ends.", shapeOf(read))
	}
	return fmt.Sprintf("in one transaction, and lock what is read: %s FOR UPDATE.", shapeOf(read))
}

// checkAgain advises what keeps a request from taking what is no more.
func (t *explainer) checkAgain() []string {
	read, write := t.f.Witness[0].FromStmt, t.f.Witness[1].ToStmt
	column := "n"
	if m := collide(t.family, read.Shape, t.f.Witness[1].FromStmt.Shape, write.Shape); len(m.taken) > 0 {
		column = m.taken[0]
	}
	return []string{
		fmt.Sprintf("Let the UPDATE check what it goes by, as in AND %s >= the amount, and look whether it changed the row.", column),
		"Or read and write " + lockRead(read),
		fmt.Sprintf("A CHECK (%s >= 0) of the table refuses the second, whatever clients do.", column),
	}
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
	refuses := "A unique key " + key + " refuses the second, whatever clients do"
	if t.f.Anomaly == DoubleSet {
		return []string{refuses + "."}
	}
	return []string{refuses + "; " + does + " then says what comes of it."}
}
