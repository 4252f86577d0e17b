//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A fuzzTarget is a function of the module's tests that go test -fuzz calls.
type fuzzTarget struct{ dir, pkg, name string }

func (t fuzzTarget) String() string {
	return strings.TrimPrefix(t.pkg, "github.com/isotap/isotap/") + "." + t.name
}

// fuzzing is a campaign that runs the fuzz targets in turn, each for a share of the time. Inputs that reach new code
// are kept in a directory, and with them how often each target has run in all.
type fuzzing struct {
	*job
	form     fuzzForm
	cache    string
	programs map[string]string // the packages' test programs
	// executions over all campaigns, by target.
	executions map[string]int64
}

// A fuzzForm is a way to run fuzz targets.
type fuzzForm struct {
	counts string   // the file that says how often targets have run
	build  []string // what their programs are built with
	// longest is how long a target runs at most before the next one's turn, without -duration and with it.
	without, longest time.Duration
	// run runs a target for a while, and returns how often it ran. An error is what was found.
	run func(f *fuzzing, ctx context.Context, t fuzzTarget, program string, duration time.Duration) (int64, error)
}

// The forms: go test -fuzz, which looks at the code that inputs reach, and internal/mutate, which does not.
var (
	guided  = fuzzForm{"fuzz.json", []string{"-fuzz=."}, 10 * time.Second, math.MaxInt64, (*fuzzing).guided}
	mutated = fuzzForm{"mutate.json", nil, 10 * time.Second, 20 * time.Second, (*fuzzing).mutated}
)

func runFuzz(ctx context.Context, j *job) error   { return runTargets(ctx, j, guided) }
func runMutate(ctx context.Context, j *job) error { return runTargets(ctx, j, mutated) }

