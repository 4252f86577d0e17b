package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// Server is what isotap must know of a server as a whole. The settings are the global ones, which
// clients begin their sessions with.
type Server struct {
	history.Server
	// Numbers are the first three numbers of the version. TiDB's are its own, not those of the
	// MySQL that it passes for.
	Numbers             [3]int
	Level               history.Level // tx_isolation
	SQLMode             string
	MaxAllowedPacket    int // bytes
	LowerCaseTableNames int // 0: names differ by case; 1, 2: they do not
	BinaryLog           bool
	BinaryLogFormat     string // STATEMENT, ROW or MIXED
	// AsksConflicts says that the server has the settings that history.Conflicts rests on.
	AsksConflicts bool
	Optimistic    bool // TiDB's tidb_txn_mode
}

// FoldsNames reports whether names of schemas and tables that differ only by case are the same.
func (s Server) FoldsNames() bool { return s.LowerCaseTableNames != 0 }

// InvisibleColumns reports whether the server knows columns that SELECT * does not show: MariaDB
// 10.3, MySQL 8.0.23 and later.
func (s Server) InvisibleColumns() bool {
	switch s.Engine {
	case dbms.MariaDB:
		return s.atLeast(10, 3, 0)
	case dbms.MySQL:
		return s.atLeast(8, 0, 23)
	}
	return false
}

func (s Server) atLeast(major, minor, patch int) bool {
	for i, least := range [...]int{major, minor, patch} {
		if s.Numbers[i] != least {
			return s.Numbers[i] > least
		}
	}
	return true
}

// ServerFacts asks the server who it is.
func ServerFacts(ctx context.Context, c *Conn) (Server, error) {
	variables, err := globalVariables(ctx, c)
	if err != nil {
		return Server{}, fmt.Errorf("asking the server for its settings: %w", err)
	}
	s := identify(variables["version"])
	s.SnapshotIsolation = on(variables["innodb_snapshot_isolation"])
	s.AsksConflicts = hasConflictSettings(s.Engine, variables)
	s.Optimistic = s.Engine == dbms.TiDB && !strings.EqualFold(variables["tidb_txn_mode"], "pessimistic")
	s.BinaryLog, s.BinaryLogFormat = on(variables["log_bin"]), variables["binlog_format"]
	s.SQLMode = variables["sql_mode"]
	for name, number := range map[string]*int{
		"max_allowed_packet":     &s.MaxAllowedPacket,
		"lower_case_table_names": &s.LowerCaseTableNames,
	} {
		if *number, err = strconv.Atoi(variables[name]); err != nil {
			return Server{}, fmt.Errorf("the server's setting %s: %w", name, err)
		}
	}
	level := variables["transaction_isolation"] // MySQL 8 has this name alone, MariaDB 10 the other
	if level == "" {
		level = variables["tx_isolation"]
	}
	if s.Level, err = history.ParseLevel(level); err != nil {
		return Server{}, fmt.Errorf("the server's setting transaction_isolation: %w", err)
	}
	return s, nil
}

// hasConflictSettings looks for settings that came, or go, with the versions of a server.
func hasConflictSettings(engine dbms.Engine, variables map[string]string) bool {
	var names []string
	switch engine {
	case dbms.MariaDB:
		names = []string{"innodb_snapshot_isolation"} // since 10.6.18, 10.11.8, 11.4.2
	case dbms.TiDB:
		names = []string{"tidb_txn_mode", "tidb_disable_txn_auto_retry"}
	}
	for _, n := range names {
		if _, ok := variables[n]; !ok {
			return false
		}
	}
	return len(names) > 0
}

func globalVariables(ctx context.Context, c *Conn) (map[string]string, error) {
	rows, err := c.Query(ctx, Query{Purpose: "the global variables", Columns: 2,
		Text: `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'sql_mode', 'log_bin', 'binlog_format',
		'max_allowed_packet', 'lower_case_table_names', 'tx_isolation', 'transaction_isolation',
		'innodb_snapshot_isolation', 'tidb_txn_mode', 'tidb_disable_txn_auto_retry')`})
	if err != nil {
		return nil, err
	}
	variables := map[string]string{}
	for _, r := range rows {
		variables[r[0]] = r[1]
	}
	return variables, nil
}

func on(value string) bool { return strings.EqualFold(value, "ON") || value == "1" }

// identify reads a version: "10.11.19-MariaDB-0+deb12u1", "8.0.36", "8.0.11-TiDB-v8.5.0".
func identify(version string) Server {
	s := Server{Server: history.Server{Engine: dbms.MySQL, Version: version}}
	numbers := version
	switch {
	case strings.Contains(version, "MariaDB"):
		s.Engine = dbms.MariaDB
		// MariaDB 10 prefixes this to its version for replicas that expect MySQL's numbers.
		numbers = strings.TrimPrefix(version, "5.5.5-")
	case strings.Contains(version, "TiDB"):
		s.Engine = dbms.TiDB
		_, numbers, _ = strings.Cut(version, "TiDB-v")
	}
	numbers, _, _ = strings.Cut(numbers, "-")
	for i, n := range strings.SplitN(numbers, ".", len(s.Numbers)) {
		n = n[:len(n)-len(strings.TrimLeft(n, "0123456789"))]
		s.Numbers[i], _ = strconv.Atoi(n) // digits or nothing: 0
	}
	return s
}
