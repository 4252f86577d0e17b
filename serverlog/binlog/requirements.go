package binlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/serverlog"
)

// settings are what of a server's variables decides whether its log can be read.
type settings struct {
	on                        bool
	format, image, rowOptions string
	serverID                  uint32
	disorder                  bool // MySQL may commit in another order than the log's
}

const readSettings = `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'binlog_row_image',
	'binlog_row_value_options', 'binlog_order_commits', 'server_id')`

func askSettings(ctx context.Context, c *catalogmysql.Conn) (s settings, err error) {
	rows, err := c.Query(ctx, catalogmysql.Query{Purpose: "the settings of the binary log", Text: readSettings,
		Columns: 2})
	if err != nil {
		return s, err
	}
	for _, r := range rows {
		switch value := strings.ToUpper(r[1]); strings.ToLower(r[0]) {
		case "log_bin":
			s.on = value == "ON" || value == "1"
		case "binlog_format":
			s.format = value
		case "binlog_row_image":
			s.image = value
		case "binlog_row_value_options":
			s.rowOptions = value
		case "binlog_order_commits":
			s.disorder = value == "OFF" || value == "0"
		case "server_id":
			id, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return s, fmt.Errorf("the server's setting server_id: %w", err)
			}
			s.serverID = uint32(id)
		}
	}
	return s, nil
}

// unmet returns why the log cannot be read with these settings; nil where it can.
func (s *settings) unmet(engine dbms.Engine) *serverlog.Unreadable {
	const restart = "isotap never sets that itself: it changes what the server does, and what CREATE FUNCTION may do"
	switch {
	case engine == dbms.TiDB:
		return &serverlog.Unreadable{Reason: "TiDB keeps no binary log: TiCDC, or Pump and Drainer, " +
			"read its changes, and are programs of their own that isotap does not read"}
	case !s.on:
		return &serverlog.Unreadable{Reason: "the server keeps no binary log",
			Remedy: "start it with --log-bin --binlog-format=ROW, where that will do; " + restart}
	case s.serverID == 0:
		return &serverlog.Unreadable{Reason: "server_id is 0, and nobody may read the binary log then",
			Remedy: "SET GLOBAL server_id = 1"}
	case s.format != "" && s.format != "ROW":
		return &serverlog.Unreadable{Reason: "binlog_format is " + s.format + ", which logs statements without their rows",
			Remedy: "SET GLOBAL binlog_format = 'ROW', where that will do, and connect the clients anew; " + restart}
	case s.image != "" && s.image != "FULL":
		return &serverlog.Unreadable{Reason: "binlog_row_image is " + s.image + ", which leaves columns out",
			Remedy: "SET GLOBAL binlog_row_image = 'FULL', and connect the clients anew"}
	case s.disorder:
		return &serverlog.Unreadable{Reason: "binlog_order_commits is OFF: the log does not tell when others could see a write",
			Remedy: "SET GLOBAL binlog_order_commits = ON"}
	}
	return nil
}

// An end is what the server says of the end of its log.
type end struct {
	at       position
	filtered string // the databases that alone are logged, or are not
}

// askEnd asks where the log ends. MySQL 8.4 knows the old name of the statement no longer, and MariaDB only that.
func askEnd(ctx context.Context, c *catalogmysql.Conn, engine dbms.Engine) (end, error) {
	const columns, onMySQL = 4, 5
	q := catalogmysql.Query{Purpose: "the end of the binary log", Text: "SHOW MASTER STATUS", Columns: columns,
		Else: onMySQL}
	rows, err := c.Query(ctx, q)
	var refused *mysql.MyError
	if engine == dbms.MySQL && errors.As(err, &refused) && refused.Code == mysql.ER_PARSE_ERROR {
		q.Text = "SHOW BINARY LOG STATUS"
		rows, err = c.Query(ctx, q)
	}
	if err != nil {
		return end{}, forbidden(err, engine, statusRight(engine))
	}
	if len(rows) != 1 {
		return end{}, &serverlog.Unreadable{Reason: "the server does not say where its binary log ends"}
	}
	offset, err := strconv.ParseUint(rows[0][1], 10, 64)
	if err != nil {
		return end{}, fmt.Errorf("the end of the binary log: %w", err)
	}
	return end{position{rows[0][0], offset}, strings.TrimSpace(rows[0][2] + " " + rows[0][3])}, nil
}

// statusRight is the right to ask for the end of the log.
func statusRight(engine dbms.Engine) string {
	if engine == dbms.MariaDB {
		return "BINLOG MONITOR" // REPLICATION CLIENT is another name for it
	}
	return "REPLICATION CLIENT"
}

// readRight is the right to read the log.
const readRight = "REPLICATION SLAVE"

// forbidden makes an error of the server's that says that a right is missing an [serverlog.Unreadable] one.
func forbidden(err error, engine dbms.Engine, right string) error {
	var refused *mysql.MyError
	const denied = 1045 // of reading the log by MariaDB and MySQL: access denied
	if !errors.As(err, &refused) || refused.Code != mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR && refused.Code != denied {
		return err
	}
	return &serverlog.Unreadable{Reason: "isotap's user lacks the right " + right + " (" + string(engine) + " says: " +
		refused.Message + ")", Remedy: Grants(engine)}
}

// Grants is the statement that gives isotap's user the rights to read the log.
func Grants(engine dbms.Engine) string {
	return "GRANT " + readRight + ", " + statusRight(engine) + " ON *.* TO <isotap's user>"
}
