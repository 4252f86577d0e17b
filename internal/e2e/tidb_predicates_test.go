package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// tidbModes are those of TiDB's transactions: they lock as they go, or find their conflicts at COMMIT.
var tidbModes = []string{"pessimistic", "optimistic"}

func inTiDBMode(mode string) string { return "tidb_txn_mode=%27" + mode + "%27" }

// TestTwoRegistrationsAreFoundOnTiDBByDefault has two clients register a user at a time, in both of TiDB's modes.
func TestTwoRegistrationsAreFoundOnTiDBByDefault(t *testing.T) {
	for _, mode := range tidbModes {
		t.Run(mode, func(t *testing.T) {
			b := newTiDBBench(t, inModeAuto, "CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(50))")
			db := b.open(inTiDBMode(mode))
			first, second := b.conn(db), b.conn(db)
			for _, step := range registration {
				b.exec(first, step)
				b.exec(second, step)
			}
			holdPhantomSkew(t, b.analyze())
		})
	}
}

// TestConditionsOfTiDBQueriesAreLookedAt is [TestConditionsOfMySQLQueriesAreLookedAt] on TiDB.
func TestConditionsOfTiDBQueriesAreLookedAt(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdConditionsLookedAt(t, newTiDBBench(t, inModePredicates, lookedAtTables...))
}

// TestTiDBPredicatesMissWhatSnapshotsLack is [TestMySQLPredicatesMissWhatSnapshotsLack] on TiDB.
func TestTiDBPredicatesMissWhatSnapshotsLack(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, mode := range tidbModes {
		t.Run(mode, func(t *testing.T) {
			b := newTiDBBench(t, inModePredicates, itemTables()...)
			holdOnMySQL(t, b, inTiDBMode(mode)+"&", tidbChanges, true)
		})
	}
}

// tidbChanges are changes that isotap observes on TiDB.
var tidbChanges = append([]string{"UPDATE item SET a = 19 - a WHERE id <= 40 AND a = ?",
	"UPDATE item SET a = a + 1 - 1, b = 'kept' WHERE id <= 40 AND a = ?"}, changes[1:]...)

// TestConditionsOfTiDBsHoldAtTheTimeOfTheStatement is [TestConditionsOfMySQLsHoldAtTheTimeOfTheStatement] on TiDB, and
// [TestConditionsOfMySQLsHoldBetweenTwoMoments].
func TestConditionsOfTiDBsHoldAtTheTimeOfTheStatement(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	holdMySQLTimed(t, newTiDBBench(t, inModePredicates, mysqlTimedTables...), mysqlTimedForms, 4,
		"SET time_zone = '+02:00'", "SET timestamp = 1795705200")
	holdMySQLTimed(t, newTiDBBench(t, inModePredicates, mysqlTimedTables...), mysqlBetweenForms, 10,
		"SET time_zone = '+02:00'")
}

// TestAFilledLimitOfTiDBsHangsOnWhatWouldStandBefore is [TestAFilledLimitOfMySQLsHangsOnWhatWouldStandBefore] on TiDB.
func TestAFilledLimitOfTiDBsHangsOnWhatWouldStandBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	forms := slices.DeleteFunc(mysqlFilledForms(), func(f filledForm) bool {
		return strings.Contains(f.query, "SKIP LOCKED") // TiDB does not have it
	})
	holdMySQLFilled(t, newTiDBBench(t, inModePredicates, mysqlFilledTables...), forms)
}

// TestALimitedWriteOfTiDBsLeavesItsCondition is [TestALimitedWriteOfMySQLsLeavesItsCondition] on TiDB, where a DELETE
// with a LIMIT is opaque.
func TestALimitedWriteOfTiDBsLeavesItsCondition(t *testing.T) {
	updates := slices.DeleteFunc(slices.Clone(limitedWrites), func(w limitedWrite) bool {
		return strings.HasPrefix(w.statement, "DELETE")
	})
	holdLimitedWrites(t, newTiDBBench(t, inModePredicates, limitedTable), updates, 3, 2)
}

