package e2e

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/recorder"
)

// A timedForm is a statement whose condition asks for the time, or for the session's user, and the values of a row that
// somebody inserts at the same time. OWNER stands for the condition that chooses among rows of the form's own.
type timedForm struct {
	statement, row string
	matches        bool // the row is one of those that the statement looked for
	wide           bool // the condition is wider than what the statement hangs on
}

// holdTimed compares the rows that a recording says were not found with the forms, each of which two transactions ran
// that each inserted its row.
func holdTimed(t *testing.T, recording string, forms []timedForm) {
	t.Helper()
	_, txns := resolved(t, recording)
	exact, wide := make(map[string]int), make(map[string]int)
	for _, x := range txns {
		for _, s := range x.Stmts {
			if s.Kind == history.Insert || len(s.Args) == 0 {
				continue
			}
			form := ""
			for _, arg := range s.Args {
				if strings.HasPrefix(arg, "'form ") {
					form = arg
				}
			}
			for _, a := range s.Accesses {
				switch {
				case a.Absent && a.Wide:
					wide[form]++
				case a.Absent:
					exact[form]++
				}
			}
		}
	}
	for n, f := range forms {
		form, want := fmt.Sprintf("'form %d'", n), [2]int{}
		switch {
		case f.matches && f.wide:
			want[1] = 2
		case f.matches:
			want[0] = 2
		}
		if got := [2]int{exact[form], wide[form]}; got != want {
			t.Errorf("%d rows are said to be missing exactly and %d by a wide condition, want %d: %s; inserted: %s", got[0],
				got[1], want, f.statement, f.row)
		}
	}
}

