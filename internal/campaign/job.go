//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/isotap/isotap/recorder"
)

// A job is one run of a campaign: on one engine in one durability, where the campaign has these.
type job struct {
	*settings
	campaign   *campaign
	family     *family             // nil where the campaign has no engine
	durability recorder.Durability // meaningless where the campaign has none
	progress   io.Writer

	mu    sync.Mutex // for row and told
	row   row
	told  time.Time // when progress was last written
	begun time.Time
	seed  uint64 // of the present round
	// interrupted reports whether somebody ended the campaign.
	interrupted func() bool
	dir         string // of the job's files
}

// jobs are the runs of a campaign that the settings ask for.
func (c *campaign) jobs(s *settings, progress io.Writer) []*job {
	families, durabilities := s.families, s.durabilities
	if !c.engines {
		families = []*family{nil}
	}
	if !c.durabilities {
		durabilities = durabilities[:1]
	}
	var jobs []*job
	for _, f := range families {
		for _, d := range durabilities {
			jobs = append(jobs, &job{settings: s, campaign: c, family: f, durability: d, progress: progress})
		}
	}
	return jobs
}

// title names the job.
func (j *job) title() string {
	return strings.Join(strings.Fields(j.row.campaign+" "+j.row.engine+" "+j.row.durability), " ")
}

// do runs the job and fills in its row.
func (j *job) do(ctx context.Context) (err error) {
	j.row = row{campaign: j.campaign.name, seed: j.settings.seed, command: j.command(j.settings.seed, j.times)}
	if j.family != nil {
		j.row.engine = j.family.name.String()
	}
	if j.campaign.durabilities {
		j.row.durability = j.durability.String()
	}
	j.begun, j.told = time.Now(), time.Now()
	j.interrupted = func() bool { return ctx.Err() != nil }
	j.dir = filepath.Join(j.directory, strings.ReplaceAll(j.title(), " ", "-"))
	if err := errors.Join(os.MkdirAll(j.directory, 0o700), os.Mkdir(j.dir, 0o700)); err != nil {
		return fmt.Errorf("make a directory for recordings, which an earlier run may have left: %w", err)
	}
	err = j.campaign.run(ctx, j)
	j.row.took = time.Since(j.begun)
	if !j.row.bad() && err == nil {
		err = os.RemoveAll(j.dir)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		j.row.note("interrupted")
		return nil
	}
	return err
}

// command is what repeats the job from a seed on.
func (j *job) command(seed uint64, times int) string {
	c := "go run ./internal/campaign -run " + j.campaign.name
	if j.family != nil {
		c += " -engine " + j.family.name.String()
	}
	if j.campaign.durabilities {
		c += " -durability " + j.durability.String()
	}
	if j.duration > 0 {
		c += " -duration " + j.duration.String()
	}
	if times > 0 {
		c += fmt.Sprintf(" -times %d", times)
	}
	return c + fmt.Sprintf(" -seed %d", seed) + j.others
}

// next begins a round and reports whether there is to be one; random is what the round is made of. There is a first
// one, however long it took to get ready for it: a campaign without a round tells nothing.
func (j *job) next(ctx context.Context) (random *rand.Rand, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if ctx.Err() != nil || j.times > 0 && j.row.rounds >= j.times || j.row.rounds > 0 && j.duration > 0 &&
		time.Since(j.begun) >= j.duration {
		return nil, false
	}
	j.seed = j.settings.seed + uint64(j.row.rounds)
	j.row.rounds++
	if time.Since(j.told) > tellEvery {
		j.told = time.Now()
		fmt.Fprintf(j.progress, "%s: round %d after %s: %s acknowledged, %s faults, %d lost, %d wrong, %d panics\n",
			j.title(), j.row.rounds, spell(time.Since(j.begun)),
			thousands(j.row.acknowledged), thousands(j.row.faults), j.row.lost, j.row.wrong, j.row.panics)
	}
	return rand.New(rand.NewPCG(j.seed, 0)), true
}

// tellEvery is the time between two lines of progress.
const tellEvery = 15 * time.Second

// count adds to the numbers of the row. It may be called from several goroutines.
func (j *job) count(add func(*row)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	add(&j.row)
}

// maxTold is how many wrongs of a job are told in words.
const maxTold = 50

// wrong counts what is not as promised, and tells it with what repeats its round.
func (j *job) wrong(format string, args ...any) { j.bad(&j.row.wrong, format, args...) }

// lost counts an acknowledged transaction that is missing, as wrong does.
func (j *job) lost(format string, args ...any) { j.bad(&j.row.lost, format, args...) }

func (j *job) bad(number *int64, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.interrupted() {
		return // whatever failed, failed for that
	}
	*number++
	if j.row.lost+j.row.wrong+j.row.panics <= maxTold {
		fmt.Fprintf(j.progress, "%s: WRONG in round %d: %s\n  repeat it with: %s\n  files: %s\n", j.title(),
			j.row.rounds, fmt.Sprintf(format, args...), j.command(j.seed, 1), j.dir)
	}
}
