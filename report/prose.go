package report

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A fragment of a sentence: plain words, or a statement that the sentence quotes.
type fragment struct {
	Text string
	Code bool
}

// The limits of a sentence, so that a statement of some kilobytes does not drown what is said of it.
const (
	proseCode      = 240 // characters of a quoted statement
	proseCodeBrief = 60  // the same where there is one line
	proseWords     = 2000
)

// quotable returns the statements that a finding's sentences may quote, the longest first.
func quotable(f *analyzer.Finding) []string {
	var texts []string
	for i := range f.Witness {
		for _, s := range []*history.Stmt{f.Witness[i].FromStmt, f.Witness[i].ToStmt} {
			if s != nil {
				texts = append(texts, statementText(f.Family, s), s.Shape)
			}
		}
	}
	for _, p := range f.Programs {
		texts = append(texts, p.Stmts...)
	}
	texts = append(texts, f.Suggested...)
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	slices.SortFunc(texts, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(texts)
}

// prose takes a sentence apart. The analyzer quotes statements in backticks, which MySQL's own names
// have too: so a quotation is known by the statement in it, which may be extended by a few words
// such as FOR UPDATE.
func prose(sentence string, statements []string, codeLimit int) []fragment {
	var out []fragment
	words := func(s string) {
		if s != "" {
			out = append(out, fragment{Text: clip(oneSpace(s), proseWords)})
		}
	}
	for {
		start, end := quotation(sentence, statements)
		if start < 0 {
			words(sentence)
			return out
		}
		words(sentence[:start])
		out = append(out, fragment{Text: clipStatement(sentence[start+1:end], codeLimit), Code: true})
		sentence = sentence[end+1:]
	}
}

// quotation returns the offsets of the backticks around the first quoted statement; -1 for none.
func quotation(sentence string, statements []string) (start, end int) {
	const extension = 40
	start = -1
	for _, s := range statements {
		at := strings.Index(sentence, "`"+s)
		if at < 0 || start >= 0 && at >= start {
			continue
		}
		after := at + 1 + len(s)
		if n := strings.IndexByte(sentence[after:], '`'); n >= 0 && n <= extension {
			start, end = at, after+n
		}
	}
	return start, end
}

// oneSpace is oneLine for a part of a sentence: white space at its ends stays, as one space.
func oneSpace(s string) string {
	text := oneLine(s)
	if text == "" {
		return " "
	}
	if strings.ContainsAny(s[:1], " \n\t") {
		text = " " + text
	}
	if strings.ContainsAny(s[len(s)-1:], " \n\t") {
		text += " "
	}
	return text
}

// firstSentence is what came of a finding in values, or else what it is, on one line of so many characters.
func firstSentence(f *analyzer.Finding, most int) string {
	if f.Lost != "" {
		return clip(printable(f.Lost), most)
	}
	return clip(plain(prose(f.Summary, quotable(f), proseCodeBrief)), most)
}

// plain puts a sentence together again, its quotations in backticks.
func plain(fragments []fragment) string {
	var b strings.Builder
	for _, f := range fragments {
		if f.Code {
			b.WriteString("`" + f.Text + "`")
		} else {
			b.WriteString(f.Text)
		}
	}
	return b.String()
}
