//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A fuzzTarget is a function of the module's tests that go test -fuzz calls.
type fuzzTarget struct{ dir, pkg, name string }

func (t fuzzTarget) String() string {
	return strings.TrimPrefix(t.pkg, "github.com/isotap/isotap/") + "." + t.name
}

// fuzzing is the campaign that runs the fuzz targets in turn, each for a share of the time. Inputs that reach new code
// are kept in a directory, and with them how often each target has run in all.
type fuzzing struct {
	*job
	cache    string
	programs map[string]string // the packages' test programs
	// executions over all campaigns, by target.
	executions map[string]int64
}

// fuzzFor is how long a target runs where -duration does not say.
const fuzzFor = 10 * time.Second

func runFuzz(ctx context.Context, j *job) error {
	f := &fuzzing{job: j, programs: make(map[string]string), executions: make(map[string]int64)}
	if f.cache = j.corpus; f.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("look for the cache directory: %w", err)
		}
		f.cache = filepath.Join(cache, "isotap", "campaign")
	}
	if err := f.load(); err != nil {
		return err
	}
	targets, err := fuzzTargets(ctx)
	if err != nil {
		return err
	}
	each := max(time.Second, (j.duration / time.Duration(len(targets))).Round(time.Second))
	if j.duration == 0 {
		each = fuzzFor
	}
	// Another target begins where there is not time for all.
	for _, ok := j.next(ctx); ok; _, ok = j.next(ctx) {
		if err := f.target(ctx, targets[j.seed%uint64(len(targets))], each); err != nil {
			return err
		}
	}
	total := int64(0)
	for n := range maps.Values(f.executions) {
		total += n
	}
	j.row.note("%d targets, %v each; %s executions in all campaigns together", len(targets), each, thousands(total))
	return nil
}

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// fuzzTargets finds the module's fuzz targets, sorted.
func fuzzTargets(ctx context.Context) (targets []fuzzTarget, err error) {
	const format = `{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}`
	list, err := exec.CommandContext(ctx, "go", "list", "-f", format, "github.com/isotap/isotap/...").Output()
	if err != nil {
		return nil, fmt.Errorf("list the module's tests: %w", err)
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(fields[1], fields[2]))
		if err != nil {
			return nil, fmt.Errorf("look for fuzz targets: %w", err)
		}
		for _, m := range fuzzFunction.FindAllSubmatch(text, -1) {
			targets = append(targets, fuzzTarget{fields[1], fields[0], string(m[1])})
		}
	}
	if len(targets) == 0 {
		return nil, errors.New("the module has no fuzz targets: is this its directory?")
	}
	slices.SortFunc(targets, func(a, b fuzzTarget) int { return strings.Compare(a.String(), b.String()) })
	return targets, nil
}

var fuzzExecutions = regexp.MustCompile(`execs: (\d+)`)

// target runs a target for a while. What makes it fail is left in the testdata of its package, as go test does.
func (f *fuzzing) target(ctx context.Context, t fuzzTarget, duration time.Duration) error {
	program, err := f.program(ctx, t)
	if err != nil {
		return err
	}
	corpus := filepath.Join(f.cache, "corpus", filepath.FromSlash(t.pkg))
	if err := os.MkdirAll(corpus, 0o700); err != nil {
		return fmt.Errorf("make a directory for the corpus: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+
		duration.String(), "-test.fuzzcachedir="+corpus,
		"-test.timeout="+(duration+10*time.Minute).String())
	cmd.Dir = t.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	out, failed := cmd.CombinedOutput()
	var executions int64
	if all := fuzzExecutions.FindAllSubmatch(out, -1); len(all) > 0 {
		executions, _ = strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	}
	f.count(func(r *row) { r.operations += executions })
	f.executions[t.String()] += executions
	if failed != nil && ctx.Err() == nil {
		f.wrong("%v: %v\n%s", t, failed, out)
	}
	return f.save()
}

// program builds the tests of a target's package.
func (f *fuzzing) program(ctx context.Context, t fuzzTarget) (string, error) {
	if p := f.programs[t.pkg]; p != "" {
		return p, nil
	}
	p := filepath.Join(f.dir, strings.ReplaceAll(strings.TrimPrefix(t.pkg, "github.com/isotap/isotap/"), "/", "-")+
		".test")
	// -fuzz has the code counted that inputs reach.
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz=.", "-o", p,
		t.pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", t.pkg, err, out)
	}
	f.programs[t.pkg] = p
	return p, nil
}

func (f *fuzzing) file() string { return filepath.Join(f.cache, "fuzz.json") }

// load reads how often targets have run.
func (f *fuzzing) load() error {
	text, err := os.ReadFile(f.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f.executions)
	}
	if err != nil {
		return fmt.Errorf("read how often targets have run: %w", err)
	}
	return nil
}

// save writes it.
func (f *fuzzing) save() error {
	text, err := json.MarshalIndent(f.executions, "", "  ")
	if err == nil {
		err = os.WriteFile(f.file(), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep how often targets have run: %w", err)
	}
	return nil
}
