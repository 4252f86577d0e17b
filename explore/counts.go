package explore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario/replay"
)

// countsQuestions ask what the next keys are; the last one has the answer.
var countsQuestions = map[dbms.Family][]string{
	dbms.PostgreSQLFamily: {`SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename), last_value FROM pg_sequences`},
	dbms.MySQLFamily: {
		// MySQL 8 tells what it knew a day ago, unless it is asked not to. MariaDB does not read the comment.
		"SET @isotap_counts = 0 /*!80000 , SESSION information_schema_stats_expiry = 0 */",
		"SELECT table_name, auto_increment FROM information_schema.tables " +
			"WHERE table_schema = DATABASE() AND auto_increment IS NOT NULL",
	},
}

// counts are the sequences, or the tables with a counter, and where they stand.
type counts map[string]replay.Value

func countsOf(r *replay.Result) counts {
	all := make(counts)
	for _, row := range r.Rows {
		all[row[0].Text] = row[1]
	}
	return all
}

// counts asks where the counters stand.
func (p *pass) counts() (now counts, err error) {
	for _, sql := range countsQuestions[p.schema.family] {
		r, err := ask(p.control, sql)
		if err != nil {
			return nil, fmt.Errorf("ask for the next keys: %w", err)
		}
		now = p.schema.told(countsOf(r))
	}
	return now, nil
}

// restore puts counters where they were before the twins drew of them: no ROLLBACK does that. On a copy nobody else
// draws.
func (p *pass) restore(drawn counts) error {
	now, err := p.counts()
	if err != nil {
		return err
	}
	for name, value := range now {
		before, known := drawn[name]
		if !known || value == before {
			continue
		}
		if _, err := ask(p.control, p.schema.setCount(name, before)); err != nil {
			return fmt.Errorf("put a counter back: %w", err)
		}
		if p.schema.tidb {
			p.schema.next[name] = before.Text
		}
	}
	return nil
}

// setCount returns the statement that puts a counter back.
func (s *schema) setCount(name string, value replay.Value) string {
	switch {
	case s.family == dbms.MySQLFamily:
		by := " AUTO_INCREMENT = "
		if s.tidb { // which otherwise counts on behind the thousands that it has set aside
			by = " FORCE AUTO_INCREMENT = "
		}
		return "ALTER TABLE " + backquoted(name) + by + value.Text
	case value.Null:
		return "ALTER SEQUENCE " + name + " RESTART"
	}
	return fmt.Sprintf("SELECT setval('%s', %s)", strings.ReplaceAll(name, "'", "''"), value.Text)
}

// firstKey returns with which number a table of TiDB's begins to count: the greatest of those that it tells of its
// kinds (_TIDB_ROWID, AUTO_INCREMENT), of which one counts.
func firstKey(c *replay.Connection, table string) (string, error) {
	r, err := ask(c, "SHOW TABLE "+backquoted(table)+" NEXT_ROW_ID")
	if err != nil {
		return "", fmt.Errorf("ask for the next key: %w", err)
	}
	most := uint64(1)
	for _, row := range r.Rows {
		n, err := strconv.ParseUint(row[3].Text, 10, 64)
		if err != nil {
			return "", fmt.Errorf("ask for the next key of %s: %w", table, err)
		}
		most = max(most, n)
	}
	return strconv.FormatUint(most, 10), nil
}

// backquoted returns a name of the MySQL family's as statements have it.
func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// told completes what counters are told to be at: of one that nothing was drawn from TiDB tells 0.
func (s *schema) told(all counts) counts {
	for table, value := range all {
		if next, known := s.next[table]; known && value.Text == "0" {
			all[table] = replay.Value{Text: next}
		}
	}
	return all
}
