package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

const (
	// stateName is the file in a hunt's directory that says how far it has come.
	stateName = "hunt.json"
	// stateSchema names its schema and version, which grows when an older isotap would go on wrongly with it.
	stateSchema = "isotap-fuzz-state/1"
)

// A State is how far a hunt has come: what another run needs to go on with it.
type State struct {
	// Asked is what the hunt was asked for, and Profile its profile, as [Options] had them.
	Asked   map[string]string
	Profile random.Profile
	tally   *Tally
	next    int   // how many rounds have begun
	left    []job // those of them that did not end
	made    []place
}

// A job is what is left of a round: its oracles from one on.
type job struct {
	Round  int `json:"round"` // from 0
	Oracle int `json:"oracle"`
}

// jsonState is the file.
type jsonState struct {
	Schema  string            `json:"schema"`
	Asked   map[string]string `json:"asked"`
	Profile random.Profile    `json:"profile"`
	Next    int               `json:"next"`
	Left    []job             `json:"left"`
	Made    []place           `json:"made,omitempty"`
	Hunt    jsonHunt          `json:"hunt"`
}

// Begun is how many rounds have begun.
func (s *State) Begun() int { return s.next }

// Hunted is how long the hunt has taken, without what made its findings small.
func (s *State) Hunted() time.Duration { return s.tally.Hunted }

