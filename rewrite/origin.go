package rewrite

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxOrigin bounds the place that a comment names, in bytes.
const maxOrigin = 256

// Origin returns the place in the client's program that a comment of the statement names, as file:line, or the
// file alone; empty where none does. The comments are those of sqlcommenter (google.github.io/sqlcommenter,
// "Specification"): key='value', both percent-encoded, separated by commas. Keys of a file and a line are
// those that its users and OpenTelemetry's code attributes have. Comments stand before, between and behind the
// statement's tokens, of which span gives the i-th one's place in the text; other statements may stand around it.
func Origin(text string, tokens int, span func(i int) (start, end int)) string {
	if tokens == 0 || !strings.Contains(text, "/*") {
		return ""
	}
	start, from := span(0)
	if at := originOf(text[strings.LastIndexByte(text[:start], ';')+1 : start]); at != "" {
		return at
	}
	for i := 1; i < tokens; i++ {
		start, end := span(i)
		if from < start {
			if at := originOf(text[from:start]); at != "" {
				return at
			}
		}
		from = end
	}
	return originOf(tail(text, from))
}

// tail returns what stands between a statement's end and the next one.
func tail(text string, end int) string {
	rest := text[end:]
	if text[end-1] != ';' {
		own, _, _ := strings.Cut(rest, ";")
		return own
	}
	if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "/*") && strings.Index(rest, "*/") == len(rest)-2 {
		return rest // one comment, and nothing behind it
	}
	return ""
}

// pair is a key and its value, in which a backslash takes what follows literally.
var pair = regexp.MustCompile(`([\w.%-]+)\s*=\s*'((?:[^'\\]|\\.)*)'`)

var (
	fileKeys = []string{"file", "filepath", "filename", "code_file", "code_filepath", "code_file_path", "source_file"}
	lineKeys = []string{"line", "lineno", "line_number", "code_line", "code_lineno", "code_line_number", "source_line"}
	bothKeys = []string{"source_location", "source", "caller"}
)

func originOf(comment string) string {
	if !strings.Contains(comment, "/*") || !strings.Contains(comment, "'") {
		return ""
	}
	var file, line, both string
	for _, m := range pair.FindAllStringSubmatch(comment, -1) {
		value, err := url.PathUnescape(strings.ReplaceAll(m[2], `\'`, `'`))
		if err != nil {
			value = m[2]
		}
		switch key := strings.ToLower(strings.ReplaceAll(m[1], ".", "_")); {
		case slices.Contains(fileKeys, key):
			file = value
		case slices.Contains(lineKeys, key):
			line = value
		case slices.Contains(bothKeys, key):
			both = value
		}
	}
	at := both
	switch {
	case file != "" && line != "":
		at = file + ":" + line
	case file != "":
		at = file
	}
	if len(at) > maxOrigin {
		return ""
	}
	return at
}
