package explore

import (
	"fmt"
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
		now = countsOf(r)
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
	}
	return nil
}

// setCount returns the statement that puts a counter back.
func (s *schema) setCount(name string, value replay.Value) string {
	switch {
	case s.family == dbms.MySQLFamily:
		return "ALTER TABLE `" + strings.ReplaceAll(name, "`", "``") + "` AUTO_INCREMENT = " + value.Text
	case value.Null:
		return "ALTER SEQUENCE " + name + " RESTART"
	}
	return fmt.Sprintf("SELECT setval('%s', %s)", strings.ReplaceAll(name, "'", "''"), value.Text)
}
