package clone

import (
	"context"
	"fmt"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// copyTables makes the tables, then copies their rows.
func (m *mysqlCopying) copyTables(ctx context.Context, tables []table) error {
	for i := range tables {
		if err := m.make(ctx, &tables[i].definition); err != nil {
			return err
		}
	}
	for i := range tables {
		t := &tables[i]
		if err := m.copyRows(ctx, t); err != nil {
			return fmt.Errorf("the rows of %s: %w", t.name, err)
		}
		if err := m.setCounter(ctx, t); err != nil {
			return fmt.Errorf("the AUTO_INCREMENT of %s: %w", t.name, err)
		}
	}
	return nil
}

// copyRows copies a table's rows, with all columns that hold what was written to them.
func (m *mysqlCopying) copyRows(ctx context.Context, t *table) error {
	if !t.rows || len(t.columns) == 0 {
		return nil
	}
	columns := strings.Join(t.columns, ", ")
	_, err := m.conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s.%s (%s) SELECT %s FROM %s.%s", m.names.to, backquoted(t.name),
		columns, columns, backquoted(m.source), backquoted(t.name)))
	return err
}

// setCounter has the table number its next row as the source would: what the definition said the rows may have moved.
func (m *mysqlCopying) setCounter(ctx context.Context, t *table) error {
	want := counter(t.text)
	if want == "" {
		return nil
	}
	if m.engine == dbms.TiDB {
		return m.setTiDBCounter(ctx, t, want)
	}
	rows, err := m.ask(ctx, "the copy's definition", 2, "SHOW CREATE TABLE "+m.names.to+"."+backquoted(t.name))
	if err != nil || len(rows) == 1 && counter(rows[0][1]) == want {
		return err
	}
	_, err = m.conn.Exec(ctx, "ALTER TABLE "+m.names.to+"."+backquoted(t.name)+" AUTO_INCREMENT = "+want)
	return err
}

// setTiDBCounter has the table go on where the source does: the definition has what is behind the thousands that a
// server has set aside, and information_schema the next of those, or 0 where there are none.
func (m *mysqlCopying) setTiDBCounter(ctx context.Context, t *table, behind string) error {
	rows, err := m.ask(ctx, "the next number", 1, `SELECT COALESCE(AUTO_INCREMENT, 0) FROM information_schema.TABLES
		WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`, m.source, t.name)
	if err != nil {
		return err
	}
	next := behind
	if len(rows) == 1 && rows[0][0] != "0" {
		next = rows[0][0]
	}
	// A counter goes back only so.
	_, err = m.conn.Exec(ctx, "ALTER TABLE "+m.names.to+"."+backquoted(t.name)+" FORCE AUTO_INCREMENT = "+next)
	return err
}

// counter returns the option AUTO_INCREMENT=n of what SHOW CREATE TABLE prints; empty where there is none. It stands
// behind the columns, outside of all parentheses.
func counter(text string) string {
	t := names{mysqltoken.Scan(text, mysqltoken.Mode{})}
	for i := range t.Tokens {
		if t.Tokens[i].Depth == 0 && t.is(i, "AUTO_INCREMENT") && t.is(i+1, "=") && i+2 < len(t.Tokens) {
			return t.TokenText(i + 2)
		}
	}
	return ""
}

// setSequences has the sequences go on where the source's do, behind what the server has cached.
func (m *mysqlCopying) setSequences(ctx context.Context, sequences []definition) error {
	for _, s := range sequences {
		source, copied := backquoted(m.source)+"."+backquoted(s.name), m.names.to+"."+backquoted(s.name)
		if m.engine == dbms.TiDB {
			if err := m.setTiDBSequence(ctx, source, copied); err != nil {
				return fmt.Errorf("the sequence %s: %w", s.name, err)
			}
			continue
		}
		if _, err := m.conn.Exec(ctx, "INSERT INTO "+copied+" SELECT * FROM "+source); err != nil {
			return fmt.Errorf("the sequence %s: %w", s.name, err)
		}
	}
	return nil
}

func (m *mysqlCopying) setTiDBSequence(ctx context.Context, source, copied string) error {
	rows, err := m.ask(ctx, "a sequence's next value", 5, "SHOW TABLE "+source+" NEXT_ROW_ID")
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row[4] != "SEQUENCE" {
			continue
		}
		if _, err := m.conn.Exec(ctx, "SELECT SETVAL("+copied+", "+row[3]+" - 1)"); err != nil {
			return err
		}
	}
	return nil
}
