package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// oldest is the first major version whose catalog this package reads.
const oldest = 12

// Server is what isotap must know of a server as a whole. The settings are those that isotap's own login
// begins with: a role or a database may have others.
type Server struct {
	history.Server
	// Major and Minor are the numbers of the version: 15.18.
	Major, Minor int
	// Horizon is the transaction id below which every transaction had ended: history.Info's.
	Horizon uint64
	// Recent: history.Info's.
	Recent history.Recent
	Level  history.Level // default_transaction_isolation
	// MaxPrepared is max_prepared_transactions: 0 where there is no two-phase commit.
	MaxPrepared int
	// InRecovery says that the server is a standby, or not up yet: it takes no writes.
	InRecovery bool
	// BackslashQuotes says that standard_conforming_strings is off.
	BackslashQuotes bool
}

// maxRecent is how many ids are looked at for [history.Recent]; each takes the server a microsecond. Those of
// subtransactions are in no snapshot.
const maxRecent = 100_000

const askFacts = `SELECT current_setting('server_version'), current_setting('server_version_num'),
	txid_snapshot_xmin(txid_current_snapshot()), current_setting('default_transaction_isolation'),
	current_setting('max_prepared_transactions'), pg_is_in_recovery(), current_setting('standard_conforming_strings')`

// ServerFacts asks the server who it is.
func ServerFacts(ctx context.Context, c *Conn) (Server, error) {
	results, err := c.read(ctx, query{purpose: "the server's settings", text: askFacts, columns: 7, row: true})
	if err != nil {
		return Server{}, fmt.Errorf("asking the server for its settings: %w", err)
	}
	r := results[0][0]
	s := Server{Server: history.Server{Engine: dbms.PostgreSQL, Version: r[0]}, InRecovery: r[5] == "t",
		BackslashQuotes: r[6] == "off"}
	number, err := strconv.Atoi(r[1])
	if err != nil {
		return Server{}, fmt.Errorf("the server's setting server_version_num: %w", err)
	}
	if s.Major, s.Minor = number/10000, number%10000; s.Major < oldest {
		return Server{}, fmt.Errorf("the server is PostgreSQL %s: isotap observes %d and later", s.Version, oldest)
	}
	if s.Horizon, err = strconv.ParseUint(r[2], 10, 64); err != nil {
		return Server{}, fmt.Errorf("the server's oldest running transaction: %w", err)
	}
	if s.Level, err = history.ParseLevel(strings.ToUpper(r[3])); err != nil {
		return Server{}, fmt.Errorf("the server's setting default_transaction_isolation: %w", err)
	}
	if s.MaxPrepared, err = strconv.Atoi(r[4]); err != nil {
		return Server{}, fmt.Errorf("the server's setting max_prepared_transactions: %w", err)
	}
	if s.Recent, err = recent(ctx, c); err != nil {
		return Server{}, err
	}
	s.System, err = systemIdentifier(ctx, c)
	return s, err
}

// recent asks which of the last transactions still run.
func recent(ctx context.Context, c *Conn) (history.Recent, error) {
	results, err := c.read(ctx, query{purpose: "the running transactions", columns: 3, row: true,
		text: fmt.Sprintf(`WITH s AS (SELECT txid_current_snapshot() AS s),
	r AS (SELECT txid_snapshot_xmax(s) AS till, GREATEST(txid_snapshot_xmin(s), txid_snapshot_xmax(s) - %d) AS since FROM s)
	SELECT since, till, (SELECT string_agg(x::text, ',' ORDER BY x) FROM generate_series(since, till - 1) AS x WHERE txid_status(x) = 'in progress') FROM r`, maxRecent)})
	if err != nil {
		return history.Recent{}, fmt.Errorf("asking the server which transactions run: %w", err)
	}
	row := results[0][0]
	texts, numbers := append(row[:2:2], strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' })...),
		[]uint64(nil)
	for _, text := range texts {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return history.Recent{}, fmt.Errorf("a running transaction of the server's: %w", err)
		}
		numbers = append(numbers, n)
	}
	return history.Recent{From: numbers[0], To: numbers[1], Running: numbers[2:]}, nil
}

// systemIdentifier asks for what tells one server's data from another's; 0 where the login may not ask.
func systemIdentifier(ctx context.Context, c *Conn) (uint64, error) {
	results, err := c.read(ctx, query{purpose: "the system identifier", columns: 1, row: true,
		text: "SELECT system_identifier FROM pg_control_system()"})
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == insufficientPrivilege:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("asking the server for its system identifier: %w", err)
	}
	system, err := strconv.ParseUint(results[0][0][0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server's system identifier: %w", err)
	}
	return system, nil
}

// insufficientPrivilege is the SQLSTATE of a refusal for want of a privilege.
const insufficientPrivilege = "42501"
