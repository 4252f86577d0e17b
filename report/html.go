package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

//go:embed page.html.tmpl
var pageSource string

//go:embed robustness.html.tmpl
var robustnessSource string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.Must(template.Must(template.New("page").Parse(pageSource)).
	Parse(robustnessSource + raceSource)).Parse(alarmSource))

// The limits that keep the page small whatever it is given; the JSON report has everything.
const (
	cardBytes    = 2 << 20 // findings beyond it stand in the index only
	indexRows    = 2000
	indexText    = 200
	programStmts = 40
	statementMax = 2000 // characters of a statement outside the timeline
	witnessEdges = 50
	sentencesMax = 60
)

// HTML writes the result as one page that needs nothing but itself: styles and drawings are part of
// it, it has no script, and its content security policy forbids every load. Beyond about two
// megabytes of findings the rest are listed without their details. The error is w's.
func HTML(w io.Writer, r *analyzer.Result) error {
	return HTMLWithRaces(w, r, nil)
}

// write renders the page.
func (p *page) write(w io.Writer) error {
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "page", p); err != nil {
		return fmt.Errorf("render the HTML report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the HTML report: %w", err)
	}
	return nil
}

// A page is what the template shows.
type page struct {
	CSS      template.CSS
	Verdict  string
	Levels   string
	Tone     string // violation, hazard, unsure, clean
	Caution  string
	Fault    string // what isotap and the server's log contradict each other in
	Runs     []pageRun
	Coverage pageCoverage
	Baseline string // how the findings compare with the baseline
	Counting string // what is not counted, of several anomalies
	Provoked string // which statements were held back
	Index    []indexRow
	Gone     []string
	Unlisted int // findings beyond the index
	Undrawn  int // findings without a card
	Groups   []pageGroup
	// Explored says that what could have happened was played, and Races what that showed.
	Explored  bool
	Races     []raceView
	MoreRaces int // that are not shown
}

type pageRun struct{ ID, Server, Mode, When, Isotap string }

type pageCoverage struct {
	Facts   []fact
	Bars    []bar
	Reasons []pageReason
	Levels  []share
	Kinds   []pageKind
	Log     string // when the server's own log was read
}

// A pageReason is why statements are not exact, and what can be done.
type pageReason struct {
	share
	How, Hint string
}

// A pageKind is how well the statements of a kind were observed.
type pageKind struct{ Name, Count, Exact, Inexact, Opaque string }

// A fact is a number with what it counts.
type fact struct{ Value, Label, Note string }

// A bar is one part of the coverage bar; X and Width are in thousandths.
type bar struct {
	Class, Label, Count, Percent string
	X, Width                     float64
}

type share struct{ Name, Count, Percent string }

// An indexRow is one line of the table of findings. Href is empty where there is no card.
type indexRow struct {
	Href                                     string
	Known                                    bool
	Class, Anomaly, Programs, Summary, Count string
}

// A pageGroup holds the findings between the same programs. Head and Cards are rendered already.
type pageGroup struct {
	Name  string
	Head  template.HTML
	Cards []template.HTML
}

func newPage(r *analyzer.Result) (*page, error) {
	p := &page{
		CSS:     template.CSS(pageCSS), // embedded with the package, not input
		Verdict: verdict(r), Levels: printable(levels(r)), Tone: tone(r), Caution: caution(&r.Coverage),
		Fault:    disputed(&r.Coverage),
		Coverage: newPageCoverage(&r.Coverage), Baseline: baselineText(r), Counting: counting(r),
		Provoked: provoked(r),
	}
	for _, f := range r.Gone[:min(len(r.Gone), indexRows)] {
		p.Gone = append(p.Gone, brief(f))
	}
	for i := range r.Runs {
		info := &r.Runs[i]
		p.Runs = append(p.Runs, pageRun{
			ID: info.Run.String(), Server: printable(serverText(info)),
			Mode: printable(info.Mode), When: runTime(info), Isotap: printable(info.Isotap),
		})
	}
	return p, p.findings(r)
}

func tone(r *analyzer.Result) string {
	found := Count(r.Findings)
	switch {
	case found.Violations > 0:
		return "violation"
	case found.Hazards+found.Unprotected > 0:
		return "hazard"
	case gradeOf(&r.Coverage) != gradeGood, len(doubts(&r.Coverage)) > 0:
		return "unsure"
	}
	return "clean"
}

