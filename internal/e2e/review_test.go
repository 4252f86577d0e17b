package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// pause is the step of a script in which the client is quiet for so long that isotap reads what the
// last write captured.
const pause = "-- pause"

// A script is what one client says; every reply must be the server's own, byte for byte. Steps that
// begin with "execute " are prepared, executed twice and closed; "prepare " and "run n" do so one by one.
type script struct {
	name  string
	setup []string
	steps []string
}

const items = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(20))"

var someItems = []string{items, "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, NULL), (3, 30, 'three')"}

func scripts() []script {
	return []script{
		{"counts after writes", someItems, []string{
			"UPDATE t SET v = 5", "SELECT ROW_COUNT()", "UPDATE t SET v = 6", pause, "SELECT ROW_COUNT()",
			"UPDATE t SET v = 7 WHERE id < 3", pause, "SELECT ROW_COUNT() AS n, FOUND_ROWS()",
			"UPDATE t SET v = 8", pause, "SET @n = ROW_COUNT()", "SELECT @n",
			"UPDATE t SET v = 9", pause, "INSERT INTO t (v) VALUES (ROW_COUNT())",
			"SELECT v FROM t ORDER BY id DESC LIMIT 1",
			"UPDATE t SET v = 10", pause, "SELECT ROW_COUNT() INTO @n", "SELECT @n",
			"UPDATE t SET v = 11", pause, "DO SLEEP(ROW_COUNT() * 0)",
			"UPDATE t SET v = 12", pause, "execute SELECT ROW_COUNT()", "UPDATE t SET v = 13", pause,
			"execute SELECT ROW_COUNT() AS n, FOUND_ROWS()",
			"UPDATE t SET v = 14", pause, "execute SET @n = ROW_COUNT()", "SELECT @n",
			"DELETE FROM t WHERE id > 3", "SELECT ROW_COUNT()", "DELETE FROM t WHERE id > 3", pause,
			"SET @n = ROW_COUNT()", "SELECT @n",
		}},
		{"found rows", someItems, []string{
			"UPDATE t SET v = 5", "SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", "SELECT FOUND_ROWS()",
			"BEGIN", "UPDATE t SET v = 6", "SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", "COMMIT",
			"SELECT FOUND_ROWS()",
			"SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", "SET NAMES utf8mb4", "SELECT FOUND_ROWS()",
			"SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", "USE @db", "SET @n = FOUND_ROWS()", "SELECT @n",
			"UPDATE t SET v = 8", pause, "SELECT FOUND_ROWS()",
			"SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", "UPDATE t SET v = 9", pause,
			"SELECT FOUND_ROWS(), ROW_COUNT()",
			"execute SELECT FOUND_ROWS()",
		}},
		{"diagnostics", someItems, []string{
			"SET sql_mode = ''", "UPDATE t SET s = REPEAT('x', 30) WHERE id = 1", pause, "SHOW WARNINGS",
			"UPDATE t SET s = REPEAT('y', 30) WHERE id = 1", pause, "SHOW COUNT(*) WARNINGS",
			"UPDATE t SET s = REPEAT('z', 30) WHERE id = 1", pause, "SELECT @@warning_count",
			"UPDATE t SET s = REPEAT('a', 30) WHERE id = 1", pause, "GET DIAGNOSTICS @c = NUMBER", "SELECT @c",
			"UPDATE t SET s = REPEAT('b', 30) WHERE id = 1", pause, "GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT",
			"SELECT @m",
			"BEGIN", "INSERT INTO t VALUES (1, 1, 'dup')", "SHOW WARNINGS", "SHOW ERRORS", "SELECT @@error_count",
			"INSERT INTO t VALUES (1, 1, 'dup')", "GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT, @e = MYSQL_ERRNO",
			"SELECT @m, @e",
			"INSERT INTO t VALUES (1, 1, 'dup')", "SELECT ROW_COUNT()", "INSERT INTO t VALUES (1, 1, 'dup')",
			"SET @n = ROW_COUNT()", "SELECT @n", "ROLLBACK",
			"SELECT missing FROM t", "SHOW WARNINGS", "DELETE FROM t WHERE id = 'abc'", "SHOW WARNINGS",
			"UPDATE IGNORE t SET id = 1 WHERE id = 2", pause, "SHOW WARNINGS",
			"SET max_length_for_sort_data = 1", "SHOW WARNINGS", "SET sort_buffer_size = 1", "SHOW WARNINGS",
			"SET sort_buffer_size = 1", "SELECT @@warning_count", "CREATE TABLE IF NOT EXISTS t (x INT)",
			"SHOW WARNINGS",
			"DROP TABLE IF EXISTS nothing", "SHOW WARNINGS", "UPDATE t SET v = 'abc' WHERE id = 3", "SHOW WARNINGS",
		}},
		{"insert ids", someItems, []string{
			"INSERT INTO t (v) VALUES (1), (2)", "SELECT LAST_INSERT_ID()",
			"UPDATE t SET v = LAST_INSERT_ID(v + 100) WHERE id = 1", pause, "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (v) VALUES (1)", "UPDATE t SET v = 2", pause, "SELECT LAST_INSERT_ID()",
			"DELETE FROM t WHERE id = LAST_INSERT_ID()", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t SET v = 3", "SELECT * FROM t WHERE id IS NULL",
			"SELECT @@insert_id, @@last_insert_id, @@identity",
			"INSERT IGNORE INTO t VALUES (1, 1, ''), (NULL, 2, '')", "SELECT LAST_INSERT_ID()", "SET insert_id = 100",
			"INSERT INTO t (v) VALUES (1)", "SELECT MAX(id) FROM t",
			"SET last_insert_id = 5", "SELECT LAST_INSERT_ID()",
		}},
		{"select limit and character sets", someItems, []string{
			"SET sql_select_limit = 0", "SELECT * FROM t", "UPDATE t SET v = 1", pause, "UPDATE t SET v = 2",
			"SELECT 1", "SET sql_select_limit = DEFAULT",
			"SET character_set_results = utf16", "SELECT 'a'", "SELECT HEX(s) AS h FROM t ORDER BY id",
			"UPDATE t SET v = 3", pause, "SELECT 1", "SET character_set_results = NULL", "SELECT s FROM t ORDER BY id",
			"SET NAMES latin1", "UPDATE t SET s = 'caf\xe9' WHERE id = 1",
			"SELECT s, HEX(s) FROM t WHERE s = 'caf\xe9'",
			"SET NAMES gbk", "SELECT s FROM t WHERE s = '\xbf\x5c'", "UPDATE t SET s = '\xbf\x5c' WHERE id = 2",
			"SELECT HEX(s) FROM t ORDER BY id", "SET NAMES utf8mb4",
			"SET character_set_connection = utf16", "UPDATE t SET s = 'u' WHERE id = 3",
			"INSERT INTO t (s) VALUES ('v')", "DELETE FROM t WHERE s = 'v'", "SELECT s FROM t ORDER BY id",
			"CREATE TABLE u (a INT)", "DROP TABLE u",
			"SET collation_connection = utf8mb4_bin", "UPDATE t SET s = 'w' WHERE id = 3",
			"SELECT s FROM t WHERE s = 'W'",
		}},
		{"modes", someItems, []string{
			"SET sql_mode = 'ANSI_QUOTES'", `SELECT "v" FROM "t" WHERE "id" = 1`,
			`UPDATE "t" SET "v" = 4 WHERE "id" = 1`, `SELECT "t"."v" FROM t`,
			"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `UPDATE t SET s = 'a\' WHERE id = 1`,
			`SELECT s FROM t WHERE s = 'a\'`,
			"SET sql_mode = 'PIPES_AS_CONCAT'", "SELECT s || 'x' FROM t ORDER BY id", "UPDATE t SET s = id || 'p'",
			"SELECT s FROM t",
			"SET sql_mode = 'ORACLE'", "UPDATE t SET v = 3", "SELECT v FROM t", "INSERT INTO t (v) VALUES (1)",
			"DELETE FROM t WHERE v = 1",
			"SET sql_mode = 'EMPTY_STRING_IS_NULL'", "UPDATE t SET s = '' WHERE id = 1",
			"INSERT INTO t (s) VALUES ('')", "SELECT * FROM t", "DELETE FROM t WHERE id > 3",
			"SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT'", "UPDATE t SET v = id, s = v", "SELECT * FROM t",
			"SET sql_mode = 'NO_ZERO_DATE,STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY'", "SELECT id, v FROM t ORDER BY v, id",
			"UPDATE t SET v = 'x'", "SET sql_mode = 'HIGH_NOT_PRECEDENCE,IGNORE_SPACE'", "SELECT COUNT (*) FROM t",
			"SELECT v FROM t WHERE NOT id = 1",
		}},
		{"comments and ends", someItems, []string{
			"SELECT id FROM t -- the end", "SELECT id FROM t # the end", "SELECT id FROM t /* the end */",
			"SELECT id -- list\n FROM t", "SELECT id # list\n, v FROM t", "/* before */ SELECT id FROM t;",
			"SELECT id FROM t;;", "SELECT id FROM t ; -- x", "UPDATE t SET v = 1 -- all",
			"UPDATE t SET v = 2 /* c */ WHERE id = 1 -- x", "DELETE FROM t WHERE id = 3 -- gone",
			"DELETE FROM t WHERE id = 3 ; ",
			"INSERT INTO t (v) VALUES (1) -- one", "INSERT INTO t (v) VALUES (1 /* ) */ ) # one",
			"INSERT INTO t SET v = 1 -- set", "INSERT INTO t SET v = 1;", "", ";", "-- nothing", "/* nothing */", " ",
			"SELECT /*!40001 SQL_NO_CACHE */ id FROM t", "SELECT id FROM t /*! WHERE id = 1 */", "/*!40000 SELECT 1 */",
			"SELECT id, 'a\x00b' FROM t", "SELECT id FROM t WHERE s = 'a\x00'", "SELECT 1\x00", "SELECT id FROM t\x00",
			"SELECT`id`FROM`t`", "SELECT t.id,t.v FROM`t`WHERE(t.id)=1", "SELECT 1FROM t", "SELECT t . id FROM t",
			"SELECT *FROM t", "SELECT-id FROM t", "SELECT id AS'x'FROM t", "SELECT id 'x' 'y' FROM t",
			"UPDATE`t`SET`v`=1WHERE`id`=1", "UPDATE t SET v=1WHERE id=1",
			"DELETE FROM t WHERE id='9'", "SELECT 1.FROM t", "SELECT .5FROM t", "SELECT 1e5FROM t", "SELECT 0x41FROM t",
			"SELECT x'41'FROM t", "SELECT N'a'FROM t", "SELECT _utf8mb4'a'FROM t", "SELECT @a FROM t",
			"SELECT @a:=id FROM t", "SELECT @`a b` FROM t",
			"SELECT id FROM t WHERE id = 1--1", "SELECT id FROM t WHERE id = 1 -- 1", "SELECT id FROM t WHERE id =1/1",
			"SELECT id FROM t WHERE id = 1 /*", "SELECT 'x FROM t",
		}},
		{"selects", append(someItems, "CREATE TABLE `a.b` (`select` INT PRIMARY KEY, `from` INT, `a``b` INT, ünï INT)",
			"INSERT INTO `a.b` VALUES (1, 2, 3, 4)", "CREATE TABLE u (id INT PRIMARY KEY, w INT)",
			"INSERT INTO u VALUES (1, 100), (4, 400)"), []string{
			"SELECT `select`, `from`, `a``b`, ünï FROM `a.b`", "SELECT `a.b`.* FROM `a.b`",
			"SELECT x.`select` FROM `a.b` x", "SELECT `ü`.ünï FROM `a.b` AS `ü`",
			"SELECT `x``y`.ünï FROM `a.b` AS `x``y`", "UPDATE `a.b` SET `from` = 5, `a``b` = 6, ünï = 7",
			"INSERT INTO `a.b` VALUES (2, 2, 2, 2)", "DELETE FROM `a.b` WHERE `select` = 2",
			"SELECT * FROM t NATURAL JOIN u", "SELECT * FROM t JOIN u USING (id)",
			"SELECT * FROM t LEFT JOIN u USING (id) ORDER BY 1", "SELECT * FROM t RIGHT JOIN u USING (id) ORDER BY 1",
			"SELECT * FROM t NATURAL LEFT JOIN u ORDER BY 1", "SELECT a.id, b.id FROM t a JOIN t b ORDER BY 1, 2",
			"SELECT a.id FROM t a, t b, t c WHERE a.id = b.id AND b.id = c.id",
			"SELECT * FROM (t a, u b) WHERE a.id = b.id", "SELECT * FROM (t)",
			"SELECT * FROM ((t a) JOIN (u b) ON a.id = b.id)", "SELECT * FROM t a STRAIGHT_JOIN u b",
			"SELECT * FROM t, (SELECT 1 AS x) d", "SELECT d.* FROM t, (SELECT id + 1 AS y FROM t) d ORDER BY 1",
			"SELECT id FROM t WHERE id IN (SELECT id FROM u)", "SELECT (SELECT w FROM u WHERE u.id = t.id) FROM t",
			"SELECT id FROM t WHERE EXISTS (SELECT * FROM u NATURAL JOIN t x WHERE x.id = t.id)",
			"SELECT id FROM t FOR UPDATE NOWAIT", "SELECT id FROM t FOR UPDATE SKIP LOCKED",
			"SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE NOWAIT", "SELECT id FROM t FOR UPDATE WAIT 1",
			"SELECT id FROM t ORDER BY id LIMIT 1 OFFSET 1 FOR UPDATE", "SELECT id FROM t ORDER BY 2",
			"SELECT * FROM t ORDER BY 4", "SELECT id, v FROM t ORDER BY 3", "SELECT t.*, id FROM t ORDER BY 5",
			"SELECT * FROM t HAVING v > 10", "SELECT id AS k FROM t HAVING k = 2", "SELECT DISTINCT v FROM t",
			"SELECT ALL v FROM t", "SELECT DISTINCTROW v FROM t",
			"SELECT HIGH_PRIORITY SQL_SMALL_RESULT SQL_NO_CACHE v FROM t", "SELECT id FROM t PROCEDURE ANALYSE()",
			"SELECT id INTO @i FROM t WHERE id = 1", "SELECT id FROM t WHERE id = 1 INTO @i",
			"SELECT id, v FROM t WHERE id = 1 INTO @i, @j", "SELECT @i, @j", "SELECT id FROM t UNION SELECT 1",
			"(SELECT id FROM t)", "((SELECT id FROM t))", "(SELECT id FROM t ORDER BY v LIMIT 1) LIMIT 5",
			"(SELECT id FROM t) ORDER BY id DESC", "TABLE t", "VALUES (1, 2)",
			"SELECT COUNT(*) FROM t", "SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM t",
			"WITH c AS (SELECT id FROM t) SELECT * FROM c", "SELECT id FROM t PARTITION (p0)",
			"SELECT id FROM t USE INDEX (PRIMARY)",
			"SELECT id FROM t FORCE INDEX (PRIMARY) IGNORE INDEX FOR ORDER BY (PRIMARY)",
			"SELECT id FROM t FOR SYSTEM_TIME ALL", "SELECT id FROM t LIMIT 2, 1", "SELECT id FROM t LIMIT 0",
			"SELECT id FROM t LIMIT ROWS EXAMINED 2", "SELECT id FROM t FETCH FIRST 1 ROWS ONLY",
			"SELECT id FROM t LIMIT 1 ROWS EXAMINED 100",
			"SELECT id FROM @db.t", "SELECT @db.t.id FROM t", "SELECT @db.t.id, x.id FROM @db.t, u x",
			"SELECT @db.t.* FROM @db.t", "SELECT * FROM nothing.t", "SELECT id FROM t x WHERE t.id = 1",
			"SELECT t.id FROM t, t", "SELECT id FROM t JOIN u ON t.id = u.id", "SELECT 1 FROM DUAL",
			"SELECT * FROM t JOIN DUAL", "SELECT * FROM t WHERE id BETWEEN 1 AND 2 AND s LIKE 'o%' ESCAPE '|'",
			"SELECT id FROM t WHERE s REGEXP '^o'", "SELECT id DIV 2, id MOD 2, !id, ~id, id << 1, -id FROM t",
			"SELECT CASE id WHEN 1 THEN 'a' ELSE 'b' END AS c FROM t", "SELECT CAST(id AS CHAR) FROM t",
			"SELECT id COLLATE utf8mb4_bin FROM t",
			"SELECT DATE '2020-01-01', INTERVAL 1 DAY + DATE '2020-01-01' FROM t",
			"SELECT EXTRACT(YEAR FROM NOW()) > 0, TRIM(BOTH ' ' FROM ' x '), SUBSTRING('abc' FROM 2) FROM t",
			"SELECT t.id, (SELECT COUNT(*) FROM u WHERE u.id = t.id FOR UPDATE) FROM t",
			"SELECT GROUP_CONCAT(id ORDER BY id SEPARATOR ',') FROM t", "SELECT id, id, id FROM t",
			"SELECT 1, t.* FROM t", "SELECT NULL FROM t", "SELECT id AS isotap FROM t", "SELECT VALUE(v) FROM t",
			"SELECT DEFAULT(v) FROM t", "SELECT NEXTVAL(q) FROM t", "SELECT id FROM t WHERE MATCH(s) AGAINST ('x')",
			"SELECT id rank, v groups FROM t",
			"SELECT ROWNUM() FROM t", "SELECT id FROM t WHERE ROWNUM() < 2", "SELECT id FROM t ORDER BY RAND(1)",
			"SELECT @r := @r + id FROM t, (SELECT @r := 0) x", "EXPLAIN SELECT id FROM t WHERE id = 1", "DESCRIBE t id",
			"SHOW INDEX FROM t", "SHOW COLUMNS FROM t WHERE Field = 'v'", "SHOW CREATE TABLE t", "SHOW TABLES LIKE 't'",
			"SHOW KEYS FROM t",
		}},
		{"writes", append(someItems, "CREATE TABLE g (id INT PRIMARY KEY, a INT, b INT AS (a * 2) STORED, c INT "+
			"AS (a + 1) VIRTUAL, ts TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP, "+
			"h INT INVISIBLE DEFAULT 7)", "INSERT INTO g (id, a) VALUES (1, 1), (2, 2)",
			"CREATE TABLE p (id INT, v INT, PRIMARY KEY (id)) PARTITION BY RANGE (id) (PARTITION p0 "+
				"VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)", "INSERT INTO p VALUES (1, 1), (11, 11)",
			"CREATE TABLE ch (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE "+
				"ON UPDATE CASCADE)", "CREATE TABLE rs (id INT PRIMARY KEY, u INT, FOREIGN KEY (u) "+
				"REFERENCES g (id))", "INSERT INTO ch VALUES (1, 1), (2, 2)", "INSERT INTO rs VALUES (1, 1)"), []string{
			"UPDATE g SET a = 1 WHERE id = 1", "SELECT id, a, b, c, ts IS NULL FROM g", "UPDATE g SET a = 5",
			"SELECT id, a, b, c, ts IS NULL, h FROM g", "UPDATE g SET b = 1", "UPDATE g SET b = DEFAULT",
			"UPDATE g SET h = 8 WHERE id = 1", "INSERT INTO g VALUES (3, 3, DEFAULT, DEFAULT, NULL)",
			"INSERT INTO g VALUES (4, 4, 1, DEFAULT, NULL)",
			"INSERT INTO g (id, a, h) VALUES (5, 5, 5), (6, DEFAULT, DEFAULT)", "INSERT INTO g () VALUES ()",
			"INSERT INTO g VALUES ()", "INSERT INTO g VALUES (1)",
			"INSERT INTO g VALUES (DEFAULT, 1, DEFAULT, DEFAULT, DEFAULT)", "SELECT id, a, b, c, h FROM g",
			"UPDATE g SET a = a + 1, a = a + 1", "UPDATE g SET a = id, id = id + 100 ORDER BY id DESC LIMIT 2",
			"SELECT id, a, b, c, h FROM g", "DELETE FROM g WHERE id = 1", "SELECT ROW_COUNT()",
			"UPDATE g SET id = 50 WHERE id = 1", "DELETE FROM g", "SELECT COUNT(*) FROM g",
			"UPDATE p SET id = id + 10", "SELECT * FROM p ORDER BY id", "SELECT * FROM p PARTITION (p1) ORDER BY id",
			"INSERT INTO p PARTITION (p0) VALUES (3, 3)", "INSERT INTO p PARTITION (p0) VALUES (30, 3)",
			"DELETE FROM p PARTITION (p0) WHERE id = 3", "UPDATE p PARTITION (p1) SET v = 1",
			"ALTER TABLE p TRUNCATE PARTITION p0",
			"UPDATE t SET id = 50 WHERE id = 1", "SELECT * FROM ch ORDER BY id", "DELETE FROM t WHERE id = 2",
			"SELECT * FROM ch ORDER BY id", "INSERT INTO ch VALUES (9, 999)", "UPDATE ch SET t = 999",
			"INSERT INTO t (v, s) VALUES (@x := 5, @x), (@x + 1, @x)", "SELECT v, s, @x FROM t ORDER BY id",
			"SET @isotap_x = 1", "UPDATE t SET v = (@k := v + 1)", "SELECT @k", "INSERT INTO t VALUES (NULL, 1)",
			"INSERT INTO t (v) VALUES (1, 2)", "INSERT INTO t (v, v) VALUES (1, 2)",
			"INSERT INTO t (missing) VALUES (1)", "INSERT INTO t VALUES (NULL, DEFAULT, DEFAULT(s))",
			"INSERT INTO t (v) VALUES ((SELECT 1)), (v), (id)", "INSERT LOW_PRIORITY INTO t (v) VALUE (3)",
			"INSERT HIGH_PRIORITY IGNORE t (v) VALUE (3)", "INSERT DELAYED INTO t (v) VALUES (1)",
			"INSERT INTO t (t.v) VALUES (5)", "INSERT INTO @db.t (v) VALUES (6)",
			"INSERT INTO t (v) VALUES (7) ON DUPLICATE KEY UPDATE v = 8", "INSERT INTO t (v) SELECT v FROM t LIMIT 1",
			"REPLACE INTO t (id, v) VALUES (50, 1)", "REPLACE t SET id = 50",
			"INSERT INTO t (v) VALUES (1) RETURNING id, v", "INSERT INTO t (v) VALUES (1) RETURNING *",
			"DELETE FROM t WHERE id > 55 RETURNING *", "DELETE FROM t WHERE id > 54 RETURNING id",
			"REPLACE INTO t (id) VALUES (50) RETURNING v",
			"UPDATE t AS a SET a.v = 1 WHERE a.id = 3", "UPDATE t a, ch b SET a.v = 2", "UPDATE t SET t.v = 3",
			"UPDATE @db.t SET v = 4", "UPDATE t SET v = DEFAULT", "UPDATE t SET v = 5 ORDER BY id DESC LIMIT 1",
			"UPDATE LOW_PRIORITY IGNORE t SET v = 6", "UPDATE t SET v = NULL, s = NULL", "UPDATE t SET v = v <=> NULL",
			"UPDATE t SET s = CONCAT(s, 'x')", "UPDATE t SET v = (SELECT MAX(id) FROM ch)",
			"UPDATE t SET v = (SELECT MAX(id) FROM t)", "UPDATE t SET v = 9999999999", "UPDATE t SET missing = 1",
			"UPDATE t SET v = missing", "SELECT * FROM t ORDER BY id", "DELETE a FROM t a WHERE a.id = 3",
			"DELETE FROM t ORDER BY id LIMIT 1", "DELETE QUICK IGNORE FROM t WHERE id = 51",
			"DELETE t, ch FROM t JOIN ch WHERE 0", "DELETE FROM t USING t JOIN ch WHERE 0",
			"DELETE FROM t WHERE v = 'x' AND id = 1e0", "TRUNCATE t", "TRUNCATE ch", "SELECT COUNT(*) FROM t",
		}},
		{"transactions", someItems, []string{
			"SET autocommit = 0", "SELECT v FROM t WHERE id = 1", "UPDATE t SET v = 1", pause, "SELECT ROW_COUNT()",
			"ROLLBACK", "SAVEPOINT a", "UPDATE t SET v = 2", "SAVEPOINT a", "UPDATE t SET v = 3", "ROLLBACK TO a",
			"SELECT v FROM t", "ROLLBACK TO SAVEPOINT A", "RELEASE SAVEPOINT a", "ROLLBACK TO a", "SAVEPOINT `x y`",
			"UPDATE t SET v = 4", "ROLLBACK WORK TO SAVEPOINT `X y`", "COMMIT", "SELECT v FROM t", "SET autocommit = 1",
			"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN", "SELECT v FROM t",
			"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "CREATE TABLE n (x INT)", "SELECT v FROM t",
			"INSERT INTO n VALUES (1)", "ROLLBACK", "SELECT * FROM n", "DROP TABLE n",
			"START TRANSACTION READ ONLY", "UPDATE t SET v = 1", "INSERT INTO t (v) VALUES (1)", "DELETE FROM t",
			"SELECT v FROM t", "COMMIT", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "UPDATE t SET v = 5",
			"COMMIT AND CHAIN", "UPDATE t SET v = 6", "ROLLBACK AND CHAIN", "ROLLBACK", "SELECT v FROM t",
			"LOCK TABLES t WRITE", "UPDATE t SET v = 7", pause, "SELECT v FROM t", "SELECT * FROM t x",
			"INSERT INTO t (v) VALUES (1)", "DELETE FROM t WHERE v = 1", "UNLOCK TABLES", "LOCK TABLES t READ",
			"UPDATE t SET v = 8", "SELECT v FROM t", "UNLOCK TABLES", "LOCK TABLES t AS x READ", "SELECT v FROM t x",
			"SELECT v FROM t", "UNLOCK TABLES",
			"XA START 'x@db'", "UPDATE t SET v = 9", "COMMIT", "XA END 'x@db'", "SELECT 1", "XA PREPARE 'x@db'",
			"SELECT v FROM t", "XA COMMIT 'x@db'", "SELECT v FROM t", "XA BEGIN 'y@db'", "UPDATE t SET v = 10",
			"XA END 'y@db'", "XA COMMIT 'y@db' ONE PHASE", "XA START 'z@db'", "UPDATE t SET v = 11", "XA END 'z@db'",
			"XA ROLLBACK 'z@db'", "SELECT v FROM t",
			"CREATE TEMPORARY TABLE t (z INT)", "INSERT INTO t VALUES (1)", "SELECT * FROM t", "UPDATE t SET z = 2",
			"DELETE FROM t", "SHOW CREATE TABLE t", "DROP TEMPORARY TABLE t", "SELECT v FROM t", "UPDATE t SET v = 12",
			"CREATE TEMPORARY TABLE t LIKE t", "INSERT INTO t VALUES (1, 1, 'x')", "SELECT * FROM t", "DESCRIBE t",
			"DROP TABLE t", "SELECT v FROM t",
			"BEGIN; UPDATE t SET v = 13; COMMIT", "SELECT v FROM t", "UPDATE t SET v = 14; SELECT ROW_COUNT()",
			"SELECT 1; UPDATE t SET v = 15", "BEGIN; UPDATE t SET v = 16", "ROLLBACK; SELECT v FROM t", "BEGIN",
			"UPDATE t SET v = 17", "BEGIN", "ROLLBACK", "SELECT v FROM t",
			"PREPARE st FROM 'UPDATE t SET v = ?'", "SET @v = 20", "EXECUTE st USING @v", "SELECT ROW_COUNT()",
			"PREPARE st2 FROM 'SELECT * FROM t'", "EXECUTE st2", "DEALLOCATE PREPARE st",
			"EXECUTE IMMEDIATE 'UPDATE t SET v = 21'", "BEGIN NOT ATOMIC UPDATE t SET v = 22; SELECT v FROM t; END",
			"SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT \"v\" FROM t",
			"ALTER TABLE t ADD COLUMN n INT DEFAULT 3", "INSERT INTO t VALUES (NULL, 1, 'n', 4)", "SELECT * FROM t",
			"UPDATE t SET n = 5", "ALTER TABLE t RENAME COLUMN n TO m, MODIFY s VARCHAR(20) FIRST",
			"INSERT INTO t VALUES ('s', NULL, 2, 6)", "SELECT * FROM t", "SHOW CREATE TABLE t",
			"ALTER TABLE t RENAME TO r", "SELECT * FROM r", "SELECT * FROM t", "INSERT INTO r VALUES ('q', NULL, 2, 6)",
			"RENAME TABLE r TO t", "UPDATE t SET m = 1", "CREATE TABLE l LIKE t", "INSERT INTO l SELECT * FROM t",
			"SELECT * FROM l", "CREATE TABLE k AS SELECT * FROM t", "SELECT * FROM k", "SHOW CREATE TABLE k",
			"CREATE OR REPLACE TABLE k (a INT) COMMENT='x'", "SHOW CREATE TABLE k",
			"CREATE TABLE j (a INT) SELECT 1 AS a", "SELECT * FROM j", "DROP TABLE l, k, j",
		}},
		{"routines, triggers and views",
			append(someItems, "CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, m VARCHAR(50))",
				"CREATE VIEW w AS SELECT id, v FROM t WHERE v > 5 WITH CHECK OPTION",
				"CREATE VIEW w2 AS SELECT * FROM t",
				"CREATE PROCEDURE p1(IN a INT, OUT b INT) BEGIN UPDATE t SET v = a; SELECT ROW_COUNT() INTO b; END",
				"CREATE PROCEDURE p2() BEGIN START TRANSACTION; UPDATE t SET v = 77; COMMIT; END",
				"CREATE PROCEDURE p3() BEGIN INSERT INTO t (id, v) VALUES (70, 1); SELECT CAST('x' AS SIGNED) FROM t LIMIT 1; END",
				"CREATE PROCEDURE p4() BEGIN INSERT INTO t (id, v) VALUES (1, 1); END",
				"CREATE FUNCTION f(a INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log (m) VALUES ('f'); RETURN a + 1; END",
				"CREATE TRIGGER bi BEFORE INSERT ON t FOR EACH ROW SET NEW.s = UPPER(NEW.s)",
				"CREATE TRIGGER au AFTER UPDATE ON t FOR EACH ROW INSERT INTO log (m) "+
					"VALUES (CONCAT('upd ', OLD.v, '-', NEW.v))", "CREATE TRIGGER ad AFTER DELETE ON t FOR EACH ROW "+
					"INSERT INTO log (m) VALUES ('del')"), []string{
				"SELECT * FROM w", "UPDATE w SET v = 100 WHERE id = 1", "UPDATE w SET v = 1",
				"INSERT INTO w VALUES (9, 9)", "DELETE FROM w WHERE id = 9", "SELECT * FROM w2",
				"INSERT INTO w2 VALUES (10, 10, 'ten')", "SHOW CREATE VIEW w2", "SELECT * FROM w JOIN t ON w.id = t.id",
				"BEGIN", "SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 1", "CALL p3()", "SHOW WARNINGS",
				"SELECT FOUND_ROWS()", "CALL p4()", "SHOW ERRORS", "SHOW COUNT(*) WARNINGS", "SELECT ROW_COUNT()", "CALL p3()",
				"SELECT ROW_COUNT()", "ROLLBACK",
				"CALL p1(5, @b)", "SELECT @b", "CALL p2()", "SELECT ROW_COUNT()", "BEGIN", "UPDATE t SET v = 1",
				"CALL p2()", "ROLLBACK", "SELECT v FROM t", "SELECT f(1)", "SELECT f(v) FROM t",
				"UPDATE t SET v = f(v)", "INSERT INTO t (v, s) VALUES (f(1), 'abc')", "SELECT LAST_INSERT_ID()",
				"SELECT * FROM log", "DELETE FROM t WHERE id > 3", "SELECT COUNT(*) FROM log",
				"SHOW CREATE PROCEDURE p1", "CALL p1(1, @b); SELECT @b",
				"CREATE TRIGGER bu BEFORE UPDATE ON t FOR EACH ROW SET NEW.v = NEW.v + 1", "UPDATE t SET v = 1",
				"SELECT v FROM t", "CREATE TRIGGER bd BEFORE DELETE ON t FOR EACH ROW SIGNAL SQLSTATE '45000' " +
					"SET MESSAGE_TEXT = 'no', MYSQL_ERRNO = 1054", "DELETE FROM t WHERE id = 1",
				"DELETE FROM t WHERE id = 1", "SHOW WARNINGS", "SELECT COUNT(*) FROM log",
			}},
		{"tables that change under prepared statements", someItems, []string{
			"prepare SELECT * FROM t", "prepare INSERT INTO t VALUES (NULL, 5, 'x')", "prepare UPDATE t SET v = v + 1",
			"prepare DELETE FROM t WHERE id = 2", "prepare SELECT v FROM t WHERE id = 1",
			"run 1", "run 2", "run 3", "run 4", "run 5", "ALTER TABLE t ADD COLUMN n INT FIRST", "run 1", "run 2",
			"run 3", "run 4", "run 5", "ALTER TABLE t DROP COLUMN s, MODIFY v BIGINT", "run 1", "run 2", "run 3",
			"run 4", "run 5",
			"DROP TABLE t", "run 1", "run 2", "run 3", "run 4", "run 5", "CREATE TABLE t (v INT, id INT)", "run 1",
			"run 2", "run 3", "run 4", "run 5", "INSERT INTO t VALUES (1, 2)", "run 1", "run 3", "run 4", "run 1",
			"DROP TABLE t", "CREATE VIEW t AS SELECT 1 AS id, 2 AS v", "run 1", "run 2", "run 3", "run 4", "run 5",
			"DROP VIEW t",
		}},
		{"descriptions", someItems, []string{
			"SHOW /*!32332 FULL */ COLUMNS FROM t", "SHOW /*!40000 EXTENDED */ CREATE TABLE t",
			"SELECT COLUMN_NAME, ORDINAL_POSITION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '@db' " +
				"AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION",
			"SELECT ORDINAL_POSITION, COLUMN_NAME FROM `INFORMATION_SCHEMA`.`COLUMNS` WHERE TABLE_SCHEMA = '@db' " +
				"AND TABLE_NAME = 't' AND ORDINAL_POSITION IN (SELECT ORDINAL_POSITION FROM " +
				"information_schema.columns) ORDER BY ORDINAL_POSITION",
			"execute SELECT ORDINAL_POSITION, NULL, CHARACTER_MAXIMUM_LENGTH, COLUMN_NAME " +
				"FROM information_schema.columns WHERE TABLE_SCHEMA = '@db' AND TABLE_NAME = 't' " +
				"ORDER BY ORDINAL_POSITION", "execute SHOW FULL COLUMNS FROM t",
			"SELECT c.COLUMN_NAME, t.TABLE_TYPE FROM information_schema.TABLES t JOIN information_schema.COLUMNS c " +
				"USING (TABLE_SCHEMA, TABLE_NAME) WHERE TABLE_SCHEMA = '@db' ORDER BY c.ORDINAL_POSITION",
			"SELECT c.COLUMN_NAME, t.v FROM t JOIN information_schema.COLUMNS c ON c.ORDINAL_POSITION = t.id " +
				"WHERE TABLE_SCHEMA = '@db' ORDER BY t.id",
			"USE information_schema", "SELECT COLUMN_NAME FROM COLUMNS WHERE TABLE_SCHEMA = '@db' ORDER BY ORDINAL_POSITION", "USE @db",
		}},
		{"prepared", append(someItems, "CREATE TABLE w9 (a INT, b INT, c INT, d INT, e INT, f INT, g INT, h INT, "+
			"i INT, j INT)"), []string{
			"execute SELECT * FROM t", "execute SELECT 1", "execute UPDATE t SET v = v + 1",
			"execute UPDATE t SET v = 5", "execute DELETE FROM t WHERE id = 3", "execute INSERT INTO t (v) VALUES (1)",
			"execute INSERT INTO w9 VALUES (1,2,3,4,5,6,7,8,9,10)", "execute SELECT * FROM w9",
			"execute SELECT a, b, c, d, e, f FROM w9", "execute SELECT a,b,c,d,e,f,g FROM w9",
			"execute SELECT a,NULL,c,NULL,e,NULL,g,NULL FROM w9", "execute SELECT id INTO @x FROM t WHERE id = 1",
			"execute CREATE TABLE pp (x INT)", "SHOW CREATE TABLE pp", "execute INSERT INTO pp VALUES (1)",
			"execute SHOW CREATE TABLE pp", "execute DESCRIBE pp", "execute SELECT * FROM pp", "execute BEGIN",
			"execute UPDATE pp SET x = 5", "execute ROLLBACK", "execute SELECT * FROM pp", "execute CALL nothing()",
			"execute SHOW WARNINGS", "execute SELECT missing FROM t", "execute DELETE FROM pp RETURNING x",
			"execute INSERT INTO pp VALUES (3) RETURNING x", "execute SELECT SQL_CALC_FOUND_ROWS x FROM pp LIMIT 1",
			"SELECT FOUND_ROWS()", "execute SELECT FOUND_ROWS()",
		}},
	}
}

