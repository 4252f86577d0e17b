package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// An Abnormality is something that no healthy server does.
type Abnormality struct {
	random.Odd
	Level workload.Isolation
	Seed  uint64 // of the first round that saw it
	Seen  int    // how often; where the server was gone, in how many rounds
	Files []string
}

// gone is the code of an Abnormality that is the server's end: it takes no connection any more, or does not answer.
const gone = "gone"

// keyOfOdd returns what tells Abnormalities apart: the code, and the message up to what differs from case to case.
func keyOfOdd(o *random.Odd) string {
	if end := strings.IndexAny(o.Message, "0123456789\"`[("); end >= 0 {
		return o.Code + " " + o.Message[:end]
	}
	return o.Code + " " + o.Message
}

// recovery is how often it is asked whether a server is there: one that ends its sessions after a crash of one of
// them comes back.
const recovery = 5

// alive returns no error if the server answers.
func (h *fuzzer) alive(ctx context.Context) error {
	var err error
	for range recovery {
		asking, cancel := context.WithTimeout(ctx, h.Patience)
		_, err = engine.Identify(asking, h.runner.Target())
		hung := asking.Err() != nil
		cancel()
		if err == nil || hung {
			return err
		}
		if err := workload.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return err
}

// broken takes stock of a round that came to no end, with err. It gives the error back that is not the server's.
func (h *fuzzer) broken(ctx context.Context, r *round, err error) error {
	end := h.alive(ctx)
	if ctx.Err() != nil || end == nil && (r.outcome == nil || len(r.outcome.Odd) == 0) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var odd []random.Odd
	if r.outcome != nil {
		h.tally.transacted(r)
		odd = r.outcome.Odd
	}
	if end != nil {
		if !h.over.Swap(true) {
			h.tally.Crashes++ // once for all lanes
		}
		odd = append([]random.Odd{{Code: gone, Message: end.Error()}}, odd...)
	}
	if err := h.strange(r, odd); err != nil {
		return err
	}
	return h.advance(r.seed)
}

// strange keeps what a round met that no healthy server does. The first time its schedule is written, its recording,
// and what the server logged; each time where the server is gone, since the reason may be another one.
func (h *fuzzer) strange(r *round, all []random.Odd) error {
	var files []string
	for i := range all {
		a := h.tally.odd[keyOfOdd(&all[i])]
		known := a != nil
		if !known {
			a = &Abnormality{Odd: all[i], Level: r.level, Seed: r.seed}
			h.tally.odd[keyOfOdd(&all[i])] = a
			h.tally.Abnormal = append(h.tally.Abnormal, a)
		}
		a.Seen++
		if known && a.Code != gone {
			continue
		}
		h.say("seed %d: ABNORMAL %s: %s", r.seed, a.Code, all[i].Message)
		if files == nil && h.Dir != "" {
			var err error
			if files, err = h.evidence(r); err != nil {
				return err
			}
		}
		a.Files = append(a.Files, files...)
	}
	return nil
}

// evidence writes the schedule of a round, its recording, and what the server logged, and returns the files.
func (h *fuzzer) evidence(r *round) ([]string, error) {
	name := filepath.Join(h.Dir, fmt.Sprintf("abnormal-%d", r.seed))
	files := []string{name + ".yaml"}
	if err := write(name+".yaml", r.schedule()); err != nil {
		return nil, err
	}
	if h.ServerLog != nil {
		files = append(files, name+".log")
		if err := private.WriteFile(name+".log", []byte(h.ServerLog()+"\n")); err != nil {
			return nil, fmt.Errorf("write what the server logged: %w", err)
		}
	}
	if _, err := os.Stat(r.recording); errors.Is(err, os.ErrNotExist) {
		return files, nil // the server was gone before there was anything to record
	}
	err := h.keep(r)
	return append(files, r.saved), err
}

// write writes an abnormality as text.
func (a *Abnormality) write(w io.Writer) {
	what := "error " + a.Code
	switch a.Code {
	case gone:
		what = "the server is gone"
	case "lost":
		what = "the connection was lost"
	case "hung":
		what = "hung"
	}
	fmt.Fprintf(w, "ABNORMAL  %s: %s; %d times, first with seed %d at %s\n", what, a.Message, a.Seen, a.Seed, a.Level)
	if a.SQL != "" {
		fmt.Fprintf(w, "          by %s: %s\n", sessionName(a.Session), a.SQL)
	}
	if len(a.Files) > 0 {
		fmt.Fprintf(w, "          %s\n", strings.Join(a.Files, ", "))
	}
}
