// Command fileorder measures how well the files of a package can be read in one direction.
//
// A reference is a pair of files of one package of which the first uses something that the second declares: a
// type, a function, a method, a constant or a variable of the package. In the best order of the files as few
// references as possible run backward. A cycle is a set of files each of which uses, in some steps, every other one:
// nobody understands a part of it without the rest. CONTRIBUTING.md says what a package should keep to.
//
//	go run ./internal/fileorder [-v] ./proxy/postgres ./analyzer
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	verbose := flag.Bool("v", false, "list the order, and the references that run backward in it")
	flag.Parse()
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, flag.Args()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fileorder: load packages:", err)
		os.Exit(1)
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			fmt.Fprintf(os.Stderr, "fileorder: load %s: %v\n", p.PkgPath, p.Errors[0])
			os.Exit(1)
		}
		report(p, references(p), *verbose)
	}
}

// A graph has the files of a package, by name without .go, and for each pair of them the names that the first
// uses of the second.
type graph struct {
	files []string
	uses  [][]map[string]bool
}

// references reads a package's files.
func references(p *packages.Package) *graph {
	name := func(n ast.Node) string {
		return strings.TrimSuffix(filepath.Base(p.Fset.File(n.Pos()).Name()), ".go")
	}
	g := &graph{}
	for _, f := range p.Syntax {
		g.files = append(g.files, name(f))
	}
	slices.Sort(g.files)
	g.uses = make([][]map[string]bool, len(g.files))
	for i := range g.uses {
		g.uses[i] = make([]map[string]bool, len(g.files))
	}
	for _, f := range p.Syntax {
		from, _ := slices.BinarySearch(g.files, name(f))
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types || !o.Pos().IsValid() || isLocal(o) {
				return true
			}
			to, _ := slices.BinarySearch(g.files, strings.TrimSuffix(filepath.Base(p.Fset.File(o.Pos()).Name()), ".go"))
			if from != to {
				if g.uses[from][to] == nil {
					g.uses[from][to] = make(map[string]bool)
				}
				g.uses[from][to][o.Name()] = true
			}
			return true
		})
	}
	return g
}

// isLocal reports whether an object is a field, or lives in a function: who uses it has named its type or the
// function already.
func isLocal(o types.Object) bool {
	v, ok := o.(*types.Var)
	return ok && (v.IsField() || v.Parent() != o.Pkg().Scope())
}

// count returns the number of references, and of those that run backward in an order.
func (g *graph) count(order []int) (all, backward int) {
	for at, from := range order {
		for where, to := range order {
			if g.uses[from][to] != nil {
				all++
				if where < at {
					backward++
				}
			}
		}
	}
	return all, backward
}

// best looks for an order in which few references run backward: from some random ones it moves one file at a time to
// the place where it is best, for as long as that helps. The seed is fixed: the same package gives the same figures.
func (g *graph) best() []int {
	random := rand.New(rand.NewPCG(1, 1))
	var best []int
	fewest := -1
	for range 30 {
		order := random.Perm(len(g.files))
		for g.improve(order) {
		}
		if _, backward := g.count(order); fewest < 0 || backward < fewest {
			best, fewest = order, backward
		}
	}
	return best
}

// improve moves files to better places, and reports whether there were any.
func (g *graph) improve(order []int) (better bool) {
	for at := range order {
		gain, to := 0, at
		for _, step := range []int{-1, 1} {
			change := 0
			for i := at + step; i >= 0 && i < len(order); i += step {
				// The file passes order[i]: what it uses of that, and is used for by it, changes direction.
				change += step * (boolInt(g.uses[order[at]][order[i]] != nil) - boolInt(g.uses[order[i]][order[at]] != nil))
				if change < gain {
					gain, to = change, i
				}
			}
		}
		if to != at {
			move(order, at, to)
			better = true
		}
	}
	return better
}

// move moves the file at one place of an order to another.
func move(order []int, at, to int) {
	file := order[at]
	if at < to {
		copy(order[at:to], order[at+1:to+1])
	} else {
		copy(order[to+1:at+1], order[to:at])
	}
	order[to] = file
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cycle returns how many files the largest cycle has.
func (g *graph) cycle() int {
	n := len(g.files)
	reaches := make([][]bool, n)
	for i := range reaches {
		reaches[i] = make([]bool, n)
		for j := range reaches[i] {
			reaches[i][j] = i == j || g.uses[i][j] != nil
		}
	}
	for via := range n {
		for i := range n {
			for j := range n {
				reaches[i][j] = reaches[i][j] || reaches[i][via] && reaches[via][j]
			}
		}
	}
	largest := 0
	for i := range n {
		size := 0
		for j := range n {
			size += boolInt(reaches[i][j] && reaches[j][i])
		}
		largest = max(largest, size)
	}
	return largest
}

// report prints a package's figures.
func report(p *packages.Package, g *graph, verbose bool) {
	order := g.best()
	all, backward := g.count(order)
	fmt.Printf("%s: %d files, %d references, %d backward (%.0f %%), largest cycle %d files\n", p.PkgPath, len(g.files),
		all,
		backward, 100*float64(backward)/float64(max(all, 1)), g.cycle())
	if !verbose {
		return
	}
	for at, from := range order {
		fmt.Printf("  %s\n", g.files[from])
		for _, to := range order[:at] {
			if used := g.uses[from][to]; used != nil {
				names := make([]string, 0, len(used))
				for name := range used {
					names = append(names, name)
				}
				slices.Sort(names)
				fmt.Printf("    back to %s: %s\n", g.files[to], strings.Join(names, " "))
			}
		}
	}
}
