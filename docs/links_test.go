package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	target   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	scheme   = regexp.MustCompile(`^[a-z]+:`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinksOfDocumentsLeadSomewhere follows each link from one file of the repository to another, and to its heading.
// It asks no network: links with a scheme are left out.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	followed := 0
	for _, path := range filesOf(t, ".md") {
		for number, line := range prose(t, path) {
			for _, match := range target.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				if scheme.MatchString(match[1]) {
					continue
				}
				followed++
				if why := broken(t, path, match[1]); why != "" {
					t.Errorf("%s:%d: %s: %s", path, number+1, match[1], why)
				}
			}
		}
	}
	if followed == 0 {
		t.Error("no document has a link")
	}
}

// broken returns what is wrong with a link in the document at path; "" if nothing is.
func broken(t *testing.T, path, link string) string {
	t.Helper()
	file, heading, _ := strings.Cut(link, "#")
	to := path
	if file != "" {
		to = filepath.Join(filepath.Dir(path), file)
	}
	switch {
	case !exists(to):
		return "there is no such file"
	case heading != "" && !slices.Contains(headings(t, to), heading):
		return "the file has no such heading"
	default:
		return ""
	}
}

// prose returns the lines of a document by their index from 0; those inside of fenced code are empty.
func prose(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	inCode := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if inCode || fence {
			lines[i] = ""
		}
		inCode = inCode != fence
	}
	return lines
}

// headings returns the anchors that GitHub makes of a document's headings.
func headings(t *testing.T, path string) []string {
	t.Helper()
	var anchors []string
	seen := map[string]int{}
	for _, line := range prose(t, path) {
		text := strings.TrimLeft(line, "#")
		if text == line || !strings.HasPrefix(text, " ") {
			continue
		}
		a := anchor(text)
		if n := seen[a]; n > 0 {
			anchors = append(anchors, a+"-"+strconv.Itoa(n))
		} else {
			anchors = append(anchors, a)
		}
		seen[a]++
	}
	return anchors
}

func anchor(heading string) string {
	text := strings.ToLower(strings.TrimSpace(linkText.ReplaceAllString(heading, "$1")))
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return r
		default:
			return -1
		}
	}, text)
}