func newPageCoverage(c *analyzer.Coverage) pageCoverage {
	out := pageCoverage{Log: printable(serverLog(c)), Facts: []fact{
		{number(c.Sessions), "sessions", ""},
		{number(c.Txns), "transactions", fmt.Sprintf("%s committed, %s aborted, %s indeterminate", number(c.Committed),
			number(c.Aborted), number(c.Indeterminate))},
		{number(c.Statements), "statements", "that read or write rows"},
		{number(c.Reads), "row reads", ""},
		{number(c.Writes), "row writes", ""},
	}}
	if c.Looked > 0 {
		out.Facts = append(out.Facts, fact{number(c.Conditions), "conditions", conditions(c)})
	}
	if c.Untested > 0 {
		out.Facts = append(out.Facts, fact{number(c.Untested), "conditions that were not tested", untested(c)})
	}
	if c.Imageless > 0 {
		out.Facts = append(out.Facts, fact{number(c.Imageless), "row versions that no condition was held against",
			imageless(c)})
	}
	if c.UnseenOrigins > 0 {
		out.Facts = append(out.Facts, fact{number(c.UnseenOrigins), "reads of versions that nobody was seen to write",
			"written past isotap, or by statements that it did not observe"})
	}
	if c.OldTags > 0 {
		out.Facts = append(out.Facts, fact{number(c.OldTags), "unobserved statements left rows under the tags that they had",
			"what is read of these later is told as the version before"})
	}
	if c.PutBack > 0 {
		out.Facts = append(out.Facts, fact{number(c.PutBack), "rows had a version again that had been replaced",
			"put back past isotap, or the server lost what replaced it"})
	}
	x := 0.0
	for _, part := range []struct {
		class string
		n     int
	}{{"exact", c.Exact}, {"inexact", c.Inexact}, {"opaque", c.Opaque}} {
		b := bar{Class: part.class, Label: part.class, Count: number(part.n), Percent: percent(part.n, c.Statements),
			X: x}
		if c.Statements > 0 {
			b.Width = 1000 * float64(part.n) / float64(c.Statements)
		}
		x += b.Width
		out.Bars = append(out.Bars, b)
	}
	for _, r := range sortedReasons(c) {
		one := share{clip(oneLine(r.Why.String()), 120), number(r.Count), percent(r.Count, c.Statements)}
		out.Reasons = append(out.Reasons, pageReason{one, strings.Trim(how(c.Causes[r.Why]), " ()"), hint(c, r.Why)})
	}
	for _, k := range usedKinds(c) {
		o := c.Kinds[k]
		out.Kinds = append(out.Kinds, pageKind{k.String(), number(o.Statements()), percent(o.Exact, o.Statements()),
			percent(o.Inexact, o.Statements()), percent(o.Opaque, o.Statements())})
	}
	for _, l := range usedLevels(c) {
		out.Levels = append(out.Levels, share{levelName(l), number(c.Levels[l]), percent(c.Levels[l], c.Txns)})
	}
	return out
}

// findings fills the index and, while there is room, the groups and their cards.
func (p *page) findings(r *analyzer.Result) error {
	clock := newClock(r.Runs)
	groups := make(map[string]int)
	room := cardBytes
	for i, f := range r.Findings {
		row := indexRow{
			Class: string(f.Class), Anomaly: printable(string(f.Anomaly)), Programs: clip(programNames(f.Programs), 60),
			Summary: firstSentence(f, indexText), Count: number(f.Count),
			Known: f.Known,
		}
		if room > 0 {
			size, err := p.card(f, i+1, clock, groups)
			if err != nil {
				return err
			}
			room -= size
			row.Href = "#" + anchor(i+1)
		} else {
			p.Undrawn++
		}
		if i < indexRows {
			p.Index = append(p.Index, row)
		} else {
			p.Unlisted++
		}
	}
	return nil
}

func anchor(i int) string { return fmt.Sprintf("finding-%d", i) }

// card renders one finding into its group, and the group's head with its first; it gives the bytes
// that both took.
func (p *page) card(f *analyzer.Finding, i int, clock clock, groups map[string]int) (int, error) {
	size := 0
	name := programNames(f.Programs)
	at, ok := groups[name]
	if !ok {
		head, err := render("programs", newPrograms(f.Programs))
		if err != nil {
			return 0, err
		}
		at = len(p.Groups)
		groups[name] = at
		p.Groups = append(p.Groups, pageGroup{Name: groupName(f.Programs), Head: head})
		size += len(head)
	}
	card, err := render("card", newCard(f, i, clock))
	if err != nil {
		return 0, err
	}
	p.Groups[at].Cards = append(p.Groups[at].Cards, card)
	return size + len(card), nil
}

