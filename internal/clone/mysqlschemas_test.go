package clone

// programs is a database with all kinds of programs, which name its schema.
var programs = []string{
	"CREATE TABLE t (id INT PRIMARY KEY, v INT, note VARCHAR(200))", "CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, what TEXT)",
	"INSERT INTO t VALUES (1, 10, 'x')",
	"CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
	"CREATE FUNCTION total() RETURNS INT READS SQL DATA RETURN (SELECT SUM(v) FROM `#`.t)",
	"CREATE VIEW doubled AS SELECT id, `#`.twice(v) AS v FROM t",
	"CREATE PROCEDURE add_one(IN which INT) MODIFIES SQL DATA BEGIN DECLARE n INT; SELECT v INTO n FROM #.t WHERE id = which;" +
		" UPDATE `#` . `t` SET v = n + 1 WHERE #.t.id = which; /*!50000 INSERT INTO `#`.log (what) VALUES ('in #!') */; END",
	"CREATE TRIGGER second AFTER UPDATE ON t FOR EACH ROW INSERT INTO #.log (what) VALUES (CONCAT('second ', NEW.v))",
	"CREATE TRIGGER `#`.`first` AFTER UPDATE ON `#`.t FOR EACH ROW PRECEDES `second` INSERT INTO log (what) VALUES ('first')",
	"CREATE EVENT e ON SCHEDULE AT '2037-01-01' DO DELETE FROM t",
}

