package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// ddlLoad is the value of -load for statements that define tables.
const ddlLoad = "ddl"

// A ddlEngine is what the load needs of an engine.
type ddlEngine struct {
	start  starter // of a server whose database is empty
	driver string  // of database/sql
	// source is the driver's name of a path's database at an address.
	source func(address, database string) string
	// apart says that catalogs are of a database, so that each path gets one of its own: what another path defines
	// would be definitions past isotap, which it has to look for.
	apart bool
	// enter makes an empty schema and goes into it, leave drops it; %s is its name.
	enter   []string
	leave   string
	others  string // makes a table that nobody touches; %s is its name
	steps   []ddlStep
	restore []string // what a dump has of each table, about %s
}

// A ddlStep is a statement that is measured alone, about table %[1]s.
type ddlStep struct{ name, text string }

// A program is a series of statements that is measured as a whole.
type program struct {
	name       string
	statements func(e ddlEngine, schema string) []string
}

// ddlPrograms are what suites and migrations do.
var ddlPrograms = []program{
	{"90 statements in an empty schema", func(e ddlEngine, schema string) []string {
		var all []string
		for i := range 30 {
			for _, s := range e.steps[:3] {
				all = append(all, s.about(fmt.Sprintf("t%d", i)))
			}
		}
		return e.inside(schema, all)
	}},
	{"a schema for a test: 20 tables, 20 INSERTs", func(e ddlEngine, schema string) []string {
		var all []string
		for i := range 20 {
			all = append(all, e.steps[0].about(fmt.Sprintf("t%d", i)))
		}
		for i := range 20 {
			all = append(all, fmt.Sprintf("INSERT INTO t%d (id, name) VALUES (1, 'a'), (2, 'b')", i))
		}
		return e.inside(schema, all)
	}},
	{"a dump of 100 tables", func(e ddlEngine, schema string) []string {
		var all []string
		for i := range 100 {
			for _, text := range e.restore {
				all = append(all, strings.ReplaceAll(text, "%s", fmt.Sprintf("t%d", i)))
			}
		}
		return e.inside(schema, all)
	}},
}

func (s ddlStep) about(table string) string { return strings.ReplaceAll(s.text, "%s", table) }

// inside has statements run in a schema of their own.
func (e ddlEngine) inside(schema string, statements []string) []string {
	var all []string
	for _, s := range e.enter {
		all = append(all, strings.ReplaceAll(s, "%s", schema))
	}
	return append(append(all, statements...), strings.ReplaceAll(e.leave, "%s", schema))
}

// A ddlReport is what was measured of one engine.
type ddlReport struct {
	Server  string      `json:"server"`
	Rounds  int         `json:"rounds"`
	Results []ddlResult `json:"results"`
}

// A ddlResult is how long a statement or program took through each path.
type ddlResult struct {
	Tables int                 `json:"tables"` // on the server
	What   string              `json:"what"`
	Direct float64             `json:"direct_ms"` // median of the rounds
	Ratio  map[string]ddlRatio `json:"ratio"`     // to the direct path, by the path's name
}

// A ddlRatio is the median of the rounds' ratios, with the least and the greatest.
type ddlRatio struct {
	Median   float64 `json:"median"`
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
}

// ddlPaths are the paths that are compared. What the bare copy takes, each proxy does.
var ddlPaths = []string{pathDirect, pathCopy, pathOff, pathItems, pathAgainst}

