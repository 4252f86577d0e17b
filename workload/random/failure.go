package random

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/workload"
)

// A failure is what a statement ended with; the zero failure is success.
type failure struct {
	code    string // "lost" where the server did not answer
	message string
	refused bool // for what other transactions did: it may succeed another time
	over    bool // the transaction goes no further
	odd     bool // only a bug in the server gives it
	lost    bool // there is no connection any more
}

// mysqlOdd are errors of the storage engine, broken tables, internal errors.
var mysqlOdd = []uint16{1030, 1032, 1034, 1105, 1194, 1712, 1815}

// tidbLockWait is what TiDB's store in memory says, without a number of its own, of a lock that was not to be had.
const tidbLockWait = "lock wait timeout"

// classify returns what an error means for its transaction.
func (e Engine) classify(err error) failure {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	refused, over := workload.Refused(err)
	switch {
	case err == nil:
		return failure{}
	case errors.As(err, &my):
		if my.Message == tidbLockWait {
			refused, over = true, true
		}
		return failure{code: strconv.Itoa(int(my.Number)), message: my.Message, refused: refused, over: over,
			odd: !refused && slices.Contains(mysqlOdd, my.Number) ||
				strings.Contains(strings.ToLower(my.Message), "assert")}
	case errors.As(err, &pg):
		return failure{code: pg.Code, message: pg.Message, refused: refused, over: over,
			odd:  strings.HasPrefix(pg.Code, "XX"),
			lost: pg.Severity == "FATAL" || pg.Severity == "PANIC"}
	}
	return failure{code: "lost", message: err.Error(), lost: true, over: true}
}
