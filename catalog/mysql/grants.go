package mysql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/rewrite"
)

// A holder is a user or role with rights on single columns of a table.
type holder struct {
	grantee string              // as information_schema spells it: 'user'@'host'
	theirs  map[string]bool     // the privileges on columns of the client's
	ours    map[string][]string // the privileges on isotap's columns, and which of these
}

// columnRights reads who holds rights on single columns, by table.
func columnRights(ctx context.Context, c *Conn) (map[name][]*holder, error) {
	rights := map[name][]*holder{}
	err := each(ctx, c, Query{Purpose: "the rights on columns", Columns: 5,
		Text: `SELECT TABLE_SCHEMA, TABLE_NAME, GRANTEE, COLUMN_NAME, PRIVILEGE_TYPE
		FROM information_schema.COLUMN_PRIVILEGES`}, func(r row) {
		table, grantee, column, privilege := name{r[0], r[1]}, r[2], r[3], r[4]
		i := slices.IndexFunc(rights[table], func(h *holder) bool { return h.grantee == grantee })
		if i < 0 {
			i = len(rights[table])
			rights[table] = append(rights[table], &holder{grantee, map[string]bool{}, map[string][]string{}})
		}
		h := rights[table][i]
		if column == rewrite.RowIDColumn || column == rewrite.WListColumn {
			h.ours[privilege] = append(h.ours[privilege], column)
		} else {
			h.theirs[privilege] = true
		}
	})
	return rights, err
}

// seesAllRights reports whether the connection's user is shown other users' column rights: the server
// leaves out what the tables of privileges would not show it.
func seesAllRights(ctx context.Context, c *Conn) (bool, error) {
	_, err := c.Query(ctx, Query{Purpose: "the table of rights on columns",
		Text: "SELECT 1 FROM mysql.columns_priv LIMIT 1", Columns: 1})
	if isServerError(err) {
		return false, nil
	}
	return true, err
}

// wants returns the privileges on isotap's columns that the holder's rewritten statements need and it
// does not have. Every rewritten statement reads the columns; writes also write them.
func (h *holder) wants() map[string][]string {
	wants := map[string][]string{}
	for _, p := range []string{"SELECT", "INSERT", "UPDATE"} {
		if !h.theirs[p] {
			continue
		}
		for _, needed := range []string{"SELECT", p} {
			if len(h.ours[needed]) < len(auxiliaryColumns) {
				wants[needed] = auxiliaryColumns
			}
		}
	}
	return wants
}

var auxiliaryColumns = []string{rewrite.RowIDColumn, rewrite.WListColumn}

// extendRights gives the holders of rights on single columns of a table the rights on isotap's
// columns.
func (j *job) extendRights(ctx context.Context, s *subject) error {
	for _, h := range j.rights[name{s.schema, s.table}] {
		wants := h.wants()
		if len(wants) == 0 {
			continue
		}
		if _, err := j.conn.Exec(ctx, "GRANT "+rightsOn(wants)+" ON "+s.quoted()+" TO "+h.account()); err != nil {
			return fmt.Errorf("extending the rights of %s to isotap's columns: %w", h.grantee, err)
		}
		j.result.Rights++
	}
	return nil
}

// revokeAll takes all rights on isotap's columns from everybody, but on tables that still have them.
// It does not ask whether a table is there: rights outlive the columns and tables they are for.
func (j *job) revokeAll(ctx context.Context) error {
	for table, holders := range j.rights {
		spelled := table.schema + "." + table.table
		if !covers(j.options, table.schema) ||
			slices.ContainsFunc(j.result.LeftOut, func(l catalog.LeftOut) bool { return l.Table == spelled }) {
			continue
		}
		for _, h := range holders {
			if len(h.ours) == 0 {
				continue
			}
			on := quote(table.schema) + "." + quote(table.table)
			if _, err := j.conn.Exec(ctx, "REVOKE "+rightsOn(h.ours)+" ON "+on+" FROM "+h.account()); err != nil {
				return fmt.Errorf("revoking the rights of %s on isotap's columns of %s: %w", h.grantee, spelled, err)
			}
			j.result.Rights++
		}
	}
	return nil
}

// rightsOn spells privileges on columns as GRANT and REVOKE do.
func rightsOn(columns map[string][]string) string {
	var rights []string
	for _, privilege := range slices.Sorted(maps.Keys(columns)) {
		rights = append(rights, privilege+" ("+strings.Join(columns[privilege], ", ")+")")
	}
	return strings.Join(rights, ", ")
}

// account returns the holder for GRANT and REVOKE. information_schema does not escape quotes within a
// name; a MariaDB role has no host.
func (h *holder) account() string {
	user, host := h.grantee, ""
	if i := strings.LastIndex(h.grantee, "'@'"); i >= 0 {
		user, host = h.grantee[:i], h.grantee[i+len("'@'"):]
	}
	user, host = strings.TrimPrefix(user, "'"), strings.TrimSuffix(host, "'")
	if host == "" {
		return quote(user)
	}
	return quote(user) + "@" + quote(host)
}