// runDDL measures each engine and prints a table for each.
func runDDL(ctx context.Context, s settings, out, progress io.Writer) error {
	var reports []ddlReport
	for _, e := range s.engines {
		r, err := ddlEngineReport(ctx, s, e, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		reports = append(reports, r)
	}
	return printReports(s, out, reports)
}

// ddlEngineReport measures one engine, with more and more tables on its server.
func ddlEngineReport(ctx context.Context, s settings, e engine, progress io.Writer) (r ddlReport, err error) {
	b, err := newBench(ctx, s, e.ddl.start, progress)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r = ddlReport{Server: b.target.product(), Rounds: s.rounds}
	have := 0
	for _, tables := range slices.Sorted(slices.Values(s.tables)) {
		fmt.Fprintf(progress, "%d tables ...\n", tables)
		for _, database := range e.ddl.databases() {
			if err := e.ddl.makeOthers(ctx, b.target.Addr(), database, have, tables); err != nil {
				return r, err
			}
		}
		have = tables
		results, err := b.measureDDL(ctx, e.ddl, tables, progress)
		if err != nil {
			return r, fmt.Errorf("%d tables: %w", tables, err)
		}
		r.Results = append(r.Results, results...)
	}
	return r, nil
}

// ownDatabase returns the name of a path's own database.
func ownDatabase(path string) string { return database + "_" + path }

// databaseOf returns the database that a path's load is in.
func (e ddlEngine) databaseOf(path string) string {
	if e.apart {
		return ownDatabase(path)
	}
	return database
}

// databases returns those of all paths.
func (e ddlEngine) databases() (names []string) {
	for _, path := range ddlPaths {
		if name := e.databaseOf(path); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// open connects to a database at an address; the pool has one connection.
func (e ddlEngine) open(address, database string) (*sql.DB, error) {
	db, err := sql.Open(e.driver, e.source(address, database))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// makeOthers makes the tables numbered from up to, past all proxies.
func (e ddlEngine) makeOthers(ctx context.Context, address, database string, from, to int) error {
	db, err := e.open(address, database)
	if err != nil {
		return err
	}
	defer db.Close()
	for i := from; i < to; i++ {
		if _, err := db.ExecContext(ctx, strings.ReplaceAll(e.others, "%s", fmt.Sprintf("other%d", i))); err != nil {
			return fmt.Errorf("make tables: %w", err)
		}
	}
	return nil
}

// A ddlMeter measures through all paths in turns. took has a round's time of each thing through each path, in
// milliseconds.
type ddlMeter struct {
	engine  ddlEngine
	paths   []*path
	clients []*sql.DB // for the steps, one for each path
	names   []string  // of what is measured, in order
	took    map[string][]map[string]float64
	least   map[string]map[string][]took // of all rounds, each statement of a program, by program and path
	serial  int
	kinds   bool // each kind of a program's statements is measured, too
}

// measureDDL measures the steps and the programs on a server that has so many tables.
func (b *bench) measureDDL(ctx context.Context, e ddlEngine, tables int,
	progress io.Writer) (results []ddlResult, err error) {
	m := ddlMeter{engine: e, took: make(map[string][]map[string]float64),
		least: make(map[string]map[string][]took), kinds: b.settings.kinds}
	defer func() { err = errors.Join(err, m.close()) }()
	for _, name := range ddlPaths {
		if !b.settings.wants(name) {
			continue
		}
		p, err := b.start(name)
		if err != nil {
			return nil, err
		}
		m.paths = append(m.paths, p)
		client, err := e.open(p.address, e.databaseOf(name))
		if err != nil {
			return nil, err
		}
		m.clients = append(m.clients, client)
	}
	for i := range b.settings.rounds {
		fmt.Fprintf(progress, "  round %d\n", i+1)
		if err := m.round(ctx, i); err != nil {
			return nil, err
		}
	}
	m.sumLeast()
	return m.results(tables), nil
}

func (m *ddlMeter) close() error {
	var errs []error
	for _, c := range m.clients {
		errs = append(errs, c.Close())
	}
	for _, p := range m.paths {
		err := p.stop()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// passes is how often each path has its turn at the steps in a round.
const passes = 5

// round measures everything once. Each path begins in its turn, so that none is always behind the same one.
func (m *ddlMeter) round(ctx context.Context, number int) error {
	turns := make([]int, len(m.paths))
	for i := range turns {
		turns[i] = (number + i) % len(turns)
	}
	steps := make(map[string]map[string][]float64) // by path and step
	for range passes {
		for _, i := range turns {
			name := m.paths[i].name
			if steps[name] == nil {
				steps[name] = make(map[string][]float64)
			}
			if err := m.pass(ctx, m.clients[i], steps[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, s := range m.engine.steps {
		round := make(map[string]float64)
		for path, of := range steps {
			round[path] = median(of[s.name])
		}
		m.note(s.name, round)
	}
	for _, p := range ddlPrograms {
		if err := m.roundOf(ctx, p, turns); err != nil {
			return err
		}
	}
	return nil
}

// pass runs each step on a table of its own.
func (m *ddlMeter) pass(ctx context.Context, client *sql.DB, took map[string][]float64) error {
	m.serial++
	table := fmt.Sprintf("own%d", m.serial)
	for _, s := range m.engine.steps {
		ms, err := timed(ctx, client, s.about(table))
		if err != nil {
			return err
		}
		took[s.name] = append(took[s.name], ms)
	}
	return nil
}

// roundOf measures a program once through each path.
func (m *ddlMeter) roundOf(ctx context.Context, p program, turns []int) error {
	round := make(map[string][]took)
	for _, i := range turns {
		name := m.paths[i].name
		took, err := m.run(ctx, m.paths[i], p)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", name, p.name, err)
		}
		m.noteLeast(p.name, name, took)
		round[name] = took
	}
	m.noteProgram(p, "", round)
	return nil
}

// noteProgram keeps what a program's statements took by path: in all, the definitions among them, and if it is asked
// for, each kind.
func (m *ddlMeter) noteProgram(p program, suffix string, round map[string][]took) {
	whole, definitions, kinds := make(map[string]float64), make(map[string]float64), make(map[string]map[string]float64)
	var order []string
	for _, path := range ddlPaths {
		for _, t := range round[path] {
			whole[path] += t.ms
			if t.defines() {
				definitions[path] += t.ms
			}
			if kinds[t.kind] == nil {
				kinds[t.kind], order = make(map[string]float64), append(order, t.kind)
			}
			kinds[t.kind][path] += t.ms
		}
	}
	of := " of " + strings.Fields(p.name)[1] + suffix
	m.note(p.name+suffix, whole)
	m.note("  definitions"+of, definitions)
	if m.kinds {
		for _, kind := range order {
			m.note("  "+kind+of, kinds[kind])
		}
	}
}

// noteLeast keeps how long each statement of a program took through a path when it took the least.
func (m *ddlMeter) noteLeast(program, path string, all []took) {
	if m.least[program] == nil {
		m.least[program] = make(map[string][]took)
	}
	least := m.least[program][path]
	for i, t := range all {
		if i == len(least) {
			least = append(least, t)
		}
		least[i].ms = min(least[i].ms, t.ms)
	}
	m.least[program][path] = least
}

// sumLeast notes for each program what it would take if each of its statements took the least that it ever did. On a
// machine with other work that is less noisy than any whole.
func (m *ddlMeter) sumLeast() {
	for _, p := range ddlPrograms {
		m.noteProgram(p, ", least", m.least[p.name])
	}
}

// A took is how long a statement of a kind took.
type took struct {
	kind string
	ms   float64
}

// defines reports whether the statement defines something, rather than fill a table or set the session.
func (t took) defines() bool {
	verb, _, _ := strings.Cut(t.kind, " ")
	return slices.Contains([]string{"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"}, verb)
}

// kindOf returns the first words of a statement that are the language's own.
func kindOf(text string) string {
	const words = 4
	var kind []string
	for word := range strings.FieldsSeq(text) {
		if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && len(kind) < words {
			kind = append(kind, word)
		}
	}
	return strings.Join(kind, " ")
}

// run runs a program over a connection of its own.
func (m *ddlMeter) run(ctx context.Context, through *path, p program) (all []took, err error) {
	m.serial++
	statements := p.statements(m.engine, fmt.Sprintf("schema%d", m.serial))
	client, err := m.engine.open(through.address, m.engine.databaseOf(through.name))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	began := time.Now()
	if err := client.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", through.address, err)
	}
	all = append(all, took{"connecting", milliseconds(time.Since(began))})
	for _, text := range statements {
		ms, err := timed(ctx, client, text)
		if err != nil {
			return nil, err
		}
		all = append(all, took{kindOf(text), ms})
	}
	return all, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timed runs a statement and returns how many milliseconds it took.
func timed(ctx context.Context, client *sql.DB, text string) (float64, error) {
	began := time.Now()
	if _, err := client.ExecContext(ctx, text); err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	return milliseconds(time.Since(began)), nil
}

// note keeps a round's times of one thing, by path.
func (m *ddlMeter) note(what string, round map[string]float64) {
	if !slices.Contains(m.names, what) {
		m.names = append(m.names, what)
	}
	m.took[what] = append(m.took[what], round)
}

// results sums the rounds up.
func (m *ddlMeter) results(tables int) []ddlResult {
	var results []ddlResult
	for _, what := range m.names {
		r := ddlResult{Tables: tables, What: what, Ratio: make(map[string]ddlRatio)}
		var direct []float64
		ratios := make(map[string][]float64)
		for _, round := range m.took[what] {
			direct = append(direct, round[pathDirect])
			for path, ms := range round {
				ratios[path] = append(ratios[path], ms/round[pathDirect])
			}
		}
		r.Direct = median(direct)
		for path, of := range ratios {
			r.Ratio[path] = ddlRatio{Median: median(of), Least: slices.Min(of), Greatest: slices.Max(of)}
		}
		results = append(results, r)
	}
	return results
}

// table prints the report for people.
func (r ddlReport) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; how many times as long as directly: medians of %d rounds (least to greatest).\n", r.Server,
		r.Rounds)
	last := -1
	for _, x := range r.Results {
		if x.Tables != last {
			fmt.Fprintf(&b, "\n  %-44s%11s", fmt.Sprintf("%d tables on the server", x.Tables), "direct ms")
			for _, path := range ddlPaths[1:] {
				if _, ok := x.Ratio[path]; ok {
					fmt.Fprintf(&b, "%24s", path)
				}
			}
			b.WriteString("\n")
			last = x.Tables
		}
		fmt.Fprintf(&b, "  %-44s%11.2f", x.What, x.Direct)
		for _, path := range ddlPaths[1:] {
			if v, ok := x.Ratio[path]; ok {
				fmt.Fprintf(&b, "%24s", fmt.Sprintf("%.2f (%.2f to %.2f)", v.Median, v.Least, v.Greatest))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
