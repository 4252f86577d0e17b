package explore

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/clone"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/workload"
)

// MariaDB 11.8 is no round: there innodb_snapshot_isolation is on, which refuses most of these races.
func TestMain(m *testing.M) { testdb.Main(m, testdb.MySQL, testdb.TiDBRound) }

// tables are those of the small programs below, on either family; %s is how a key counts.
var tables = []string{
	"CREATE TABLE account (id int PRIMARY KEY, balance int, version int)",
	"INSERT INTO account VALUES (1, 100, 0), (2, 100, 0)",
	"CREATE TABLE users (id %s PRIMARY KEY, email varchar(100))",
	"CREATE TABLE member (id %s PRIMARY KEY, email varchar(100) UNIQUE, n int)",
	"CREATE TABLE person (id varchar(40) PRIMARY KEY, email varchar(100))",
	"CREATE TABLE cart (id %s PRIMARY KEY, code varchar(40) UNIQUE, total int)",
	"INSERT INTO cart (code, total) VALUES ('a', 2), ('b', 2)",
	"CREATE TABLE line (id %s PRIMARY KEY, cart_id int, FOREIGN KEY (cart_id) REFERENCES cart (id))",
	"CREATE TABLE detail (line_id int, note varchar(20), FOREIGN KEY (line_id) REFERENCES line (id))",
	"CREATE TABLE profile (id int PRIMARY KEY, name varchar(20))",
	"INSERT INTO profile VALUES (1, 'old')",
	"CREATE TABLE visit (id int PRIMARY KEY, place varchar(20), seen timestamp NULL)",
	"INSERT INTO visit VALUES (1, 'old', NULL)",
	"CREATE TABLE settings (id int PRIMARY KEY, theme varchar(20), lang varchar(20), wide boolean)",
	"INSERT INTO settings VALUES (1, 'light', 'en', true), (2, '', 'en', true)",
	"CREATE TABLE ticket (id int PRIMARY KEY, state int)",
	"INSERT INTO ticket VALUES (1, 0)",
	"CREATE TABLE audit (id %s PRIMARY KEY, n int)",
	"CREATE TABLE mail (id %s PRIMARY KEY, n int)",
	"CREATE TABLE project (id %s PRIMARY KEY, name varchar(20))",
	"INSERT INTO project (name) VALUES ('old')",
	"CREATE TABLE teams (id %s PRIMARY KEY, name varchar(20))",
	"CREATE TABLE team_roles (team_id int, role int, PRIMARY KEY (team_id, role))",
	"CREATE TABLE parcels (parcel_id %s PRIMARY KEY, code varchar(20))",
	"CREATE TABLE labels (parcel_id int PRIMARY KEY, note varchar(20), FOREIGN KEY (parcel_id) REFERENCES parcels (parcel_id))",
	"CREATE TABLE likes (liked_id int, liked_type varchar(20), PRIMARY KEY (liked_id, liked_type))",
}

// A toldRace is what a test expects of a race.
type toldRace struct {
	kind          Kind
	table, column string
	unproved      bool // a client may have seen it and gone another way
}

