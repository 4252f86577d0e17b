// Package definitions reads how the tables of a live database are defined, and writes it as SQL that package footprint reads:
// columns, keys, foreign keys, views. Columns of isotap's own are left out.
//
// What the login may not see is not there. Types are spelled as far as it matters here.
package definitions

import (
	"context"
	"fmt"
	"strings"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/robust/footprint"
)

// FamilyOf gives the family whose grammar the target's SQL is read by.
func FamilyOf(target catalog.Target) footprint.Family {
	if target.Family == catalog.PostgreSQL {
		return footprint.PostgreSQL
	}
	return footprint.MySQL
}

// Read gives the definitions of the tables of the target's database.
func Read(ctx context.Context, target catalog.Target) (string, error) {
	read := readMySQL
	if target.Family == catalog.PostgreSQL {
		read = readPostgres
	}
	text, err := read(ctx, target)
	if err != nil {
		return "", fmt.Errorf("reading the tables of %s: %w", target, err)
	}
	return text, nil
}

// own says whether a column is isotap's.
func own(column string) bool { return column == rewrite.RowIDColumn || column == rewrite.WListColumn }

// A definition is a CREATE TABLE in the making.
type definition struct {
	name     string
	elements []string
}

// write ends it.
func (d *definition) write(b *strings.Builder) {
	fmt.Fprintf(b, "CREATE TABLE %s (\n  %s\n);\n", d.name, strings.Join(d.elements, ",\n  "))
}