// mysqlSchemas are databases that are hard to copy. A # stands for the database's own name.
var mysqlSchemas = []struct {
	name   string
	only   []string // engines; nil: all
	tables []string
}{
	{"empty", nil, nil},
	{"foreign keys", nil, []string{
		"CREATE TABLE a (id INT PRIMARY KEY, b INT, self INT, KEY (b), FOREIGN KEY (self) REFERENCES a (id) ON DELETE CASCADE)",
		"CREATE TABLE b (id INT PRIMARY KEY, a INT, CONSTRAINT to_a FOREIGN KEY (a) REFERENCES a (id) ON UPDATE CASCADE)",
		"INSERT INTO a VALUES (1, 10, NULL), (2, 20, 2), (3, NULL, 1)",
		"INSERT INTO b VALUES (10, 1), (20, 2)",
		"ALTER TABLE a ADD CONSTRAINT to_b FOREIGN KEY (b) REFERENCES b (id)"}},
	{"columns", nil, []string{
		"CREATE TABLE g (id INT PRIMARY KEY, n INT NOT NULL, twice INT AS (n * 2) STORED, v VARCHAR(20) AS (CONCAT(n, '!')) VIRTUAL," +
			" e ENUM('x', 'it''s') NOT NULL DEFAULT 'x', s SET('p', 'q'), d DECIMAL(9,4), j JSON, bits BIT(9), b VARBINARY(9)," +
			" t TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), KEY (twice))",
		"INSERT INTO g (id, n, e, s, d, j, bits, b, t) VALUES (1, 7, 'it''s', 'p,q', 1.5, '{\"a\": [1]}', b'101', x'00ff'," +
			" '2001-02-03 04:05:06.789')"}},
	{"counters", nil, []string{
		"CREATE TABLE gap (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
		"INSERT INTO gap (v) VALUES (1), (2), (3), (4)", "DELETE FROM gap WHERE id > 2",
		"CREATE TABLE ahead (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 500",
		"CREATE TABLE zero (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
		"INSERT INTO zero (v) VALUES (1), (2)", "UPDATE zero SET id = 0 WHERE id = 1",
		"CREATE TABLE old (day DATE, at DATETIME NOT NULL DEFAULT '2001-01-01')",
		"SET sql_mode = ''", "INSERT INTO old VALUES ('0000-00-00', '2001-00-31')"}},
	{"names", nil, []string{
		"CREATE TABLE `we\"ird` (`select` INT PRIMARY KEY, `a``b` INT, `Spalte ä` INT)",
		"INSERT INTO `we\"ird` VALUES (1, 2, 3)",
		"CREATE TABLE `order` (`key` INT PRIMARY KEY, `#.x` VARCHAR(200) DEFAULT '#.x' COMMENT 'in #''s order')",
		"CREATE TABLE `back``quote` (id INT)", "CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1), (1)",
		"CREATE VIEW `v``w` AS SELECT `select`, `a``b` + 1 AS `we\"ird` FROM `#`.`we\"ird`"}},
	{"cases", []string{"mariadb", "mariadb118", "mysql"}, []string{"CREATE TABLE Cased (id INT)", "CREATE TABLE cased (id INT)", "INSERT INTO Cased VALUES (7)"}},
	{"latin1", []string{"mariadb", "mariadb118", "mysql"}, []string{
		"CREATE TABLE l (id INT PRIMARY KEY, name VARCHAR(20) COLLATE latin1_german1_ci, KEY (name)) DEFAULT CHARSET=latin1",
		"INSERT INTO l VALUES (1, 'Grüße')", "ALTER DATABASE `#` CHARACTER SET latin1 COLLATE latin1_bin",
		"CREATE TABLE m (id INT PRIMARY KEY, name VARCHAR(20))"}},
	{"partitions", nil, []string{
		"CREATE TABLE p (id INT, day INT, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)" +
			" (PARTITION early VALUES LESS THAN (10), PARTITION late VALUES LESS THAN MAXVALUE)",
		"INSERT INTO p VALUES (1, 5), (2, 50)"}},
	{"views", nil, []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 10), (2, 20)",
		"CREATE VIEW z AS SELECT id, v FROM t WHERE v > 10", "CREATE VIEW y AS SELECT `#`.z.id FROM `#`.z",
		"CREATE SQL SECURITY INVOKER VIEW a AS SELECT x.id, u.table_name FROM y AS x, information_schema.tables AS u" +
			" WHERE u.table_schema = '#' AND u.table_name IN (SELECT 't' FROM `#`.t)",
		"CREATE TABLE gone (id INT)", "CREATE VIEW broken AS SELECT id FROM gone"}},
	{"a view that checks what is written", []string{"mariadb", "mariadb118", "mysql"}, []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)",
		"CREATE VIEW z AS SELECT id, v FROM t WHERE v > 10 WITH CHECK OPTION"}},
	{"programs", []string{"mariadb", "mariadb118", "mysql"}, programs},
	{"ANSI quotes", []string{"mariadb", "mariadb118", "mysql"}, []string{
		"CREATE TABLE t (id INT)",
		"SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
		"CREATE PROCEDURE ansi() INSERT INTO \"#\".\"t\" SELECT LENGTH('\\') FROM \"#\".t AS \"x\""}},
	{"programs of a latin1 client", []string{"mariadb", "mariadb118", "mysql"}, []string{
		"CREATE TABLE t (id INT, name VARCHAR(20))", "SET NAMES latin1 COLLATE latin1_german1_ci",
		"CREATE PROCEDURE p() SELECT 'gr\xfc\xdf' = 'GR\xdcSS'", "CREATE FUNCTION f() RETURNS VARCHAR(20) DETERMINISTIC RETURN 'gr\xfc\xdf'",
		"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.name = 'gr\xfc\xdf'",
		"CREATE VIEW v AS SELECT 'gr\xfc\xdf' AS `gru\xdf`, name = 'GR\xdcSS' AS same FROM t", "INSERT INTO t VALUES (1, '')"}},
	{"sequences", []string{"mariadb", "mariadb118"}, []string{
		"CREATE SEQUENCE s START WITH 5 INCREMENT BY 2 NOCACHE", "SELECT NEXTVAL(s)",
		"CREATE TABLE t (id INT DEFAULT (NEXTVAL(s)) PRIMARY KEY, v INT)", "INSERT INTO t (v) VALUES (1)",
		"CREATE TABLE history (id INT PRIMARY KEY) WITH SYSTEM VERSIONING", "INSERT INTO history VALUES (1)"}},
	{"indexes and checks", []string{"mariadb", "mariadb118", "mysql"}, []string{
		"CREATE TABLE i (id INT, a INT, body TEXT, place POINT NOT NULL, KEY down (a DESC, id), FULLTEXT (body), SPATIAL (place)," +
			" KEY prefix (body(5)), UNIQUE (id)) ROW_FORMAT=COMPRESSED COMMENT='it''s'",
		"INSERT INTO i VALUES (1, 2, 'some words', POINT(1, 2)), (NULL, NULL, NULL, POINT(3, 4))",
		"CREATE TABLE c (n INT, CONSTRAINT small CHECK (n < 10))", "INSERT INTO c VALUES (1)",
		"CREATE TABLE m (a INT, b INT NOT NULL AUTO_INCREMENT, PRIMARY KEY (a, b)) ENGINE=MyISAM", "INSERT INTO m (a) VALUES (1), (1), (2)",
		"CREATE TABLE mem (id INT PRIMARY KEY) ENGINE=MEMORY", "INSERT INTO mem VALUES (0)"}},
	{"packages", []string{"mariadb", "mariadb118"}, []string{
		"CREATE TABLE t (id INT)", "CREATE AGGREGATE FUNCTION heads(x INT) RETURNS INT BEGIN DECLARE n INT DEFAULT 0;" +
			" DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN n; LOOP FETCH GROUP NEXT ROW; SET n = n + 1; END LOOP; END",
		"SET sql_mode = 'ORACLE'", "CREATE PACKAGE pack AS PROCEDURE put(x INT); END",
		"CREATE PACKAGE BODY pack AS PROCEDURE put(x INT) AS BEGIN INSERT INTO #.t VALUES (x); END; END"}},
	{"rows that checks refuse", []string{"mariadb", "mariadb118"}, []string{
		"CREATE TABLE c (n INT, CONSTRAINT small CHECK (n < 10))", "SET check_constraint_checks = 0", "INSERT INTO c VALUES (11)"}},
	{"MySQL's own", []string{"mysql"}, []string{
		"SET sql_generate_invisible_primary_key = 1", "CREATE TABLE k (v INT DEFAULT (RAND() * 5 + 1))", "INSERT INTO k VALUES (1), (2)",
		"CREATE TABLE f (id INT PRIMARY KEY, name VARCHAR(9), KEY lower_name ((LOWER(name))), KEY hidden (name) INVISIBLE)",
		"INSERT INTO f VALUES (1, 'X')", "CREATE TABLE c (n INT, CONSTRAINT big CHECK (n > 10) NOT ENFORCED)", "INSERT INTO c VALUES (1)"}},
	{"invisible", []string{"mariadb", "mariadb118", "mysql"}, []string{
		"CREATE TABLE t (id INT PRIMARY KEY, isotap_rowid BIGINT NOT NULL DEFAULT 0 INVISIBLE, isotap_wlist VARCHAR(99) INVISIBLE)",
		"INSERT INTO t (id, isotap_rowid, isotap_wlist) VALUES (1, 77, 'w')"}},
}
