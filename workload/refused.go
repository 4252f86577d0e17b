package workload

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// What the MySQL family refuses for what other transactions did. Waits are lock wait time-outs and NOWAIT, which end
// the statement alone. Ends are 1213, a deadlock; 1020, MariaDB's refusal to write a row that changed since the
// snapshot (innodb_snapshot_isolation); and TiDB's.
var (
	mysqlWaits = []uint16{1205, 3572}
	mysqlEnds  = []uint16{1213, 1020, 9007, 8002, 8022, 8028}
)

// Refused reports whether the server refused a statement for the sake of other transactions, so that the same may
// succeed another time, and whether that was the end of its transaction.
func Refused(err error) (refused, over bool) {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &my):
		over = slices.Contains(mysqlEnds, my.Number)
		return over || slices.Contains(mysqlWaits, my.Number), over
	case errors.As(err, &pg):
		// Class 40 is the roll-backs: serialization failures, deadlocks; 55P03 is a lock that was not to be had.
		return pg.Code == "55P03" || strings.HasPrefix(pg.Code, "40"), true
	}
	return false, false
}
