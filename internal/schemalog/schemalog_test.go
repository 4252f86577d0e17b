package schemalog

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/robust/definitions"
)

// A log keeps what is recorded.
type log []history.Definition

func (l *log) Definition(_ context.Context, d history.Definition) error {
	*l = append(*l, d)
	return nil
}

// using is a transaction that used a row of a table.
func using(table string) *history.Txn {
	return &history.Txn{Stmts: []history.Stmt{{Accesses: []history.Access{{Row: history.Row{Table: table}}}}}}
}

func TestWhatDiffersIsRecorded(t *testing.T) {
	item := definitions.Table{Spelled: "item", SQL: "CREATE TABLE item (id INT);\n"}
	longer := definitions.Table{Spelled: "item", SQL: "CREATE TABLE item (id INT, n INT);\n"}
	is := func(t definitions.Table) history.Definition {
		return history.Definition{Database: "shop", Name: "item", SQL: t.SQL}
	}
	missing := func(why string) history.Definition { return history.Definition{Database: "shop", Missing: why} }
	type reading struct {
		tables []definitions.Table
		err    error
	}
	refused := errors.New("refused")
	for _, c := range []struct {
		name     string
		readings []reading
		want     log
	}{
		{"once", []reading{{tables: []definitions.Table{item}}, {tables: []definitions.Table{item}}}, log{is(item)}},
		{"again when it was changed", []reading{{tables: []definitions.Table{item}},
			{tables: []definitions.Table{longer}}}, log{is(item), is(longer)}},
		{"though it has gone", []reading{{tables: []definitions.Table{item}}, {}}, log{is(item)}},
		{"though the database has gone", []reading{{tables: []definitions.Table{item}}, {err: refused}}, log{is(item)}},
		{"missing, once for each reason", []reading{{err: refused}, {err: refused}, {}},
			log{missing("refused"), missing("the login sees no table there")}},
		{"missing, and then there", []reading{{err: refused}, {tables: []definitions.Table{item}}},
			log{missing("refused"), is(item)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var have log
			next := 0
			source := func(_ context.Context, database string) ([]definitions.Table, error) {
				require.Equal(t, "shop", database)
				r := c.readings[next]
				next++
				return r.tables, r.err
			}
			k := New(source, &have, func() int64 { return 0 }, zaptest.NewLogger(t))
			k.Txn("", using("shop.item"))
			for range c.readings {
				k.Finish(t.Context())
			}
			require.Equal(t, c.want, have)
		})
	}
}

// TestDatabaseWithoutTablesIsNothingToTell: a database without tables is nothing to tell of.
func TestDatabaseWithoutTablesIsNothingToTell(t *testing.T) {
	var have log
	k := New(func(context.Context, string) ([]definitions.Table, error) { return nil, nil }, &have,
		func() int64 { return 0 }, zaptest.NewLogger(t))
	k.Use("postgres")
	k.Finish(t.Context())
	require.Empty(t, have)
}

// TestWhatIsUsedIsReadInTheBackground sees that each cause has the database read once more.
func TestWhatIsUsedIsReadInTheBackground(t *testing.T) {
	reads := make(chan string)
	source := func(ctx context.Context, database string) ([]definitions.Table, error) {
		reads <- database
		return nil, nil
	}
	k := New(source, new(log), func() int64 { return 0 }, zaptest.NewLogger(t))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	for _, cause := range []func(){
		func() { k.Use("shop") },
		func() { k.Txn("shop", using("public.item")) },
		func() { k.Txn("shop", using("public.sale")) },
		func() { k.Change("shop") },
		func() { k.Change("") },
	} {
		cause()
		require.Equal(t, "shop", <-reads)
	}
	k.Use("shop")
	k.Txn("shop", using("public.item"))
	stop()
	<-done
}
