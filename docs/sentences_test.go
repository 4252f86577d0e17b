package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// longest is how many words a sentence may have: an engineer reads it once.
const longest = 40

var (
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	listItem   = regexp.MustCompile(`^\s*([-*]|\d+\.)\s`)
)

func TestSentencesAreReadOnce(t *testing.T) {
	pages, err := filepath.Glob("adr/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("decisions: %d, %v", len(pages), err)
	}
	pages = append(pages, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "architecture.md", "first-steps.md",
		"histories.md", "operating.md", "postgresql.md", "reading-a-report.md", "server-matrix.md")
	for _, page := range pages {
		for _, paragraph := range paragraphs(prose(t, page)) {
			for _, sentence := range sentences(paragraph.text) {
				if n := len(sentence); n > longest {
					t.Errorf("%s:%d: a sentence of %d words: %s", page, paragraph.line, n, strings.Join(sentence, " "))
				}
			}
		}
	}
}

func TestSentencesAreToldApart(t *testing.T) {
	text := "It ends here. So does this one (`a. b. c` too.) What [is this](a.b. c)? One: two. There is 10.11, a number: Here it ends."
	var lengths []int
	for _, s := range sentences(text) {
		lengths = append(lengths, len(s))
	}
	if want := []int{3, 6, 3, 2, 5, 3}; !slices.Equal(lengths, want) {
		t.Fatalf("sentences of %v words, want %v", lengths, want)
	}
}

// A paragraph is a paragraph, an item of a list, or a cell of a table.
type paragraph struct {
	line int // its first
	text string
}

func paragraphs(lines []string) []paragraph {
	var all []paragraph
	open := false // the last one goes on
	for i, line := range lines {
		text := strings.TrimSpace(line)
		switch {
		case text == "", strings.HasPrefix(line, "#"), !open && strings.HasPrefix(line, "    "): // code is indented
			open = false
		case strings.HasPrefix(line, "|"):
			for _, cell := range strings.Split(strings.Trim(text, "|"), " | ") {
				all = append(all, paragraph{i + 1, strings.TrimSpace(cell)})
			}
			open = false
		case !open || listItem.MatchString(line):
			all = append(all, paragraph{i + 1, listItem.ReplaceAllString(text, "")})
			open = true
		default:
			all[len(all)-1].text += " " + text
		}
	}
	return all
}

// sentences returns the words of each sentence. Code is one word. A colon ends a sentence if a capital follows.
func sentences(text string) [][]string {
	text = linkTarget.ReplaceAllString(codeSpan.ReplaceAllString(text, "CODE"), "]")
	var all [][]string
	var sentence []string
	words := strings.Fields(text)
	for i, word := range words {
		sentence = append(sentence, word)
		next := ""
		if i+1 < len(words) {
			next = strings.TrimLeft(words[i+1], `"*([`)
		}
		first, _ := utf8.DecodeRuneInString(next)
		end := strings.TrimRight(word, `"*)]`)
		if next == "" || strings.ContainsAny(end[max(len(end)-1, 0):], ".!?") || strings.HasSuffix(end, ":") &&
			unicode.IsUpper(first) {
			all = append(all, sentence)
			sentence = nil
		}
	}
	return all
}
