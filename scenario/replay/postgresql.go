package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
)

// postgresqlDialect is PostgreSQL's.
type postgresqlDialect struct{}

func (postgresqlDialect) connect(ctx context.Context, s Server, schema string) (conn, error) {
	config, err := pgconn.ParseConfig("sslmode=disable connect_timeout=" + strconv.Itoa(int(connectTimeout.Seconds())))
	if err != nil {
		return nil, err
	}
	if config.Host, config.Port, err = s.hostAndPort(); err != nil {
		return nil, err
	}
	if config.TLSConfig = s.TLS; s.MayBePlain {
		config.Fallbacks = []*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port}}
	}
	config.User, config.Password, config.Database = s.User, s.Password, cmp.Or(s.Database, "postgres")
	if schema != "" {
		config.RuntimeParams["search_path"] = schema
	}
	c := &postgresqlConn{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		c.note(Notice{Severity: n.Severity, Code: n.Code, Message: n.Message, Detail: n.Detail, Hint: n.Hint})
	}
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		c.notifications = append(c.notifications, Notification{Channel: n.Channel, Payload: n.Payload, sender: n.PID})
	}
	if c.PgConn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	return c, nil
}

// hostAndPort returns the address as libpq has it: a unix socket is its directory and a port.
func (s Server) hostAndPort() (string, uint16, error) {
	host, port, err := net.SplitHostPort(s.Addr)
	if filepath.IsAbs(s.Addr) {
		host, port, err = filepath.Dir(s.Addr), strings.TrimPrefix(filepath.Ext(s.Addr), "."), nil
	}
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return host, uint16(n), err
}

// A session that does not end must not keep the DROP waiting for good.
func (postgresqlDialect) administer() []string { return []string{"SET lock_timeout = '20s'"} }

func (postgresqlDialect) setLevel(l history.Level) string {
	return "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL " + l.String()
}

func (postgresqlDialect) set(variable, value string) string {
	return "SET " + variable + " = " + quoted(value)
}

func (postgresqlDialect) kill(connection uint32) string {
	return fmt.Sprintf("SELECT pg_terminate_backend(%d)", connection)
}

// pg_terminate_backend gives false and a warning where there is no such connection.
func (postgresqlDialect) gone(*Result) bool { return false }

// All roles may look into the schema, as into public.
func (postgresqlDialect) create(schema string) string {
	return "CREATE SCHEMA " + schema + "; GRANT USAGE ON SCHEMA " + schema + " TO PUBLIC"
}

func (postgresqlDialect) drop(schema string) string { return "DROP SCHEMA " + schema + " CASCADE" }

func (postgresqlDialect) clear(c conn) bool {
	for _, sql := range []string{"ROLLBACK", "DISCARD ALL"} {
		if err := run(c, sql); err != nil {
			return false
		}
	}
	return true
}

func (postgresqlDialect) enter(c conn, schema string) error {
	own := c.(*postgresqlConn)
	own.mu.Lock()
	own.told = nil
	own.mu.Unlock()
	if schema == "" { // the database's own
		return nil
	}
	return run(c, "SET search_path = "+schema)
}

// insufficientPrivilege is the SQLSTATE of a right that is missing.
const insufficientPrivilege = "42501"

func (postgresqlDialect) rights(err error) error {
	var refused *refusalError
	if !errors.As(err, &refused) || refused.result.State != insufficientPrivilege {
		return err
	}
	return fmt.Errorf("%w. To work in schemas of its own isotap's role needs: GRANT CREATE ON DATABASE <database> TO <role>",
		err)
}

// firstUserOID is the least number of what is not the system's (FirstNormalObjectId).
const firstUserOID = 16384

// numbers are those of processes, transactions and places in files, which differ between runs.
var numbers = regexp.MustCompile(`\d+`)

