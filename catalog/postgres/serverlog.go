package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/guard"
)

// LogFacts are what it takes to read a server's write-ahead log.
type LogFacts struct {
	Major        int
	Level        string // wal_level
	PageBytes    int
	SegmentBytes uint64
	InRecovery   bool
	User         string
	Replicates   bool // the user may: it has the attribute REPLICATION, or is a superuser
	// Senders are the connections that read the log now, of MaxSenders that may.
	Senders, MaxSenders int
	// NextXID: every transaction with a lower id may have begun before the question.
	NextXID uint64
	// Clock is the server's, in microseconds since 2000-01-01 UTC.
	Clock int64
}

const askLog = `SELECT current_setting('server_version_num'), current_setting('wal_level'), current_setting('wal_block_size'),
	(SELECT setting FROM pg_settings WHERE name = 'wal_segment_size'), pg_is_in_recovery(), session_user,
	(SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = session_user),
	(SELECT count(*) FROM pg_stat_get_wal_senders()), current_setting('max_wal_senders'),
	txid_snapshot_xmax(txid_current_snapshot()),
	(extract(epoch FROM clock_timestamp() - '2000-01-01 00:00:00+00'::timestamptz) * 1000000)::bigint`

// AskLog asks a server of its log.
func AskLog(ctx context.Context, c *Conn) (f LogFacts, err error) {
	results, err := c.read(ctx, query{purpose: "the write-ahead log's settings", text: askLog, columns: 11, row: true})
	if err != nil {
		return f, fmt.Errorf("asking the server of its log: %w", err)
	}
	r := results[0][0]
	f = LogFacts{Level: r[1], InRecovery: r[4] == "t", User: r[5], Replicates: r[6] == "t"}
	number := 0
	for i, into := range map[int]*int{0: &number, 2: &f.PageBytes, 7: &f.Senders, 8: &f.MaxSenders} {
		if *into, err = strconv.Atoi(r[i]); err != nil {
			return f, fmt.Errorf("the server's answer of its log: %w", err)
		}
	}
	f.Major = number / 10000
	for i, into := range map[int]*uint64{3: &f.SegmentBytes, 9: &f.NextXID} {
		if *into, err = strconv.ParseUint(r[i], 10, 64); err != nil {
			return f, fmt.Errorf("the server's answer of its log: %w", err)
		}
	}
	if f.Clock, err = strconv.ParseInt(r[10], 10, 64); err != nil {
		return f, fmt.Errorf("the server's clock: %w", err)
	}
	return f, nil
}

