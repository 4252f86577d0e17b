// Package programs is where `isotap robust` has its programs from: files (robust/program), or recordings
// (robust/mining), with the definitions of their tables from a file, a live database (robust/definitions), a recording,
// or several of these. It says of either what is not covered, and what of the algorithms' assumptions (5.4 of the
// paper) the engine does not keep.
package programs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/enginecheck"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/mining"
	"github.com/isotap/isotap/robust/program"
)

// Options say where programs come from.
type Options struct {
	Files      []string // of programs
	Recordings []string // directories, in place of files
	// Schema is a file of definitions, added to those of Upstream where that is set, or else of the recordings.
	Schema   string
	Upstream *dsn.Target
	// Dialect is postgresql or mysql; empty: that of the upstream or the recording, or the one that reads all files.
	Dialect  string
	MinCalls int // see mining.Options
	// Answers are the server's, to whether it keeps the assumptions; nil: it was not asked.
	Answers []enginecheck.Answer
}

// Programs are those that were found, and what they were read with.
type Programs struct {
	*robust.Workload
	Family      dbms.Family
	Definitions string // SQL that defines their tables
}

// Load returns the programs, with notes on what is not covered.
func Load(ctx context.Context, o Options) (*Programs, error) {
	if o.Schema == "" && o.Upstream == nil && len(o.Recordings) == 0 {
		return nil, errors.New("the tables are not known: --schema FILE with their definitions (CREATE TABLE), " +
			"or --upstream URL of a database that has them")
	}
	if len(o.Recordings) > 0 {
		return o.mine(ctx)
	}
	return o.read(ctx)
}

// read compiles the files by the first grammar that reads them all; the error is that of the first.
func (o *Options) read(ctx context.Context) (*Programs, error) {
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
		p, err := o.compile(ctx, family, sources)
		if err == nil {
			return p, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (o *Options) compile(ctx context.Context, family dbms.Family, sources []program.Source) (*Programs, error) {
	tables, err := o.tables(ctx, family, nil)
	if err != nil {
		return nil, err
	}
	w, err := program.Compile(strings.TrimSuffix(filepath.Base(o.Files[0]), filepath.Ext(o.Files[0])), family,
		tables.schema, sources...)
	if err != nil {
		if len(tables.remarks) > 0 {
			err = fmt.Errorf("%w (%s)", err, tables.remarks[0])
		}
		return nil, err
	}
	w.Notes = append(tables.remarks, o.assumptions(family, w)...)
	return &Programs{w, family, tables.text}, nil
}

// mine finds the programs of the recordings.
func (o *Options) mine(ctx context.Context) (p *Programs, err error) {
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
	tables, err := o.tables(ctx, family, readers)
	if err != nil {
		return nil, err
	}
	if o.Upstream == nil && len(tables.schema.Tables()) == 0 {
		return nil, noTables(tables.remarks)
	}
	mined, err := mining.Mine(all(ctx, readers), mining.Options{Family: family, Schema: tables.schema,
		MinCalls: o.MinCalls})
	if err != nil {
		return nil, err
	}
	if len(mined.Programs) == 0 {
		return nil, errors.New("the recording holds no committed transaction that used rows " +
			"(or none with as many calls as --min-calls wants)")
	}
	w := mined.Workload
	w.Name = strings.Join(o.Recordings, ", ")
	w.Notes = append(append(tables.remarks, evidence(mined)...), o.assumptions(family, w)...)
	return &Programs{w, family, tables.text}, nil
}

// noTables is the error of recordings whose tables are not known.
func noTables(remarks []string) error {
	why := ""
	if len(remarks) > 0 {
		why = " (" + remarks[0] + ")"
	}
	return fmt.Errorf("the recording does not say how its tables are defined%s: "+
		"give --schema FILE with their definitions (CREATE TABLE), or --upstream URL of a database that has them", why)
}

// familyOf returns the family of the recordings' server.
func familyOf(readers []*recorder.Reader) (dbms.Family, error) {
	found := map[dbms.Family]bool{}
	for _, r := range readers {
		for _, info := range r.Runs() {
			found[info.Server.Engine.Family()] = true
		}
	}
	if len(found) != 1 {
		return 0, errors.New("the recordings are of servers of both families: give those of one")
	}
	if found[dbms.MySQLFamily] {
		return dbms.MySQLFamily, nil
	}
	return dbms.PostgreSQLFamily, nil
}

// all returns the transactions of all recordings.
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
