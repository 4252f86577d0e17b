package runner

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func TestVerdictsAreWritten(t *testing.T) {
	for name, write := range map[string]func(*bytes.Buffer) error{
		"verdict.txt":  func(b *bytes.Buffer) error { return judged().Text(b) },
		"verdict.html": func(b *bytes.Buffer) error { return HTML(b, []*Judged{judged()}) },
		"verdict.json": func(b *bytes.Buffer) error { return JSON(b, nil, []*Judged{judged()}) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		text := b.Bytes()
		if from, to := bytes.Index(text, []byte("<style>")), bytes.Index(text, []byte("</style>")); from >= 0 {
			text = append(bytes.Clone(text[:from]), text[to:]...) // the styles are report's
		}
		path := "testdata/" + name
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%s is not what is written (%v; -update writes it):\n%s", path, err, text)
		}
	}
}

// Whatever statements, rows, names and errors hold is text on the page.
func TestPagesEscapeWhatIsOnThem(t *testing.T) {
	const evil = `<script>alert("1")</script>`
	j := judged()
	j.Scenario.Name, j.Scenario.File, j.Server.Version, j.Does = evil, evil, evil, evil
	j.Scenario.Setup[0], j.Scenario.Sessions[0].Name = evil, evil
	d := &j.Verdict.Differences[1]
	d.Got, d.Want, d.By, d.Known, d.SQL, d.GotOnly, d.WantOnly = evil, evil, evil, evil, evil, []string{evil}, []string{evil}
	j.Verdict.ByDesign, j.Verdict.NotJudged = []string{evil}, map[string]int{evil: 1}
	for i := range j.Verdict.Replies {
		r := j.Verdict.Replies[i].Got
		r.Session, r.SQL, r.Message, r.Status = evil, evil, evil, "error"
	}
	var b bytes.Buffer
	if err := HTML(&b, []*Judged{j, judged()}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, "<script") || !strings.Contains(page, "&lt;script&gt;") || !strings.Contains(page, "default-src &#39;none&#39;") &&
		!strings.Contains(page, "default-src 'none'") {
		t.Errorf("%s", page)
	}
}