// anonymize counts the tables and types that the scenario made, in the order in which results name them.
func (postgresqlDialect) anonymize(t *Trace, schema string) {
	ordinals := make(map[uint32]uint32)
	ordinal := func(oid uint32) uint32 {
		if oid < firstUserOID {
			return oid
		}
		if ordinals[oid] == 0 {
			ordinals[oid] = firstUserOID + uint32(len(ordinals)) + 1
		}
		return ordinals[oid]
	}
	for i := range t.Results {
		r := &t.Results[i]
		for j := range r.Columns {
			r.Columns[j].Type = ordinal(r.Columns[j].Type)
			r.Columns[j].TableOID = ordinal(r.Columns[j].TableOID)
		}
		r.Message = strings.ReplaceAll(r.Message, schema, ownDatabase)
		r.Detail = numbers.ReplaceAllString(strings.ReplaceAll(r.Detail, schema, ownDatabase), "#")
	}
}

// A postgresqlConn is a connection to PostgreSQL.
type postgresqlConn struct {
	*pgconn.PgConn
	mu   sync.Mutex
	told []Notice // all so far

	notifications []Notification // since the statement was sent; only execute reads from the connection
}

func (c *postgresqlConn) note(n Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, n)
}

func (c *postgresqlConn) notices() []Notice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told[:len(c.told):len(c.told)]
}

func (c *postgresqlConn) id() uint32 { return c.PID() }

func (c *postgresqlConn) quit() error {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	err := c.Close(ctx)
	<-c.CleanupDone() // pgconn closes a broken connection in a goroutine of its own
	return err
}

func (c *postgresqlConn) abandon() { _ = c.Conn().Close() }

// execute sends the text as a simple query, or prepared as Parse, Bind, Describe, Execute and Sync without
// parameters. Values come in text format.
func (c *postgresqlConn) execute(sql string, prepared bool) (Result, error) {
	told := len(c.notices())
	c.notifications = nil
	ctx := context.Background() // who gives up closes the socket
	var r Result
	var err error
	if prepared {
		err = r.read(c.ExecParams(ctx, sql, nil, nil, nil, nil))
	} else {
		err = r.readAll(c.Exec(ctx, sql))
	}
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		r = Result{Status: Failed, Sets: r.Sets, State: refused.Code, Message: refused.Message,
			Position: refused.Position, Detail: detail(refused)}
	case err != nil:
		return Result{}, err
	default:
		r.Status = OK
	}
	r.InTxn, r.TxnFailed = c.TxStatus() != 'I', c.TxStatus() == 'E'
	r.Notices, r.Notifications = c.notices()[told:], c.notifications
	r.Warnings = uint16(len(r.Notices))
	return r, nil
}

// readAll reads the results of all statements of a simple query. The last one's rows stay.
func (r *Result) readAll(results *pgconn.MultiResultReader) error {
	var err error
	for err == nil && results.NextResult() {
		err = r.read(results.ResultReader())
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}

// read adds the result of one statement.
func (r *Result) read(reader *pgconn.ResultReader) error {
	r.Columns, r.Rows, r.Affected = nil, nil, 0
	for _, f := range reader.FieldDescriptions() {
		r.Columns = append(r.Columns, Column{
			Name: f.Name, Type: f.DataTypeOID, TableOID: f.TableOID, Attribute: f.TableAttributeNumber,
			Size: f.DataTypeSize, Modifier: f.TypeModifier, Format: f.Format,
		})
	}
	for reader.NextRow() {
		row := make([]Value, len(r.Columns))
		for i, v := range reader.Values() {
			row[i] = Value{Text: string(v), Null: v == nil}
		}
		r.Rows = append(r.Rows, row)
	}
	tag, err := reader.Close()
	if err != nil {
		return err
	}
	if r.Columns == nil {
		r.Affected = uint64(tag.RowsAffected())
	} else {
		r.Sets = append(r.Sets, Set{r.Columns, r.Rows})
	}
	if r.Tag != "" {
		r.Tag += ";"
	}
	r.Tag += tag.String()
	return nil
}

// detail returns what an error says beside its code, message and position.
func detail(e *pgconn.PgError) string {
	return strings.Join([]string{e.Severity, e.InternalQuery, e.Detail, e.Hint, e.Where,
		e.SchemaName, e.TableName, e.ColumnName, e.DataTypeName, e.ConstraintName}, "|")
}
