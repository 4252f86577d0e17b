package mysql

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/catalog"
)

// Unwatched returns the tables of a schema (of all where it is empty) that no statement is observed on, as far as the
// Cache has read them, and why.
func (c *Cache) Unwatched(schema string) []catalog.LeftOut {
	wanted := c.name(schema, "").schema
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []catalog.LeftOut
	for name, s := range c.schemas {
		if schema != "" && name != wanted {
			continue
		}
		for _, e := range s.tables {
			if t := e.table; e.known && t != nil && !t.View && !t.Temporary && !t.Instrumented {
				all = append(all, catalog.LeftOut{Table: t.Name,
					Reason: "it has none of isotap's columns: isotap instrument adds them, or says why not"})
			}
		}
	}
	slices.SortFunc(all, func(a, b catalog.LeftOut) int { return cmp.Compare(a.Table, b.Table) })
	return all
}

// HasDatabase reports whether the server has a database, as far as isotap's user may see it.
func HasDatabase(ctx context.Context, c *Conn, name string) (bool, error) {
	found := false
	err := each(ctx, c, Query{Purpose: "the databases", Text: "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA",
		Columns: 1}, func(r row) { found = found || strings.EqualFold(r[0], name) })
	if err != nil {
		return false, fmt.Errorf("looking for database %s: %w", name, err)
	}
	return found, nil
}
