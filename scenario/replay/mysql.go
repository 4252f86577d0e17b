package replay

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
)

// mysqlDialect is the MySQL family's.
type mysqlDialect struct{}

func (mysqlDialect) connect(ctx context.Context, s Server, database string) (conn, error) {
	login := func(secure *tls.Config) (*client.Conn, error) {
		return client.ConnectWithContext(ctx, s.Addr, s.User, s.Password, cmp.Or(database, s.Database), connectTimeout,
			func(c *client.Conn) error {
				c.SetTLSConfig(secure)
				if s.FoundRows {
					return c.SetCapability(mysql.CLIENT_FOUND_ROWS)
				}
				return nil
			})
	}
	c, err := login(s.TLS)
	if err != nil && s.MayBePlain && strings.Contains(err.Error(), "does not support TLS") {
		c, err = login(nil)
	}
	if err != nil {
		return nil, err
	}
	return &mysqlConn{c}, nil
}

func (mysqlDialect) watch(ctx context.Context, s Server) (watcher, error) {
	c, err := s.connect(ctx, "")
	if err != nil {
		return nil, err
	}
	own := c.(*mysqlConn).Conn
	if strings.Contains(own.GetServerVersion(), "TiDB") {
		return &tidbWatcher{conn: own}, nil
	}
	m, err := newMonitor(own)
	if err != nil {
		return nil, errors.Join(err, c.quit())
	}
	return m, nil
}

// A session that does not end must not keep the DROP waiting for its default of a day.
func (mysqlDialect) administer() []string { return []string{"SET SESSION lock_wait_timeout = 20"} }

func (mysqlDialect) setLevel(l history.Level) string {
	return "SET SESSION TRANSACTION ISOLATION LEVEL " + l.String()
}

// Variables that are numbers take no text.
func (mysqlDialect) set(variable, value string) string {
	if _, err := strconv.ParseFloat(value, 64); err != nil {
		value = quoted(value)
	}
	return "SET SESSION " + variable + " = " + value
}

func (mysqlDialect) kill(connection uint32) string {
	return fmt.Sprintf("KILL CONNECTION %d", connection)
}

func (mysqlDialect) gone(refusal *Result) bool { return refusal.Code == mysql.ER_NO_SUCH_THREAD }

func (mysqlDialect) create(database string) string { return "CREATE DATABASE " + database }
func (mysqlDialect) drop(database string) string   { return "DROP DATABASE " + database }

// A connection costs little there, and what a session leaves is not cleared by a statement.
func (mysqlDialect) clear(conn) bool          { return false }
func (mysqlDialect) enter(conn, string) error { return nil }

// denials are the errors about privileges on a database, a table and the whole server.
var denials = []uint16{mysql.ER_DBACCESS_DENIED_ERROR, mysql.ER_TABLEACCESS_DENIED_ERROR,
	mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR}

func (mysqlDialect) rights(err error) error {
	code := uint16(0)
	var refused *refusalError
	var watching *mysql.MyError
	if errors.As(err, &refused) {
		code = refused.result.Code
	} else if errors.As(err, &watching) {
		code = watching.Code
	}
	if !slices.Contains(denials, code) {
		return err
	}
	return fmt.Errorf("%w. To work in databases of its own, and to ask who waits, isotap's user needs: "+
		"GRANT ALL ON `isotap\\_replay\\_%%`.* TO <user>; GRANT PROCESS ON *.* TO <user>; "+
		"GRANT SELECT ON mysql.innodb_table_stats TO <user>", err)
}

// ofTheMoment is what TiDB's write conflicts tell of the run alone: its moments, its numbers of tables, and keys made
// of those.
var ofTheMoment = regexp.MustCompile(`\b((?:\w+TS|tableID)=)\d+|\b(\w*Key=)[0-9a-f]+`)

