// Package schemalog has a recording hold how the tables were defined that its statements use, so that programs can be
// made of it alone (package robust/mining).
//
// A [Log] is shown what is recorded, and reads the definitions of a database in the background: when it is first
// used, when a statement may have changed them, when a table is used that they do not have, and when the run ends. It
// records what differs from before. What cannot be read is recorded as missing; nothing waits for it, and nothing fails
// by it.
package schemalog

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/robust/definitions"
)

// A Source reads the definitions of a database: in the MySQL family, a schema.
type Source func(ctx context.Context, database string) ([]definitions.Table, error)

// A Recorder takes definitions.
type Recorder interface {
	Definition(ctx context.Context, d history.Definition) error
}

const (
	// restShare is how many times as long as a reading took the next one of the database waits, and leastRest the
	// least. Where there were no tables, the next one is the first to find some.
	restShare = 20
	leastRest = 50 * time.Millisecond
	// patience bounds one reading.
	patience = 10 * time.Second
	// looked is at how many of a statement's accesses the Log looks: it is on the client's way.
	looked = 8
)

// A Log sees to it that definitions are recorded. Use, Change and Txn may be called from several goroutines; Run and
// then Finish are called by one.
type Log struct {
	source   Source
	recorder Recorder
	clock    func() int64 // nanoseconds since the run's start
	log      *zap.Logger
	wake     chan struct{}

	mu        sync.Mutex
	databases map[string]*database
}

// A database is one that was used.
type database struct {
	name   string
	used   map[string]bool // tables, as history.Row names them
	wanted bool            // it is to be read
	rested time.Time       // not before

	// What Run and Finish keep.
	recorded map[string]history.Definition // the last one of each name
	missing  string                        // the last reason
}

// New returns a Log.
func New(source Source, recorder Recorder, clock func() int64, log *zap.Logger) *Log {
	return &Log{source: source, recorder: recorder, clock: clock, log: log, wake: make(chan struct{}, 1),
		databases: make(map[string]*database)}
}

// Use tells that a session begins in a database.
func (k *Log) Use(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.database(name)
}

// Change tells that tables of a database may have been changed; without a name, of any that is known.
func (k *Log) Change(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name != "" {
		k.want(k.database(name))
		return
	}
	for _, d := range k.databases {
		k.want(d)
	}
}

// Txn shows a transaction of a session in a database, which is empty where statements name the tables' schemas. It does
// not keep it.
func (k *Log) Txn(in string, t *history.Txn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := ""
	for i := range t.Stmts {
		accesses := t.Stmts[i].Accesses
		for j := range min(len(accesses), looked) {
			if table := accesses[j].Row.Table; table != last {
				k.use(in, table)
				last = table
			}
		}
	}
}

// use has a database read when a table of it is used for the first time. It needs k.mu, as those below do.
func (k *Log) use(in, table string) {
	if in == "" {
		in, _, _ = strings.Cut(table, ".")
	}
	if d := k.database(in); !d.used[table] {
		d.used[table] = true
		k.want(d)
	}
}

// database finds a database; one that is seen for the first time is wanted.
func (k *Log) database(name string) *database {
	d := k.databases[name]
	if d == nil {
		d = &database{name: name, used: make(map[string]bool), recorded: make(map[string]history.Definition)}
		k.databases[name] = d
		k.want(d)
	}
	return d
}

func (k *Log) want(d *database) {
	if d.wanted { // Run knows
		return
	}
	d.wanted = true
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run reads what is wanted until ctx ends.
func (k *Log) Run(ctx context.Context) {
	for {
		d, pause := k.next(time.Now())
		if d != nil {
			k.read(ctx, d)
			continue
		}
		var rested <-chan time.Time
		if pause > 0 {
			rested = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-rested:
		}
	}
}

// next returns a database that is to be read, or how long until there is one; 0: none is wanted.
func (k *Log) next(now time.Time) (d *database, pause time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.databases {
		wait := d.rested.Sub(now)
		switch {
		case !d.wanted:
		case wait <= 0:
			d.wanted = false
			return d, 0
		case pause == 0 || wait < pause:
			pause = wait
		}
	}
	return nil, pause
}

// Finish reads all databases a last time, as far as ctx lets it.
func (k *Log) Finish(ctx context.Context) {
	k.mu.Lock()
	var all []*database
	for _, d := range k.databases {
		all = append(all, d)
	}
	k.mu.Unlock()
	slices.SortFunc(all, func(a, b *database) int { return cmp.Compare(a.name, b.name) })
	for _, d := range all {
		k.read(ctx, d)
	}
}

// read reads a database, and records what is not as it was.
func (k *Log) read(ctx context.Context, d *database) {
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	reading, cancel := context.WithTimeout(ctx, patience)
	tables, err := k.source(reading, d.name)
	cancel()
	k.mu.Lock()
	d.rested = time.Now().Add(leastRest)
	if len(tables) > 0 {
		d.rested = time.Now().Add(max(leastRest, restShare*time.Since(began)))
	}
	used := len(d.used) > 0
	k.mu.Unlock()
	if ctx.Err() != nil && err != nil {
		return // that it ended says nothing of the database
	}
	for _, definition := range k.fresh(d, used, tables, err) {
		// What the recorder cannot take its own callers hear of.
		if k.recorder.Definition(ctx, definition) != nil {
			return
		}
	}
}

// fresh returns what is to be recorded of a reading. used reports whether any table was used: databases without tables
// are nothing to tell of.
func (k *Log) fresh(d *database, used bool, tables []definitions.Table, failed error) []history.Definition {
	at := k.clock()
	reason := ""
	switch {
	case failed != nil:
		reason = failed.Error()
	case len(tables) == 0 && !used:
		return nil
	case len(tables) == 0:
		reason = "the login sees no table there"
	}
	if reason != "" {
		if len(d.recorded) > 0 || d.missing == reason {
			return nil // a database that has gone was defined as it was
		}
		d.missing = reason
		k.log.Info("the definitions of tables cannot be recorded", zap.String("database", d.name),
			zap.String("reason", reason))
		return []history.Definition{{Database: d.name, At: at, Missing: reason}}
	}
	var fresh []history.Definition
	for _, t := range tables {
		was, known := d.recorded[t.Spelled]
		if known && was.SQL == t.SQL && was.References == t.References {
			continue
		}
		definition := history.Definition{Database: d.name, Name: t.Spelled, At: at, SQL: t.SQL,
			References: t.References}
		d.recorded[t.Spelled] = definition
		fresh = append(fresh, definition)
	}
	return fresh
}
