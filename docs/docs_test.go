// Package docs_test holds the documents of the repository, and the comments that a reader begins with, to what they
// promise.
package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the repository's directory, seen from this package.
const root = ".."

// filesOf returns the paths, from root on, of the repository's files whose names end so. It leaves out hidden
// directories, test data and what was built.
func filesOf(t *testing.T, suffix string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return fs.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(name, suffix) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no file ends in %s", suffix)
	}
	return paths
}

var goFile = regexp.MustCompile(`[\w/.-]*\w\.go\b`)

// TestPackageCommentsNameFilesThatExist reads every package comment. A file in it stands in the package's directory, or
// is named by its path from the repository's root.
func TestPackageCommentsNameFilesThatExist(t *testing.T) {
	named := 0
	for _, path := range filesOf(t, ".go") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range goFile.FindAllString(file.Doc.Text(), -1) {
			named++
			if !exists(filepath.Join(filepath.Dir(path), name)) &&
				!(strings.Contains(name, "/") && exists(filepath.Join(root, name))) {
				t.Errorf("%s: the package comment names %s, which is not there", path, name)
			}
		}
	}
	if named == 0 {
		t.Error("no package comment names a file")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestArchitectureLinksEveryPackage holds the table of packages complete; that its links lead somewhere is tested with
// those of all documents.
func TestArchitectureLinksEveryPackage(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, path := range filesOf(t, ".go") {
		dir := filepath.ToSlash(filepath.Dir(path))
		if seen[dir] || dir == "../docs" || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(dir, "../internal/testdb/tidb") {
			continue
		}
		seen[dir] = true
		if !strings.Contains(string(text), "]("+dir+")") {
			t.Errorf("architecture.md does not link the package %s", dir)
		}
	}
}

var quotedGoFile = regexp.MustCompile("`([\\w./-]+/[\\w-]+\\.go)`")

// TestDocumentsNameFilesThatExist reads the paths of Go files in the documents, which begin at the repository's root.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	named := 0
	for _, path := range filesOf(t, ".md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range quotedGoFile.FindAllStringSubmatch(string(text), -1) {
			named++
			if !exists(filepath.Join(root, match[1])) {
				t.Errorf("%s names %s, which is not there", path, match[1])
			}
		}
	}
	if named == 0 {
		t.Error("no document names a Go file")
	}
}

var (
	quotedTest = regexp.MustCompile("`(Test[A-Z][a-z]*[A-Z]\\w+)`") // TestCase is of other languages
	// testsOf finds tests behind their packages, as in "proxy/mysql, proxy/postgres: `TestA`, `TestB`".
	testsOf = regexp.MustCompile("((?:[\\w/]+,\\s)*[\\w/]+):\\s((?:`Test\\w+`(?:,\\s)?)+)")
	// testFunc finds the names of tests in Go.
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestDocumentsNameTestsThatExist reads the names of tests in the documents. Those of security.md stand behind their
// packages.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	tests, packages := map[string]bool{}, map[string]bool{}
	for _, path := range filesOf(t, "_test.go") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), root+"/")
		for _, match := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[match[1]], packages[dir+": "+match[1]] = true, true
		}
	}
	for _, path := range filesOf(t, ".md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range quotedTest.FindAllStringSubmatch(string(text), -1) {
			if !tests[match[1]] {
				t.Errorf("%s names %s, which is not there", path, match[1])
			}
		}
	}
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	placed := 0
	for _, match := range testsOf.FindAllStringSubmatch(string(text), -1) {
		for _, name := range quotedTest.FindAllStringSubmatch(match[2], -1) {
			placed++
			for dir := range strings.SplitSeq(match[1], ",") {
				if dir = strings.TrimSpace(dir); !packages[dir+": "+name[1]] {
					t.Errorf("security.md names %s of %s, which is not there", name[1], dir)
				}
			}
		}
	}
	if all := len(quotedTest.FindAllString(string(text), -1)); placed != all || all == 0 {
		t.Errorf("security.md names %d tests, %d of them behind a package", all, placed)
	}
}

// TestReadmeIsReadInAMinute bounds the page that everybody begins with.
func TestReadmeIsReadInAMinute(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) >= 150 {
		t.Errorf("it has %d lines, not less than 150", len(lines))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > 200 {
			t.Errorf("line %d has %d characters, more than 200", i+1, n)
		}
	}
}