// programs are played by a test suite that runs one after the other. Before and after BEGIN and COMMIT statements are
// in autocommit.
var programs = []struct {
	name       string
	statements []string
	races      []toldRace
}{
	{"a number is read, and set", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1",
		"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, []toldRace{{LostUpdate, "account", "balance", false}}},
	{"the row is locked first", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1 FOR UPDATE",
		"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, nil},
	{"the row has a version", []string{"BEGIN", "SELECT balance, version FROM account WHERE id = 1",
		"UPDATE account SET balance = 90, version = 1 WHERE id = 1 AND version = 0", "COMMIT"}, nil},
	{"of a row that another reads a version alone is set", []string{"BEGIN", "SELECT cart_id FROM line", "SELECT balance, version FROM account WHERE id = 2",
		"UPDATE account SET balance = 90, version = 1 WHERE id = 2 AND version = 0", "SELECT balance, version FROM account WHERE id = 1",
		"UPDATE account SET version = COALESCE(version, 0) + 1 WHERE id = 1", "COMMIT", "UPDATE account SET balance = 100",
		"BEGIN", "SELECT id, balance, version FROM account WHERE id = 1", "INSERT INTO line (cart_id) VALUES (1)", "COMMIT"}, nil},
	{"a number that is counted up by what it was is no version", []string{"BEGIN", "SELECT cart_id FROM line", "SELECT version FROM account WHERE id = 1",
		"UPDATE account SET version = 1 WHERE id = 1 AND version = 0", "COMMIT",
		"BEGIN", "SELECT id, balance, version FROM account WHERE id = 1", "INSERT INTO line (cart_id) VALUES (1)", "COMMIT"},
		[]toldRace{{WriteSkew, "account", "version", false}}},
	{"what another one writes is read behind all that is written, as for a mail", []string{
		"BEGIN", "UPDATE account SET balance = 90 WHERE id = 1", "SELECT cart_id FROM line", "COMMIT",
		"BEGIN", "SELECT id, balance FROM account WHERE id = 1", "INSERT INTO line (cart_id) VALUES (1)", "COMMIT"}, nil},
	{"the same before it", []string{
		"BEGIN", "SELECT cart_id FROM line", "UPDATE account SET balance = 90 WHERE id = 1", "COMMIT",
		"BEGIN", "SELECT id, balance FROM account WHERE id = 1", "INSERT INTO line (cart_id) VALUES (1)", "COMMIT"},
		[]toldRace{{WriteSkew, "account", "balance", false}}},
	{"the database calculates", []string{"BEGIN", "UPDATE account SET balance = balance - 10 WHERE id = 1", "COMMIT"}, nil},
	{"nobody is found, and one is inserted", []string{"BEGIN", "SELECT id FROM users WHERE email = 'ann@example.org' LIMIT 1",
		"INSERT INTO users (email) VALUES ('ann@example.org')", "COMMIT"}, []toldRace{{DoubleInsert, "users", "", false}}},
	{"a unique key refuses the second", []string{"BEGIN", "SELECT id FROM member WHERE email = 'ann@example.org' LIMIT 1",
		"INSERT INTO member (email) VALUES ('ann@example.org')", "COMMIT"}, nil},
	{"read and write are two transactions", []string{"SELECT balance FROM account WHERE id = 1",
		"UPDATE account SET balance = 90 WHERE id = 1"}, []toldRace{{LostUpdate, "account", "balance", false}}},
	{"look and insert are two transactions", []string{"SELECT id FROM users WHERE email = 'ann@example.org'",
		"INSERT INTO users (email) VALUES ('ann@example.org')"}, []toldRace{{DoubleInsert, "users", "", false}}},
	{"a check before the transaction", []string{"SELECT balance FROM account WHERE id = 1", "BEGIN",
		"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, []toldRace{{LostUpdate, "account", "balance", false}}},
	{"keys that the server makes", []string{"BEGIN", "SELECT total FROM cart WHERE id = 1",
		"INSERT INTO line (cart_id) VALUES (1)/* RETURNING id */", "INSERT INTO detail (line_id, note) VALUES (1, 'new')",
		"SELECT note FROM detail WHERE line_id = 1", "UPDATE cart SET total = 3 WHERE id = 1", "COMMIT"},
		[]toldRace{{LostUpdate, "cart", "total", false}}},
	{"values that a client makes by chance", []string{"BEGIN", "SELECT total FROM cart WHERE id = 1",
		"INSERT INTO cart (code, total) VALUES ('6f1ed002ab5595859014ebf0951522d9', 0)",
		"UPDATE cart SET total = 3 WHERE id = 1", "COMMIT"}, []toldRace{{LostUpdate, "cart", "total", false}}},
	{"a unique key refuses the second, which is looked for by what it holds", []string{
		"SELECT id FROM cart WHERE code = '6f1ed002ab5595859014ebf0951522d9'",
		"INSERT INTO cart (code, total) VALUES ('6f1ed002ab5595859014ebf0951522d9', 0)",
		"BEGIN", "SELECT id FROM cart WHERE code = '7f1ed002ab5595859014ebf0951522d9'",
		"INSERT INTO cart (code, total) VALUES ('7f1ed002ab5595859014ebf0951522d9', 0)", "COMMIT"}, nil},
	{"a name is set that is no number", []string{"BEGIN", "SELECT name FROM profile WHERE id = 1",
		"UPDATE profile SET name = 'new' WHERE id = 1", "COMMIT"}, []toldRace{{SameAgain, "profile", "name", false}}},
	{"another row is written by what was read", []string{"BEGIN", "SELECT balance FROM account ORDER BY id",
		"UPDATE account SET version = 7 WHERE id = 2", "UPDATE account SET balance = 0 WHERE id = 1", "COMMIT"},
		[]toldRace{{LostUpdate, "account", "balance", false}}},
	{"what was looked for is gone", []string{"BEGIN", "SELECT id FROM account WHERE version = 0 ORDER BY id LIMIT 1",
		"UPDATE account SET version = 7 WHERE id = 1", "COMMIT"}, []toldRace{{StaleChoice, "account", "id", false}}},
	{"two doctors go off call", []string{"BEGIN", "SELECT count(*) FROM account WHERE version = 0", "UPDATE account SET version = 1 WHERE id = 1",
		"COMMIT", "UPDATE account SET version = 0", "BEGIN", "SELECT count(*) FROM account WHERE version = 0",
		"UPDATE account SET version = 1 WHERE id = 2", "COMMIT"},
		[]toldRace{{WriteSkew, "", "count", false}}},
	{"two spend by what all have spent", []string{"BEGIN", "SELECT id, balance FROM account", "UPDATE account SET balance = balance - 10 WHERE id = 1",
		"COMMIT", "BEGIN", "SELECT id, balance FROM account", "UPDATE account SET balance = balance - 10 WHERE id = 2", "COMMIT"},
		[]toldRace{{WriteSkew, "account", "balance", false}}},
	{"two spend by what all have spent, behind some that spend the same", []string{
		"BEGIN", "SELECT id, balance FROM account", "UPDATE account SET balance = balance - 10 WHERE id = 1", "COMMIT",
		"BEGIN", "SELECT id, balance FROM account", "UPDATE account SET balance = balance - 11 WHERE id = 1", "COMMIT",
		"BEGIN", "SELECT id, balance FROM account", "UPDATE account SET balance = balance - 12 WHERE id = 1", "COMMIT",
		"BEGIN", "SELECT id, balance FROM account", "UPDATE account SET balance = balance - 10 WHERE id = 2", "COMMIT"},
		[]toldRace{{WriteSkew, "account", "balance", false}}},
	{"one sets a price, another reads it and orders", []string{"BEGIN", "SELECT total FROM cart WHERE id = 1", "UPDATE cart SET total = 9 WHERE id = 1",
		"COMMIT", "UPDATE cart SET total = 2", "BEGIN", "SELECT total FROM cart WHERE id = 1",
		"INSERT INTO line (cart_id) VALUES (1)", "COMMIT"},
		[]toldRace{{LostUpdate, "cart", "total", false}}},
	{"the write asks for what was read", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1",
		"UPDATE account SET balance = balance - 10 WHERE id = 1 AND balance >= 10", "COMMIT"}, nil},
	{"a unique key has the second count", []string{"BEGIN", "SELECT id FROM member WHERE email = 'ann@example.org'",
		"INSERT INTO member (email, n) VALUES ('ann@example.org', 1) {upsert} n = member.n + 1", "COMMIT"}, nil},
	{"a unique key has the second write over the first", []string{"BEGIN", "SELECT n FROM member WHERE email = 'ann@example.org'",
		"INSERT INTO member (email, n) VALUES ('ann@example.org', 1) {upsert} n = {new}", "COMMIT"}, []toldRace{{LostUpdate, "member", "n", false}}},
	{"a row is deleted that is gone, and nobody looks", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1",
		"DELETE FROM account WHERE id = 1", "INSERT INTO users (email) VALUES ('ann@example.org')", "COMMIT"},
		[]toldRace{{StaleChoice, "users", "", true}}},
	{"a row is deleted that is gone, and that is all", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1",
		"DELETE FROM account WHERE id = 1", "COMMIT", "SELECT id FROM account WHERE id = 2", "DELETE FROM account WHERE id = 2"}, nil},
	{"a UUID is a key, and no column is named", []string{"BEGIN", "SELECT email FROM person WHERE email = 'ann@example.org'",
		"INSERT INTO person VALUES ('6f1ed002-ab55-9585-9014-ebf0951522d9', 'ann@example.org')", "COMMIT"},
		[]toldRace{{DoubleInsert, "person", "", false}}},
	{"a part was rolled back", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1", "SAVEPOINT s",
		"UPDATE account SET balance = 0 WHERE id = 2", "ROLLBACK TO SAVEPOINT s", "UPDATE account SET balance = 90 WHERE id = 1",
		"COMMIT"}, []toldRace{{LostUpdate, "account", "balance", false}}},
	{"an index is made outside of a block", []string{"CREATE INDEX{ concurrently} balances ON account (balance)"}, nil},
	{"the suite makes its tables", []string{"CREATE TABLE made (id {count} PRIMARY KEY, n int)", "INSERT INTO made (n) VALUES (5)",
		"INSERT INTO made (n) VALUES (5)", "BEGIN", "SELECT n FROM made WHERE id = 2", "UPDATE made SET n = 6 WHERE id = 2", "COMMIT"},
		[]toldRace{{LostUpdate, "made", "n", false}}},
	{"a look outside, and the row is locked inside", []string{"SELECT balance FROM account WHERE id = 1", "BEGIN",
		"SELECT balance FROM account WHERE id = 1 FOR UPDATE", "UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, nil},
	{"tests are rolled back, one by one and together", []string{"BEGIN", "INSERT INTO cart (code, total) VALUES ('fixture', 5)",
		"SAVEPOINT one", "SAVEPOINT request", "SELECT total FROM cart WHERE id = 3", "UPDATE cart SET total = 6 WHERE id = 3",
		"RELEASE SAVEPOINT request", "ROLLBACK TO SAVEPOINT one", "RELEASE SAVEPOINT one",
		"SAVEPOINT two", "INSERT INTO cart (code, total) VALUES ('own', 1)", "SELECT email FROM users WHERE email = 'ann@example.org'",
		"INSERT INTO users (email) VALUES ('ann@example.org')", "SAVEPOINT request", "SELECT total FROM cart WHERE id = 4",
		"INSERT INTO line (cart_id) VALUES (4)", "UPDATE cart SET total = 2 WHERE id = 4", "RELEASE SAVEPOINT request",
		"ROLLBACK TO SAVEPOINT two", "RELEASE SAVEPOINT two", "ROLLBACK", "INSERT INTO cart (code, total) VALUES ('behind', 0)",
		"BEGIN", "SELECT total FROM cart WHERE id = 5", "UPDATE cart SET total = 2 WHERE id = 5", "COMMIT"},
		[]toldRace{{DoubleInsert, "users", "", false}, {LostUpdate, "cart", "total", false}, {LostUpdate, "cart", "total", false}}},
	{"a test is rolled back, and what it tests is in savepoints", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1",
		"SAVEPOINT active_record_1", "UPDATE account SET balance = 90 WHERE id = 1", "RELEASE SAVEPOINT active_record_1", "ROLLBACK"},
		[]toldRace{{LostUpdate, "account", "balance", false}}},
	{"a test is rolled back, and what it tests locks", []string{"BEGIN", "SAVEPOINT active_record_1",
		"SELECT balance FROM account WHERE id = 1 FOR UPDATE", "UPDATE account SET balance = 90 WHERE id = 1",
		"RELEASE SAVEPOINT active_record_1", "ROLLBACK"}, nil},
	{"two orders are paid at once, of which the second is made behind the first", []string{
		"INSERT INTO cart (code, total) VALUES ('one', 1)", "BEGIN", "SELECT total FROM cart WHERE id = 3 FOR UPDATE",
		"SELECT balance FROM account WHERE id = 1", "INSERT INTO line (cart_id) VALUES (3)/* RETURNING id */",
		"INSERT INTO detail (line_id) VALUES (1)", "UPDATE account SET balance = 90 WHERE id = 1", "COMMIT",
		"INSERT INTO cart (code, total) VALUES ('two', 1)", "BEGIN", "SELECT total FROM cart WHERE id = 4 FOR UPDATE",
		"SELECT balance FROM account WHERE id = 1", "INSERT INTO line (cart_id) VALUES (4)/* RETURNING id */",
		"INSERT INTO detail (line_id) VALUES (2)", "UPDATE account SET balance = 80 WHERE id = 1", "COMMIT"},
		[]toldRace{{LostUpdate, "account", "balance", false}}},
	{"an order is paid in a state in which it would not be", []string{
		"INSERT INTO visit VALUES (2, 'cart', NULL)", "BEGIN", "SELECT place FROM visit WHERE id = 2 FOR UPDATE",
		"UPDATE visit SET place = 'ordered' WHERE id = 2", "INSERT INTO users (email) VALUES ('ordered')", "COMMIT",
		"BEGIN", "SELECT place FROM visit WHERE id = 2", "INSERT INTO users (email) VALUES ('paid')",
		"UPDATE visit SET seen = '2026-01-02 03:04:05' WHERE id = 2", "COMMIT"}, nil},
	{"a key refuses the second behind what it wrote by the same look", []string{"BEGIN",
		"SELECT id FROM member WHERE email = 'ann@example.org'", "INSERT INTO users (email) VALUES ('ann@example.org')",
		"INSERT INTO member (email) VALUES ('ann@example.org')", "COMMIT"}, nil},
	{"two set other columns of a row that both read", []string{"BEGIN", "SELECT balance, version FROM account WHERE id = 1",
		"UPDATE account SET version = 7 WHERE id = 1", "COMMIT", "UPDATE account SET version = 0", "BEGIN",
		"SELECT id, version FROM account WHERE id = 1", "UPDATE account SET balance = balance + 1 WHERE id = 1", "COMMIT"},
		[]toldRace{{LostUpdate, "account", "version", false}, {OtherColumns, "account", "balance", false}, {OtherColumns, "account", "version", false}}},
	{"it is noted when a name was set", []string{"BEGIN", "SELECT place FROM visit WHERE id = 1", "UPDATE visit SET place = 'new' WHERE id = 1",
		"UPDATE visit SET seen = '2026-01-02 03:04:05' WHERE id = 1", "COMMIT"}, []toldRace{{SameAgain, "visit", "place", false}}},
	{"it is noted when somebody looked", []string{"BEGIN", "SELECT place, seen FROM visit WHERE id = 1",
		"UPDATE visit SET seen = '2026-01-02 03:04:05' WHERE id = 1", "COMMIT"}, nil},
	{"an outer join finds nobody, and one is inserted", []string{"BEGIN",
		"SELECT cart.total, line.id FROM cart LEFT JOIN line ON line.cart_id = cart.id WHERE cart.id = 1",
		"INSERT INTO line (cart_id) VALUES (1)", "COMMIT"}, []toldRace{{DoubleInsert, "line", "", false}}},
	{"values that are long, with quotes, and in two lists", []string{"BEGIN",
		"SELECT balance FROM account WHERE id IN (1, 7) AND version IN (0, 1)",
		"INSERT INTO users (email) VALUES ('it''s " + strings.Repeat("long ", 17) + "')",
		"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, []toldRace{{LostUpdate, "account", "balance", false}}},
	{"settings are stored whole, each time with another one changed", []string{
		"BEGIN", "SELECT * FROM settings WHERE id = 1", "UPDATE settings SET theme = 'dark', lang = 'en', wide = true WHERE id = 1", "COMMIT",
		"SELECT * FROM settings WHERE id = 2", "UPDATE settings SET theme = '', lang = 'fr', wide = true WHERE id = 2"},
		[]toldRace{{LostUpdate, "settings", "theme", false}, {LostUpdate, "settings", "lang", false}}},
	{"what is added is referred to by a name alone", []string{"BEGIN", "SELECT id FROM teams WHERE name = 'a'",
		"INSERT INTO teams (name) VALUES ('a') RETURNING id", "INSERT INTO team_roles (team_id, role) VALUES (1, 3)", "COMMIT"},
		[]toldRace{{DoubleInsert, "teams", "", false}}},
	{"what is added is looked for again behind a lock", []string{"BEGIN", "SELECT id FROM project WHERE name = 'new' LIMIT 1",
		"SELECT id FROM project WHERE name = 'old' FOR UPDATE", "SELECT name FROM project WHERE name = 'new' FOR UPDATE",
		"INSERT INTO project (name) VALUES ('new')", "COMMIT"}, nil},
	{"both set the same, and note it", []string{"BEGIN", "SELECT name FROM profile WHERE id = 1",
		"UPDATE profile SET name = 'new' WHERE id = 1", "INSERT INTO audit (n) VALUES (1)", "COMMIT"},
		[]toldRace{{SameAgain, "profile", "name", false}}},
	{"what others have added is moved before one is added", []string{"BEGIN", "SELECT id FROM project WHERE name = 'new' LIMIT 1",
		"SELECT id FROM project ORDER BY id FOR UPDATE", "UPDATE project SET name = 'moved' WHERE name = 'new'",
		"INSERT INTO project (name) VALUES ('new')", "COMMIT"}, []toldRace{{DoubleInsert, "project", "", true}}},
	{"what is added is referred to by a name that tells no table", []string{"BEGIN", "SELECT id FROM teams WHERE name = 'a'",
		"INSERT INTO teams (name) VALUES ('a')/* RETURNING id */", "INSERT INTO likes (liked_id, liked_type) VALUES (1, 'team')", "COMMIT"},
		[]toldRace{{DoubleInsert, "teams", "", false}}},
	{"a key has its table's name, and is referred to by it", []string{"BEGIN", "SELECT parcel_id FROM parcels WHERE code = 'a'",
		"INSERT INTO parcels (code) VALUES ('a')/* RETURNING parcel_id */", "INSERT INTO labels (parcel_id, note) VALUES (1, 'x')", "COMMIT"},
		[]toldRace{{DoubleInsert, "parcels", "", false}}},
	{"both set the same, and note it as all do", []string{"BEGIN", "SELECT name FROM profile WHERE id = 1",
		"UPDATE profile SET name = 'new' WHERE id = 1", "INSERT INTO mail (n) VALUES (1)", "COMMIT",
		"BEGIN", "UPDATE account SET balance = balance + 1 WHERE id = 1", "INSERT INTO mail (n) VALUES (2)", "COMMIT",
		"BEGIN", "UPDATE cart SET total = total + 1 WHERE id = 1", "INSERT INTO mail (n) VALUES (3)", "COMMIT",
		"BEGIN", "DELETE FROM visit WHERE id = 1", "INSERT INTO mail (n) VALUES (4)", "COMMIT"},
		[]toldRace{{SameAgain, "profile", "name", false}}},
	{"what goes with a row that is deleted changed none", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1",
		"DELETE FROM account WHERE id = 1", "DELETE FROM mail WHERE n = 1", "COMMIT"}, nil},
	{"both set the same, and send a mail", []string{"BEGIN", "SELECT name FROM profile WHERE id = 1",
		"UPDATE profile SET name = 'new' WHERE id = 1", "INSERT INTO mail (n) VALUES (1)", "COMMIT"},
		[]toldRace{{StaleChoice, "profile", "name", false}}},
	{"settings are stored whole, and a mail is sent", []string{
		"BEGIN", "SELECT * FROM settings WHERE id = 1", "UPDATE settings SET theme = 'dark', lang = 'en' WHERE id = 1",
		"INSERT INTO mail (n) VALUES (1)", "COMMIT",
		"BEGIN", "SELECT * FROM settings WHERE id = 2", "UPDATE settings SET theme = '', lang = 'fr' WHERE id = 2",
		"INSERT INTO mail (n) VALUES (2)", "COMMIT"},
		[]toldRace{{LostUpdate, "settings", "theme", false}, {LostUpdate, "settings", "lang", false}}},
	{"settings are stored whole, each time with the same one changed", []string{
		"BEGIN", "SELECT * FROM settings WHERE id = 1", "UPDATE settings SET theme = 'dark', lang = 'en' WHERE id = 1", "COMMIT",
		"BEGIN", "SELECT * FROM settings WHERE id = 2", "UPDATE settings SET theme = 'blue', lang = 'en' WHERE id = 2", "COMMIT"},
		[]toldRace{{SameAgain, "settings", "theme", false}}},
	{"settings are stored whole, by others behind a lock", []string{
		"BEGIN", "SELECT * FROM settings WHERE id = 1", "UPDATE settings SET theme = 'dark', lang = 'en' WHERE id = 1", "COMMIT",
		"BEGIN", "SELECT * FROM settings WHERE id = 2 FOR UPDATE", "UPDATE settings SET theme = '', lang = 'fr' WHERE id = 2", "COMMIT"},
		[]toldRace{{SameAgain, "settings", "theme", false}}},
	{"it was rolled back", []string{"BEGIN", "SELECT balance FROM account WHERE id = 1",
		"UPDATE account SET balance = 90 WHERE id = 1", "ROLLBACK"}, nil},
}

// families are how each makes a key that counts.
var families = []struct {
	name   string
	family dbms.Family
	counts string
}{{"PostgreSQL", dbms.PostgreSQLFamily, "serial"}, {"MariaDB", dbms.MySQLFamily, "int AUTO_INCREMENT"}}

// TestSerialRunsTellWhichRequestsRace runs each program once, alone.
func TestSerialRunsTellWhichRequestsRace(t *testing.T) {
	for _, f := range families {
		for _, p := range programs {
			t.Run(f.name+"/"+p.name, func(t *testing.T) {
				result := exploreSerial(t, f.family, f.counts, p.statements)
				var told []toldRace
				for _, r := range result.Races {
					told = append(told, toldRace{r.Kind, r.Table, strings.TrimSuffix(r.Column, "(*)"), !r.Proved})
				}
				if !slices.Equal(told, p.races) || result.Diverged > 0 || result.NotPlayed[ReachesOut] > 0 {
					t.Errorf("told is %+v, want %v; %+v", result.Races, p.races, result)
				}
			})
		}
	}
}

// TestALockOfAllRowsIsNoLook has a program lock all rows of a table before it adds one that it looked for. On MariaDB
// the lock shows the other's row, which the program does not ask for.
func TestALockOfAllRowsIsNoLook(t *testing.T) {
	for _, f := range families {
		look := "SELECT id FROM project WHERE name = 'new' LIMIT 1"
		if f.family == dbms.MySQLFamily {
			look = "SELECT id FROM project WHERE name = BINARY 'new' LIMIT 1"
		}
		result := exploreSerial(t, f.family, f.counts, []string{"BEGIN", look,
			"SELECT id FROM project ORDER BY id FOR UPDATE", "INSERT INTO project (name) VALUES ('new')", "COMMIT"})
		if len(result.Races) != 1 || result.Races[0].Kind != DoubleInsert || result.Races[0].Table != "project" {
			t.Errorf("%s: told is %+v, want the double insert", f.name, result.Races)
		}
	}
}

// TestWhoLoadsAnObjectRarelyGoesByItsNumbers has two requests that each read what the other writes: one inserts what
// belongs to a row that it has loaded.
func TestWhoLoadsAnObjectRarelyGoesByItsNumbers(t *testing.T) {
	for _, f := range families {
		for _, c := range []struct {
			read, write string
			idle        bool
		}{
			{"SELECT * FROM account WHERE id = 1", "UPDATE account SET balance = 90 WHERE id = 1", true},
			{"SELECT id, balance FROM account WHERE id = 1", "UPDATE account SET balance = 90 WHERE id = 1", false},
			{"SELECT sum(balance) FROM account", "UPDATE account SET balance = 90 WHERE id = 1", false},
			{"SELECT * FROM profile WHERE id = 1", "UPDATE profile SET name = 'closed' WHERE id = 1", false},
			{"SELECT * FROM ticket WHERE id = 1", "UPDATE ticket SET state = 2 WHERE id = 1", false},
		} {
			result := exploreSerial(t, f.family, f.counts, []string{"BEGIN", "SELECT cart_id FROM line", c.write, "COMMIT",
				"UPDATE account SET balance = 100", "UPDATE profile SET name = 'old'", "UPDATE ticket SET state = 0",
				"BEGIN", c.read, "INSERT INTO line (cart_id) VALUES (1)", "COMMIT"})
			at := slices.IndexFunc(result.Races, func(r Race) bool { return r.Read == c.read })
			if at < 0 || result.Races[at].Kind != WriteSkew || result.Races[at].Idle() != c.idle {
				t.Errorf("%s, %s: told is %+v, want a write skew, idle %v", f.name, c.read, result.Races, c.idle)
			}
		}
	}
}

// exploreSerial has one client run statements through isotap, and plays them on a copy of the database as it was
// before.
func exploreSerial(t *testing.T, family dbms.Family, counts string, statements []string) *Result {
	t.Helper()
	skipWhatIsNotThere(t, family, statements)
	return exploreClient(t, family, counts, func(client *sql.Conn, database string) {
		for _, text := range inSQL(family, counts, database, statements) {
			if _, err := client.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	})
}

// skipWhatIsNotThere skips a test with statements that the MySQL family's server of the round does not have.
func skipWhatIsNotThere(t *testing.T, family dbms.Family, statements []string) {
	t.Helper()
	has := func(text string) bool {
		return slices.ContainsFunc(statements, func(s string) bool { return strings.Contains(s, text) })
	}
	switch engine := testdb.EngineName(); {
	case family != dbms.MySQLFamily:
	case engine == testdb.TiDBRound.Name && has("CREATE TRIGGER"):
		t.Skip("TiDB has no triggers")
	case (engine == testdb.TiDBRound.Name || engine == testdb.MySQL.Name) && has(") RETURNING "):
		t.Skip("it has no RETURNING")
	}
}

// inSQL returns a program's statements as a family has them.
func inSQL(family dbms.Family, counts, database string, statements []string) (all []string) {
	for _, text := range statements {
		concurrently := " CONCURRENTLY"
		upsert, other := "ON CONFLICT (email) DO UPDATE SET", "excluded.n"
		if family == dbms.MySQLFamily {
			concurrently = ""
			upsert, other = "ON DUPLICATE KEY UPDATE", "VALUES(n)"
		}
		text = strings.NewReplacer("{db}", database, "{upsert}", upsert, "{new}", other, "{ concurrently}", concurrently, "{count}", counts).Replace(text)
		if family == dbms.PostgreSQLFamily { // whose clients learn a key so
			text = strings.NewReplacer("/*", "", "*/", "").Replace(text)
		}
		all = append(all, text)
	}
	return all
}

// exploreClient has one client run through isotap, and plays what it did on a copy of the database as it was before.
func exploreClient(t *testing.T, family dbms.Family, counts string, run func(client *sql.Conn, database string)) *Result {
	t.Helper()
	setup := tablesOf(counts)
	text, target := newTarget(t, family, setup)
	r, of := recordClient(t, text, target, nil, run)
	_, was := newTarget(t, family, append(setup, hidden(family)...))
	result, err := Explore(t.Context(), r, Options{Was: was, Database: target.Database, Run: of, Copy: clone.Temporary})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// tablesOf are the statements that make the tables, where keys count so.
func tablesOf(counts string) (setup []string) {
	for _, text := range tables {
		if slices.Contains([]byte(text), '%') {
			text = fmt.Sprintf(text, counts)
		}
		setup = append(setup, text)
	}
	return setup
}

// recordClient has one client run through isotap, and returns the recording.
func recordClient(t *testing.T, text string, target dsn.Target, twins twin.Player,
	run func(client *sql.Conn, database string)) (*recorder.Reader, history.Run) {
	t.Helper()
	recording := filepath.Join(t.TempDir(), "rec")
	srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: recording,
		Args: true, Texts: true, Definitions: true, Twins: twins, Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Stop() })
	url := strings.Replace(text, target.Address, srv.Addr().String(), 1)
	db, err := workload.DialectOf(url).Open(url, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	client, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(client, target.Database)
	if err := errors.Join(client.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	of := srv.Run()
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	r, err := recorder.Open(recording)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, of
}

// hidden are statements that give the tables isotap's columns, which those of the MySQL family have when `isotap run`
// copies them.
func hidden(family dbms.Family) (all []string) {
	for _, text := range tables {
		if name, ok := strings.CutPrefix(text, "CREATE TABLE "); ok && family == dbms.MySQLFamily {
			name, _, _ = strings.Cut(name, " ")
			invisible := " INVISIBLE"
			if testdb.EngineName() == testdb.TiDBRound.Name {
				invisible = ""
			}
			all = append(all, "ALTER TABLE "+name+" ADD COLUMN isotap_rowid VARCHAR(30)"+invisible+", ADD COLUMN isotap_wlist TEXT"+invisible)
		}
	}
	return all
}

// TestParametersArePlayedWhole: what a client binds is played as it was sent, long values too.
func TestParametersArePlayedWhole(t *testing.T) {
	long := strings.Repeat("it's \\ long ", 6)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			mark := func(n int) string { return fmt.Sprintf("$%d", n) }
			if f.family == dbms.MySQLFamily {
				mark = func(int) string { return "?" }
			}
			result := exploreClient(t, f.family, f.counts, func(client *sql.Conn, _ string) {
				tx, err := client.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range []struct {
					text string
					args []any
				}{
					{"SELECT balance FROM account WHERE id = " + mark(1), []any{1}},
					{"INSERT INTO users (email) VALUES (" + mark(1) + ")", []any{long}},
					{"UPDATE account SET balance = " + mark(1) + " WHERE id = " + mark(2), []any{90, 1}},
				} {
					if _, err := tx.ExecContext(t.Context(), s.text, s.args...); err != nil {
						t.Fatalf("%s: %v", s.text, err)
					}
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
			})
			if len(result.Races) != 1 || result.Races[0].Column != "balance" || result.Races[0].Wrote != "90" {
				t.Errorf("told is %+v; %+v", result.Races, result)
			}
		})
	}
}

// newTarget makes a database, and returns its address as a client and as isotap has it.
func newTarget(t *testing.T, family dbms.Family, setup []string) (text string, target dsn.Target) {
	t.Helper()
	skipWhatIsNotThere(t, family, setup)
	var db *sql.DB
	if family == dbms.PostgreSQLFamily {
		database := testdb.NewPostgreSQLDatabase(t)
		text, db = testdb.PostgreSQL(t).DSN(database), testdb.OpenPostgreSQL(t, database)
	} else {
		database := testdb.NewDatabase(t)
		text, db = testdb.Current(t).DSN(database), testdb.Open(t, database)
	}
	testdb.Exec(t, db, setup...)
	if err := db.Close(); err != nil { // PostgreSQL copies no database with connections
		t.Fatal(err)
	}
	target, err := dsn.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return text, target
}
