// Package mutate runs fuzz targets on inputs that are changed at random, many times as fast as go test -fuzz does. That
// one looks at which code an input reaches, in instrumented code and in a process of its own; here nobody looks, and a
// target is a function that is called in a loop. What is lost in aim is made up for by grammar: words of a language and
// messages of a protocol take each other's place.
//
// A fuzz target calls Fuzz in the place of (*testing.F).Fuzz. Without flags it is that. With -mutate.for or
// -mutate.executions the target's inputs, those of f.Add and those in testdata, are read, not run, and changed and
// crossed from then on, by one goroutine. The campaign mutate of internal/campaign does so with all targets on all
// cores.
package mutate

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"time"
)

var (
	runFor     = flag.Duration("mutate.for", 0, "run fuzz targets on changed inputs for so long each")
	executions = flag.Int64("mutate.executions", 0, "run fuzz targets on changed inputs so often each at most")
	seed       = flag.Uint64("mutate.seed", 1, "the seed that inputs are changed from")
	corpus     = flag.String("mutate.corpus", "",
		"a directory of further inputs, with a directory of each target's name, as -test.fuzzcachedir has them")
)

// Said is how a target says on standard output how often it has run, for how long, and with which seed.
const Said = "mutate: %s: %d executions in %v, -mutate.seed %d\n"

// maxExecution is how long an execution may take: one that takes longer counts as one that does not end.
const maxExecution = time.Minute

// Fuzz is f.Fuzz(target), or runs the target on changed inputs when flags ask for that. The words are what a token of
// an input may be replaced by, beside those of the target's own inputs: SQL for statements, whole messages for scripts
// of a protocol.
func Fuzz(f *testing.F, target any, words ...string) {
	f.Helper()
	if *runFor == 0 && *executions == 0 {
		f.Fuzz(target)
		return
	}
	r := &runner{name: f.Name(), target: reflect.ValueOf(target)}
	inputs := r.inputs(f)
	further, err := readCorpus(*corpus, f.Name(), r.types())
	if err != nil {
		f.Fatal(err)
	}
	if inputs = append(inputs, further...); len(inputs) == 0 {
		f.Fatal("there are no inputs to change")
	}
	r.source = newSource(rand.New(rand.NewPCG(*seed, 0)), inputs, words)
	r.run()
}

// A runner runs one target.
type runner struct {
	name    string
	target  reflect.Value // func(*testing.T, ...)
	source  *source
	done    atomic.Int64 // executions that ended
	present atomic.Pointer[input]
}

// types are those of a target's input.
func (r *runner) types() (types []reflect.Type) {
	for i := 1; i < r.target.Type().NumIn(); i++ {
		types = append(types, r.target.Type().In(i))
	}
	return types
}

// inputs are those of f.Add and of testdata. The testing package tells them to nobody but a target.
func (r *runner) inputs(f *testing.F) (inputs []input) {
	f.Fuzz(reflect.MakeFunc(r.target.Type(), func(args []reflect.Value) []reflect.Value {
		one := make(input, 0, len(args)-1)
		for _, a := range args[1:] {
			one = append(one, a.Interface())
		}
		inputs = append(inputs, one)
		return nil
	}).Interface())
	return inputs
}

// run runs the target in batches until time or executions are over, or one fails. Each batch is a test, for
// what tests keep until they end, as directories, not to pile up.
func (r *runner) run() {
	begun := time.Now()
	defer func() { fmt.Printf(Said, r.name, r.done.Load(), time.Since(begun).Round(time.Millisecond), *seed) }()
	stop := r.watch()
	defer stop()
	always := func(string, string) (bool, error) { return true, nil }
	for size := int64(1); ; {
		if *executions > 0 {
			size = min(size, *executions-r.done.Load())
		}
		if size <= 0 || *runFor > 0 && time.Since(begun) >= *runFor {
			return
		}
		batch := time.Now()
		if !testing.RunTests(always, []testing.InternalTest{{Name: r.name, F: func(t *testing.T) { r.batch(t, size) }}}) {
			os.Exit(1) // the test has said why
		}
		if took := time.Since(batch); took < 100*time.Millisecond {
			size *= 2
		} else if took > time.Second {
			size = max(1, size/2)
		}
	}
}

// batch runs the target so many times. The input of an execution that fails is left in testdata, where go test finds
// it.
func (r *runner) batch(t *testing.T, size int64) {
	defer func() {
		if in := r.present.Load(); in != nil { // the execution panicked or ended the test
			r.keep(*in)
		}
	}()
	args := make([]reflect.Value, r.target.Type().NumIn())
	args[0] = reflect.ValueOf(t)
	for range size {
		in := r.source.next()
		r.present.Store(&in)
		for i, v := range in {
			args[i+1] = reflect.ValueOf(v)
		}
		r.target.Call(args)
		r.done.Add(1)
		if t.Failed() {
			return
		}
		r.present.Store(nil)
	}
}

// keep writes an input that failed, and says where.
func (r *runner) keep(in input) {
	name, err := in.write(r.name)
	if err != nil {
		fmt.Printf("mutate: the input that failed cannot be kept: %v\n%s", err, in.marshal())
		return
	}
	fmt.Printf("mutate: the input that failed is %s\n", name)
}

// watch ends the process when an execution does not end. What it returns ends the watching.
func (r *runner) watch() (stop func()) {
	end := make(chan struct{})
	go func() {
		for before := int64(-1); ; {
			select {
			case <-end:
				return
			case <-time.After(maxExecution):
			}
			n, in := r.done.Load(), r.present.Load()
			if n == before && in != nil {
				r.keep(*in)
				panic(fmt.Sprintf("%s: an execution takes longer than %v", r.name, maxExecution))
			}
			before = n
		}
	}()
	return func() { close(end) }
}
