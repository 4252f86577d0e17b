// Command longtests prints the arguments with which go test runs what go test -short leaves out or cuts short, and
// nothing else: so "make check" runs no test again that "make test" has run whole.
//
//	go test $(go run ./internal/longtests -first ./internal/e2e)
//
// A test is long if it asks testing.Short, itself or through functions and methods of its package, or if it names a
// directory below testdata that has scripts with a line "[short] skip". Names stand for what they name: a test that
// shares the name of a long one, in this package or another, runs again as well. That costs time, and misses nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	first := flag.String("first", "", "the package to run first, as ./internal/e2e")
	flag.Parse()
	tests, dirs, err := longTests(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "longtests:", err)
		os.Exit(1)
	}
	if i := slices.Index(dirs, *first); i > 0 {
		dirs = slices.Insert(slices.Delete(dirs, i, i+1), 0, *first)
	}
	fmt.Printf("-run=^(%s)$ %s\n", strings.Join(tests, "|"), strings.Join(dirs, " "))
}

// longTests returns the names of the long tests below a directory, and the packages that have some, as go test takes
// them.
func longTests(root fs.FS) (tests, dirs []string, err error) {
	files := make(map[string][]string) // of tests, by directory
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(path) > 1 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			dir := filepath.Dir(path)
			files[dir] = append(files[dir], path)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for dir, paths := range files {
		long, err := longOf(root, dir, paths)
		if err != nil {
			return nil, nil, err
		}
		if tests = append(tests, long...); len(long) > 0 {
			dirs = append(dirs, "./"+dir)
		}
	}
	slices.Sort(tests)
	slices.Sort(dirs)
	return slices.Compact(tests), dirs, nil
}

// longOf returns the names of the long tests in the files of one directory.
func longOf(root fs.FS, dir string, paths []string) (tests []string, err error) {
	names := make(map[string]map[string]bool) // what functions name, by their own names
	for _, path := range paths {
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			return nil, fmt.Errorf("read the tests of %s: %w", dir, err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				addNames(names, d)
			}
		}
	}
	long := map[string]bool{"testing.Short": true}
	scripts, err := shortScripts(root, dir)
	if err != nil {
		return nil, err
	}
	for _, dir := range scripts {
		long[strconv.Quote(dir)] = true
	}
	for grows := true; grows; {
		grows = false
		for name, named := range names {
			for n := range named {
				if long[n] && !long[name] {
					long[name], grows = true, true
				}
			}
		}
	}
	for name := range names {
		if long[name] && (strings.HasPrefix(name, "Test") && name != "TestMain" || strings.HasPrefix(name, "Fuzz")) {
			tests = append(tests, name)
		}
	}
	return tests, nil
}

// addNames adds what a function names: identifiers, as "pkg.Name" what stands behind a dot, and texts in their quotes.
func addNames(names map[string]map[string]bool, d *ast.FuncDecl) {
	named := names[d.Name.Name]
	if named == nil {
		named = make(map[string]bool)
		names[d.Name.Name] = named
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				named[of.Name+"."+n.Sel.Name] = true
			}
		case *ast.Ident:
			named[n.Name] = true
		case *ast.BasicLit:
			named[n.Value] = true
		}
		return true
	})
}

var shortLine = regexp.MustCompile(`(?m)^\[short\] skip`)

// shortScripts returns the directories of a package, as its tests name them, with scripts that are not run whole with
// -short.
func shortScripts(root fs.FS, dir string) (dirs []string, err error) {
	err = fs.WalkDir(root, filepath.Join(dir, "testdata"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".txtar" {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil || !shortLine.Match(text) {
			return err
		}
		in, err := filepath.Rel(dir, filepath.Dir(path))
		dirs = append(dirs, filepath.ToSlash(in))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dirs, err
}