// TestScriptsAreAnsweredAsByTheServer plays every script directly and through isotap.
func TestScriptsAreAnsweredAsByTheServer(t *testing.T) {
	for i, s := range scripts() {
		for caps, durability := range map[uint32]recorder.Durability{
			0: recorder.Relaxed,
			gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_SESSION_TRACK | gomysql.CLIENT_FOUND_ROWS: recorder.Commit,
		} {
			t.Run(fmt.Sprintf("%s %v", s.name, durability), func(t *testing.T) {
				t.Parallel()
				play(t, s, fmt.Sprintf("%02d%d", i, durability), durability, caps)
			})
		}
	}
}

func play(t *testing.T, s script, id string, durability recorder.Durability, caps uint32) {
	playWith(t, s, id, func(o *proxyserver.Options) { o.Durability = durability }, caps)
}

// playWith is play behind a proxy with other options.
func playWith(t *testing.T, s script, id string, change func(*proxyserver.Options), caps uint32) {
	names := [2]string{"rev_d_" + id, "rev_t_" + id}
	admin := testdb.Open(t, "")
	b := &bench{t: t}
	if testdb.EngineName() == testdb.MySQL.Name {
		b.setGlobal("log_bin_trust_function_creators", 1)
	}
	for _, name := range names {
		b.exec(admin, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
		b.exec(testdb.Open(t, name), s.setup...)
	}
	b = newBenchIn(t, names[1], change)
	for _, name := range names {
		countIndexes(b, name)
	}
	caps |= gomysql.CLIENT_MULTI_STATEMENTS | gomysql.CLIENT_MULTI_RESULTS | gomysql.CLIENT_PS_MULTI_RESULTS | gomysql.CLIENT_LOCAL_FILES
	direct := dialRaw(t, testdb.Current(t).Addr(), names[0], caps)
	through := dialRaw(t, b.srv.Addr().String(), names[1], caps)
	for i, step := range s.steps {
		if step == pause {
			time.Sleep(300 * time.Millisecond)
			continue
		}
		for _, c := range commands(step, len(direct.statements)+1) {
			c.bytes = []byte(strings.ReplaceAll(string(c.bytes), "@db", names[0]))
			want := direct.hear(c, caps)
			c.bytes = []byte(strings.ReplaceAll(string(c.bytes), names[0], names[1]))
			got := through.hear(c, caps)
			plain := &mirror{caps: caps} // which forgets how the server read its tables
			plain.forgetPlan(want)
			plain.forgetPlan(got)
			if diff := firstDifference(got, want, names); diff != "" {
				t.Errorf("step %d %s %q: %s", i+1, c.name, step, diff)
			}
			if c.name == "prepare" && want[0][4] != 0 {
				break
			}
		}
	}
}

// countIndexes has the server count the indexes, which isotap instrument has it count anew, and keep the counts.
func countIndexes(b *bench, database string) {
	b.t.Helper()
	db := testdb.Open(b.t, database)
	rows, err := db.Query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() " +
		"AND TABLE_TYPE = 'BASE TABLE'")
	if err != nil {
		b.t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			b.t.Fatal(err)
		}
		tables = append(tables, "`"+strings.ReplaceAll(table, "`", "``")+"`")
	}
	for _, table := range tables {
		b.exec(db, "ALTER TABLE "+table+" STATS_AUTO_RECALC = 0", "ANALYZE TABLE "+table)
	}
}

