// Package trial is `isotap workload`: one of the known workloads (workload/known) on a server, through isotap, and what
// each says of the other: the workload's own books and the analyzer's findings.
package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/scratch"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/known"
)

// database is where the workload's tables are; several workloads at once on a server have numbers behind it.
const database = "isotap_workload"

// Options of a trial.
type Options struct {
	Workload string // one of known.Kinds
	known.Options
	Config workload.Config
	// Recording is the directory that keeps what was recorded; empty: it is not kept.
	Recording string
	Version   string // isotap's own
}

// A Trial is a workload that has run.
type Trial struct {
	Workload string
	Outcome  *workload.Outcome
	Result   *analyzer.Result
}

// Run sets the workload up in a database of its own on the target's server, runs it through isotap, drops the database
// and analyses the recording.
func Run(ctx context.Context, target dsn.Target, o Options) (*Trial, error) {
	w, err := known.New(o.Workload, o.Options)
	if err != nil {
		return nil, err
	}
	t := &Trial{Workload: o.Workload}
	t.Result, err = scratch.Run(ctx, target, scratch.Options{Database: database, Recording: o.Recording, Definitions: o.Recording != "", Version: o.Version}, func(ctx context.Context, dsn string) (err error) {
		if err := setUp(ctx, dsn, w); err != nil {
			return err
		}
		t.Outcome, err = workload.Run(ctx, dsn, w, o.Config)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Workload, err)
	}
	return t, nil
}

func setUp(ctx context.Context, dsn string, w workload.Workload) error {
	db, err := workload.DialectOf(dsn).Open(dsn, false)
	if err != nil {
		return err
	}
	defer db.Close()
	tables, statements := w.Setup()
	return workload.Setup(ctx, db, tables, statements)
}

// Missed says that an invariant is broken and isotap found nothing that could have done it. The contrary is no miss: an
// anomaly may be without effect on what the workload watches over.
func (t *Trial) Missed() bool { return len(t.Outcome.Broken()) > 0 && len(t.Result.Findings) == 0 }

// Verdict holds the workload's word against isotap's, in one line of text.
func (t *Trial) Verdict() string {
	books, found := "every invariant holds", "isotap found nothing"
	if broken := t.Outcome.Broken(); len(broken) > 0 {
		books = "broken: " + strings.Join(broken, "; ")
	}
	anomalies := t.anomalies()
	if len(anomalies) > 0 {
		found = "isotap found " + strings.Join(anomalies, ", ")
	}
	return fmt.Sprintf("%s: %s; %s", t.Workload, books, found)
}

// anomalies are the names of what isotap found.
func (t *Trial) anomalies() (names []string) {
	for _, f := range t.Result.Findings {
		if name := string(f.Anomaly); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