// A table of most types on TiDB, and writes of which each row's last one has an image.
var (
	tidbImageTable  = strings.Replace(imageTable, "`a b` VARCHAR(40)", "`a b` VARCHAR(40) COLLATE utf8mb4_general_ci", 1)
	tidbImageWrites = append(slices.Clone(imageWrites[:6]),
		"UPDATE `Odd t` SET `a b` = 'it''s @isotap more', n = n + 1, k = k * 2 - 1, c = \"@a 'b'  \" WHERE id IN (1, 3)",
		"UPDATE `Odd t` SET n = NULL, `a b` = NULL, k = 5 WHERE id = 4",
		"UPDATE `Odd t` x SET x.c = x.`a b`, z = 17, k = 0 WHERE x.id = 5",
		"UPDATE `Odd t` SET k = 7, n = 12.5 WHERE id = 6",
		"INSERT INTO `Odd t` (id, d, f) VALUES (NULL, 1.5e-30, 1.5e-30)", "INSERT INTO `Odd t` (id, d) VALUES (0, 1e300)",
		"INSERT INTO `Odd t` (d) VALUES (0.1e0 / 3)",
		"DELETE FROM `Odd t` WHERE id IN (100, 101)") // of which the second has a number that nobody told
)

// TestImagesMatchWhatRowsOfTiDBsDo is [TestImagesMatchWhatTheirRowsDo] on TiDB.
func TestImagesMatchWhatRowsOfTiDBsDo(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		b := newTiDBBench(t, inModePredicates, tidbImageTable)
		c := b.conn(b.through)
		b.exec(c, "SET time_zone = '+02:00'", "SET sql_mode = 'STRICT_ALL_TABLES'")
		for _, write := range tidbImageWrites {
			if !prepared {
				b.exec(c, write)
				continue
			}
			s, err := c.PrepareContext(t.Context(), write)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.ExecContext(t.Context()); err != nil {
				t.Fatalf("%s: %v", write, err)
			}
		}
		// Parameters that are copied, and a NULL among them.
		for _, args := range [][]any{{"@p \" 'q'", 41, 2}, {nil, nil, 7}} {
			if _, err := c.ExecContext(t.Context(), "UPDATE `Odd t` SET `a b` = ?, z = ? WHERE id = ?", args...); err != nil {
				t.Fatal(err)
			}
		}
		rows := b.ask("SELECT isotap_rowid FROM `Odd t` ORDER BY 1")
		last, images := lastImages(b.txns()), make([]string, len(rows))
		for i, row := range rows {
			if images[i] = last[row]; images[i] == "" {
				t.Errorf("there is no image of %s", row)
			}
		}
		b.holdMatching(b.matching(testdb.TiDB(t).URL()), append([]string{"k > 5", "c LIKE '%b%'", "`a b` LIKE '%@%'",
			"c = `a b`", "n >= 1.06", "id > 101", "id = 102", "id = 103", "d = 1.5e-30", "d > 1e299", "d BETWEEN -1e-200 AND 0", "f > 1e-31"}, imageConditions...), images, rows)
	}
}

// TestWhatTiDBMayChangeHasNoImage: a random number in the place of a key, a sequence that goes on when it is looked at,
// and values that do not fit.
func TestWhatTiDBMayChangeHasNoImage(t *testing.T) {
	b := newTiDBBench(t, inModePredicates, "CREATE SEQUENCE seq",
		"CREATE TABLE r (id BIGINT AUTO_RANDOM PRIMARY KEY, v INT)",
		"CREATE TABLE s (id INT PRIMARY KEY, n BIGINT DEFAULT (NEXT VALUE FOR seq))",
		"CREATE TABLE n (id BIGINT PRIMARY KEY, v TINYINT)")
	c := b.conn(b.through)
	b.exec(c, "INSERT INTO r (v) VALUES (1)", "INSERT INTO r (id, v) VALUES (0, 2), (NULL, 3)",
		"INSERT INTO s (id, n) VALUES (1, 10)", "INSERT INTO s (id) VALUES (2)", "INSERT INTO s (id) VALUES (3)",
		"INSERT INTO n VALUES (5, 1)", "INSERT IGNORE INTO n VALUES (6, 1000)", "SET sql_mode = ''",
		"INSERT INTO n VALUES (7, 1000)")
	if got := b.ask("SELECT CONCAT(id, ' ', n) FROM s ORDER BY id"); !slices.Equal(got, []string{"1 10", "2 1", "3 2"}) {
		t.Errorf("the sequence gave %q", got)
	}
	var images []string
	for _, x := range b.txns() {
		for _, s := range x.Stmts {
			for i, image := range s.Images {
				if image != "" && s.Accesses[i].Op == history.InsertRow {
					images = append(images, image)
				}
			}
		}
	}
	if want := []string{"(`id`, `v`) VALUES (5,1)"}; !slices.Equal(images, want) {
		t.Errorf("images %q, want %q", images, want)
	}
}
