package tempdb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/known"
)

// workloadDatabase is where the workload's tables are; several workloads at once on a server have numbers behind it.
const workloadDatabase = "isotap_workload"

// WorkloadOptions say what [RunWorkload] runs.
type WorkloadOptions struct {
	Workload string // one of known.Kinds
	known.Options
	Config workload.Config
	// Recording is the directory that keeps what was recorded; empty: it is not kept.
	Recording string
	Version   string // isotap's own
}

// A WorkloadRun is a workload that has run, and what each says of the other: its own invariants and the analyzer's
// findings.
type WorkloadRun struct {
	Workload string
	Outcome  *workload.Outcome
	Result   *analyzer.Result
}

// RunWorkload sets a known workload (workload/known) up in a database of its own on the target's server, runs it
// through isotap, drops the database and analyzes the recording.
func RunWorkload(ctx context.Context, target dsn.Target, o WorkloadOptions) (*WorkloadRun, error) {
	w, err := known.New(o.Workload, o.Options)
	if err != nil {
		return nil, err
	}
	r := &WorkloadRun{Workload: o.Workload}
	r.Result, err = Run(ctx, target, Options{Database: workloadDatabase, Recording: o.Recording,
		Definitions: o.Recording != "", ServerLog: serverlog.Auto, Version: o.Version,
	}, func(ctx context.Context, dsn string) (err error) {
		if err := setUp(ctx, dsn, w); err != nil {
			return err
		}
		r.Outcome, err = workload.Run(ctx, dsn, w, o.Config)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Workload, err)
	}
	return r, nil
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

// Missed reports whether an invariant is broken and isotap found nothing that could have done it. The contrary is no
// miss: an anomaly may be without effect on what the workload watches over.
func (r *WorkloadRun) Missed() bool {
	return len(r.Outcome.Broken()) > 0 && len(r.Result.Findings) == 0
}

// Verdict holds the workload's word against isotap's, in one line of text.
func (r *WorkloadRun) Verdict() string {
	books, found := "every invariant holds", "isotap found nothing"
	if broken := r.Outcome.Broken(); len(broken) > 0 {
		books = "broken: " + strings.Join(broken, "; ")
	}
	anomalies := r.anomalies()
	if len(anomalies) > 0 {
		found = "isotap found " + strings.Join(anomalies, ", ")
	}
	return fmt.Sprintf("%s: %s; %s", r.Workload, books, found)
}

// anomalies are the names of what isotap found.
func (r *WorkloadRun) anomalies() (names []string) {
	for _, f := range r.Result.Findings {
		if name := string(f.Anomaly); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
