package binlog

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/rewrite"
)

// A layout says where a table has isotap's columns, among as many columns as the log gives of it.
type layout struct {
	columns     int
	row, wList  int   // -1: it has none
	key         []int // the columns of the primary key
	unwatchable bool  // the catalog does not know it, or knows another one by its name
}

// watched reports whether rows of the table can be told by isotap's columns.
func (l *layout) watched() bool { return l.row >= 0 && l.wList >= 0 }

// layouts are those of the tables that the log names, by its numbers for them: a table gets another one when it was
// defined anew. It is not safe for concurrent use.
type layouts struct {
	catalog *catalogmysql.Conn
	known   map[uint64]*layout
}

func newLayouts(catalog *catalogmysql.Conn) *layouts {
	return &layouts{catalog: catalog, known: make(map[uint64]*layout)}
}

// forget has the catalog asked anew: something was defined.
func (l *layouts) forget() { clear(l.known) }

// of returns the layout of the table of an event.
func (l *layouts) of(ctx context.Context, t *replication.TableMapEvent) (*layout, error) {
	if known := l.known[t.TableID]; known != nil {
		return known, nil
	}
	read, err := l.read(ctx, t)
	if err != nil {
		return nil, err
	}
	l.known[t.TableID] = read
	return read, nil
}

const readLayout = `SELECT COLUMN_NAME, COLUMN_KEY FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '%s'
	AND TABLE_NAME = '%t' ORDER BY ORDINAL_POSITION`

// read asks the catalog, and holds its answer against what the log says of the columns. The catalog tells of now, and
// the log of then: where a table was defined anew in between, their columns differ in number or in type, or what stands
// in isotap's columns cannot be read.
func (l *layouts) read(ctx context.Context, t *replication.TableMapEvent) (*layout, error) {
	text := strings.NewReplacer("%s", literal(t.Schema), "%t", literal(t.Table)).Replace(readLayout)
	rows, err := l.catalog.Query(ctx, catalogmysql.Query{Purpose: "the columns of a table that the log names", Text: text,
		Columns: 2})
	var refused *mysql.MyError
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	found := &layout{columns: int(t.ColumnCount), row: -1, wList: -1}
	if len(rows) != found.columns {
		found.unwatchable = true
		return found, nil
	}
	for i, r := range rows {
		switch {
		case strings.EqualFold(r[0], rewrite.RowIDColumn):
			found.row = i
		case strings.EqualFold(r[0], rewrite.WListColumn):
			found.wList = i
		}
		if r[1] == "PRI" {
			found.key = append(found.key, i)
		}
	}
	found.unwatchable = found.watched() && (!holdsBytes(t, found.row) || !holdsBytes(t, found.wList))
	return found, nil
}

// holdsBytes reports whether column i can be one of isotap's, by its type.
func holdsBytes(t *replication.TableMapEvent, i int) bool {
	switch t.ColumnType[i] {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_BLOB:
		return true
	}
	return false
}

// literal returns a name as it stands in a string literal, without the quotes.
func literal(name []byte) string {
	return strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(string(name))
}

// text returns the value of a column as text; false for NULL.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case []byte:
		return string(v), true
	case int8:
		return strconv.FormatInt(int64(v), 10), true
	case int16:
		return strconv.FormatInt(int64(v), 10), true
	case int32:
		return strconv.FormatInt(int64(v), 10), true
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}
