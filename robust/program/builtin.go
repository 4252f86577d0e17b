package program

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// builtin holds the benchmarks of the paper's 7.1: their programs, and the definitions of their tables.
//
//go:embed builtin
var builtin embed.FS

// Benchmarks are the names of the benchmarks that are there as files.
var Benchmarks = []string{"smallbank", "tpcc", "auction"}

// Benchmark compiles a benchmark of [Benchmarks] from its SQL, or auction:N, of N items.
func Benchmark(name string) (*robust.Workload, error) {
	programs, definitions, err := BenchmarkFiles(name)
	if err != nil {
		return nil, err
	}
	schema, remarks, err := footprint.ReadSchema(dbms.PostgreSQLFamily, definitions.Text)
	if err != nil {
		return nil, err
	}
	if len(remarks) > 0 {
		return nil, fmt.Errorf("%s: %s", definitions.Name, remarks[0])
	}
	return Compile(name, dbms.PostgreSQLFamily, schema, programs)
}

// BenchmarkFiles returns the files of a benchmark that [Benchmark] compiles: its programs, and the definitions of its
// tables.
func BenchmarkFiles(name string) (programs, definitions Source, err error) {
	kind, items, many := strings.Cut(name, ":")
	read := func(file string) Source {
		text, readErr := builtin.ReadFile("builtin/" + file)
		if readErr != nil {
			err = fmt.Errorf("there is no benchmark %s", name)
		}
		return Source{Name: file, Text: string(text)}
	}
	programs, definitions = read(kind+".sql"), read(kind+".schema.sql")
	if n, number := strconv.Atoi(items); many && (kind != "auction" || number != nil || n < 1) {
		return programs, definitions, fmt.Errorf("there is no benchmark %s", name)
	} else if many && n > 1 {
		programs.Text, definitions.Text = forItems(programs.Text, "COMMIT;\n", n), forItems(definitions.Text, ");\n", n)
	}
	return programs, definitions, err
}

// ofItem are the names that an auction has for each of its items.
var ofItem = regexp.MustCompile(`\b(Bids|BidsBuyer|FindBids|FB|PlaceBid|PB)\b`)

// forItems has the parts of an auction's file that are of its item be there for n of them.
func forItems(text, end string, n int) string {
	var b strings.Builder
	for _, part := range strings.SplitAfter(text, end) {
		if !ofItem.MatchString(part) {
			b.WriteString(part)
			continue
		}
		for i := range n {
			b.WriteString(ofItem.ReplaceAllString(part, fmt.Sprintf("${1}%d", i+1)))
		}
	}
	return b.String()
}