func groupName(programs []*analyzer.Program) string {
	switch len(programs) {
	case 0:
		return "No program"
	case 1:
		return "Program " + programNames(programs)
	}
	return "Programs " + programNames(programs)
}

// render executes one of the page's templates. What it gives has been escaped by it.
func render(name string, data any) (template.HTML, error) {
	var b strings.Builder
	if err := pageTemplate.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render the HTML report: %w", err)
	}
	return template.HTML(b.String()), nil // html/template has escaped it just above
}

// A pageProgram is a program as its group's head shows it.
type pageProgram struct {
	Name, Level, Count string
	Stmts              []string
	Left               int // statements that are not shown
}

func newPrograms(programs []*analyzer.Program) []pageProgram {
	out := make([]pageProgram, 0, len(programs))
	for _, p := range programs {
		shown := min(len(p.Stmts), programStmts)
		view := pageProgram{Name: clip(oneLine(p.Name), 40), Level: levelName(p.Level), Count: times(p.Count),
			Left: len(p.Stmts) - shown}
		for _, s := range p.Stmts[:shown] {
			view.Stmts = append(view.Stmts, clipStatement(s, statementMax))
		}
		out = append(out, view)
	}
	return out
}

// A card shows one finding.
type card struct {
	Anchor, ID, Class, Anomaly, Gloss string
	Seen, When                        string
	Known                             bool
	Lost                              string
	Summary, Rule                     []fragment
	Spread                            string
	Graph                             *graph
	Explanation                       [][]fragment
	MoreSteps                         int
	Advice                            [][]fragment
	Timeline                          *timeline
	Edges                             []cardEdge
	MoreEdges                         int
}

// A cardEdge is a row of the table of dependencies.
type cardEdge struct {
	N                  int
	Kind               analyzer.DepKind
	From, To           string
	Row, Version, Next string
	Notes              []string
	FromDeed, ToDeed   string
	FromText, ToText   string
	FromPlace, ToPlace string // in the client's program
}

func newCard(f *analyzer.Finding, i int, clock clock) *card {
	w := newWitness(f)
	statements := quotable(f)
	c := &card{
		Anchor: anchor(i), ID: printable(f.ID), Class: string(f.Class), Anomaly: printable(string(f.Anomaly)),
		Gloss: gloss(f.Anomaly), Lost: printable(f.Lost),
		Summary: prose(f.Summary, statements, proseCode), Rule: prose(f.Rule, statements, proseCode), Seen: "seen " +
			times(f.Count), Known: f.Known,
		Spread: spread(f), Graph: w.drawing(), Timeline: w.timeline(clock),
	}
	if f.Count > 1 {
		c.When = fmt.Sprintf("between %s and %s into the run", duration(f.First), duration(f.Last))
	}
	for n, sentence := range f.Explanation {
		if n == sentencesMax {
			c.MoreSteps = len(f.Explanation) - n
			break
		}
		c.Explanation = append(c.Explanation, prose(sentence, statements, proseCode))
	}
	for _, advice := range f.Advice {
		c.Advice = append(c.Advice, prose(advice, statements, proseCode))
	}
	for n := range f.Witness {
		if n == witnessEdges {
			c.MoreEdges = len(f.Witness) - n
			break
		}
		c.Edges = append(c.Edges, newCardEdge(w, n))
	}
	return c
}

func newCardEdge(w *witness, n int) cardEdge {
	e := &w.finding.Witness[n]
	out := cardEdge{N: n + 1, Kind: e.Kind, From: w.name(e.From), To: w.name(e.To),
		Row: clip(oneLine(rowName(e.Row)), 200)}
	out.FromDeed, out.ToDeed = deeds(e.Kind)
	out.FromText, out.ToText = w.edgeText(e.FromStmt), w.edgeText(e.ToStmt)
	out.FromPlace, out.ToPlace = placeText(e.FromStmt), placeText(e.ToStmt)
	if !slices.Contains(withoutRow, e.Kind) {
		out.Version = w.version(e.Version)
	}
	if e.Kind == analyzer.WW || e.Kind == analyzer.RW {
		out.Next = w.version(e.Next)
	}
	if e.Current {
		out.Notes = append(out.Notes, "current read")
	}
	if e.Inexact {
		out.Notes = append(out.Notes, "inexact")
	}
	return out
}

// placeText names the place that sent a statement; empty where it is not known.
func placeText(s *history.Stmt) string {
	at, ok := originOf(s)
	if !ok {
		return ""
	}
	return clip(at.String(), 200)
}

func (w *witness) edgeText(s *history.Stmt) string { return clipStatement(w.text(s), statementMax) }
