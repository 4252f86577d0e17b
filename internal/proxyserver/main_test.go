package proxyserver

import (
	"testing"

	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.Main(m, append([]testdb.Engine{testdb.MySQL, testdb.MariaDB118}, testdb.PostgreSQLs...)...)
}
