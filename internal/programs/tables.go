package programs

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/robust/definitions"
	"github.com/isotap/isotap/robust/footprint"
)

// tables are the definitions that programs are read with.
type tables struct {
	schema  *footprint.Schema
	text    string   // SQL that makes them
	remarks []string // what of it was not read
}

// families gives those whose grammar may be meant, the likeliest first.
func (o *Options) families() ([]footprint.Family, error) {
	switch strings.ToLower(o.Dialect) {
	case "postgresql", "postgres":
		return []footprint.Family{footprint.PostgreSQL}, nil
	case "mysql", "mariadb", "tidb":
		return []footprint.Family{footprint.MySQL}, nil
	case "":
		if o.Upstream != nil {
			return []footprint.Family{definitions.FamilyOf(*o.Upstream)}, nil
		}
		return footprint.Families, nil
	}
	return nil, fmt.Errorf("--dialect: %q is none of postgresql, mysql", o.Dialect)
}

// tables reads the definitions of the tables: the database's, or where none is given those of the recordings, then the file's,
// which add to them.
func (o *Options) tables(ctx context.Context, family footprint.Family, recordings []*recorder.Reader) (*tables, error) {
	t := &tables{schema: &footprint.Schema{}}
	if o.Upstream != nil {
		live, err := definitions.Read(ctx, *o.Upstream)
		if err != nil {
			return nil, err
		}
		if err := t.add(family, "tables of "+o.Upstream.String(), live); err != nil {
			return nil, err
		}
	} else if err := t.recorded(ctx, family, recordings); err != nil {
		return nil, err
	}
	if o.Schema != "" {
		text, err := os.ReadFile(o.Schema)
		if err != nil {
			return nil, fmt.Errorf("--schema: %w", err)
		}
		if err := t.add(family, o.Schema, string(text)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add adds the definitions of one source.
func (t *tables) add(family footprint.Family, source, text string) error {
	remarks, err := t.schema.Read(family, text)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	for _, r := range remarks {
		t.remarks = append(t.remarks, fmt.Sprintf("%s (as %s), %s", source, family, r))
	}
	t.text += text
	return nil
}
