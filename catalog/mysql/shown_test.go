package mysql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/internal/testdb"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// shownTables are definitions of a table t. Those that asks marks are such that information_schema has to be asked.
var shownTables = []struct {
	name, definition string
	asks             bool
}{
	{"numbers", "(id INT PRIMARY KEY AUTO_INCREMENT, n NUMERIC(5,2) UNSIGNED ZEROFILL, f DOUBLE DEFAULT 1.5e3, " +
		"b BIT(3) DEFAULT b'101', y YEAR NOT NULL DEFAULT 2000)", false},
	{"texts", "(a VARCHAR(10) CHARACTER SET latin1 DEFAULT 'x,y', b TEXT DEFAULT 'it''s )', " +
		"c CHAR(3) COLLATE utf8mb4_bin NOT NULL, d LONGTEXT, j JSON, v VARBINARY(9), l BLOB DEFAULT 'z')", false},
	{"names", "(`a``b` INT COMMENT 'it''s, a (thing\\n', `(` INT, `KEY ``x``` INT, " +
		"KEY `k,``(` (`(`, `KEY ``x```)) COMMENT = ') ENGINE=x COLLATE=y'", false},
	{"enumerations", "(e ENUM('a','b''',',)') NOT NULL, s SET('x','y') DEFAULT 'x,y')", false},
	{"times", "(t TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), d DATETIME DEFAULT (now() + INTERVAL 1 DAY), " +
		"c TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, o DATETIME ON UPDATE CURRENT_TIMESTAMP)", false},
	{"generated", "(a INT, g INT GENERATED ALWAYS AS (a + 1) VIRTUAL INVISIBLE, s INT AS (a * 2) STORED, " +
		"CHECK (a > 1), i INT INVISIBLE DEFAULT 3 CHECK (i < 9))", false},
	{"types of plugins", "(u UUID DEFAULT uuid(), i INET6, p POINT NOT NULL, SPATIAL KEY s (p))", false},
	{"indexes", "(a VARCHAR(20), b INT, c TEXT, UNIQUE KEY u (a(3)), KEY k (b DESC, a), UNIQUE KEY lx (c), " +
		"FULLTEXT KEY ft (c), KEY B (a) COMMENT 'x)', KEY i (b, a(2)) IGNORED, PRIMARY KEY (b, a))", false},
	{"isotap's columns", "(id INT, " + sqlmysql.RowIDDefinition + ", " + sqlmysql.WListDefinition(100) + ")", false},
	{"isotap's long list", "(id INT, " + sqlmysql.RowIDDefinition + ", " + sqlmysql.WListDefinition(60000) + ")",
		false},
	{"foreign keys", "(id INT PRIMARY KEY, p INT, q INT, CONSTRAINT f FOREIGN KEY (p) REFERENCES t (id) " +
		"ON DELETE CASCADE ON UPDATE SET NULL, FOREIGN KEY (q) REFERENCES t (id))", false},
	{"options", "(id INT) ENGINE = MyISAM ROW_FORMAT = DYNAMIC CHARSET latin1 COLLATE latin1_bin AVG_ROW_LENGTH = " +
		"10 PACK_KEYS = 1", false},
	{"partitions", "(id INT PRIMARY KEY, v VARCHAR(3)) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10), " +
		"PARTITION q VALUES LESS THAN MAXVALUE)", false},
	{"old times", "(id INT, t DATETIME(6) NULL DEFAULT '2000-01-01 00:00:00')", false},
	{"a binary enumeration", "(e ENUM('a') CHARACTER SET binary)", true},
	{"a generated text", "(a INT, s VARCHAR(10) AS (concat(a, 'x')) STORED)", true},
	{"system versions", "(id INT) WITH SYSTEM VERSIONING", true},
}

func TestTableIsReadOfItsShownDefinition(t *testing.T) {
	testdb.Only(t, "other servers are asked by information_schema", "mariadb", "mariadb118")
	for _, c := range shownTables {
		t.Run(c.name, func(t *testing.T) {
			database := testdb.NewDatabase(t)
			db := testdb.Open(t, database)
			conn := connect(t)
			cache := load(t, conn)
			run(t, db, "CREATE TABLE t "+c.definition)
			for _, trigger := range []string{"", "CREATE TRIGGER fires BEFORE UPDATE ON t FOR EACH ROW SET @x = 1"} {
				if trigger != "" {
					run(t, db, trigger)
				}
				only := name{database, "t"}
				alone := cache.newReading(&only)
				read, err := alone.readShown(t.Context(), conn, nil)
				require.NoError(t, err)
				require.NotEqual(t, c.asks, read, "the table is read of its definition")
				alone, err = cache.read(t.Context(), conn, &only, nil)
				require.NoError(t, err)
				whole, err := cache.read(t.Context(), conn, nil, nil)
				require.NoError(t, err)
				require.Equal(t, whole.tables[only], alone.tables[only])
				var keys []foreignKey
				for _, k := range whole.foreignKeys {
					if k.child == only {
						keys = append(keys, k)
					}
				}
				require.Equal(t, keys, alone.foreignKeys)
			}
		})
	}
}

func TestDefinitionThatIsNotUnderstoodIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "CREATE TABLE t", "CREATE TABLE `t` (\n  `a` int(11)",
		"CREATE TABLE `t` (\n  `a` int(11\n) ENGINE=InnoDB COLLATE=x",
		"CREATE TABLE `t` (\n  `a` int(11) WONDERFUL\n) ENGINE=InnoDB COLLATE=x",
		"CREATE TABLE `t` (\n  `a` text\n) ENGINE=InnoDB",
		"CREATE TABLE `t` (\n  `a` int(11) COMMENT 'x\n) ENGINE=InnoDB COLLATE=x",
		"CREATE TABLE `t` (\n  `a` int,\n) ENGINE=InnoDB COLLATE=x",
		"CREATE TABLE `t` (\n  `a` int(11),\n  PERIOD FOR SYSTEM_TIME (`a`, `b`)\n) ENGINE=InnoDB COLLATE=x",
		"CREATE TABLE `t` (\n  `a` int(11)\n) COLLATE=x",
	} {
		_, ok := parseDefinition(text)
		require.False(t, ok, text)
	}
	_, ok := parseDefinition("CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=InnoDB COLLATE=x")
	require.True(t, ok)
}