// hear sends a command and returns its reply, read as the protocol has it. Ids of statements count those
// prepared so far.
func (c *rawClient) hear(command command, caps uint32) [][]byte {
	c.t.Helper()
	b := bytes.Clone(command.bytes)
	if b[0] == gomysql.COM_STMT_EXECUTE || b[0] == gomysql.COM_STMT_CLOSE {
		binary.LittleEndian.PutUint32(b[1:], c.statements[binary.LittleEndian.Uint32(b[1:])-1])
	}
	c.say(b)
	if command.silent {
		return nil
	}
	packets := [][]byte{c.read()}
	first := packets[0][4:]
	if b[0] == gomysql.COM_STMT_PREPARE {
		if first[0] != 0 {
			return packets
		}
		c.statements = append(c.statements, binary.LittleEndian.Uint32(first[1:]))
		binary.LittleEndian.PutUint32(first[1:], uint32(len(c.statements)))
		for _, n := range []uint16{binary.LittleEndian.Uint16(first[7:]), binary.LittleEndian.Uint16(first[5:])} {
			if n > 0 && caps&gomysql.CLIENT_DEPRECATE_EOF == 0 {
				n++
			}
			for range n {
				packets = append(packets, c.read())
			}
		}
		return packets
	}
	for {
		last := packets[len(packets)-1][4:]
		if last[0] != 0 && last[0] != 0xff {
			for range int(last[0]) {
				packets = append(packets, c.read())
			}
			if caps&gomysql.CLIENT_DEPRECATE_EOF == 0 {
				packets = append(packets, c.read())
			}
			for {
				packets = append(packets, c.read())
				if last = packets[len(packets)-1][4:]; last[0] == 0xff || last[0] == 0xfe {
					break
				}
			}
		}
		if last[0] == 0xff || status(last, caps)&gomysql.SERVER_MORE_RESULTS_EXISTS == 0 {
			return packets
		}
		packets = append(packets, c.read())
	}
}

