//go:build linux

// Command campaign tries for hours what the tests try for seconds: it breaks things under load, again and again, and
// holds what is left against what was promised. Every campaign runs the real "isotap proxy" as a process, in front of
// throw-away servers, with clients whose statements carry tokens of their own: what a client was told is the truth that
// database, recording and analysis are held against.
//
//	go run ./internal/campaign -run kills -times 1000 [-engine mariadb|postgresql] [-durability commit|relaxed]
//	go run ./internal/campaign -run chaos,peers -duration 30m -seed 7
//
// It prints one row of a table a campaign, engine and durability, and exits with 1 when anything was wrong; then it has
// named the seed that repeats the round, and has left recording and logs where it says. Each round has a seed of its
// own, the one after the round's before, so that "-seed N -times 1" repeats one. What hangs on the time at which bytes
// arrive repeats only nearly.
//
// It runs on Linux: it reads /proc and, as root, mounts disks.
//
// campaign.go reads the command line, job.go is one run of a campaign and row.go what it prints; family.go has what the
// engines differ in, proxy.go the proxy as a process, works.go the transactions that clients run and recorded.go what
// is recorded of them. Each campaign has a file of its name.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/isotap/isotap/recorder"
)

// A campaign is one kind of trouble.
type campaign struct {
	name, about string
	// engines and durabilities say whether it runs once for each of them.
	engines, durabilities bool
	run                   func(ctx context.Context, j *job) error
}

var campaigns = []campaign{
	{"kills", "kill -9 of the proxy, the server, or both, under load", true, true, runKills},
	{"chaos", "networks that break, before the proxy and behind it", true, true, runChaos},
	{"peers", "hostile clients and a hostile server, beside clients that must not notice", true, true, runPeers},
	{"disk", "a disk that is full, slow, stands still, or fails, and recovers (root)", true, true, runDisk},
	{"crowd", "many idle clients, then clients that come and go", true, true, runCrowd},
	{"fuzz", "the fuzz targets in turn, with a corpus that is kept", false, false, runFuzz},
	{"mutate", "the fuzz targets in turn on changed inputs, without a look at the code they reach", false, false, runMutate},
	{"splicing", "hostile texts, directly and through isotap", true, false, runSplicing},
}

// settings are what the command line says.
type settings struct {
	campaigns    []*campaign
	families     []*family
	durabilities []recorder.Durability
	duration     time.Duration // of a campaign on one engine in one durability; 0: -times bounds it
	times        int           // rounds at most; 0: -duration bounds it
	seed         uint64        // of the first round; each further one has the next
	isotap       string        // the program
	directory    string        // for recordings and logs
	victims      []victim
	slack        time.Duration
	others       string // the flags that were given beside those that a job's command names
	memory       int64  // MiB
	clients      int    // 0: as many as the engine takes
	rate         int    // connections a second
	corpus       string
	target       *regexp.Regexp
	each         int64 // executions of a target in a round; 0: time bounds them
	processes    int   // that run a target
	texts        int   // a round
	network      network
}

func main() {
	s, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	wrong, err := run(ctx, s, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
	}
	if err != nil || wrong {
		os.Exit(1)
	}
}