// LogEnds returns where the log ends now, and up to where it is on disk.
func LogEnds(ctx context.Context, c *Conn) (inserted, flushed uint64, err error) {
	results, err := c.read(ctx, query{purpose: "the log's end", columns: 2, row: true,
		text: "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, pg_current_wal_flush_lsn() - '0/0'::pg_lsn"})
	if err != nil {
		return 0, 0, fmt.Errorf("asking the server for its log's end: %w", err)
	}
	if inserted, err = strconv.ParseUint(results[0][0][0], 10, 64); err == nil {
		flushed, err = strconv.ParseUint(results[0][0][1], 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("the log's end: %w", err)
	}
	return inserted, flushed, nil
}

// DatabaseNames returns the names of a server's databases by their oids.
func DatabaseNames(ctx context.Context, c *Conn) (map[uint32]string, error) {
	results, err := c.read(ctx, query{purpose: "the databases", columns: 2,
		text: "SELECT oid, datname FROM pg_database WHERE datallowconn"})
	if err != nil {
		return nil, fmt.Errorf("asking the server for its databases: %w", err)
	}
	names := make(map[uint32]string)
	for _, r := range results[0] {
		names[r.oid(0)] = r[1]
	}
	return names, nil
}

// A StoredTable is the table whose rows a file has.
type StoredTable struct {
	OID  uint32
	Name string // schema.table
	// System says that it is one of the server's own.
	System bool
}

// A File names one within a database: its tablespace and relfilenode.
type File struct{ Space, Node uint32 }

const askFiles = `SELECT f.node, c.oid, n.nspname || '.' || c.relname,
	c.relkind = 't' OR n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast')
	FROM unnest($1::oid[], $2::oid[]) AS f(space, node)
	JOIN pg_class c ON c.oid = pg_filenode_relation(f.space, f.node) JOIN pg_namespace n ON n.oid = c.relnamespace`

// StoredTables is the function of that name for a database that clients have logged in to. Of others nothing is asked:
// isotap's connection could be in somebody's way. Known says that it was asked.
func (d *Databases) StoredTables(ctx context.Context, name string, files []File) (tables map[uint32]StoredTable,
	known bool, err error) {
	entry := d.readable()[name]
	if entry == nil {
		return nil, false, nil
	}
	tables, err = StoredTables(ctx, entry.cache.conn, files)
	if IsGone(err) {
		return nil, false, nil
	}
	return tables, err == nil, err
}

// StoredTables returns the tables whose rows are in files of a connection's database, by the relfilenode, as far as
// they are there.
func StoredTables(ctx context.Context, c *Conn, files []File) (map[uint32]StoredTable, error) {
	spaces, nodes := make([]string, len(files)), make([]string, len(files))
	for i, f := range files {
		spaces[i], nodes[i] = strconv.FormatUint(uint64(f.Space), 10), strconv.FormatUint(uint64(f.Node), 10)
	}
	list := func(numbers []string) string { return "{" + strings.Join(numbers, ",") + "}" }
	results, err := c.read(ctx, query{purpose: "the tables of files", text: askFiles, columns: 4,
		args: []string{list(spaces), list(nodes)}})
	if err != nil {
		return nil, fmt.Errorf("asking the server for the tables of its files: %w", err)
	}
	tables := make(map[uint32]StoredTable)
	for _, r := range results[0] {
		tables[r.oid(0)] = StoredTable{OID: r.oid(1), Name: r[2], System: r[3] == "t"}
	}
	return tables, nil
}

// ConnectToLog connects to the server for reading its write-ahead log, in no database. Where pg_hba.conf lets the user
// in to databases only, the connection is in the maintenance database, so that it is in nobody's way who drops one.
func ConnectToLog(ctx context.Context, target dsn.Target, maintenance string) (*pgconn.PgConn, error) {
	pg, err := connectToLog(ctx, target, "", "true")
	var refused *pgconn.PgError
	const invalidAuthorization = "28000"
	if err != nil && errors.As(err, &refused) && refused.Code == invalidAuthorization {
		return connectToLog(ctx, target, maintenance, "database")
	}
	return pg, err
}

func connectToLog(ctx context.Context, target dsn.Target, database, replication string) (*pgconn.PgConn, error) {
	c, err := NewConn(target, database)
	if err != nil {
		return nil, err
	}
	c.leave.Stop()
	c.config.RuntimeParams["replication"] = replication
	var pg *pgconn.PgConn
	err = guard.Call(library, func() error {
		pg, err = pgconn.ConnectConfig(ctx, c.config)
		return err
	})
	if err != nil {
		return nil, reason(err)
	}
	return pg, nil
}

// NotAdmitted returns the databases that the user may not connect to.
func NotAdmitted(ctx context.Context, c *Conn) (user string, databases []string, err error) {
	results, err := c.read(ctx, query{purpose: "the databases that one may connect to", columns: 2,
		text: "SELECT session_user, datname FROM pg_database " +
			"WHERE datallowconn AND NOT has_database_privilege(session_user, oid, 'CONNECT') ORDER BY 2"})
	if err != nil {
		return "", nil, fmt.Errorf("asking the server which databases one may connect to: %w", err)
	}
	for _, r := range results[0] {
		user, databases = r[0], append(databases, r[1])
	}
	return user, databases, nil
}
