package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
)

func renderHTML(t *testing.T, r *analyzer.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	tagPattern       = regexp.MustCompile(`</?([a-zA-Z!][a-zA-Z0-9]*)`)
	attributePattern = regexp.MustCompile(`\s([a-zA-Z-]+)=`)
	elementPattern   = regexp.MustCompile(`<[a-zA-Z][^>]*>`)
)

// markup returns the element and attribute names that a page uses.
func markup(page string) map[string]bool {
	names := make(map[string]bool)
	for _, m := range tagPattern.FindAllStringSubmatch(page, -1) {
		names["<"+strings.ToLower(m[1])] = true
	}
	quoted := regexp.MustCompile(`"[^"]*"`)
	for _, element := range elementPattern.FindAllString(page, -1) {
		for _, m := range attributePattern.FindAllStringSubmatch(quoted.ReplaceAllString(element, `""`), -1) {
			names[strings.ToLower(m[1])] = true
		}
	}
	return names
}

func TestHostileTextAddsNoMarkup(t *testing.T) {
	ours := make(map[string]bool)
	for _, source := range []string{renderHTML(t, lostUpdate()), renderHTML(t, skewAndCycle())} {
		for name := range markup(source) {
			ours[name] = true
		}
	}
	page := renderHTML(t, hostile())
	for name := range markup(page) {
		if !ours[name] && name != "open" {
			t.Errorf("the page of hostile text uses %s, which no other page does", name)
		}
	}
	for _, bad := range []string{"\x1b", "\x07", "\u202e", "\u2066", "href=\"javascript"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestPageLoadsNothing(t *testing.T) {
	page := renderHTML(t, skewAndCycle())
	if !strings.Contains(page, `content="default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;`) &&
		!strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'`) {
		t.Error("the page has no strict content security policy")
	}
	for _, bad := range []string{"http:", "https:", "url(", "@import", " src=", "<link", "<script"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestEveryIndexLinkHasItsCard(t *testing.T) {
	page := renderHTML(t, crowd(40))
	links := regexp.MustCompile(`href="#(finding-\d+)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 40 {
		t.Fatalf("%d links, want at least 40", len(links))
	}
	for _, l := range links {
		if n := strings.Count(page, `id="`+l[1]+`"`); n != 1 {
			t.Errorf("%d cards are called %s", n, l[1])
		}
	}
}

func TestFindingsOfTheSameProgramsStandTogether(t *testing.T) {
	r := crowd(12)
	p, err := newPage(r)
	if err != nil {
		t.Fatal(err)
	}
	// The crowd alternates between two program pairs, renaming after every third finding.
	want := make(map[string]int)
	for _, f := range r.Findings {
		want[groupName(f.Programs)]++
	}
	if len(p.Groups) != len(want) {
		t.Fatalf("%d groups, want %d", len(p.Groups), len(want))
	}
	for _, g := range p.Groups {
		if len(g.Cards) != want[g.Name] {
			t.Errorf("group %s has %d cards, want %d", g.Name, len(g.Cards), want[g.Name])
		}
	}
}

func TestThousandFindingsStayASmallPage(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	long := crowd(1000)
	for _, f := range long.Findings {
		f.Summary = strings.Repeat("x", 5000)
		f.Explanation = append(f.Explanation, strings.Repeat("y ", 50_000))
	}
	for name, r := range map[string]*analyzer.Result{"plain": crowd(1000), "long texts": long} {
		page := renderHTML(t, r)
		if len(page) > 3<<20 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		if n := strings.Count(page, "<tr><td><span class=\"badge"); n != 1000 {
			t.Errorf("%s: the index lists %d findings", name, n)
		}
		if !strings.Contains(page, "without their details") {
			t.Errorf("%s: the page does not say that details are left out", name)
		}
	}
}

func TestWritersReportTheErrorOfTheirDestination(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"Terminal": func(w io.Writer) error { return Terminal(w, lostUpdate(), TerminalOptions{}) },
		"Summary":  func(w io.Writer) error { return Summary(w, lostUpdate(), "x") },
		"JSON":     func(w io.Writer) error { return JSON(w, lostUpdate()) },
		"HTML":     func(w io.Writer) error { return HTML(w, lostUpdate()) },
	} {
		r, w := io.Pipe()
		r.Close()
		if err := write(w); err == nil {
			t.Errorf("%s to a closed pipe gives no error", name)
		}
	}
}

var colorPattern = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{3,6});`)

// TestTextHasEnoughContrast checks the colors of text against WCAG 2.1's 4.5:1, in both schemes.
func TestTextHasEnoughContrast(t *testing.T) {
	light, dark, ok := strings.Cut(pageCSS, "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("the style has no dark scheme")
	}
	for scheme, css := range map[string]string{"light": light, "dark": dark} {
		colors := make(map[string]string)
		for _, m := range colorPattern.FindAllStringSubmatch(css, -1) {
			colors[m[1]] = m[2]
		}
		for _, pair := range []string{
			"ink/bg", "ink/card", "ink/sunk", "ink/mark", "ink/hazard-bg", "ink/clean-bg", "soft/bg", "soft/card",
			"soft/sunk", "soft/mark",
			"link/bg", "link/card", "violation/violation-bg", "violation/bg", "violation/card", "violation/mark",
			"hazard/hazard-bg",
			"hazard/bg", "hazard/card", "hazard/mark", "clean/clean-bg", "clean/bg", "wr/card", "ww/card", "rw/card",
			"so/card", "wr/mark", "ww/mark", "rw/mark",
		} {
			text, ground, _ := strings.Cut(pair, "/")
			if got := contrast(t, colors[text], colors[ground]); got < 4.5 {
				t.Errorf("%s: %s has a contrast of %.2f", scheme, pair, got)
			}
		}
	}
}

// contrast is WCAG 2.1's contrast ratio of two colors.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	la, lb := luminance(t, a), luminance(t, b)
	return (math.Max(la, lb) + 0.05) / (math.Min(la, lb) + 0.05)
}

func luminance(t *testing.T, color string) float64 {
	t.Helper()
	hex := strings.TrimPrefix(color, "#")
	if len(hex) == 3 {
		hex = fmt.Sprintf("%c%c%c%c%c%c", hex[0], hex[0], hex[1], hex[1], hex[2], hex[2])
	}
	rgb, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatalf("colour %q: %v", color, err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb>>(16-8*i)&0xff) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
