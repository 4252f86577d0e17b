package scenario

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// replBugPrompt is what a statement of a ReplBug script begins with.
var replBugPrompt = regexp.MustCompile(`(?m)^[ \t]*(conn_[0-9]+)>`)

// replBugOther is what is meant to be one, too, whether it is or not.
var replBugOther = regexp.MustCompile(`(?mi)^[ \t]*((?:con|conn|connection)(?:_\w*|[0-9]*)[ \t]*>)`)

// replBugLevel is a statement that sets the level which ReplBug runs a script at.
var replBugLevel = regexp.MustCompile(`(?is)^set\s+(global\s+|session\s+)?transaction\s+isolation\s+level\s+\$?\{.*\}$`)

// ReadReplBug reads a script of ReplBug: "conn_N>" and a statement of connection N, which may go on over several lines,
// in the order in which they are sent (Moroianu's thesis, ETH 2024, section 3.2). Statements before the first conn_N,
// each ended by a semicolon at the end of a line, are the set-up. Statements that set the level to a placeholder, as
// {isolation_level.value}, are left out: the level is the run's.
func ReadReplBug(r io.Reader, name string) (*Scenario, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	text := string(data)
	for _, at := range replBugOther.FindAllStringSubmatchIndex(text, -1) {
		if word := text[at[2]:at[3]]; !replBugPrompt.MatchString(word) {
			return nil, fmt.Errorf("read the script: line %d: %s is no connection: they are conn_0>, conn_1> and so on",
				lineAt(text, at[2]), word)
		}
	}
	prompts := replBugPrompt.FindAllStringSubmatchIndex(text, -1)
	if len(prompts) == 0 {
		return nil, errors.New("read the script: no line begins with conn_0> or another connection")
	}
	s := &Scenario{Format: Format, Name: name, Setup: splitLines(text[:prompts[0][0]])}
	for i, at := range prompts {
		end := len(text)
		if i+1 < len(prompts) {
			end = prompts[i+1][0]
		}
		session, sql := text[at[2]:at[3]], trimStatement(text[at[1]:end])
		if sql == "" {
			return nil, fmt.Errorf("read the script: line %d: %s has no statement", lineAt(text, at[1]), session)
		}
		if replBugLevel.MatchString(sql) {
			continue
		}
		if s.Session(session) == nil {
			s.Sessions = append(s.Sessions, Session{Name: session})
		}
		s.Steps = append(s.Steps, Step{Session: session, SQL: sql})
	}
	return s, nil
}

// lineAt is the line of a place in a text.
func lineAt(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

// splitLines returns the statements of a text that end with a semicolon at the end of a line.
func splitLines(text string) []string {
	var all []string
	var statement strings.Builder
	for line := range strings.Lines(text) {
		statement.WriteString(line)
		if !strings.HasSuffix(withoutComment(line), ";") {
			continue
		}
		all = append(all, trimStatement(statement.String()))
		statement.Reset()
	}
	if rest := trimStatement(statement.String()); rest != "" {
		all = append(all, rest)
	}
	return all
}

// trimStatement takes the comments of whole lines and those behind the statement from a text, and its semicolon.
func trimStatement(text string) string {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 {
		last := withoutComment(lines[len(lines)-1])
		lines[len(lines)-1] = last
		if strings.TrimSpace(last) != "" {
			break
		}
		lines = lines[:len(lines)-1]
	}
	for len(lines) > 0 && strings.TrimSpace(withoutComment(lines[0])) == "" {
		lines = lines[1:]
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.Join(lines, "\n"), ";"))
}

// withoutComment returns a line without spaces at its end and without the comment that it is or that stands behind its
// semicolon. A -- elsewhere may be in a text in quotes, and the server knows better.
func withoutComment(line string) string {
	line = strings.TrimRight(line, " \t\r\n")
	if strings.HasPrefix(strings.TrimSpace(line), "--") {
		return ""
	}
	if i := strings.LastIndex(line, ";"); i >= 0 && strings.HasPrefix(strings.TrimSpace(line[i+1:]), "--") {
		return line[:i+1]
	}
	return line
}
