// Package programs is where `isotap robust` has its programs from: files (robust/program), or recordings (robust/mining),
// with the definitions of their tables from a file, a live database (robust/definitions) or both. It says of either what is
// not covered, and what of the algorithms' assumptions (5.4 of the paper) the engine does not keep.
package programs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/definitions"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/mining"
	"github.com/isotap/isotap/robust/program"
)

// Options say where programs come from.
type Options struct {
	Files      []string // of programs
	Recordings []string // directories, in place of files
	// Schema is a file of definitions, added to those of Upstream where that is set.
	Schema   string
	Upstream *catalog.Target
	// Dialect is postgresql or mysql; empty: that of the upstream or the recording, or the one that reads all files.
	Dialect  string
	MinCalls int // see mining.Options
}

// Load gives the programs, with notes on what is not covered.
func Load(ctx context.Context, o Options) (*robust.Workload, error) {
	if o.Schema == "" && o.Upstream == nil {
		return nil, errors.New("the tables are not known: --schema FILE with their definitions (CREATE TABLE), or --upstream URL of a database that has them")
	}
	var w *robust.Workload
	var err error
	if len(o.Recordings) > 0 {
		w, err = o.mine(ctx)
	} else {
		w, err = o.read(ctx)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
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

// schema reads the definitions of the tables. What of a file is not read is an error: a table would be missing.
func (o *Options) schema(ctx context.Context, family footprint.Family) (*footprint.Schema, []string, error) {
	var text string
	if o.Upstream != nil {
		live, err := definitions.Read(ctx, *o.Upstream)
		if err != nil {
			return nil, nil, err
		}
		text = live
	}
	var file []byte
	if o.Schema != "" {
		var err error
		if file, err = os.ReadFile(o.Schema); err != nil {
			return nil, nil, fmt.Errorf("--schema: %w", err)
		}
	}
	// The file's lines keep their numbers.
	schema, remarks, err := footprint.ReadSchema(family, string(file))
	if text != "" {
		schema, remarks, err = footprint.ReadSchema(family, text+string(file))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.Schema, err)
	}
	for i, r := range remarks {
		remarks[i] = fmt.Sprintf("definitions of tables (%s), %s", family, r)
	}
	return schema, remarks, nil
}

// read compiles the files by the first grammar that reads them all; the error is that of the first.
func (o *Options) read(ctx context.Context) (*robust.Workload, error) {
	families, err := o.families()
	if err != nil {
		return nil, err
	}
	var sources []program.Source
	for _, name := range o.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read programs: %w", err)
		}
		sources = append(sources, program.Source{Name: name, Text: string(text)})
	}
	var first error
	for _, family := range families {
		w, err := o.compile(ctx, family, sources)
		if err == nil {
			return w, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (o *Options) compile(ctx context.Context, family footprint.Family, sources []program.Source) (*robust.Workload, error) {
	schema, remarks, err := o.schema(ctx, family)
	if err != nil {
		return nil, err
	}
	w, err := program.Compile(strings.TrimSuffix(filepath.Base(o.Files[0]), filepath.Ext(o.Files[0])), family, schema, sources...)
	if err != nil {
		if len(remarks) > 0 {
			err = fmt.Errorf("%w (%s)", err, remarks[0])
		}
		return nil, err
	}
	w.Notes = append(remarks, Unkept(family, w)...)
	return w, nil
}

// mine finds the programs of the recordings.
func (o *Options) mine(ctx context.Context) (w *robust.Workload, err error) {
	var readers []*recorder.Reader
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
	}()
	for _, dir := range o.Recordings {
		r, err := recorder.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		readers = append(readers, r)
	}
	family, err := familyOf(readers)
	if err != nil {
		return nil, err
	}
	schema, remarks, err := o.schema(ctx, family)
	if err != nil {
		return nil, err
	}
	mined, err := mining.Mine(all(ctx, readers), mining.Options{Family: family, Schema: schema, MinCalls: o.MinCalls})
	if err != nil {
		return nil, err
	}
	if len(mined.Programs) == 0 {
		return nil, errors.New("the recording holds no committed transaction that used rows (or none with as many calls as --min-calls wants)")
	}
	w = mined.Workload
	w.Name = strings.Join(o.Recordings, ", ")
	w.Notes = append(append(remarks, evidence(mined)...), Unkept(family, w)...)
	return w, nil
}

// familyOf gives the family of the recordings' server.
func familyOf(readers []*recorder.Reader) (footprint.Family, error) {
	found := map[footprint.Family]bool{}
	for _, r := range readers {
		for _, info := range r.Runs() {
			family := footprint.MySQL
			if info.Server.Engine == "postgresql" {
				family = footprint.PostgreSQL
			}
			found[family] = true
		}
	}
	if len(found) != 1 {
		return 0, errors.New("the recordings are of servers of both families: give those of one")
	}
	if found[footprint.MySQL] {
		return footprint.MySQL, nil
	}
	return footprint.PostgreSQL, nil
}

// all gives the transactions of all recordings.
func all(ctx context.Context, readers []*recorder.Reader) iter.Seq2[*history.Txn, error] {
	return func(yield func(*history.Txn, error) bool) {
		for _, r := range readers {
			for t, err := range r.Txns(ctx) {
				if !yield(t, err) {
					return
				}
			}
		}
	}
}
