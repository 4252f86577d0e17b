// Package postgres reads the write-ahead log of a PostgreSQL server as a standby does, by START_REPLICATION PHYSICAL:
// without a slot and a publication, so that nothing is created on the server and nothing is kept there for isotap. It
// needs the attribute REPLICATION.
//
// source.go connects, stream.go reads messages and has package wal decode them, transactions.go puts what rows were
// written together with how their transactions ended, tables.go finds the tables of files, clock.go compares the
// clocks.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	catalog "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/serverlog/wal"
)

// Databases knows the tables of those databases that clients are in.
type Databases interface {
	StoredTables(ctx context.Context, database string, files []catalog.File) (map[uint32]catalog.StoredTable, bool, error)
}

// A Source is the log of a server.
type Source struct {
	Target    dsn.Target
	Conn      *catalog.Conn // isotap's own, for questions
	Databases Databases
	// Maintenance is a database that nobody drops.
	Maintenance string
	Clock       func() int64 // nanoseconds since the run's start
}

// spareSenders are the connections for readers of the log that isotap leaves to others.
const spareSenders = 1

// Open connects to the log.
func (s *Source) Open(ctx context.Context) (serverlog.Stream, error) {
	asked := s.Clock()
	facts, err := catalog.AskLog(ctx, s.Conn)
	if err != nil {
		return nil, err
	}
	if err := Readable(&facts); err != nil {
		return nil, err
	}
	pg, err := catalog.ConnectToLog(ctx, s.Target, s.Maintenance)
	if err != nil {
		return nil, refused(err)
	}
	st := &stream{source: s, pg: pg, clock: newClock(asked, facts.Clock), running: newRunning(),
		tables: make(map[wal.File]catalog.StoredTable)}
	if err := st.start(ctx, &facts); err != nil {
		_ = st.Close()
		return nil, err
	}
	// Whatever runs by now may have written before the log is read.
	if facts, err = catalog.AskLog(ctx, s.Conn); err == nil {
		st.running.whole = uint32(facts.NextXID)
		st.names, err = catalog.DatabaseNames(ctx, s.Conn)
	}
	if err != nil {
		_ = st.Close()
		return nil, err
	}
	return st, nil
}

// Readable returns why a server's log cannot be read, and what to do about it; nil where it can be.
func Readable(f *catalog.LogFacts) error {
	switch {
	case !wal.Known(f.Major):
		return &serverlog.Unreadable{Reason: fmt.Sprintf("isotap does not know the write-ahead log of PostgreSQL %d", f.Major)}
	case f.InRecovery:
		return &serverlog.Unreadable{Reason: "the server is a standby, whose log is another server's"}
	case f.Level != "replica" && f.Level != "logical":
		return &serverlog.Unreadable{Reason: "wal_level is " + f.Level,
			Remedy: "ALTER SYSTEM SET wal_level = 'replica'; then restart the server"}
	case f.PageBytes != wal.PageBytes:
		return &serverlog.Unreadable{Reason: fmt.Sprintf("the server was built with a wal_block_size of %d", f.PageBytes)}
	case !f.Replicates:
		return &serverlog.Unreadable{Reason: "isotap's user " + f.User + " lacks the attribute REPLICATION",
			Remedy: "ALTER ROLE " + Quoted(f.User) + " REPLICATION"}
	case f.Senders+spareSenders >= f.MaxSenders:
		return &serverlog.Unreadable{
			Reason: fmt.Sprintf("of max_wal_senders = %d, %d are in use, and one is left to others", f.MaxSenders, f.Senders),
			Remedy: fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d; then restart the server", f.Senders+spareSenders+2)}
	}
	return nil
}

// refused says of a login that the server refused what would let isotap in.
func refused(err error) error {
	var said *pgconn.PgError
	if !asPg(err, &said) {
		return fmt.Errorf("connect to the write-ahead log: %w", err)
	}
	const invalidAuthorization = "28000"
	e := &serverlog.Unreadable{Reason: "the server does not let isotap read its write-ahead log: " + said.Message}
	if said.Code == invalidAuthorization {
		e.Remedy = "pg_hba.conf needs a line whose database is replication"
	}
	return e
}

// Quoted spells a name as SQL reads it.
func Quoted(name string) string {
	b := []byte{'"'}
	for i := range len(name) {
		if name[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, name[i])
	}
	return string(append(b, '"'))
}

// start has the server send its log from the page on that is being written.
func (st *stream) start(ctx context.Context, f *catalog.LogFacts) error {
	timeline, at, err := identify(ctx, st.pg)
	if err != nil {
		return err
	}
	from := at / wal.PageBytes * wal.PageBytes
	if st.decoder, err = wal.NewDecoder(f.Major, from, f.SegmentBytes, st.event); err != nil {
		return err
	}
	st.began, st.moved = at, time.Now()
	st.pg.Frontend().SendQuery(&pgproto3.Query{String: fmt.Sprintf("START_REPLICATION PHYSICAL %X/%X TIMELINE %s",
		from>>32, uint32(from), timeline)})
	if err := st.pg.Frontend().Flush(); err != nil {
		return fmt.Errorf("ask for the write-ahead log: %w", err)
	}
	for {
		m, err := st.pg.ReceiveMessage(ctx)
		if err != nil {
			return fmt.Errorf("ask for the write-ahead log: %w", err)
		}
		switch m := m.(type) {
		case *pgproto3.CopyBothResponse:
			return nil
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("ask for the write-ahead log: %w", pgconn.ErrorResponseToPgError(m))
		}
	}
}

// identify asks for the timeline, and where the log ends.
func identify(ctx context.Context, pg *pgconn.PgConn) (timeline string, at uint64, err error) {
	results, err := pg.Exec(ctx, "IDENTIFY_SYSTEM").ReadAll()
	if err != nil {
		return "", 0, fmt.Errorf("ask where the write-ahead log ends: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) < 3 {
		return "", 0, fmt.Errorf("ask where the write-ahead log ends: the answer is not one row of three columns")
	}
	row := results[0].Rows[0]
	var high, low uint64
	if _, err := fmt.Sscanf(string(row[2]), "%X/%X", &high, &low); err != nil {
		return "", 0, fmt.Errorf("the write-ahead log's end %q: %w", row[2], err)
	}
	return string(row[1]), high<<32 | low, nil
}
