package mysql

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/isotap/isotap/dbms"
)

// RecreatedTables tells which tables were made anew past isotap (a dump that was restored, TRUNCATE, an import): their
// rows may carry the tags of those who wrote the rows of the table that was there before. It is safe for concurrent
// use.
type RecreatedTables struct {
	ids    string            // the query for what a server numbers its tables by
	first  map[string]string // the numbers when the run began, by the names of files; nil: not known
	behind int64             // the seconds that the server's clock is ahead

	mu      sync.Mutex
	touched map[string]int64 // when a client's definition last changed a table, by schema and name; seconds
	all     int64            // when one last did that may have been of any table
}

// The queries for the numbers that a server gives its tables, another one to each that is made. InnoDB shows them to
// who has the right PROCESS.
const (
	mariadbIDs = "SELECT NAME, TABLE_ID FROM information_schema.INNODB_SYS_TABLES"
	mysqlIDs   = "SELECT NAME, TABLE_ID FROM information_schema.INNODB_TABLES"
	tidbIDs    = "SELECT CONCAT(TABLE_SCHEMA, '/', TABLE_NAME), TIDB_TABLE_ID FROM information_schema.TABLES"
	// readBirths takes when the run began, by the server's clock.
	readBirths = `SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), UNIX_TIMESTAMP(CREATE_TIME)
		FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND CREATE_TIME >= FROM_UNIXTIME(%s)`
)

// NewRecreatedTables asks what the tables are as a run begins. Where the user may not see that, it knows less.
func NewRecreatedTables(ctx context.Context, c *Conn, engine dbms.Engine) *RecreatedTables {
	r := &RecreatedTables{touched: make(map[string]int64)}
	switch engine {
	case dbms.MariaDB:
		r.ids = mariadbIDs
	case dbms.MySQL:
		r.ids = mysqlIDs
	case dbms.TiDB:
		r.ids = tidbIDs
	}
	r.first = r.numbers(ctx, c)
	if rows, err := c.Query(ctx, Query{Purpose: "the time", Text: "SELECT UNIX_TIMESTAMP()", Columns: 1}); err == nil && len(rows) == 1 {
		now, _ := strconv.ParseInt(rows[0][0], 10, 64)
		r.behind = now - time.Now().Unix()
	}
	r.all = time.Now().Unix()
	return r
}

// numbers returns the numbers of the tables; nil where they cannot be had.
func (r *RecreatedTables) numbers(ctx context.Context, c *Conn) map[string]string {
	rows, err := c.Query(ctx, Query{Purpose: "the numbers of tables", Text: r.ids, Columns: 2})
	if err != nil {
		return nil
	}
	numbers := make(map[string]string, len(rows))
	for _, r := range rows {
		numbers[r[0]] = r[1]
	}
	return numbers
}

// Changed takes in what a client's definition changed.
func (r *RecreatedTables) Changed(change Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().Unix()
	for _, t := range change.Tables {
		if t.Schema == "" || t.Table == "" {
			r.all = now
		}
		r.touched[strings.ToLower(t.Schema+"."+t.Table)] = now
	}
	if len(change.Tables) == 0 {
		r.all = now
	}
}

// Rewritten returns the tables, by history.Row.Table, that somebody else made anew since the run began, and since a
// client of isotap last did. Times are known to the second: what came within two of these is not noticed.
func (r *RecreatedTables) Rewritten(ctx context.Context, c *Conn) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	rewritten := make(map[string]bool)
	if r.first != nil {
		for name, id := range r.numbers(ctx, c) {
			table, ok := tableOfFile(name)
			_, touched := r.touched[strings.ToLower(table)]
			if was := r.first[name]; ok && !touched && was != "" && was != id {
				rewritten[table] = true
			}
		}
	}
	began := slices.Min(append(slices.Collect(maps.Values(r.touched)), r.all))
	births, err := c.Query(ctx, Query{Purpose: "when tables were made", Columns: 2,
		Text: strings.Replace(readBirths, "%s", strconv.FormatInt(began+r.behind, 10), 1)})
	if err != nil {
		return slices.Sorted(maps.Keys(rewritten))
	}
	const unsure = 1 // of either clock's seconds
	for _, birth := range births {
		at, _ := strconv.ParseFloat(birth[1], 64)
		if last, ok := r.touched[strings.ToLower(birth[0])]; ok && int64(at)-r.behind > max(last, r.all)+unsure {
			rewritten[birth[0]] = true
		}
	}
	return slices.Sorted(maps.Keys(rewritten))
}

// The statements that insert rows, as the server counts them for all sessions.
const readInserts = `SHOW GLOBAL STATUS WHERE Variable_name IN
	('Com_insert', 'Com_insert_select', 'Com_replace', 'Com_replace_select', 'Com_load')`

// Inserts returns how many statements that insert rows the server has run since it was started. It is not known of
// TiDB.
func Inserts(ctx context.Context, c *Conn) (n uint64, known bool) {
	rows, err := c.Query(ctx, Query{Purpose: "how many statements inserted rows", Text: readInserts, Columns: 2})
	if err != nil || len(rows) != 5 {
		return 0, false
	}
	for _, r := range rows {
		count, err := strconv.ParseUint(r[1], 10, 64)
		if err != nil {
			return 0, false
		}
		n += count
	}
	return n, true
}

// tableOfFile returns the table that a file of InnoDB's holds, or a part of: schema/table#P#partition, in which
// characters that not every file system takes are four hexadecimal digits behind an @.
func tableOfFile(name string) (table string, ok bool) {
	for _, mark := range []string{"#P#", "#p#"} {
		name, _, _ = strings.Cut(name, mark)
	}
	schema, table, ok := strings.Cut(name, "/")
	var b strings.Builder
	for rest := schema + "." + table; rest != ""; {
		plain, coded, more := strings.Cut(rest, "@")
		b.WriteString(plain)
		if !more {
			break
		}
		if len(coded) < 4 {
			return "", false
		}
		r, err := strconv.ParseUint(coded[:4], 16, 32)
		if err != nil {
			return "", false
		}
		b.WriteRune(rune(r))
		rest = coded[4:]
	}
	return b.String(), ok
}