// status reads the flags of an OK or EOF packet whose counts are small.
func status(p []byte, caps uint32) uint16 {
	if p[0] == 0xfe && caps&gomysql.CLIENT_DEPRECATE_EOF == 0 {
		return binary.LittleEndian.Uint16(p[3:])
	}
	return binary.LittleEndian.Uint16(p[3:])
}

// commands returns the commands of a script's step.
func commands(step string, id int) []command {
	if sql, prepared := strings.CutPrefix(step, "prepare "); prepared {
		return []command{{name: "prepare", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, sql...)}}
	}
	if _, err := fmt.Sscanf(step, "run %d", &id); err == nil {
		return []command{{name: "run", bytes: execute(uint32(id), false, false)}}
	}
	sql, prepared := strings.CutPrefix(step, "execute ")
	if !prepared {
		return []command{{name: "query", bytes: query(step)}}
	}
	return []command{
		{name: "prepare", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, sql...)},
		{name: "execute", bytes: execute(uint32(id), false, false)},
		{name: "execute again", bytes: execute(uint32(id), false, false)},
		{name: "close", bytes: statementCommand(gomysql.COM_STMT_CLOSE, uint32(id)), silent: true},
	}
}

func TestCursorsAreFetchedFromTheStatementThatRan(t *testing.T) {
	setup := []string{"CREATE TABLE t (id INT PRIMARY KEY, c1 INT, c2 INT, KEY (c1))",
		"INSERT INTO t VALUES (1, 10, 0), (2, 10, 0), (3, 20, 0)"}
	names := [2]string{"rev_cursor_d", "rev_cursor_t"}
	admin := testdb.Open(t, "")
	b := &bench{t: t}
	for _, name := range names {
		b.exec(admin, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
		b.exec(testdb.Open(t, name), setup...)
	}
	b = newBenchIn(t, names[1], nil)
	direct, through := dialRaw(t, testdb.Current(t).Addr(), names[0], 0), dialRaw(t, b.srv.Addr().String(), names[1], 0)
	fetch := func(n byte) command {
		return command{name: "fetch", bytes: statementCommand(gomysql.COM_STMT_FETCH, 1, n, 0, 0, 0)}
	}
	open := command{name: "open", bytes: execute(1, true, true, 10)}
	conversation := []command{
		{name: "prepare", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, "SELECT id FROM t WHERE c1 = ?"...)},
		{bytes: query("BEGIN")}, open, fetch(1), {bytes: query("UPDATE t SET c2 = 1")}, fetch(1), fetch(1),
		{bytes: query("COMMIT")},
		open, {bytes: query("UPDATE t SET c2 = 2")}, fetch(2),
		{bytes: query("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")},
		{bytes: query("BEGIN")}, open, fetch(1), {name: "reset", bytes: statementCommand(gomysql.COM_STMT_RESET, 1)},
		fetch(1), {bytes: query("COMMIT")},
	}
	for i, c := range conversation {
		want, got := direct.converse(c, names[0]), through.converse(c, names[1])
		if i == 16 { // the error names the server's own id of the statement
			want[0], got[0] = want[0][4:20], got[0][4:20]
		}
		if diff := firstDifference(got, want, names); diff != "" {
			t.Errorf("step %d %s %q: %s", i+1, c.name, c.bytes, diff)
		}
	}
	want := `T1 committed REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 SELECT inexact SELECT id FROM t WHERE c1 = ? (cursor) read(r1,0) read(r2,0)
  3 UPDATE exact UPDATE t SET c2 = ? update(r1,0) update(r2,0) update(r3,0)
  4 COMMIT nothing COMMIT
T2 committed REPEATABLE READ implicit
  1 SELECT inexact SELECT id FROM t WHERE c1 = ? (cursor)
T3 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE t SET c2 = ? update(r1,T1.3) update(r2,T1.3) update(r3,T1.3)
T4 committed SERIALIZABLE
  1 BEGIN nothing BEGIN
  2 SELECT opaque SELECT id FROM t WHERE c1 = ? (plan)
  3 COMMIT nothing COMMIT
`
	if got := story(b.txns()); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
}

