package rewrite

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

const (
	maxSaid    = 256     // bytes of one value that is taken
	maxComment = 4 << 10 // bytes of a comment that is read
)

// SenderOf returns what comments of a statement say of its sender. The comments are those of sqlcommenter
// (google.github.io/sqlcommenter, "Specification"): key='value', both percent-encoded, separated by commas; or, as
// Marginalia and ActiveRecord::QueryLogs write them, key:value. They stand before, between and behind the statement's
// tokens, of which span gives the i-th one's place in the text; other statements may stand around it. Of what several
// comments say the first counts.
func SenderOf(text string, tokens int, span func(i int) (start, end int)) (s history.Sender) {
	if tokens == 0 || !strings.Contains(text, "/*") {
		return s
	}
	var said Said
	start, from := span(0)
	said.read(text[strings.LastIndexByte(text[:start], ';')+1 : start])
	for i := 1; i < tokens; i++ {
		start, end := span(i)
		if from < start {
			said.read(text[from:start])
		}
		from = end
	}
	said.read(tail(text, from))
	return said.Sender()
}

// SenderOfApplication returns what PostgreSQL's application_name says of the sender: pairs as comments have them, or a
// traceparent alone, since a name has 63 bytes. The name of a program says nothing.
func SenderOfApplication(name string) history.Sender {
	var said Said
	if said.take(name); traceparent.MatchString(name) {
		said.Set("traceparent", name)
	}
	return said.Sender()
}

// tail returns what stands between a statement's end and the next one: behind its semicolon, too, if that is one
// comment and nothing else, as what adds comments to texts leaves it.
func tail(text string, end int) string {
	own, behind := "", text[end:]
	if text[end-1] != ';' {
		own, behind, _ = strings.Cut(behind, ";")
	}
	behind = strings.TrimSpace(behind)
	if !strings.HasPrefix(behind, "/*") || strings.Index(behind, "*/") != len(behind)-len("*/") {
		return own
	}
	return own + behind
}

// Said are the values that a sender gives, by their keys, of comments or otherwise. The zero Said are none.
type Said map[string]string

var (
	// quoted is a key and its value, in which a backslash takes what follows literally; allQuoted is a comment that has
	// nothing else. Code that somebody commented out may have such pairs, too, and its values are a client's.
	quoted    = regexp.MustCompile(`([\w.%-]+)\s*=\s*'((?:[^'\\]|\\.)*)'`)
	allQuoted = regexp.MustCompile(`^\s*` + quoted.String() + `(?:\s*,\s*` + quoted.String() + `)*\s*$`)
	key       = regexp.MustCompile(`^[\w.%-]+$`)

	underscores = strings.NewReplacer(".", "_", "-", "_") // code.lineno is code_lineno
)

// read takes in the comments that stand between two tokens.
func (s *Said) read(between string) {
	for {
		at := strings.Index(between, "/*")
		if at < 0 {
			return
		}
		if line := strings.IndexAny(between[:at], "-#"); line >= 0 { // a comment to the line's end
			_, between, _ = strings.Cut(between[line:], "\n")
			continue
		}
		comment, behind, _ := strings.Cut(between[at+len("/*"):], "*/")
		between = behind
		if len(comment) > maxComment {
			continue
		}
		s.take(comment)
	}
}

// take takes in the pairs of a comment, or of what has the form of one.
func (s *Said) take(comment string) {
	if allQuoted.MatchString(comment) {
		for _, m := range quoted.FindAllStringSubmatch(comment, -1) {
			s.Set(m[1], unescape(strings.ReplaceAll(m[2], `\'`, `'`)))
		}
		return
	}
	for pair := range strings.SplitSeq(comment, ",") {
		k, value, _ := strings.Cut(strings.TrimSpace(pair), ":")
		if key.MatchString(k) && value != "" && !strings.HasPrefix(value, " ") { // "see: x" is prose
			s.Set(k, value)
		}
	}
}

// unescape returns a value without percent-encoding. Drivers for which a percent sign means a parameter get it twice.
func unescape(value string) string {
	if plain, err := url.PathUnescape(strings.ReplaceAll(value, "%%", "%")); err == nil {
		return plain
	}
	return value
}

// Set takes a key and its value. A key that is given once more is left alone.
func (s *Said) Set(key, value string) {
	if *s == nil {
		*s = make(Said)
	}
	key = strings.ToLower(underscores.Replace(key))
	if _, said := (*s)[key]; !said && len(value) <= maxSaid {
		(*s)[key] = value
	}
}

// The keys of a file and a line are those that sqlcommenter's users and OpenTelemetry's code attributes have.
var (
	fileKeys    = []string{"file", "filepath", "filename", "code_file", "code_filepath", "code_file_path", "source_file"}
	lineKeys    = []string{"lineno", "line_number", "code_line", "code_lineno", "code_line_number", "source_line", "line"}
	placeKeys   = []string{"source_location", "source", "caller", "callsite"}
	requestKeys = []string{"request_id", "requestid", "x_request_id"}
)

func (s Said) first(keys []string) string {
	if i := slices.IndexFunc(keys, func(k string) bool { return s[k] != "" }); i >= 0 {
		return s[keys[i]]
	}
	return ""
}

// Sender returns what is said of the sender.
func (s Said) Sender() history.Sender {
	// What is kept longer than the text shall not keep it.
	return history.Sender{Place: strings.Clone(s.place()), Action: strings.Clone(s.action()),
		Request: strings.Clone(s.request())}
}

// method is what Ruby puts behind a place: ":in `save'".
var method = regexp.MustCompile(`(:\d+):in\b.*$`)

// place returns file:line, or the file alone.
func (s Said) place() string {
	file, line := s.first(fileKeys), s.first(lineKeys)
	place := s.first(placeKeys)
	switch {
	case file != "" && line != "":
		place = file + ":" + line
	case file != "":
		place = file
	case place == "" && strings.Contains(line, ":"): // Marginalia's has the file in it
		place = line
	}
	if place = method.ReplaceAllString(place, "$1"); len(place) > maxSaid {
		return ""
	}
	return place
}

// action returns what the client's program was doing, in its framework's words: a controller's action as Rails writes
// it, a controller or view alone, a route, a job.
func (s Said) action() string {
	controller, action := cmp.Or(s["namespaced_controller"], s["controller"]), s["action"]
	switch {
	case controller != "" && action != "" && len(controller)+len(action) < maxSaid:
		return controller + "#" + action
	case controller != "" || s["route"] != "" || s["job"] != "":
		return cmp.Or(controller, s["route"], s["job"])
	case s["model"] != "": // Prisma's actions are single queries
		return ""
	}
	return action
}

// traceparent is a version, the trace's id, the caller's, and flags. An id of zeros is none.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)

// request returns the id of the request: the trace's (www.w3.org/TR/trace-context, "traceparent Header"), or the
// request's own.
func (s Said) request() string {
	if m := traceparent.FindStringSubmatch(s["traceparent"]); m != nil && strings.Trim(m[1], "0") != "" {
		return m[1]
	}
	return s.first(requestKeys)
}