// anonymize replaces the run's own database name, and numbers of it that TiDB's errors have.
func (mysqlDialect) anonymize(t *Trace, database string) {
	for i := range t.Results {
		r := &t.Results[i]
		for j := range r.Columns {
			r.Columns[j].Schema = strings.ReplaceAll(r.Columns[j].Schema, database, ownDatabase)
		}
		r.Message = ofTheMoment.ReplaceAllString(strings.ReplaceAll(r.Message, database, ownDatabase), "$1$2#")
	}
}

// A mysqlConn is a connection to a server of the MySQL family.
type mysqlConn struct{ *client.Conn }

func (c *mysqlConn) id() uint32  { return c.GetConnectionID() }
func (c *mysqlConn) quit() error { return c.Quit() }

// The protocol has warnings counted only.
func (c *mysqlConn) notices() []Notice { return nil }

// The socket itself: a goroutine may still be reading from what wraps it.
func (c *mysqlConn) abandon() { _ = c.Conn.Conn.Conn.Close() }

func (c *mysqlConn) execute(sql string, prepared bool) (Result, error) {
	var res *mysql.Result
	var err error
	if prepared {
		res, err = c.executePrepared(sql)
	} else {
		res, err = c.Execute(sql)
	}
	var refused *mysql.MyError
	switch {
	case errors.As(err, &refused):
		return Result{Status: Failed, Code: refused.Code, State: refused.State, Message: refused.Message}, nil
	case err != nil:
		return Result{}, err
	}
	return decode(res, prepared)
}

// executePrepared prepares, executes and closes; what the server cannot prepare it sends as text, as
// drivers do.
func (c *mysqlConn) executePrepared(sql string) (*mysql.Result, error) {
	stmt, err := c.Prepare(sql)
	var refused *mysql.MyError
	if errors.As(err, &refused) && refused.Code == mysql.ER_UNSUPPORTED_PS {
		return c.Execute(sql)
	}
	if err != nil {
		return nil, err
	}
	res, err := stmt.Execute()
	if closeErr := stmt.Close(); err == nil {
		err = closeErr
	}
	return res, err
}

// decode turns a reply into a result. Text rows are taken apart here, because go-mysql parses
// numbers and so would hide how the server wrote them.
func decode(res *mysql.Result, prepared bool) (Result, error) {
	r := Result{
		Status:     OK,
		Affected:   res.AffectedRows,
		InsertID:   res.InsertId,
		Warnings:   res.Warnings,
		InTxn:      res.Status&mysql.SERVER_STATUS_IN_TRANS != 0,
		Autocommit: res.Status&mysql.SERVER_STATUS_AUTOCOMMIT != 0,
	}
	if res.Resultset == nil || len(res.Fields) == 0 {
		return r, nil
	}
	for _, f := range res.Fields {
		r.Columns = append(r.Columns, Column{
			Schema: string(f.Schema), Table: string(f.Table), OrgTable: string(f.OrgTable),
			Name: string(f.Name), OrgName: string(f.OrgName), Type: uint32(f.Type), Charset: f.Charset,
			Flags: f.Flag, Length: f.ColumnLength, Decimals: f.Decimal,
		})
	}
	r.Rows = make([][]Value, len(res.Values))
	for i := range res.Values {
		var err error
		if prepared {
			r.Rows[i] = binaryRow(res.Values[i])
		} else if r.Rows[i], err = textRow(res.RowDatas[i], len(r.Columns)); err != nil {
			return Result{}, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return r, nil
}

// textRow takes a row of the text protocol apart
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_row.html).
func textRow(data []byte, columns int) ([]Value, error) {
	row := make([]Value, columns)
	for i := range row {
		text, null, n, err := mysql.LengthEncodedString(data)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		row[i] = Value{Text: string(text), Null: null}
		data = data[n:]
	}
	return row, nil
}

func binaryRow(values []mysql.FieldValue) []Value {
	row := make([]Value, len(values))
	for i := range values {
		switch v := values[i].Value().(type) {
		case nil:
			row[i].Null = true
		case []byte:
			row[i].Text = string(v)
		default:
			row[i].Text = fmt.Sprint(v)
		}
	}
	return row
}