// runTimed has two transactions run each form, side by side.
func runTimed(t *testing.T, forms []timedForm, columns string,
	run func(client int, query, form string) error) {
	t.Helper()
	for n, f := range forms {
		for _, query := range []string{"BEGIN", strings.Replace(f.statement, "OWNER", "owner = FORM", 1),
			"INSERT INTO token (owner, " + columns + ") VALUES (FORM, " + f.row + ")", "COMMIT"} {
			for i := range 2 {
				if err := run(i, query, fmt.Sprintf("form %d", n)); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
		}
	}
}

// mysqlTimedForms are at 15:00:00 UTC on 2026-11-26, a Thursday, in a session two hours ahead of UTC.
var mysqlTimedForms = []timedForm{
	{"SELECT id FROM token WHERE OWNER AND expires > NOW()", "'2026-11-26 17:00:01'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > NOW()", "'2026-11-26 17:00:00'", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires >= CURRENT_TIMESTAMP", "'2026-11-26 17:00:00'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires < localtime AND expires > LOCALTIMESTAMP() - INTERVAL 1 HOUR",
		"'2026-11-26 16:00:00.5'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires < localtime AND expires > LOCALTIMESTAMP() - INTERVAL 1 HOUR",
		"'2026-11-26 16:00:00'", false, false},
	{"SELECT id FROM token WHERE OWNER AND DATE_ADD(expires, INTERVAL 30 MINUTE) > now()", "'2026-11-26 16:31:00'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires = UTC_TIMESTAMP", "'2026-11-26 15:00:00'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires >= CURDATE() AND expires < current_date + INTERVAL 1 DAY",
		"'2026-11-26 00:00:00'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires >= CURDATE() AND expires < current_date + INTERVAL 1 DAY",
		"'2026-11-27 00:00:00'", false, false},
	{"SELECT id FROM token WHERE OWNER AND (expires IS NULL OR DATE(expires) = UTC_DATE())", "NULL", true, false},
	{"SELECT id FROM token WHERE OWNER AND UNIX_TIMESTAMP() = 1795705200", "NULL", true, false},
	{"SELECT id FROM token WHERE OWNER AND UNIX_TIMESTAMP() > 1795705200", "NULL", false, false},
	{"SELECT COUNT(*) FROM token WHERE OWNER AND expires > NOW() /* still good */", "'2026-12-01'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= NOW() ORDER BY expires LIMIT 1", "'2026-11-26 17:00:00'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= NOW() ORDER BY expires LIMIT 1", "'2026-11-26 17:00:01'", false, false},
	{"UPDATE token SET used = 1 WHERE OWNER AND expires <= NOW()", "'2026-11-26 16:00:00'", true, false},
	{"DELETE FROM token WHERE OWNER AND expires <= NOW()", "'2026-11-26 18:00:00'", false, false},
	{"SELECT t.id FROM token t JOIN kind k ON k.id = 1 WHERE t.OWNER AND t.expires > NOW()", "'2026-11-26 17:00:01'", true, true},
	{"SELECT t.id FROM token t JOIN kind k ON k.id = 1 WHERE t.OWNER AND t.expires > NOW()", "'2026-11-26 17:00:00'", false, true},
	{"SELECT EXISTS (SELECT 1 FROM token WHERE OWNER AND expires > NOW())", "'2026-11-26 17:00:01'", true, true},
	{"SELECT EXISTS (SELECT 1 FROM token WHERE OWNER AND expires > NOW())", "'2026-11-26 17:00:00'", false, true},
	// What they ask for is not known: whatever else they ask tells.
	{"SELECT id FROM token WHERE OWNER AND expires > NOW(6)", "'2026-11-26 17:00:00'", true, true},
	{"SELECT id FROM token WHERE OWNER AND expires > SYSDATE()", "'2026-11-26 17:00:00'", true, true},
	{"SELECT id FROM token WHERE OWNER AND `now` = 'x'", "'2026-11-26 17:00:00'", true, false},
}

// mysqlBetweenForms ask for fractions of a second, by the server's own clock.
var mysqlBetweenForms = []timedForm{
	{"SELECT id FROM token WHERE OWNER AND expires > NOW(6)", "NOW() + INTERVAL 1 HOUR", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > NOW(6)", "NOW() - INTERVAL 1 HOUR", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires > SYSDATE()", "NOW() + INTERVAL 1 HOUR", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > sysdate(3)", "NOW() - INTERVAL 1 HOUR", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= CURRENT_TIMESTAMP(3) - INTERVAL 30 MINUTE /* long ago */",
		"NOW() - INTERVAL 1 HOUR", true, false},
	{"SELECT id FROM token WHERE OWNER AND (expires IS NULL OR NOT (expires < localtime(6)))", "NULL", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > LOCALTIMESTAMP(2) AND expires < DATE_ADD(SYSDATE(6), INTERVAL 90 MINUTE)",
		"NOW() + INTERVAL 1 HOUR", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > UTC_TIMESTAMP(6)", "UTC_TIMESTAMP() + INTERVAL 1 HOUR", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > UTC_TIMESTAMP(0)", "UTC_TIMESTAMP() - INTERVAL 1 HOUR", false, false},
	{"SELECT id FROM token WHERE OWNER AND SYSDATE(6) BETWEEN expires AND expires + INTERVAL 2 HOUR", "NOW() - INTERVAL 1 HOUR",
		true, false},
	{"SELECT id FROM token WHERE OWNER AND SYSDATE(6) BETWEEN expires AND expires + INTERVAL 2 HOUR", "NOW() - INTERVAL 3 HOUR",
		false, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= NOW(6) ORDER BY expires LIMIT 1", "NOW() - INTERVAL 1 HOUR", true, false},
	{"UPDATE token SET used = 1 WHERE OWNER AND expires <= NOW(6)", "NOW() - INTERVAL 1 HOUR", true, false},
	{"DELETE FROM token WHERE OWNER AND expires <= SYSDATE(6)", "NOW() + INTERVAL 1 HOUR", false, false},
	// What they ask for is not known: whatever else they ask tells.
	{"SELECT id FROM token WHERE OWNER AND expires = NOW(6)", "NOW()", true, true},
	{"SELECT id FROM token WHERE OWNER AND (expires > NOW(6) OR expires < NOW(6))", "NOW()", true, true},
	{"SELECT id FROM token WHERE OWNER AND NOT expires BETWEEN NOW(6) - INTERVAL 1 HOUR AND NOW(6)", "NOW()", true, true},
	{"SELECT id FROM token WHERE OWNER AND expires > DATE(NOW(6))", "NOW() - INTERVAL 3 DAY", true, true},
	{"SELECT t.id FROM token t JOIN kind k ON k.id = 1 WHERE t.OWNER AND t.expires > NOW(6)", "NOW() - INTERVAL 1 HOUR", true, true},
}

// TestConditionsOfMySQLsHoldBetweenTwoMoments is TestConditionsOfMySQLsHoldAtTheTimeOfTheStatement for times with
// fractions of a second, of which two moments are known that they lie between.
func TestConditionsOfMySQLsHoldBetweenTwoMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdMySQLTimed(t, newBench(t, inModePredicates, mysqlTimedTables...), mysqlBetweenForms, 10, "SET time_zone = '+02:00'")
}

// TestConditionsOfMySQLsHoldAtTheTimeOfTheStatement has two transactions look for rows by the time, and insert one
// each.
func TestConditionsOfMySQLsHoldAtTheTimeOfTheStatement(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdMySQLTimed(t, newBench(t, inModePredicates, mysqlTimedTables...), mysqlTimedForms, 4, "SET time_zone = '+02:00'",
		"SET timestamp = 1795705200")
}

var mysqlTimedTables = []string{"CREATE TABLE kind (id INT PRIMARY KEY)", "INSERT INTO kind VALUES (1)",
	"CREATE TABLE token (id INT AUTO_INCREMENT PRIMARY KEY, owner VARCHAR(20), expires DATETIME(1), used INT, " +
		"`now` VARCHAR(5) NOT NULL DEFAULT 'x')"}

// holdMySQLTimed has two sessions that are set up alike run forms, of whose statements so many are to leave out the
// time.
func holdMySQLTimed(t *testing.T, b *bench, forms []timedForm, widened int, setUp ...string) {
	t.Helper()
	c := []*sql.Conn{b.conn(b.through), b.conn(b.through)}
	for i := range c {
		b.exec(c[i], append(setUp, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")...)
	}
	runTimed(t, forms, "expires", func(i int, query, form string) error {
		if i == 0 || !strings.Contains(query, "FORM") {
			_, err := c[i].ExecContext(t.Context(), strings.Replace(query, "FORM", "'"+form+"'", 1))
			return err
		}
		_, err := c[i].ExecContext(t.Context(), strings.Replace(query, "FORM", "?", 1), form)
		return err
	})
	r := b.analyze()
	for _, f := range r.Findings {
		if f.Class == analyzer.Violation {
			t.Errorf("%s %s: %s", f.Class, f.Anomaly, f.Summary)
		}
	}
	if got := r.Coverage.Widened[analyzer.Timed] + r.Coverage.Widened[analyzer.Volatile]; got != widened {
		t.Errorf("%d statements are said to have a wide condition because of the time, want %d", got, widened)
	}
	holdTimed(t, b.recording, forms)
}

// postgresTimedForms are run by the role postgres or another one, in transactions that began just before.
var postgresTimedForms = []timedForm{
	{"SELECT id FROM token WHERE OWNER AND expires > now()", "now() + '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > now()", "now() - interval '1 hour'", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires BETWEEN CURRENT_TIMESTAMP AND transaction_timestamp() + '2 hours' OR false",
		"now() + interval '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires - interval '1 day' < NOW ( ) AND NOT expires < now()",
		"now() + '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires::timestamp > localtimestamp", "now() + '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires::timestamp > localtimestamp", "now() - interval '1 hour'", false, false},
	{"SELECT id FROM token WHERE OWNER AND (expires)::date = current_date -- today", "now()", true, false},
	{"SELECT id FROM token WHERE OWNER AND (expires)::date = current_date", "now() + '26 hours'", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires::time <= localtime AND expires::timetz = current_time", "now()", false, false},
	{"SELECT id FROM token WHERE OWNER AND holder = current_user", "now(), current_user", true, false},
	{"SELECT id FROM token WHERE OWNER AND holder = \"current_user\" AND holder <> user", "now(), 'somebody'", false, false},
	{"SELECT count(*) FROM token WHERE OWNER AND expires > now()", "now() + '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= now() ORDER BY expires LIMIT 1", "now() - interval '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= now() ORDER BY expires LIMIT 1", "now() + '1 hour'", false, false},
	{"UPDATE token SET used = 1 WHERE OWNER AND expires <= now()", "now() - interval '1 hour'", true, false},
	{"DELETE FROM token WHERE OWNER AND expires <= now()", "now() + '1 hour'", false, false},
	{"SELECT t.id FROM token t JOIN kind k ON k.id = 1 WHERE t.OWNER AND t.expires > now()", "now() + '1 hour'", true, true},
	{"SELECT t.id FROM token t JOIN kind k ON k.id = 1 WHERE t.OWNER AND t.expires > now()",
		"now() - interval '1 hour'", false, true},
	{"SELECT EXISTS (SELECT FROM token WHERE OWNER AND expires > now())", "now() + '1 hour'", true, true},
	{"SELECT EXISTS (SELECT FROM token WHERE OWNER AND expires > now())", "now() - interval '1 hour'", false, true},
	{"SELECT id FROM token WHERE OWNER AND expires > CURRENT_TIMESTAMP(3)", "now() + interval '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > CURRENT_TIMESTAMP ( 0 )", "now() - interval '1 hour'", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires::timestamp > localtimestamp(6)", "now() + '1 hour'", true, false},
	{"SELECT t.id FROM token t JOIN kind k ON k.id = 1 WHERE t.OWNER AND t.expires > CURRENT_TIMESTAMP(3)",
		"now() - interval '1 hour'",
		false, true},
	// What they ask for is not known: whatever else they ask tells.
	{"SELECT id FROM token WHERE OWNER AND expires > CURRENT_TIMESTAMP(9)", "now() - interval '1 hour'", true, true},
	{"SELECT id FROM token WHERE OWNER AND expires = clock_timestamp()", "now() - interval '1 hour'", true, true},
	{"SELECT id FROM token WHERE OWNER AND NOT expires BETWEEN statement_timestamp() - interval '1 hour' AND clock_timestamp()",
		"now()", true, true},
	{"SELECT id FROM token WHERE OWNER AND (expires > clock_timestamp() OR expires < clock_timestamp())", "now()", true, true},
	{"SELECT id FROM token WHERE OWNER AND expires > clock_timestamp() - interval '1 day'", "now() - interval '3 days'", true, true},
	{"SELECT id FROM token WHERE OWNER AND expires::timestamp > clock_timestamp()::timestamp",
		"now() - interval '1 hour'", true, true},
	{"SELECT t.id FROM token t JOIN kind k ON k.id = 1 WHERE t.OWNER AND t.expires > clock_timestamp()", "now() - interval '1 hour'",
		true, true},
	// Moments while the statement ran: where they make no difference.
	{"SELECT id FROM token WHERE OWNER AND expires > clock_timestamp()", "now() + '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > clock_timestamp()", "now() - interval '1 hour'", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires > clock_timestamp() AND holder IS NULL", "clock_timestamp()", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= statement_timestamp()", "clock_timestamp()", false, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= statement_timestamp() - interval '30 minutes' -- long ago",
		"now() - interval '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND (expires IS NULL OR NOT ((expires) < pg_catalog.clock_timestamp()))", "NULL", true, true},
	{"SELECT id FROM token WHERE OWNER AND (expires IS NULL OR NOT ((expires) < clock_timestamp()))", "NULL", true, false},
	{"SELECT id FROM token WHERE OWNER AND expires > statement_timestamp() AND expires < clock_timestamp() + '90 minutes'::interval",
		"now() + '1 hour'", true, false},
	{"SELECT id FROM token WHERE OWNER AND clock_timestamp() BETWEEN expires - interval '2 days' AND expires", "now() + '1 hour'",
		true, false},
	{"SELECT id FROM token WHERE OWNER AND expires BETWEEN now() - interval '2 hours' AND clock_timestamp()", "clock_timestamp()",
		false, false},
	{"SELECT id FROM token WHERE OWNER AND expires <= clock_timestamp() ORDER BY expires LIMIT 1", "now() - interval '1 hour'",
		true, false},
	{"UPDATE token SET used = 1 WHERE OWNER AND expires <= clock_timestamp()", "now() - interval '1 hour'", true, false},
	{"DELETE FROM token WHERE OWNER AND expires <= clock_timestamp()", "now() + '1 hour'", false, false},
}

// TestConditionsHoldAtTheTimeOfTheTransaction has two transactions look for rows by the time, and insert one each.
func TestConditionsHoldAtTheTimeOfTheTransaction(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := startPostgresBench(t, tapMode{predicates: true}, "CREATE TABLE kind (id int PRIMARY KEY)",
		"INSERT INTO kind VALUES (1)", `CREATE TABLE token (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, owner text,
			expires timestamptz, holder text, used int, "current_user" text DEFAULT 'nobody')`)
	var c []*pgx.Conn
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
		c = append(c, b.connect(b.through(), mode, "timezone", "Asia/Kathmandu"))
	}
	runTimed(t, postgresTimedForms, "expires, holder", func(i int, query, form string) error {
		if strings.HasPrefix(query, "INSERT") && !strings.Contains(query, ", current_user") && !strings.Contains(query, ", 's") {
			query = strings.TrimSuffix(query, ")") + ", NULL)"
		}
		if i == 0 || !strings.Contains(query, "FORM") {
			_, err := c[i].Exec(t.Context(), strings.Replace(query, "FORM", "'"+form+"'", 1))
			return err
		}
		_, err := c[i].Exec(t.Context(), strings.Replace(query, "FORM", "$1", 1), form)
		return err
	})
	r := b.analyze()
	for _, f := range r.Findings {
		if f.Class == analyzer.Violation {
			t.Errorf("%s %s: %s", f.Class, f.Anomaly, f.Summary)
		}
	}
	if got, want := r.Coverage.Widened[analyzer.Timed]+r.Coverage.Widened[analyzer.Volatile], 16; got != want {
		t.Errorf("%d statements are said to have a wide condition because of the time, want %d", got, want)
	}
	holdTimed(t, b.recording, postgresTimedForms)
}

// TestNowIsTheBeginningOfTheTransaction: of two transactions that look for tokens that are still good, and make one
// that is good until the other one began and one for a moment longer, each misses the latter.
func TestNowIsTheBeginningOfTheTransaction(t *testing.T) {
	b := startPostgresBench(t, tapMode{predicates: true},
		"CREATE TABLE token (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, owner text, expires timestamptz)")
	var c [2]*pgx.Conn
	var began [2]string
	for i := range c {
		c[i] = b.connect(b.through(), postgresModes[i], "default_transaction_isolation", history.RepeatableRead.String())
		if _, err := c[i].Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c {
		if err := c[i].QueryRow(t.Context(), "SELECT now()::text").Scan(&began[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []string{"SELECT id FROM token WHERE owner = 'form 0' AND expires > now()",
		"INSERT INTO token (owner, expires) VALUES ('x', 'BEGAN'), ('form 0', 'BEGAN')",
		"INSERT INTO token (owner, expires) VALUES ('form 0', 'BEGAN'::timestamptz + '1 microsecond')", "COMMIT"} {
		for i := range c {
			if _, err := c[i].Exec(t.Context(), strings.ReplaceAll(step, "BEGAN", began[1-i])); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
	}
	b.stop()
	holdTimed(t, b.recording, []timedForm{{"expires > now()", "a microsecond later", true, false}})
}

// TestNowOfAStatementAloneIsKnown: a statement that commits by itself asks for tokens that are still good, sent by
// messages of the extended protocol.
func TestNowOfAStatementAloneIsKnown(t *testing.T) {
	b := startPostgresBench(t, tapMode{predicates: true},
		"CREATE TABLE token (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, owner text, expires timestamptz)")
	c := b.connect(b.through(), pgx.QueryExecModeCacheStatement)
	for range 3 {
		for _, query := range []string{"SELECT id FROM token WHERE owner = $1 AND expires > now()",
			"DELETE FROM token WHERE owner = $1 AND expires < now()"} {
			if _, err := c.Exec(t.Context(), query, "me"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Exec(t.Context(), "DELETE FROM token WHERE owner = $1 AND 1 / length(owner) > 0 AND expires < now()",
			"me"); err != nil {
			t.Fatal(err)
		}
		batch := &pgx.Batch{}
		batch.Queue("UPDATE token SET owner = $1 WHERE expires < now()", "you")
		batch.Queue("SELECT count(*) FROM token WHERE expires > CURRENT_TIMESTAMP AND owner = $1", "you")
		if err := c.SendBatch(t.Context(), batch).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if r := b.analyze(); r.Coverage.Conditions < 15 || r.Coverage.Wide > 0 {
		t.Errorf("%d statements left conditions, %d of them wide ones; left out: %v", r.Coverage.Conditions, r.Coverage.Wide,
			r.Coverage.Without)
	}
}

// TestTheClientCannotTellThatTheTimeWasAskedFor asks, behind statements whose conditions ask for the time, for all that
// they leave to be asked for: isotap's question comes between.
func TestTheClientCannotTellThatTheTimeWasAskedFor(t *testing.T) {
	steps := []string{"SET sql_mode = ''", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"}
	for _, statement := range []string{
		"SELECT id FROM t WHERE NOW() > '2020-01-01' ORDER BY id",
		"SELECT id FROM t WHERE NOW() > '2020-01-01' AND id > 1 ORDER BY id LIMIT 1",
		"SELECT SQL_CALC_FOUND_ROWS id FROM t WHERE UNIX_TIMESTAMP() > 5 ORDER BY id LIMIT 1",
		"SELECT id FROM t WHERE CAST('a' AS SIGNED) < UNIX_TIMESTAMP() AND id = 2", // a warning
		"UPDATE t SET v = v + 1 WHERE id < 3 AND CURDATE() > '2020-01-01'",
		"UPDATE t SET v = v WHERE UTC_TIMESTAMP() > '2020-01-01'",
		"UPDATE t SET s = REPEAT('x', 30) WHERE CURRENT_TIMESTAMP > '2020-01-01' AND id = 1",
		"UPDATE t SET id = 1 WHERE id = 2 AND NOW() > '2020-01-01'", // an error
		"DELETE FROM t WHERE id = 1 AND NOW() < '2020-01-01'",
		"DELETE FROM t WHERE id > 2 AND NOW() > '2020-01-01' LIMIT 1",
	} {
		counts := "SELECT ROW_COUNT()"
		if strings.HasPrefix(statement, "SELECT") { // what a write leaves in FOUND_ROWS() no server says
			counts = "SELECT ROW_COUNT(), FOUND_ROWS()"
		}
		for _, question := range []string{counts, "SHOW WARNINGS", "SELECT @@warning_count AS w", "SHOW COUNT(*) ERRORS",
			"SELECT LAST_INSERT_ID()"} {
			steps = append(steps, statement, question, "SHOW WARNINGS", counts, "BEGIN", "execute "+statement, question, "ROLLBACK",
				statement+"; "+statement, question)
		}
	}
	for kind, caps := range map[string]uint32{"old ends": 0,
		"tracking": gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_SESSION_TRACK} {
		for name, durability := range map[string]recorder.Durability{"relaxed": recorder.Relaxed, "commit": recorder.Commit} {
			t.Run(name+" "+kind, func(t *testing.T) {
				playWith(t, script{"timed", someItems, steps}, "now"+name[:1]+kind[:1], func(o *proxyserver.Options) {
					inModePredicates(o)
					o.Durability = durability
				}, caps)
			})
		}
	}
}

// TestATimeIsRoundedAsBehindItsType: what a condition is told in place of CURRENT_TIMESTAMP(3) and its kind.
func TestATimeIsRoundedAsBehindItsType(t *testing.T) {
	b := startPostgresBench(t, tapMode{predicates: true})
	c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol, "timezone", "Asia/Kathmandu")
	for range 50 {
		for precision := range 7 {
			var same bool
			query := strings.ReplaceAll("SELECT CURRENT_TIMESTAMP(#) = now()::timestamptz(#) AND LOCALTIMESTAMP(#) = now()::timestamp(#) "+
				"AND CURRENT_TIME(#) = now()::timetz(#) AND LOCALTIME(#) = now()::time(#)", "#", strconv.Itoa(precision))
			if err := c.QueryRow(t.Context(), query).Scan(&same); err != nil || !same {
				t.Fatalf("%s: %t, %v", query, same, err)
			}
		}
	}
}