func TestUncommonSessionsAreRecordedTruly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, test := range []struct {
		name, want string
		steps      []string
	}{
		{"no rows are selected", `T1 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
`, []string{"SET sql_select_limit = 0", "UPDATE account SET balance = 5 WHERE id = 1"}},
		{"names in another character set", `T1 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
`, []string{"SET character_set_results = utf16", "UPDATE account SET balance = 5 WHERE id = 1"}},
		{"locked tables", `T1 committed REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
T2 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,T1.2)
`, []string{"BEGIN", "UPDATE account SET balance = 5 WHERE id = 1", "LOCK TABLES account WRITE",
			"UPDATE account SET balance = 6 WHERE id = 1", "UNLOCK TABLES"}},
		{"transactions that change within a text", `T1 indeterminate REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
  3 OTHER opaque COMMIT AND CHAIN; CALL nop() (multi-statement)
T2 aborted UNKNOWN
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,T1.2)
  2 ROLLBACK nothing ROLLBACK
`, []string{"CREATE PROCEDURE nop() DO 1", "BEGIN", "UPDATE account SET balance = 5 WHERE id = 1",
			"COMMIT AND CHAIN; CALL nop()", "UPDATE account SET balance = 6 WHERE id = 1", "ROLLBACK"}},
		{"temporary tables", `T1 committed REPEATABLE READ
  1 DDL opaque CREATE TEMPORARY TABLE account LIKE twin (temporary table)
T2 committed REPEATABLE READ implicit
  1 INSERT opaque INSERT INTO account VALUES (?, ?, ?) (temporary table)
T3 committed REPEATABLE READ implicit
  1 UPDATE opaque UPDATE account SET balance = ? WHERE id = ? (temporary table)
T4 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
`, []string{"CREATE TEMPORARY TABLE account LIKE twin; INSERT INTO account VALUES (1, 'tmp', 1)",
			"UPDATE account SET balance = 5 WHERE id = 1", "DROP TABLE account", "UPDATE account SET balance = 6 WHERE id = 1"}},
		{"a table that cannot roll back", `T1 aborted REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 UPDATE opaque UPDATE account SET balance = ? WHERE id = ? (not instrumented)
  3 SELECT exact SELECT id FROM other
  4 ROLLBACK nothing ROLLBACK
`, []string{"ALTER TABLE account ENGINE = MyISAM", "BEGIN", "UPDATE account SET balance = 5 WHERE id = 1",
			"SELECT id FROM other", "ROLLBACK"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)",
				"CREATE TABLE other (id INT PRIMARY KEY)", "CREATE TABLE twin LIKE account")
			c := b.conn(b.open("multiStatements=true"))
			b.exec(c, test.steps...)
			c.Close()
			if got := story(b.txns()); got != test.want {
				t.Errorf("recorded:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// TestPreparedStatementsIgnoreTemporaryTables: prepared statements do not take a temporary table for their own.
func TestPreparedStatementsIgnoreTemporaryTables(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)", "CREATE TABLE twin LIKE account")
	c := b.conn(b.through)
	write, err := c.PrepareContext(t.Context(), "UPDATE account SET balance = ? WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	step := func(want int64, between ...string) {
		t.Helper()
		b.exec(c, between...)
		r, err := write.ExecContext(t.Context(), 7, 1)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := r.RowsAffected(); n != want {
			t.Errorf("%d rows changed, want %d", n, want)
		}
	}
	step(1, "CREATE TEMPORARY TABLE account LIKE twin", "INSERT INTO account VALUES (1,'tmp',1)")
	step(1, "DROP TEMPORARY TABLE account")
	step(0, "SET NAMES utf8mb3")
	c.Close()
	want := `T1 committed REPEATABLE READ
  1 DDL opaque CREATE TEMPORARY TABLE account LIKE twin (temporary table)
T2 committed REPEATABLE READ implicit
  1 INSERT opaque INSERT INTO account VALUES (?, ?, ?) (temporary table)
T3 committed REPEATABLE READ implicit
  1 UPDATE opaque UPDATE account SET balance = ? WHERE id = ? (prepared before a change)
T4 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
T5 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? read(r1,T4.1)
`
	if got := story(b.txns()); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
}
