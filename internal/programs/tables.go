package programs

import (
	"context"
	"fmt"
	"os"

	"github.com/isotap/isotap/dbms"
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

// families returns those whose grammar may be meant, the likeliest first.
func (o *Options) families() ([]dbms.Family, error) {
	switch {
	case o.Dialect != "":
		family, err := dbms.ParseFamily(o.Dialect)
		if err != nil {
			return nil, fmt.Errorf("--dialect: %q is none of postgresql, mysql", o.Dialect)
		}
		return []dbms.Family{family}, nil
	case o.Upstream != nil:
		return []dbms.Family{o.Upstream.Family}, nil
	}
	return []dbms.Family{dbms.PostgreSQLFamily, dbms.MySQLFamily}, nil
}

// tables reads the definitions of the tables: the database's, or where none is given those of the recordings, then the
// file's, which add to them.
func (o *Options) tables(ctx context.Context, family dbms.Family, recordings []*recorder.Reader) (*tables, error) {
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
func (t *tables) add(family dbms.Family, source, text string) error {
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
