package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/tap"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/versions"
)

// A recording is what the recordings of the read-write loads hold, and how fast they are analysed.
type recording struct {
	Txns         int     `json:"transactions"`
	Stmts        int     `json:"statements"`
	BytesPerStmt float64 `json:"disk_bytes_per_statement"`
	FromDisk     float64 `json:"analysed_per_second_from_disk"` // transactions
	FromMemory   float64 `json:"analysed_per_second_from_memory"`
}

// analyse measures the recordings, all together. It gives nil when there are none.
func analyse(ctx context.Context, dirs []string) (*recording, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	r := &recording{}
	var bytes int64
	var infos []history.Info
	var txns []*history.Txn
	for _, dir := range dirs {
		size, err := diskBytes(dir)
		if err != nil {
			return nil, err
		}
		bytes += size
		if infos, txns, err = read(ctx, dir, infos, txns); err != nil {
			return nil, err
		}
	}
	for _, t := range txns {
		r.Stmts += len(t.Stmts)
	}
	r.Txns = len(txns)
	r.BytesPerStmt = float64(bytes) / float64(max(r.Stmts, 1))
	var err error
	if r.FromDisk, err = r.rate(func() error {
		_, err := tap.Analyze(ctx, dirs, analyzer.Options{})
		return err
	}); err != nil {
		return nil, err
	}
	r.FromMemory, err = r.rate(func() error {
		translated, err := versions.Translate(infos, txns)
		if err == nil {
			_, err = analyzer.Analyze(infos, translated)
		}
		return err
	})
	return r, err
}

// analysisTime is how long each way of analysing is repeated at least.
const analysisTime = time.Second

// rate gives the transactions per second of an analysis of them all.
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

// read adds a recording's runs and transactions to infos and txns.
func read(ctx context.Context, dir string, infos []history.Info, txns []*history.Txn) (_ []history.Info, _ []*history.Txn, err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for t, err := range r.Txns(ctx) {
		if err != nil {
			return nil, nil, err
		}
		txns = append(txns, t)
	}
	return append(infos, r.Runs()...), txns, nil
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