// ReadState reads how far the hunt in a directory has come. It changes nothing there.
func ReadState(dir string) (*State, error) {
	name := filepath.Join(dir, stateName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no directory of a hunt: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read how far the hunt in %s has come: %w", dir, err)
	}
	var of struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	if of.Schema != stateSchema {
		return nil, fmt.Errorf("%s is no state of a hunt that this isotap can read: its schema is %q, not %q", name, of.Schema,
			stateSchema)
	}
	var s jsonState
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	tally, err := s.Hunt.tally(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	for _, j := range s.Left {
		if j.Round < 0 || j.Round >= s.Next || j.Oracle < 0 || j.Oracle >= len(tally.Oracles) {
			return nil, fmt.Errorf("%s is damaged: there is no oracle %d of round %d", name, j.Oracle, j.Round)
		}
	}
	return &State{Asked: s.Asked, Profile: s.Profile, tally: tally, next: s.Next, left: s.Left, made: s.Made}, nil
}

// resume goes on with a hunt.
func (h *fuzzer) resume(s *State) error {
	was, is := &s.tally.Server, &h.runner.Server
	if was.Engine != is.Engine || was.Version != is.Version || was.SnapshotIsolation != is.SnapshotIsolation {
		return fmt.Errorf("the hunt in %s is on %s %s, and this server is %s %s", h.Dir, was.Engine, was.Version, is.Engine, is.Version)
	}
	for _, level := range h.Levels {
		if s.tally.Levels[level] == nil {
			return fmt.Errorf("the hunt in %s has no level %s", h.Dir, level)
		}
	}
	h.tally, h.next, h.left, h.made = s.tally, s.next, slices.Clone(s.left), s.made
	h.tally.End = ""
	for _, c := range h.tally.Catches {
		if !c.Reduction.isFinal() {
			whole, err := readScenario(c.File)
			if err != nil {
				return err
			}
			c.seen = []occurrence{{round: h.newRound(c.Seed, c.Level), whole: whole}}
		}
	}
	return nil
}

// begin returns what is to be done next; false where that is nothing.
func (h *fuzzer) begin() (job, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var next job
	switch {
	case len(h.left) > 0:
		next, h.left = h.left[0], h.left[1:]
	case h.Rounds == 0 || h.next < h.Rounds:
		next = job{Round: h.next}
		h.next++
	default:
		return next, false
	}
	if h.underway == nil {
		h.underway = make(map[int]int)
	}
	h.underway[next.Round] = next.Oracle
	return next, true
}

// advance notes that an oracle is done with a round, and saves the state. The caller has the lock.
func (h *fuzzer) advance(seed uint64) error {
	round := int(seed - h.Seed)
	if _, ok := h.underway[round]; ok {
		if h.underway[round]++; h.underway[round] >= len(h.Oracles) {
			delete(h.underway, round)
		}
	}
	return h.saveState()
}

// saveState writes how far the hunt has come. The caller has the lock.
func (h *fuzzer) saveState() error {
	if h.Dir == "" {
		return nil
	}
	if !h.began.IsZero() {
		h.tally.Hunted = h.before + time.Since(h.began)
	}
	s := jsonState{Schema: stateSchema, Asked: h.Asked, Profile: h.Profile, Next: h.next, Left: h.unended(), Made: h.made, Hunt: h.tally.json()}
	err := replace(filepath.Join(h.Dir, stateName), func(w io.Writer) error { return jsondoc.Write(w, "the hunt's state", s) })
	if err != nil {
		return fmt.Errorf("write how far the hunt has come: %w", err)
	}
	return nil
}

// unended are the rounds that have begun and did not end, the first one first.
func (h *fuzzer) unended() []job {
	all := append([]job{}, h.left...)
	for round, oracle := range h.underway {
		all = append(all, job{round, oracle})
	}
	slices.SortFunc(all, func(a, b job) int { return a.Round - b.Round })
	return all
}

// replace writes a file whole or not at all.
func replace(name string, write func(io.Writer) error) error {
	file, err := private.Create(name + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func readScenario(name string) (*scenario.Scenario, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read what was found: %w", err)
	}
	defer file.Close()
	s, err := scenario.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read what was found: %s: %w", name, err)
	}
	return s, nil
}

// tally is the inverse of [Tally.json]. Files are those in a directory, which may have been moved.
func (j *jsonHunt) tally(dir string) (*Tally, error) {
	server := history.Server{Engine: j.Engine, Version: j.Version, SnapshotIsolation: j.SnapshotIsolation}
	t := newTally(server, nil)
	t.Isotap, t.Began, t.Seed, t.Oracles, t.End, t.Crashes = j.Isotap, j.Began, j.Seed, j.Oracles, j.End, j.Crashes
	t.Hunted, t.Reducing = ms(j.Hunted), ms(j.Reducing)
	for _, name := range j.Levels {
		level, err := workload.ParseIsolation(name)
		if err != nil {
			return nil, err
		}
		t.Levels[level] = newLevelTally()
	}
	if err := j.Graph.restore(t); err != nil {
		return nil, err
	}
	for _, x := range j.Judged {
		at, err := t.at(x.Level)
		if err != nil {
			return nil, err
		}
		*at.judged(x.Oracle) = JudgedTally{Rounds: x.Rounds, Transactions: x.Transactions, Statements: x.Statements,
			Differences: x.Differences, Known: x.Known, ByDesign: x.ByDesign}
		for _, n := range x.NotJudged {
			at.judged(x.Oracle).leaveOut(n.Reason, n.Statements)
		}
	}
	for i := range j.Templates {
		if err := j.Templates[i].restore(t); err != nil {
			return nil, err
		}
	}
	for i := range j.Findings {
		if err := j.Findings[i].restore(t, dir); err != nil {
			return nil, err
		}
	}
	for i := range j.Differences {
		if err := j.Differences[i].restore(t, dir); err != nil {
			return nil, err
		}
	}
	for i := range j.Abnormal {
		if err := j.Abnormal[i].restore(t, dir); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// at returns the tally of a level by its name.
func (t *Tally) at(name string) (*LevelTally, error) {
	level, err := workload.ParseIsolation(name)
	if err == nil && t.Levels[level] == nil {
		err = fmt.Errorf("the hunt has no level %s", name)
	}
	return t.Levels[level], err
}

func (j *jsonGraph) restore(t *Tally) error {
	t.Rounds, t.worked = j.Rounds, ms(j.Worked)
	r := &t.Random
	r.Transactions, r.Committed, r.Refused, r.Statements, r.Failed = j.Transactions, j.Committed, j.Refused, j.Statements, j.Failed
	t.Aggregated, t.Aborted = Found(j.Aggregated), Found(j.Aborted)
	for _, k := range j.Kinds {
		kind, err := parseKind(k.Kind)
		if err != nil {
			return err
		}
		t.Kinds[kind] = analyzer.Observed{Exact: k.Exact, Inexact: k.Inexact, Opaque: k.Opaque}
	}
	for _, n := range j.Reasons {
		t.Reasons[n.Reason] = n.Statements
	}
	for _, m := range j.Mistakes {
		r.Mistakes[m.Code] = &random.Mistake{Code: m.Code, Message: m.Message, SQL: m.SQL, Count: m.Count}
	}
	for _, l := range j.Levels {
		at, err := t.at(l.Level)
		if err != nil {
			return err
		}
		at.Rounds, at.Transactions = l.Rounds, l.Transactions
		for _, a := range l.Violations {
			at.Violations[analyzer.Anomaly(a.Anomaly)] = new(Found(a.jsonFound))
		}
		for _, a := range l.Hazards {
			at.Hazards[analyzer.Anomaly(a.Anomaly)] = new(Found(a.jsonFound))
		}
	}
	return nil
}

func (j *jsonTemplate) restore(t *Tally) error {
	at, err := t.at(j.Level)
	if err != nil {
		return err
	}
	of := at.ofTemplate(j.Template)
	of.Plays = j.Plays
	for _, s := range j.Shown {
		of.Shown[analyzer.Anomaly(s.Anomaly)] = s.Plays
	}
	for _, w := range j.Wrong {
		of.Wrong[w.Oracle] = w.Plays
	}
	return nil
}

// parseKind is the inverse of [history.Kind.String].
func parseKind(name string) (history.Kind, error) {
	const more = 64 // than there are
	for k := range history.Kind(more) {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("there is no kind %q of statement", name)
}

// within is a file of a hunt's, by the name that it had when it was written.
func within(dir, file string) string {
	if file == "" {
		return ""
	}
	return filepath.Join(dir, filepath.Base(filepath.FromSlash(file)))
}

func (j *jsonCatch) restore(t *Tally, dir string) error {
	level, err := workload.ParseIsolation(j.Level)
	if err != nil {
		return err
	}
	c := &Catch{Key: j.Key, Level: level, Seed: j.Seed, Seen: j.Seen, Shown: j.Shown, Replays: j.Replays, Reduction: j.Reduction,
		File: within(dir, j.File), Finding: &analyzer.Finding{ID: j.ID, Anomaly: analyzer.Anomaly(j.Anomaly),
			Class: analyzer.Class(j.Class), Summary: j.Summary}}
	if c.Replays > 0 {
		if c.Scenario, err = readScenario(c.File); err != nil {
			return err
		}
	}
	t.Catches, t.seen[c.Key] = append(t.Catches, c), c
	return nil
}

func (j *jsonMismatch) restore(t *Tally, dir string) error {
	level, err := workload.ParseIsolation(j.Level)
	if err != nil {
		return err
	}
	m := &Mismatch{Oracle: j.Oracle, Key: j.Key, Level: level, Seed: j.Seed, Seen: j.Seen, Shown: j.Shown, Replays: j.Replays,
		Reduction: j.Reduction, File: within(dir, j.File), Difference: j.JSONDifference.Difference()}
	if m.Scenario, err = readScenario(m.File); err != nil {
		return err
	}
	t.Mismatches = append(t.Mismatches, m)
	return nil
}

func (j *jsonAbnormal) restore(t *Tally, dir string) error {
	level, err := workload.ParseIsolation(j.Level)
	if err != nil {
		return err
	}
	a := &Abnormality{Odd: random.Odd{SQL: j.SQL, Code: j.Code, Message: j.Message}, Level: level, Seed: j.Seed, Seen: j.Seen}
	if j.Session != "" {
		if _, err := fmt.Sscanf(j.Session, "S%d", &a.Session); err != nil {
			return fmt.Errorf("session %q: %w", j.Session, err)
		}
		a.Session--
	}
	for _, file := range j.Files {
		a.Files = append(a.Files, within(dir, file))
	}
	t.Abnormal, t.odd[keyOfOdd(&a.Odd)] = append(t.Abnormal, a), a
	return nil
}