// parse reads the command line, and says itself what is wrong with it.
func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	var names, engines, durabilities, victims, networks string
	f := flag.NewFlagSet("campaign", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&names, "run", "", "campaigns, separated by commas (default all):\n"+aboutCampaigns())
	f.StringVar(&engines, "engine", "", "engines, separated by commas: mariadb, postgresql (default both)")
	f.StringVar(&durabilities, "durability", "", "durabilities, separated by commas: commit, relaxed (default both)")
	f.DurationVar(&s.duration, "duration", 0,
		"how long each campaign goes on, on each engine in each durability (default 1m without -times)")
	f.IntVar(&s.times, "times", 0, "how many rounds it has at most (default as many as there is time for)")
	f.Uint64Var(&s.seed, "seed", 1, "the first round's seed; each further round has the next")
	f.StringVar(&s.isotap, "isotap", "", "the isotap program (default: it is built)")
	f.StringVar(&s.directory, "directory", "",
		"where recordings and logs go, and stay if something is wrong (default a temporary one)")
	f.StringVar(&victims, "victims", "",
		"kills: what is killed, separated by commas: proxy, server, both (default all in turn)")
	f.DurationVar(&s.slack, "slack", 250*time.Millisecond,
		"how much later than promised a thing may happen because the machine is busy")
	f.Int64Var(&s.memory, "memory", 2304, "how many MiB hostile peers may make the proxy take (default twice its "+
		"max_row_memory, as garbage may take as much as what is held, and 256)")
	f.IntVar(&s.clients, "clients", 0, "crowd: how many clients there are at a time (default 10000, "+
		"on PostgreSQL 2000, whose processes take memory)")
	f.IntVar(&s.rate, "rate", 1000, "crowd: how many clients come and go each second, if the machine can")
	f.StringVar(&s.corpus, "corpus", "",
		"fuzz, mutate: where inputs are kept, and how often targets have run (default isotap/campaign in the cache directory)")
	s.target = regexp.MustCompile("")
	f.Func("target", "fuzz, mutate: a regular expression for the targets, as in sqltoken/pgtoken.FuzzScan (default all)",
		func(text string) (err error) { s.target, err = regexp.Compile(text); return err })
	f.Int64Var(&s.each, "executions", 0, "mutate: how often a target runs in a round at most (default by time)")
	f.IntVar(&s.processes, "processes", runtime.NumCPU(), "mutate: how many processes run a target")
	f.StringVar(&networks, "network", relays.String(),
		"chaos: what breaks, relays (programs that pass bytes on) or namespaces (the kernel's networks; root)")
	f.IntVar(&s.texts, "texts", 10_000, "splicing: how many texts a round has")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	f.Visit(func(given *flag.Flag) {
		if !slices.Contains([]string{"run", "engine", "durability", "duration", "times", "seed", "isotap", "directory",
			"corpus"}, given.Name) {
			s.others += fmt.Sprintf(" -%s %s", given.Name, given.Value)
		}
	})
	err := errors.Join(
		choose(names, campaigns, func(c *campaign) string { return c.name }, &s.campaigns),
		choose(engines, families, func(f *family) string { return f.name.String() }, &s.families),
		chooseValues(durabilities, []recorder.Durability{recorder.Commit, recorder.Relaxed}, &s.durabilities),
		chooseValues(victims, []victim{killProxy, killServer, killBoth}, &s.victims))
	var chosen []network
	if err = errors.Join(err, chooseValues(networks, []network{relays, namespaces}, &chosen)); len(chosen) != 1 {
		err = errors.Join(err, errors.New("-network takes one of relays, namespaces"))
	} else if s.network = chosen[0]; s.network == namespaces {
		err = errors.Join(err, canCable())
	}
	if f.NArg() > 0 {
		err = errors.Join(err, fmt.Errorf("unexpected argument %q", f.Arg(0)))
	}
	if s.each < 0 || s.processes < 1 || s.processes > maxProcesses {
		err = errors.Join(err, fmt.Errorf("-executions is not negative, -processes is between 1 and %d", maxProcesses))
	}
	if s.duration < 0 || s.times < 0 || s.clients < 0 || s.rate < 1 {
		err = errors.Join(err, errors.New("-duration, -times and -clients are not negative, -rate begins at 1"))
	}
	if err != nil {
		fmt.Fprintln(out, err)
	}
	if s.duration == 0 && s.times == 0 {
		s.duration = time.Minute
	}
	return s, err
}

func aboutCampaigns() string {
	var b strings.Builder
	for i := range campaigns {
		fmt.Fprintf(&b, "%s: %s\n", campaigns[i].name, campaigns[i].about)
	}
	return b.String()
}

// choose finds those of a list that are named, all when none is.
func choose[T any](names string, list []T, name func(*T) string, chosen *[]*T) error {
	for i := range list {
		if names == "" || slices.Contains(strings.Split(names, ","), name(&list[i])) {
			*chosen = append(*chosen, &list[i])
		}
	}
	if names == "" || len(*chosen) == strings.Count(names, ",")+1 {
		return nil
	}
	known := make([]string, len(list))
	for i := range list {
		known[i] = name(&list[i])
	}
	return fmt.Errorf("%q is not a list of %s", names, strings.Join(known, ", "))
}

// chooseValues is choose for values that have a word each.
func chooseValues[T fmt.Stringer](names string, list []T, chosen *[]T) error {
	var found []*T
	err := choose(names, list, func(v *T) string { return (*v).String() }, &found)
	for _, v := range found {
		*chosen = append(*chosen, *v)
	}
	return err
}

// run runs the campaigns, prints the table to out and reports whether something was wrong. What goes on is told on
// progress.
func run(ctx context.Context, s settings, out, progress io.Writer) (wrong bool, err error) {
	temporary := s.directory == ""
	if temporary {
		if s.directory, err = os.MkdirTemp("", "isotap-campaign-"); err != nil {
			return false, fmt.Errorf("make a directory for recordings: %w", err)
		}
		defer func() {
			// What is left of a round that went wrong stays.
			if left := os.Remove(s.directory); left != nil && !wrong && err == nil {
				err = os.RemoveAll(s.directory)
			}
		}()
	}
	programs, err := os.MkdirTemp("", "isotap-campaign-program-")
	if err != nil {
		return false, fmt.Errorf("make a directory for the program: %w", err)
	}
	defer os.RemoveAll(programs)
	if s.isotap == "" {
		if s.isotap, err = build(ctx, programs); err != nil {
			return false, err
		}
	}
	fmt.Fprint(out, tableHead)
	for _, c := range s.campaigns {
		for _, j := range c.jobs(&s, progress) {
			err := j.do(ctx)
			fmt.Fprint(out, j.row.String())
			wrong = wrong || j.row.bad()
			if err != nil {
				return wrong, fmt.Errorf("%s: %w", j.title(), err)
			}
			if ctx.Err() != nil {
				return wrong, nil
			}
		}
	}
	return wrong, nil
}

// build compiles isotap with the flags of "make build", so that Go has most of it already.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "isotap")
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "github.com/isotap/isotap/cmd/isotap")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build isotap: %w\n%s", err, out)
	}
	return program, nil
}
