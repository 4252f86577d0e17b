package jsonlines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// Import makes the recording dir, which must not exist or be empty, of the lines in r. The recording
// appears when all lines have been read and stored; after an error, which names the line, dir is as it
// was. name is what errors call r.
func Import(ctx context.Context, r io.Reader, name, dir string) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("import to %s: it is not empty; name a new directory", dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("import to %s: %w", dir, err)
	}
	// Beside the target, so that it can be renamed.
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("import to %s: %w", dir, err)
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+"-import-")
	if err != nil {
		return fmt.Errorf("import to %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	i := &importer{dir: filepath.Join(temp, "recording"), runs: map[history.Run]bool{}}
	if err := i.lines(ctx, r, name); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("import to %s: %w", dir, err)
	}
	if err := os.Rename(i.dir, dir); err != nil {
		return fmt.Errorf("import to %s: %w", dir, err)
	}
	return nil
}

// An importer stores lines one after the other.
type importer struct {
	dir    string
	runs   map[history.Run]bool
	counts end
	ended  bool

	// The run whose lines are being read.
	run      history.Run
	writer   *recorder.Writer
	sessions map[uint32]bool
	txns     map[uint32]bool // by their counters
}

func (i *importer) lines(ctx context.Context, r io.Reader, name string) (err error) {
	defer func() {
		if i.writer != nil {
			err = errors.Join(err, i.writer.Close())
		}
	}()
	in := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if len(text) == 0 && err == io.EOF {
			if !i.ended {
				return fmt.Errorf("%s:%d: the last line {\"end\": ...} is missing: the rest of the file is lost", name,
					n)
			}
			return nil
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if err := i.line(ctx, n, bytes.TrimSpace(text)); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
}

func (i *importer) line(ctx context.Context, n int, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	l, err := parseLine(b, n)
	switch {
	case err != nil || l.Isotap != nil:
		return err
	case i.ended:
		return errors.New("a line stands behind the last one")
	case l.End != nil:
		return i.finish(*l.End)
	case l.Run != nil:
		return i.begin(l.Run)
	case i.writer == nil:
		return errNoRun
	case l.After != "":
		return errors.New("this is what isotap analyze --follow reads, of a part of a run: " +
			"isotap export writes what can be imported")
	case l.Session != nil:
		return i.session(ctx, l.Session)
	case l.Definition != nil:
		i.counts.Definitions++
		return i.writer.Definition(ctx, *l.Definition.read())
	case l.Defined != nil:
		t, err := readTxn(&l.Defined.txn)
		if err != nil {
			return err
		}
		i.counts.Defined++
		return i.writer.Defined(ctx, &history.DefiningTxn{Txn: *t, Database: string(l.Defined.Database)})
	case l.Logged != nil:
		t, err := readLogged(l.Logged)
		if err != nil {
			return err
		}
		i.counts.Logged++
		return i.writer.Logged(ctx, t)
	case l.Matches != nil:
		m, err := readMatches(l.Matches, i.run)
		if err != nil {
			return err
		}
		i.counts.Matches++
		return i.writer.Matches(ctx, m)
	}
	return i.txn(ctx, l.Txn)
}

func (i *importer) finish(counted end) error {
	if counted != i.counts {
		return fmt.Errorf("lines are missing or too many: the file had %+v, there are %+v", counted, i.counts)
	}
	if i.counts.Runs == 0 {
		return errors.New("there is no run")
	}
	i.ended = true
	return i.close()
}

func (i *importer) close() error {
	if i.writer == nil {
		return nil
	}
	w := i.writer
	i.writer = nil
	return w.Close()
}

func (i *importer) begin(r *run) error {
	info, err := readRun(r)
	if err != nil {
		return err
	}
	if i.runs[info.Run] {
		return fmt.Errorf("run %s begins twice: its lines stand together", info.Run)
	}
	i.runs[info.Run] = true
	if err := i.close(); err != nil {
		return err
	}
	i.run, i.sessions, i.txns = info.Run, map[uint32]bool{}, map[uint32]bool{}
	i.counts.Runs++
	i.writer, err = recorder.Restore(i.dir, info, recorder.Options{})
	return err
}

func (i *importer) session(ctx context.Context, s *session) error {
	if i.sessions[s.ID] {
		return fmt.Errorf("session %d stands twice", s.ID)
	}
	i.sessions[s.ID] = true
	i.counts.Sessions++
	return i.writer.Session(ctx, readSession(s))
}

func (i *importer) txn(ctx context.Context, x *txn) error {
	t, err := readTxn(x)
	if err != nil {
		return err
	}
	if t.ID.Run() != i.run {
		return fmt.Errorf("transaction %s is not of run %s, among whose lines it stands", t.ID, i.run)
	}
	if i.txns[t.ID.Seq()] {
		return fmt.Errorf("transaction %s stands twice", t.ID)
	}
	i.txns[t.ID.Seq()] = true
	i.counts.Txns++
	return i.writer.Txn(ctx, t)
}

// strictly decodes one JSON value and lets no field pass that is not known.
func strictly(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the line is cut off")
		}
		return err
	}
	if d.More() {
		return errors.New("there is more than one value in the line")
	}
	return nil
}
