package programs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// record makes a recording of one call of a program, with definitions.
func record(t *testing.T, definitions ...history.Definition) string {
	return recordOf(t, []history.Stmt{
		{Num: 1, Kind: history.Update, Shape: "UPDATE account SET n = n + ? WHERE id = ?", Args: []string{"1", "7"},
			Affected: 1,
			Accesses: []history.Access{{Op: history.UpdateRow, Row: history.Row{Table: "public.account", ID: "7"}}}},
	}, definitions...)
}

// recordOf makes a recording of one transaction.
func recordOf(t *testing.T, statements []history.Stmt, definitions ...history.Definition) string {
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := recorder.Create(dir, history.Info{Server: history.Server{Engine: "postgresql"}}, recorder.Options{})
	require.NoError(t, err)
	require.NoError(t, w.Txn(t.Context(), &history.Txn{ID: history.MakeTxnID(w.Run(), 1), Session: 1,
		Status: history.Committed, Stmts: statements}))
	for _, d := range definitions {
		require.NoError(t, w.Definition(t.Context(), d))
	}
	require.NoError(t, w.Close())
	return dir
}

// defines returns how a database defines the table account.
func defines(database, sql string) history.Definition {
	return history.Definition{Database: database, Name: "account", SQL: sql}
}

func TestARecordingKnowsItsTables(t *testing.T) {
	const without = "CREATE TABLE account (id INT, n INT);\n"
	for _, c := range []struct {
		name        string
		definitions []history.Definition
		schema      string // the file
		keyed       bool   // the statement is by key
		note, err   string
	}{
		{name: "one", definitions: []history.Definition{defines("bank", account)}, keyed: true},
		{name: "the last of several", definitions: []history.Definition{defines("bank", without),
			defines("bank", account)}, keyed: true, note: "account was changed while it was recorded"},
		{name: "the same in two databases", definitions: []history.Definition{defines("one", account),
			defines("two", account)}, keyed: true},
		{name: "different ones", definitions: []history.Definition{defines("one", account), defines("two", without),
			{Database: "two", Name: "other", SQL: "CREATE TABLE other (id INT);\n"}},
			note: "account is defined differently in several databases"},
		{name: "none", err: "the recording does not say how its tables are defined: give --schema FILE"},
		{name: "missing", definitions: []history.Definition{{Database: "bank", Missing: "refused"}},
			err: "the definitions of the tables of database bank were not recorded: refused"},
		{name: "a file's", schema: account, keyed: true},
		{name: "missing, but for a file's", definitions: []history.Definition{{Database: "bank", Missing: "refused"}},
			schema: account, keyed: true, note: "refused"},
		{name: "found after all", definitions: []history.Definition{{Database: "bank", Missing: "refused"},
			defines("bank", account)}, keyed: true},
		{name: "with a key that a file adds", definitions: []history.Definition{defines("bank", without)},
			schema: "ALTER TABLE account ADD PRIMARY KEY (id);", keyed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Recordings: []string{record(t, c.definitions...)}}
			if c.schema != "" {
				o.Schema = file(t, "schema.sql", c.schema)
			}
			p, err := Load(t.Context(), o)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			notes := strings.Join(p.Notes, "\n")
			require.Contains(t, notes, c.note)
			if c.note == "" {
				require.NotContains(t, notes, "defin")
			}
			statements := p.Workload.Programs[0].Statements()
			require.Equal(t, c.keyed, len(statements) > 0 && !statements[0].Type.ByPredicate())
		})
	}
}

func TestWhatTheRecordingKeepsIsSaid(t *testing.T) {
	row := func(id string) history.Access {
		return history.Access{Op: history.UpdateRow, Row: history.Row{Table: "public.account", ID: id}}
	}
	for _, c := range []struct {
		name string
		stmt history.Stmt
		want string
	}{
		{"all", history.Stmt{Shape: "UPDATE account SET n = n + ? WHERE id = ?", Affected: 1,
			Accesses: []history.Access{row("7")}}, "statements by key use one row: kept"},
		{"a row that is not there", history.Stmt{Shape: "UPDATE account SET n = n + ? WHERE id = ?"},
			"statements by key find a row: NOT kept by UPDATE account q1"},
		{"several rows", history.Stmt{Shape: "UPDATE account SET n = n + ? WHERE id = ?", Affected: 2,
			Accesses: []history.Access{row("7"), row("8")}}, "statements by key use one row: NOT kept by UPDATE account q1"},
		{"a new key", history.Stmt{Shape: "UPDATE account SET id = ? WHERE id = ?", Affected: 1,
			Accesses: []history.Access{row("7")}}, "primary keys are never updated: NOT kept by UPDATE account q1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.stmt.Num, c.stmt.Kind, c.stmt.Args = 1, history.Update, []string{"1", "7"}
			p, err := Load(t.Context(), Options{Recordings: []string{recordOf(t, []history.Stmt{c.stmt},
				defines("bank", account))}})
			require.NoError(t, err)
			require.Contains(t, strings.Join(p.Notes, "\n"), "checked in the recording: "+c.want)
		})
	}
}
