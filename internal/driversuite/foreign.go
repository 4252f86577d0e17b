package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
)

// The suites in other languages. Those that come as checkouts are written for the version of the driver that the tag
// names: that of Debian 12, where the driver is a package of Debian's.

var psycopg = &pythonTests{
	repository: "github.com/psycopg/psycopg", tag: "3.1.7",
	packages: []string{"python3-psycopg", "python3-pytest-asyncio", "python3-anyio", "python3-tenacity"},
	options: func(s server) []string {
		host, port, _ := net.SplitHostPort(s.at.Address) // it was put together
		return []string{
			"--test-dsn=" + fmt.Sprintf("host=%s port=%s user=%s dbname=%s", host, port, s.at.User, s.at.Database),
			// What takes the clock, the interpreter or the network for its measure.
			"-m", "not slow and not mypy and not flakey and not refcount and not timing and not dns and not subprocess",
			"--ignore=tests/pool", "--ignore=tests/test_typing.py", "--ignore=tests/crdb",
		}
	},
	paths: []string{"tests"},
}

var pyMySQL = &pythonTests{
	repository: "github.com/PyMySQL/PyMySQL", tag: "v1.0.2",
	packages: []string{"python3-pymysql", "python3-cryptography"},
	options:  func(server) []string { return nil },
	paths:    []string{"pymysql/tests"},
	configure: func(source string, s server) error {
		host, port, err := net.SplitHostPort(s.at.Address)
		if err != nil {
			return err
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		var databases []map[string]any
		for _, name := range []string{"test1", "test2"} {
			databases = append(databases, map[string]any{"host": host, "port": number, "user": s.at.User,
				"password": s.at.Password, "database": name, "local_infile": true})
		}
		text, err := json.Marshal(databases)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(source, "pymysql/tests/databases.json"), text, 0o600)
	},
}

// sqlAlchemy is SQLAlchemy's suite, on the driver that is usual for the family.
func sqlAlchemy() *pythonTests {
	return &pythonTests{
		repository: "github.com/sqlalchemy/sqlalchemy", tag: "rel_1_4_46",
		packages: []string{"python3-sqlalchemy", "python3-psycopg2", "python3-pymysql"},
		options: func(s server) []string {
			dialect := "mysql+pymysql"
			if s.at.Family == dbms.PostgreSQLFamily {
				dialect = "postgresql+psycopg2"
			}
			return []string{"--dburi", fmt.Sprintf("%s://%s@%s/%s", dialect, s.at.User, s.at.Address, s.at.Database)}
		},
		// Its own dialects' tests, the engine's, and what sends the statements that applications send.
		paths: []string{
			"test/dialect/test_suite.py", "test/dialect/postgresql", "test/dialect/mysql",
			"test/engine/test_transaction.py",
			"test/engine/test_reconnect.py", "test/engine/test_execute.py", "test/sql/test_query.py",
			"test/sql/test_resultset.py",
			"test/sql/test_insert_exec.py", "test/sql/test_update.py", "test/sql/test_returning.py",
			"test/orm/test_versioning.py", "test/orm/test_unitofwork.py",
		},
	}
}

// django is the part of Django's suite that asks most of a database.
func django() *djangoTests {
	return &djangoTests{
		packages: []string{"python3-asgiref", "python3-sqlparse", "python3-tz", "python3-psycopg2", "python3-mysqldb"},
		apps: []string{
			"aggregation", "aggregation_regress", "annotations", "backends", "basic", "bulk_create", "constraints",
			"custom_lookups", "datatypes",
			"db_functions", "defer", "delete", "delete_regress", "expressions", "expressions_case",
			"expressions_window", "force_insert_update",
			"foreign_object", "get_or_create", "indexes", "introspection", "lookup", "many_to_many", "migrations",
			"model_fields", "ordering", "queries",
			"raw_query", "schema", "select_for_update", "select_related", "transaction_hooks", "transactions", "update",
			"update_only_fields",
		},
	}
}

var nodePostgres = &nodeTests{
	repository: "github.com/brianc/node-postgres", tag: "pg@8.16.3", dir: "packages/pg",
	packages: []string{"async@2.6.4", "bluebird@3.7.2", "co@4.6.0", "pg-copy-streams@0.3.0"},
	tests:    "test/integration", suffix: "-tests.js",
	before: []string{"script/create-test-tables.js", "postgres://"},
	environment: func(server, string, string) []string {
		return []string{"PGTESTNOSSL=1"} // the rest is libpq's
	},
}

