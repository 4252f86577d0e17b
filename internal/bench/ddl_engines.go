package main

import (
	"context"
	"errors"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/isotap/isotap/internal/testdb"
)

// mariadbDDL is the load of statements that define tables on MariaDB. Its dump is mysqldump's.
var mariadbDDL = ddlEngine{
	start:  emptyMariaDB,
	driver: "mysql",
	source: func(address, database string) string { return "root@tcp(" + address + ")/" + database },
	enter:  []string{"CREATE DATABASE %s", "USE %s"},
	leave:  "DROP DATABASE %s",
	others: "CREATE TABLE %s (id INT PRIMARY KEY, name VARCHAR(100) NOT NULL, price DECIMAL(10,2), KEY (name))",
	steps: []ddlStep{
		{"CREATE TABLE", "CREATE TABLE %s (id INT PRIMARY KEY, name VARCHAR(100) NOT NULL, price DECIMAL(10,2), note TEXT)"},
		{"ALTER TABLE ... ADD COLUMN", "ALTER TABLE %s ADD COLUMN added INT NOT NULL DEFAULT 0"},
		{"CREATE INDEX", "CREATE INDEX %s_name ON %s (name)"},
		{"  INSERT after it", "INSERT INTO %s (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')"},
		{"ALTER TABLE ... MODIFY", "ALTER TABLE %s MODIFY price DECIMAL(12,4)"},
		{"  UPDATE after it", "UPDATE %s SET price = 1 WHERE id = 2"},
		{"CREATE TABLE ... LIKE", "CREATE TABLE %s_like LIKE %s"},
		{"CREATE TABLE ... AS SELECT", "CREATE TABLE %s_as AS SELECT * FROM %s"},
		{"RENAME TABLE", "RENAME TABLE %s_as TO %s_was"},
		{"  SELECT after it", "SELECT * FROM %s_was"},
		{"CREATE VIEW", "CREATE VIEW %s_view AS SELECT id, name FROM %s"},
		{"DROP VIEW", "DROP VIEW %s_view"},
		{"TRUNCATE TABLE", "TRUNCATE TABLE %s"},
		{"DROP TABLE", "DROP TABLE %s"},
		{"DROP TABLE of two", "DROP TABLE %s_like, %s_was"},
	},
	restore: []string{
		"DROP TABLE IF EXISTS `%s`",
		"CREATE TABLE `%s` (`id` int(11) NOT NULL AUTO_INCREMENT, `name` varchar(100) NOT NULL, " +
			"`price` decimal(10,2) DEFAULT NULL, " +
			"PRIMARY KEY (`id`), KEY `name` (`name`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
		"LOCK TABLES `%s` WRITE",
		"/*!40000 ALTER TABLE `%s` DISABLE KEYS */",
		"INSERT INTO `%s` VALUES (1,'a',1.50),(2,'b',2.50),(3,'c',NULL),(4,'d',4.00)",
		"/*!40000 ALTER TABLE `%s` ENABLE KEYS */",
		"UNLOCK TABLES",
	},
}

// emptyMariaDB starts a server with an empty database.
func emptyMariaDB(ctx context.Context) (target, error) {
	// Definitions wait for the disk, as they do where servers are not thrown away.
	s, err := testdb.Start(ctx, testdb.Options{Args: []string{"--loose-debug-no-sync=OFF"}})
	if err != nil {
		return nil, err
	}
	if err := createDatabase(ctx, s, database); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return mariadb{s}, nil
}

// postgresqlDDL is the load of statements that define tables on PostgreSQL. Its dump is that of pg_dump --inserts.
var postgresqlDDL = ddlEngine{
	start:  emptyPostgreSQL,
	driver: "pgx",
	apart:  true,
	source: func(address, database string) string {
		return "postgres://" + postgresqlUser + "@" + address + "/" + database +
			"?sslmode=disable&default_query_exec_mode=simple_protocol"
	},
	enter:  []string{"CREATE SCHEMA %s", "SET search_path TO %s"},
	leave:  "DROP SCHEMA %s CASCADE",
	others: "CREATE TABLE %s (id int PRIMARY KEY, name varchar(100) NOT NULL, price decimal(10,2))",
	steps: []ddlStep{
		{"CREATE TABLE", "CREATE TABLE %s (id int PRIMARY KEY, name varchar(100) NOT NULL, price decimal(10,2), note text)"},
		{"ALTER TABLE ... ADD COLUMN", "ALTER TABLE %s ADD COLUMN added int NOT NULL DEFAULT 0"},
		{"CREATE INDEX", "CREATE INDEX %s_name ON %s (name)"},
		{"  INSERT after it", "INSERT INTO %s (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')"},
		{"ALTER TABLE ... ALTER COLUMN TYPE", "ALTER TABLE %s ALTER COLUMN price TYPE decimal(12,4)"},
		{"  UPDATE after it", "UPDATE %s SET price = 1 WHERE id = 2"},
		{"CREATE TABLE (LIKE ...)", "CREATE TABLE %s_like (LIKE %s INCLUDING ALL)"},
		{"CREATE TABLE ... AS SELECT", "CREATE TABLE %s_as AS SELECT * FROM %s"},
		{"ALTER TABLE ... RENAME", "ALTER TABLE %s_as RENAME TO %s_was"},
		{"  SELECT after it", "SELECT * FROM %s_was"},
		{"CREATE VIEW", "CREATE VIEW %s_view AS SELECT id, name FROM %s"},
		{"DROP VIEW", "DROP VIEW %s_view"},
		{"TRUNCATE TABLE", "TRUNCATE TABLE %s"},
		{"DROP TABLE", "DROP TABLE %s"},
		{"DROP TABLE of two", "DROP TABLE %s_like, %s_was"},
	},
	restore: []string{
		"CREATE TABLE %s (id integer NOT NULL, name character varying(100) NOT NULL, price numeric(10,2))",
		"ALTER TABLE %s OWNER TO " + postgresqlUser,
		"INSERT INTO %s VALUES (1, 'a', 1.50), (2, 'b', 2.50), (3, 'c', NULL), (4, 'd', 4.00)",
		"ALTER TABLE ONLY %s ADD CONSTRAINT %s_pkey PRIMARY KEY (id)",
		"CREATE INDEX %s_name ON %s USING btree (name)",
	},
}

// emptyPostgreSQL starts a server with an empty database.
func emptyPostgreSQL(ctx context.Context) (target, error) {
	// Definitions wait for the disk, as above.
	s, err := testdb.StartPostgreSQL(ctx, testdb.PostgreSQLOptions{
		Args: []string{"-c", "fsync=on", "-c", "full_page_writes=on"},
	})
	if err != nil {
		return nil, err
	}
	names := []string{database} // isotap's upstream
	for _, path := range ddlPaths {
		names = append(names, ownDatabase(path))
	}
	for _, name := range names {
		if err := createDatabase(ctx, s, name); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return &postgresql{PostgreSQLServer: s}, nil
}
