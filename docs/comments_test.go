package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestCommentsBeginWithTheirName holds doc comments to Go's idiom: one begins with the name that it describes, as "X
// returns ..." or "A T is ...", or it is a sentence with a capital of its own. One that begins with another name tells
// of what was once there.
func TestCommentsBeginWithTheirName(t *testing.T) {
	files := token.NewFileSet()
	for _, path := range filesOf(t, ".go") {
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range described(file) {
			if word := firstWord(c.doc.Text()); word != "" && !c.mayBeginWith(word) {
				t.Errorf("%s: the comment of %s begins with %q", files.Position(c.doc.Pos()), c.names[0], word)
			}
		}
	}
}

// TestCommentsFitTheLine holds lines of comments to 120 columns, a tab counted as four.
func TestCommentsFitTheLine(t *testing.T) {
	for _, path := range filesOf(t, ".go") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.ReplaceAll(line, "\t", "    ")
			if columns := utf8.RuneCountInString(line); columns > 120 && strings.HasPrefix(strings.TrimSpace(line), "//") {
				t.Errorf("%s:%d: a comment of %d columns", path, i+1, columns)
			}
		}
	}
}

// A describedName is a comment and what it may describe: one name, or the names of a group.
type describedName struct {
	doc   *ast.CommentGroup
	names []string
}

// properNames are what the world calls servers, tools and benchmarks. A sentence may begin with one, as it is spelled.
var properNames = []string{"PostgreSQL", "MariaDB", "TiDB", "TPC", "SmallBank", "IsoRel", "DejaVu", "sysbench", "pgbench"}

// mayBeginWith reports whether a comment may begin with word. What has one capital, its first letter, is taken for a
// sentence's first word.
func (d describedName) mayBeginWith(word string) bool {
	if slices.Contains(d.names, word) || slices.Contains(properNames, word) || strings.HasPrefix(word, "pg_") {
		return true
	}
	first, size := utf8.DecodeRuneInString(word)
	return !unicode.IsLower(first) && word[size:] == strings.ToLower(word[size:])
}

// described returns the comments of a file's declarations, of their fields and methods.
func described(file *ast.File) []describedName {
	var all []describedName
	add := func(doc *ast.CommentGroup, names ...*ast.Ident) {
		if doc == nil || len(names) == 0 {
			return
		}
		d := describedName{doc: doc}
		for _, name := range names {
			d.names = append(d.names, name.Name)
		}
		all = append(all, d)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Doc, n.Name)
		case *ast.GenDecl:
			add(n.Doc, declared(n)...)
		case *ast.TypeSpec:
			add(n.Doc, n.Name)
		case *ast.ValueSpec:
			add(n.Doc, n.Names...)
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				add(m.Doc, m.Names...)
			}
		}
		return true
	})
	return all
}

// declared returns the names that a declaration declares, and the names of the first of a group's.
func declared(d *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, spec.Name)
		case *ast.ValueSpec:
			names = append(names, spec.Names...)
		}
	}
	return names
}

// firstWord returns a comment's first word, without the marks behind it.
func firstWord(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	if len(fields) == 0 || !strings.HasPrefix(text, fields[0]) {
		return ""
	}
	return fields[0]
}
