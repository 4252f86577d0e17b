package mysql

import (
	"strings"

	"github.com/isotap/isotap/dbms"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// columns says what isotap's columns are like on a server.
type columns struct {
	rowID, wList string   // definitions, names included
	invisible    bool     // SELECT * does not show them
	rebuild      []string // what makes ALTER TABLE ... DROP COLUMN leave no trace of them
}

// columns returns those for the server, with lists of up to wListBytes bytes.
func (s Server) columns(wListBytes int) columns {
	if s.tidb() {
		return columns{rowID: sqlmysql.TiDBRowIDDefinition, wList: sqlmysql.TiDBWListDefinition(wListBytes)}
	}
	return columns{rowID: sqlmysql.RowIDDefinition, wList: sqlmysql.WListDefinition(wListBytes),
		invisible: true, rebuild: []string{"FORCE"}}
}

func (s Server) tidb() bool { return s.Engine == dbms.TiDB }

// made reports whether a column that bears a name of isotap's is defined as isotap would.
func (c columns) made(extra string) bool {
	return strings.Contains(extra, "INVISIBLE") == c.invisible
}