// runTargets runs the targets in one form.
func runTargets(ctx context.Context, j *job, form fuzzForm) error {
	f := &fuzzing{job: j, form: form, programs: make(map[string]string), executions: make(map[string]int64)}
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
	targets, err := fuzzTargets(ctx, j.target)
	if err != nil {
		return err
	}
	each := form.without
	if j.duration > 0 {
		each = min(form.longest, max(time.Second, (j.duration/time.Duration(len(targets))).Round(time.Second)))
	}
	// Another target begins where there is not time for all.
	for _, ok := j.next(ctx); ok; _, ok = j.next(ctx) {
		if err := f.runTarget(ctx, targets[j.seed%uint64(len(targets))], each); err != nil {
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

// ofMutate is the target that the tests of internal/mutate run, and tells of nothing else.
const ofMutate = "internal/mutate.FuzzWords"

// fuzzTargets finds those of the module's fuzz targets that are asked for, sorted.
func fuzzTargets(ctx context.Context, which *regexp.Regexp) (targets []fuzzTarget, err error) {
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
			t := fuzzTarget{fields[1], fields[0], string(m[1])}
			if t.String() != ofMutate && which.MatchString(t.String()) {
				targets = append(targets, t)
			}
		}
	}
	if len(targets) == 0 {
		return nil, errors.New("the module has no such fuzz targets: is this its directory?")
	}
	slices.SortFunc(targets, func(a, b fuzzTarget) int { return strings.Compare(a.String(), b.String()) })
	return targets, nil
}

// runTarget runs a target for a while. What makes it fail is left in the testdata of its package, as go test does.
func (f *fuzzing) runTarget(ctx context.Context, t fuzzTarget, duration time.Duration) error {
	program, err := f.program(ctx, t)
	if err != nil {
		return err
	}
	executions, err := f.form.run(f, ctx, t, program, duration)
	f.count(func(r *row) { r.operations += executions })
	f.executions[t.String()] += executions
	if err != nil && ctx.Err() == nil {
		f.wrong("%v: %v", t, err)
	}
	return f.save()
}

// corpusOf is where go test -fuzz keeps the inputs of a target's package.
func (f *fuzzing) corpusOf(t fuzzTarget) string {
	return filepath.Join(f.cache, "corpus", filepath.FromSlash(t.pkg))
}

var fuzzExecutions = regexp.MustCompile(`execs: (\d+)`)

// guided runs a target as go test -fuzz does.
func (f *fuzzing) guided(ctx context.Context, t fuzzTarget, program string, duration time.Duration) (int64, error) {
	corpus := f.corpusOf(t)
	if err := os.MkdirAll(corpus, 0o700); err != nil {
		return 0, fmt.Errorf("make a directory for the corpus: %w", err)
	}
	out, err := runProgram(ctx, t, program, duration, "-test.run=^$", "-test.fuzz=^"+t.name+"$",
		"-test.fuzztime="+duration.String(), "-test.fuzzcachedir="+corpus)
	if onlyTimeIsUp.Match(out) {
		err = nil
	}
	return lastNumber(fuzzExecutions, out), err
}

// onlyTimeIsUp matches what a target prints that ended since its time was up and is called failed for it, by a race in
// Go's internal/fuzz up to 1.26 (https://go.dev/issue/75804). What an input made fail has more to say: the input's file
// at least.
var onlyTimeIsUp = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([\d.]+s\)\n +context deadline exceeded\nFAIL\n*\z`)

// lastNumber returns the last number that a program told, 0 where it told none.
func lastNumber(form *regexp.Regexp, out []byte) (n int64) {
	if all := form.FindAllSubmatch(out, -1); len(all) > 0 {
		n, _ = strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	}
	return n
}

// runProgram runs a package's test program where its tests run. The error has what the program said.
func runProgram(ctx context.Context, t fuzzTarget, program string, duration time.Duration, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, append(args, "-test.timeout="+(duration+10*time.Minute).String())...)
	cmd.Dir = t.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return out, err
}

var mutateExecutions = regexp.MustCompile(`mutate: \w+: (\d+) executions in`)

// mutated runs a target on changed inputs, in as many processes as are asked for: a target may keep things of its own
// between executions, so that it does not run twice in one. Each process has a seed of its own.
func (f *fuzzing) mutated(ctx context.Context, t fuzzTarget, program string, duration time.Duration) (int64, error) {
	args := []string{"-test.run=^" + t.name + "$", "-test.cpu=1", "-mutate.for=" + duration.String(),
		"-mutate.corpus=" + f.corpusOf(t)}
	if f.each > 0 {
		args = append(args, fmt.Sprintf("-mutate.executions=%d", max(1, f.each/int64(f.processes))))
	}
	begun := time.Now()
	numbers, errs := make([]int64, f.processes), make([]error, f.processes)
	var all sync.WaitGroup
	for i := range f.processes {
		all.Go(func() {
			seed := f.seed*maxProcesses + uint64(i)
			out, err := runProgram(ctx, t, program, duration,
				append(slices.Clone(args), fmt.Sprintf("-mutate.seed=%d", seed))...)
			if numbers[i], errs[i] = lastNumber(mutateExecutions, out), err; err == nil && numbers[i] == 0 {
				errs[i] = fmt.Errorf("it does not say how often it has run: does it call mutate.Fuzz?\n%s", out)
			}
		})
	}
	all.Wait()
	sum := int64(0)
	for _, n := range numbers {
		sum += n
	}
	fmt.Fprintf(f.progress, "%v: %s executions, %s a second\n", t, thousands(sum),
		thousands(int64(float64(sum)/time.Since(begun).Seconds())))
	return sum, errors.Join(errs...)
}

// maxProcesses is how many processes may run a target.
const maxProcesses = 1024

// program builds the tests of a target's package.
func (f *fuzzing) program(ctx context.Context, t fuzzTarget) (string, error) {
	if p := f.programs[t.pkg]; p != "" {
		return p, nil
	}
	p := filepath.Join(f.dir, strings.ReplaceAll(strings.TrimPrefix(t.pkg, "github.com/isotap/isotap/"), "/", "-")+
		".test")
	// With -fuzz the code is counted that inputs reach.
	args := append([]string{"test", "-c", "-o", p}, f.form.build...)
	if out, err := exec.CommandContext(ctx, "go", append(args, t.pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", t.pkg, err, out)
	}
	f.programs[t.pkg] = p
	return p, nil
}

func (f *fuzzing) file() string { return filepath.Join(f.cache, f.form.counts) }

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
		err = os.MkdirAll(f.cache, 0o700)
	}
	if err == nil {
		err = os.WriteFile(f.file(), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep how often targets have run: %w", err)
	}
	return nil
}
