package program

import (
	"embed"
	"fmt"

	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// builtin holds the benchmarks of the paper's 7.1: their programs, and the definitions of their tables.
//
//go:embed builtin
var builtin embed.FS

// Benchmarks are the names of the benchmarks that are there as files.
var Benchmarks = []string{"smallbank", "tpcc", "auction"}

// Benchmark compiles a benchmark of [Benchmarks] from its SQL.
func Benchmark(name string) (*robust.Workload, error) {
	programs, definitions, err := BenchmarkFiles(name)
	if err != nil {
		return nil, err
	}
	schema, remarks, err := footprint.ReadSchema(footprint.PostgreSQL, definitions.Text)
	if err != nil {
		return nil, err
	}
	if len(remarks) > 0 {
		return nil, fmt.Errorf("%s: %s", definitions.Name, remarks[0])
	}
	return Compile(name, footprint.PostgreSQL, schema, programs)
}

// BenchmarkFiles gives the files of a benchmark: its programs, and the definitions of its tables.
func BenchmarkFiles(name string) (programs, definitions Source, err error) {
	read := func(file string) Source {
		text, readErr := builtin.ReadFile("builtin/" + file)
		if readErr != nil {
			err = fmt.Errorf("there is no benchmark %s", name)
		}
		return Source{Name: file, Text: string(text)}
	}
	return read(name + ".sql"), read(name + ".schema.sql"), err
}