var mysql2 = &nodeTests{
	repository: "github.com/sidorares/node-mysql2", tag: "v3.14.0", dir: ".", development: true,
	tests: "test/integration", suffix: ".test.cjs",
	environment: func(s server, host, port string) []string {
		return []string{"MYSQL_HOST=" + host, "MYSQL_PORT=" + port, "MYSQL_USER=" + s.at.User, "MYSQL_DATABASE=test"}
	},
}

var mariadbNodeJS = &nodeTests{
	repository: "github.com/mariadb-corporation/mariadb-connector-nodejs", tag: "3.4.0", dir: ".", development: true,
	tests: "test/integration", suffix: ".js", mocha: true,
	environment: func(s server, host, port string) []string {
		return []string{"TEST_DB_HOST=" + host, "TEST_DB_PORT=" + port, "TEST_DB_USER=" + s.at.User,
			"TEST_DB_DATABASE=testn"}
	},
}

var pgJDBC = &javaTests{
	repository: "github.com/pgjdbc/pgjdbc", tag: "REL42.5.5",
	packages: []string{"libpostgresql-jdbc-java", "libscram-java", "libjna-java", "libslf4j-java", "junit4",
		"libhamcrest-java"},
	jars: append([]string{"postgresql", "scram-client", "scram-common", "jna", "slf4j-api"}, junitJars...),
	// Suites name classes that are left out; the rest needs System Stubs, a detector of leaks, or OSGi.
	lacking:   []string{"SuiteClasses", "uk.org.webcompere", "se.jiderhamn", "org.osgi.", "StubEnvironmentAndProperties"},
	sources:   []string{"pgjdbc/src/test/java"},
	resources: []string{"pgjdbc/src/test/resources"},
	tests:     []string{"org.postgresql"},
	properties: func(s server) []string {
		host, port, _ := net.SplitHostPort(s.at.Address) // it was put together
		return []string{"-Dserver=" + host, "-Dport=" + port, "-Ddatabase=" + s.at.Database, "-Dusername=test",
			"-Dpassword=test", "-DprivilegedUser=" + s.at.User, "-DprivilegedPassword=" + s.at.Password,
			"-Dbuild.properties.relative.path=."}
	},
}

var connectorJ = &javaTests{
	repository: "github.com/mysql/mysql-connector-j", tag: "8.0.33",
	packages: []string{"libprotobuf-java", "libjavassist-java", "libslf4j-java", "libc3p0-java", "libhamcrest-java"},
	jars:     append([]string{"protobuf", "javassist", "slf4j-api", "c3p0"}, junitJars...),
	sources: []string{"src/main/core-api/java", "src/main/core-impl/java", "src/main/protocol-impl/java",
		"src/main/user-api/java", "src/main/user-impl/java", "src/generated/java", "src/legacy/java", "src/build/java",
		"src/test/java"},
	resources: []string{"src/main/resources"},
	tokens: strings.NewReplacer("@MYSQL_CJ_MAJOR_VERSION@", "8", "@MYSQL_CJ_MINOR_VERSION@", "0",
		"@MYSQL_CJ_SUBMINOR_VERSION@", "33", "@MYSQL_CJ_VERSION@", "8.0.33",
		"@MYSQL_CJ_FULL_PROD_NAME@", "mysql-connector-j-8.0.33", "@MYSQL_CJ_DISPLAY_PROD_NAME@", "MySQL Connector/J",
		"@MYSQL_CJ_LICENSE_TYPE@", "GPL", "@MYSQL_CJ_REVISION@", "8.0.33"),
	after: []string{"instrumentation.CommonChecks", "instrumentation.TranslateExceptions", "instrumentation.AddMethods"},
	// Those of the X protocol, testsuite.x, go past isotap.
	tests: []string{"com.mysql.cj.protocol", "com.mysql.cj.result", "testsuite.simple", "testsuite.regression"},
	properties: func(s server) []string {
		return []string{"-Dcom.mysql.cj.testsuite.url=jdbc:mysql://" + s.at.Address + "/" + s.at.Database + "?user=" +
			s.at.User + "&password=" + s.at.Password + "&allowPublicKeyRetrieval=true"}
	},
}

// junitJars are JUnit's console with its engines, and what tests are written with.
var junitJars = []string{"junit-platform-console", "junit-platform-launcher", "junit-platform-reporting",
	"junit-platform-engine", "junit-platform-commons", "junit-jupiter-api", "junit-jupiter-engine",
	"junit-jupiter-params", "junit-vintage-engine", "junit4", "hamcrest", "opentest4j", "apiguardian-api", "picocli",
	"univocity-parsers", "opentest4j-reporting-events", "opentest4j-reporting-schema"}
