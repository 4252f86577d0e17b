package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/recorder"
)

// A recording is what the recordings of the read-write loads hold, and how fast they are analyzed.
type recording struct {
	Txns         int     `json:"transactions"`
	Stmts        int     `json:"statements"`
	BytesPerStmt float64 `json:"disk_bytes_per_statement"`
	FromDisk     float64 `json:"analysed_per_second_from_disk"` // transactions
	FromMemory   float64 `json:"analysed_per_second_from_memory"`
}

// analyse measures the recordings, all together. It returns nil when there are none.
func analyse(ctx context.Context, dirs []string) (*recording, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	r := &recording{}
	var bytes int64
	var all memory
	for _, dir := range dirs {
		size, err := diskBytes(dir)
		if err != nil {
			return nil, err
		}
		bytes += size
		if err := all.read(ctx, dir); err != nil {
			return nil, err
		}
	}
	for _, t := range all.txns {
		r.Stmts += len(t.Stmts)
	}
	r.Txns = len(all.txns)
	r.BytesPerStmt = float64(bytes) / float64(max(r.Stmts, 1))
	var err error
	if r.FromDisk, err = r.rate(func() error {
		_, err := analysis.Analyze(ctx, dirs, analyzer.Options{})
		return err
	}); err != nil {
		return nil, err
	}
	r.FromMemory, err = r.rate(all.analyse)
	return r, err
}

// analysisTime is how long each way of analyzing is repeated at least.
const analysisTime = time.Second

// rate returns the transactions per second of an analysis of them all.
func (r *recording) rate(analysis func() error) (float64, error) {
	begin, n := time.Now(), 0
	for time.Since(begin) < analysisTime {
		if err := analysis(); err != nil {
			return 0, fmt.Errorf("analyse the recordings: %w", err)
		}
		n += r.Txns
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

// A memory is what recordings hold.
type memory struct {
	infos    []history.Info
	sessions []history.Session
	txns     []*history.Txn
}

// read adds a recording.
func (m *memory) read(ctx context.Context, dir string) (err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for s, err := range r.Sessions(ctx) {
		if err != nil {
			return err
		}
		m.sessions = append(m.sessions, s)
	}
	for t, err := range r.Txns(ctx) {
		if err != nil {
			return err
		}
		m.txns = append(m.txns, t)
	}
	m.infos = append(m.infos, r.Runs()...)
	return nil
}

func (m *memory) analyse() error {
	txns, err := pgversions.Translate(m.infos, m.sessions, m.txns)
	if err == nil {
		_, err = analyzer.Analyze(m.infos, txns)
	}
	return err
}

// diskBytes is the size of a directory's files.
func diskBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
