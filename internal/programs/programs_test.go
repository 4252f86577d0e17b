package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/dbms"
)

// file writes a file of that name for one test.
func file(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

const account = "CREATE TABLE account (id INT PRIMARY KEY, n INT NOT NULL);\n"

// TestDialectIsTheOneThatReadsFiles: the dialect is the one that reads the files.
func TestDialectIsTheOneThatReadsFiles(t *testing.T) {
	for _, c := range []struct {
		name, dialect, statement string
		want                     dbms.Family
		err                      string
	}{
		{name: "either", statement: "UPDATE account SET n = n + 1 WHERE id = :a", want: dbms.PostgreSQLFamily},
		{name: "either, as asked", dialect: "MariaDB", statement: "UPDATE account SET n = n + 1 WHERE id = :a",
			want: dbms.MySQLFamily},
		{name: "MySQL's alone", statement: "UPDATE `account` SET n = n + 1 WHERE id = :a", want: dbms.MySQLFamily},
		{name: "not as asked", dialect: "postgresql", statement: "UPDATE `account` SET n = n + 1 WHERE id = :a",
			err: "bank.sql:2"},
		{name: "none", statement: "UPDATE account SET WHERE", err: "bank.sql:2"},
		{name: "unknown", dialect: "oracle", err: `--dialect: "oracle" is none of postgresql, mysql`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Load(t.Context(), Options{
				Files:   []string{file(t, "bank.sql", "Add (:a):\n  "+c.statement+";\nCOMMIT;\n")},
				Schema:  file(t, "schema.sql", account),
				Dialect: c.dialect,
			})
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, p.Family)
			require.Equal(t, account, p.Definitions)
			require.Equal(t, "bank", p.Name)
		})
	}
}

// TestUnreadDefinitionsAreToldWithLines: what of the definitions is not read is told with its line.
func TestUnreadDefinitionsAreToldWithLines(t *testing.T) {
	p, err := Load(t.Context(), Options{
		Files:  []string{file(t, "bank.sql", "Add (:a):\n  UPDATE account SET n = n + 1 WHERE id = :a;\nCOMMIT;\n")},
		Schema: file(t, "schema.sql", account+"\nALTER TABLE missing ADD UNIQUE (id);\n"),
	})
	require.NoError(t, err)
	require.Len(t, p.Notes, 1)
	require.True(t, strings.HasSuffix(p.Notes[0],
		"schema.sql (as postgresql), line 3: not read: there is no table missing"), p.Notes[0])
}

func TestTablesMustBeKnown(t *testing.T) {
	_, err := Load(t.Context(), Options{Files: []string{"bank.sql"}})
	require.ErrorContains(t, err, "the tables are not known: --schema FILE")
}
