// Package dbms names the database servers that isotap stands before: each by its [Engine], and by the [Family] that it
// shares a protocol and a grammar with. It imports nothing, so that history, addresses and grammars can speak of the
// same servers without importing each other (ADR 60).
package dbms

import (
	"fmt"
	"strings"
)

// An Engine is a database server by the name that recordings and JSON documents have for it. Histories of other
// checkers may be of an engine that isotap does not know, or of none (the empty Engine).
type Engine string

// The engines that isotap knows.
const (
	MariaDB    Engine = "mariadb"
	MySQL      Engine = "mysql"
	TiDB       Engine = "tidb"
	PostgreSQL Engine = "postgresql"
)

// Engines are all that isotap knows.
var Engines = []Engine{MariaDB, MySQL, TiDB, PostgreSQL}

// titles are the engines' names as their makers write them.
var titles = map[Engine]string{MariaDB: "MariaDB", MySQL: "MySQL", TiDB: "TiDB", PostgreSQL: "PostgreSQL"}

// ParseEngine reads the name of an engine that isotap knows, in any case; "postgres" is PostgreSQL.
func ParseEngine(name string) (Engine, error) {
	e := Engine(strings.ToLower(name))
	if e == "postgres" {
		e = PostgreSQL
	}
	if _, known := titles[e]; !known {
		return "", fmt.Errorf("engine %q is none of %v", name, Engines)
	}
	return e, nil
}

// String returns the name that recordings have.
func (e Engine) String() string { return string(e) }

// Title returns the name as the engine's makers write it. For an engine that isotap does not know it is that of String.
func (e Engine) Title() string {
	if title, known := titles[e]; known {
		return title
	}
	return string(e)
}

// Family returns the family that the engine belongs to: MySQL's, but for PostgreSQL.
func (e Engine) Family() Family {
	if e == PostgreSQL {
		return PostgreSQLFamily
	}
	return MySQLFamily
}

// A Family is what servers have in common that speak one protocol, and whose SQL is read by one grammar.
type Family uint8

// The families.
const (
	MySQLFamily      Family = iota // MySQL, MariaDB and TiDB
	PostgreSQLFamily               // PostgreSQL alone
)

// Families are all there are.
var Families = []Family{MySQLFamily, PostgreSQLFamily}

// ParseFamily reads the name of a family, or of an engine in it, in any case.
func ParseFamily(name string) (Family, error) {
	e, err := ParseEngine(name)
	if err != nil {
		return 0, fmt.Errorf("family %q is none of %v", name, Families)
	}
	return e.Family(), nil
}

// engine returns the engine that the family has its name from.
func (f Family) engine() Engine {
	if f == PostgreSQLFamily {
		return PostgreSQL
	}
	return MySQL
}

// String returns the family's name as the command line spells it.
func (f Family) String() string { return f.engine().String() }

// Title returns the name of the family's protocol as people write it.
func (f Family) Title() string { return f.engine().Title() }
