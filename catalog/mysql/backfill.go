package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/isotap/isotap/rewrite"
)

// addColumns adds the columns that the table does not have, or completes them.
func (j *job) addColumns(ctx context.Context, s *subject) error {
	var add []string
	if s.rowID == nil {
		definition := j.columns.rowID
		if j.options.BackFill {
			definition, _ = splitDefault(definition)
		}
		add = append(add, "ADD COLUMN "+definition)
	}
	if s.wList == nil {
		add = append(add, "ADD COLUMN "+j.columns.wList)
	}
	if len(add) > 0 {
		// With the default that it is to have, the server gives each row an id of its own: it
		// evaluates the expression for every row that it copies.
		if _, err := j.conn.Exec(ctx, "ALTER TABLE "+s.quoted()+" "+strings.Join(add, ", ")); err != nil {
			return err
		}
	}
	if !j.mustFill(s) {
		return nil
	}
	return j.fillRowIDs(ctx, s)
}

// mustFill reports whether rows of the table need an UPDATE to get their ids: there is no column yet and
// the server would not fill it by itself, or an interrupted run left one without its default.
func (j *job) mustFill(s *subject) bool {
	if s.rowID == nil {
		return j.options.BackFill
	}
	return !s.rowID.preset
}

// splitDefault cuts a column's definition into what stands before DEFAULT and the value.
func splitDefault(definition string) (bare, value string) {
	bare, value, _ = strings.Cut(definition, " DEFAULT ")
	return bare, value
}

// fillRowIDs gives an id to each row that has none, and the column its default.
func (j *job) fillRowIDs(ctx context.Context, s *subject) error {
	rows := 0
	if err := j.fill(ctx, s, &rows); err != nil {
		return err
	}
	if _, err := j.conn.Exec(ctx, "ALTER TABLE "+s.quoted()+" MODIFY COLUMN "+j.columns.rowID); err != nil {
		return err
	}
	// Others may have inserted rows before there was a default.
	return j.fill(ctx, s, &rows)
}

// fill gives an id to each row that has none, in batches; rows counts them.
func (j *job) fill(ctx context.Context, s *subject, rows *int) error {
	_, value := splitDefault(j.columns.rowID)
	set := rewrite.RowIDColumn + " = " + value
	for _, column := range s.onUpdate {
		set += ", " + quote(column) + " = " + quote(column)
	}
	update := fmt.Sprintf("UPDATE %s SET %s WHERE %s IS NULL LIMIT ", s.quoted(), set, rewrite.RowIDColumn)
	for {
		// Every batch passes over the rows of those before it. That batches grow keeps the sum linear.
		affected, err := j.conn.Exec(ctx, fmt.Sprint(update, max(j.options.Batch, *rows/4)))
		if err != nil {
			return err
		}
		if affected == 0 {
			return nil
		}
		*rows += int(affected)
		j.progress(s, *rows)
	}
}
