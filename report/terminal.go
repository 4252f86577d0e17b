package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// TerminalOptions says how [Terminal] writes.
type TerminalOptions struct {
	// Color adds ANSI colors; see [UseColor].
	Color bool
	// Width is the number of columns to fill; 0 means 80, and less than 40 counts as 40.
	Width int
	// Limit is how many findings are shown whole; the rest is only counted. 0 means all.
	Limit int
	// Verbose adds to each finding the rule it rests on and the statements, rows and versions of its
	// witness, and shows programs whole.
	Verbose bool
}

func (o TerminalOptions) filled() TerminalOptions {
	if o.Width == 0 {
		o.Width = 80
	}
	o.Width = max(o.Width, 40)
	return o
}

// UseColor reports whether w is a terminal whose user did not ask for plain text: with NO_COLOR
// (no-color.org) set to anything, or on a dumb terminal, it is false.
func UseColor(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// The limits of the terminal's short form; Verbose lifts the first two.
const (
	terminalShapes    = 6   // statements of a program
	terminalSentences = 12  // sentences of an explanation
	terminalHints     = 3   // reasons with their hints
	terminalText      = 400 // characters of one statement
	summaryText       = 200
	summaryFindings   = 5 // findings in Summary, so that it keeps to ten lines
	summaryDoubts     = 5 // lines of what is not known, where there are none
)

// Terminal writes the result as text: coverage, verdict, then each finding with its programs, its
// cycle in English and what to do about it. The error is w's.
func Terminal(w io.Writer, r *analyzer.Result, opts TerminalOptions) error {
	opts = opts.filled()
	t := &terminal{w: bufio.NewWriter(w), opts: opts}
	t.runs(r.Runs)
	t.coverage(&r.Coverage)
	if text := provoked(r); text != "" {
		t.text("Provoked   ", text, "")
	}
	t.verdict(r)
	t.findings(New(r))
	t.counting(r)
	t.baseline(r)
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// A style is an ANSI "select graphic rendition" sequence.
type style string

const (
	bold   style = "\x1b[1m"
	dim    style = "\x1b[2m"
	red    style = "\x1b[1;31m"
	yellow style = "\x1b[1;33m"
	green  style = "\x1b[1;32m"
)

// terminal writes lines. Errors stay in its writer until it is flushed.
type terminal struct {
	w    *bufio.Writer
	opts TerminalOptions
}

func (t *terminal) paint(s style, text string) string {
	if !t.opts.Color {
		return text
	}
	return string(s) + text + "\x1b[0m"
}

func (t *terminal) line(parts ...string) {
	t.w.WriteString(strings.Join(parts, ""))
	t.w.WriteByte('\n')
}

// text writes wrapped text: lead before its first line, blanks of the same width before the others.
func (t *terminal) text(lead, text string, s style) {
	blank := strings.Repeat(" ", len([]rune(lead)))
	for _, l := range wrap(oneLine(text), t.opts.Width-len(blank)) {
		if s != "" {
			l = t.paint(s, l)
		}
		t.line(lead, l)
		lead = blank
	}
}

func (t *terminal) runs(runs []history.Info) {
	for i := range runs {
		info := &runs[i]
		parts := []string{"run " + info.Run.String(), serverText(info), "mode " + info.Mode, runTime(info)}
		known := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
		t.text("Recording  ", strings.Join(known, ", "), "")
	}
}

// serverText names a run's server; empty where that is not known.
func serverText(info *history.Info) string {
	return strings.TrimSpace(info.Server.Engine.String() + " " + info.Server.Version)
}

// runTime says when a run took place, and whether its end is missing; nothing of one that no clock was read for.
func runTime(info *history.Info) string {
	if info.Started.IsZero() {
		return ""
	}
	const layout = "2006-01-02 15:04:05 UTC"
	started := info.Started.UTC().Format(layout)
	if info.Ended.IsZero() {
		return started + ", did not end cleanly"
	}
	return started + ", for " + duration(int64(info.Ended.Sub(info.Started)))
}

func (t *terminal) coverage(c *analyzer.Coverage) {
	t.text("Coverage   ", traffic(c), "")
	if c.Statements > 0 {
		t.text("           ", observed(c), "")
	}
	if kinds := kindList(c); kinds != "" {
		t.text("           exact by kind: ", kinds, "")
	}
	t.reasons(c)
	if c.Looked > 0 {
		t.text("           conditions: ", conditions(c), "")
	}
	if c.Untested > 0 {
		t.text("           ", untested(c), "")
	}
	if c.Imageless > 0 {
		t.text("           ", imageless(c), "")
	}
	if c.LookedAndInserted > 0 {
		t.text("           ", plural(c.LookedAndInserted, "transaction")+
			" looked for rows, found none, and inserted: run with --mode predicates to know what they missed", "")
	}
	if c.UnseenOrigins > 0 {
		t.text("           ", unseenOrigins(c)+": they were written past isotap, or by statements that it did not observe", "")
	}
	if c.OldTags > 0 {
		t.text("           ", oldTags(c)+": what is read of these later is told as the version before", "")
	}
	if text := serverLog(c); text != "" {
		t.text("           the server's log: ", text, "")
	}
	if c.PutBack > 0 {
		t.text("           ", putBack(c)+": somebody put them back past isotap, or the server lost what replaced it", "")
	}
	if text := caution(c); text != "" {
		t.text("  WARNING  ", text, yellow)
	}
	if text := disputed(c); text != "" {
		t.text("  WARNING  ", text, yellow)
	}
	t.line()
}

// traffic says how much was recorded.
func traffic(c *analyzer.Coverage) string {
	txns := plural(c.Txns, "transaction")
	if c.Aborted+c.Indeterminate > 0 {
		txns += fmt.Sprintf(" (%s committed, %s aborted, %s indeterminate)", number(c.Committed), number(c.Aborted),
			number(c.Indeterminate))
	}
	return plural(c.Sessions, "session") + ", " + txns + ", " + plural(c.Statements, "statement")
}

// observed says how well the statements were observed.
func observed(c *analyzer.Coverage) string {
	return fmt.Sprintf("%s exact, %s inexact, %s opaque", percent(c.Exact, c.Statements),
		percent(c.Inexact, c.Statements), percent(c.Opaque, c.Statements))
}

// conditions says how many of the statements that looked for rows say what they did not find.
func conditions(c *analyzer.Coverage) string {
	text := fmt.Sprintf("%s of %s that looked for rows left one", number(c.Conditions), plural(c.Looked, "statement"))
	if c.Wide > 0 {
		text += fmt.Sprintf(", of %s a wide one", number(c.Wide))
	}
	if causes := causeList(c.Widened); causes != "" {
		text += " (" + causes + ")"
	}
	if causes := causeList(c.Without); causes != "" {
		text += "; " + causes
	}
	return text
}

// causeList says how many statements left no condition for which cause, the most frequent first.
func causeList(causes map[analyzer.NoCondition]int) string {
	var parts []string
	for _, cause := range sortedCauses(causes) {
		parts = append(parts, number(causes[cause])+" "+cause.String())
	}
	return strings.Join(parts, ", ")
}

// sortedCauses returns the causes of statements, the most frequent first.
func sortedCauses(causes map[analyzer.NoCondition]int) []analyzer.NoCondition {
	return slices.SortedFunc(maps.Keys(causes), func(a, b analyzer.NoCondition) int {
		return cmp.Or(cmp.Compare(causes[b], causes[a]), cmp.Compare(a, b))
	})
}

// untested says how many conditions were not tested whole.
func untested(c *analyzer.Coverage) string {
	text := untestedConditions(c)
	if c.BeyondBound > 0 {
		text += fmt.Sprintf("; of %s there were too many: of a table, 10,000 conditions and 100,000 versions of rows are kept "+
			"for a minute", number(c.BeyondBound))
	}
	if c.BeyondBound < c.Untested {
		text += " (where run had no time for it, run with --mode predicates)"
	}
	return text
}

// untestedConditions says how many there are.
func untestedConditions(c *analyzer.Coverage) string {
	return plural(c.Untested, "condition") + " could not be held against all that was written, and what that would have " +
		"shown is not known"
}

// imageless says how many versions no condition was held against.
func imageless(c *analyzer.Coverage) string {
	return plural(c.Imageless, "row version") + " could not be held against conditions, since the values are not known, " +
		"nor who missed them"
}

// kindList says for each kind of statements how many of them were observed exactly.
func kindList(c *analyzer.Coverage) string {
	var parts []string
	for _, k := range usedKinds(c) {
		o := c.Kinds[k]
		parts = append(parts, fmt.Sprintf("%s %s of %s", k, percent(o.Exact, o.Statements()), number(o.Statements())))
	}
	return strings.Join(parts, ", ")
}

// reasons lists why statements are not exact, the first few with what can be done.
func (t *terminal) reasons(c *analyzer.Coverage) {
	var rest []string
	for i, r := range sortedReasons(c) {
		text := clip(oneLine(r.Why.String()), 60) + " " + number(r.Count)
		if i < terminalHints || t.opts.Verbose {
			t.text("           not exact: ", text+how(c.Causes[r.Why])+". "+hint(c, r.Why), "")
			continue
		}
		rest = append(rest, text)
	}
	if len(rest) > 0 {
		t.text("           not exact: ", strings.Join(rest, ", "), "")
	}
}

// how says how well the statements of a reason were observed; empty where that is not known.
func how(o analyzer.Observed) string {
	switch {
	case o.Inexact > 0 && o.Opaque > 0:
		return fmt.Sprintf(" (%s inexact, %s opaque)", number(o.Inexact), number(o.Opaque))
	case o.Inexact > 0:
		return " (inexact)"
	case o.Opaque > 0:
		return " (opaque)"
	}
	return ""
}

func (t *terminal) verdict(r *analyzer.Result) {
	found := Count(r.Findings)
	tone := green
	switch {
	case found.Violations > 0:
		tone = red
	case found.Hazards+found.Unprotected > 0 || gradeOf(&r.Coverage) != gradeGood || len(doubts(&r.Coverage)) > 0:
		tone = yellow
	}
	t.line(t.paint(tone, verdict(r)))
	if text := levels(r); text != "" {
		t.text("Levels     ", text, "")
	}
	if text := baselineText(r); text != "" {
		t.text("", text, "")
	}
}

func (t *terminal) findings(findings []*analyzer.Finding) {
	shown := findings
	if t.opts.Limit > 0 && len(shown) > t.opts.Limit {
		shown = shown[:t.opts.Limit]
	}
	for _, f := range shown {
		t.finding(f)
	}
	if rest := len(findings) - len(shown); rest > 0 {
		t.line("")
		t.line("… and " + plural(rest, "more finding") + ", seen less often")
	}
}

func (t *terminal) counting(r *analyzer.Result) {
	concerned := slices.ContainsFunc(r.Findings, func(f *analyzer.Finding) bool { return f.AtLeast })
	if text := counting(r); text != "" && (concerned || t.opts.Verbose) {
		t.line()
		t.text("", text, dim)
	}
}

func (t *terminal) finding(f *analyzer.Finding) {
	tone := yellow
	if f.Class == analyzer.Violation {
		tone = red
	}
	name := t.paint(bold, oneLine(string(f.Anomaly)))
	if words := gloss(f.Anomaly); words != "" {
		name += " (" + words + ")"
	}
	t.line()
	t.line(t.paint(tone, strings.ToUpper(string(f.Class))), "  ", name, t.paint(dim, "  seen "+times(f.Count)+"  id "+
		oneLine(f.ID)))
	if f.Lost != "" {
		t.text("  ", printable(f.Lost), bold)
	}
	statements := quotable(f)
	t.text("  ", plain(prose(f.Summary, statements, proseCode)), "")
	if text := spread(f); text != "" {
		t.text("  ", text, "")
	}
	if f.Count > 1 {
		t.text("  ", fmt.Sprintf("First %s and last %s into the run.", duration(f.First), duration(f.Last)), "")
	}
	t.programs(f.Programs)
	t.explanation(f, statements)
	if t.opts.Verbose {
		t.witness(newWitness(f))
		t.section("Why", f.Rule)
	}
	for i, advice := range f.Advice {
		label := ""
		if i == 0 {
			label = "Do"
		}
		t.section(label, plain(prose(advice, statements, proseCode)))
	}
}

// section writes text beside a label that is shown once; without a label it goes on below it.
func (t *terminal) section(label, text string) {
	if text != "" {
		t.text(fmt.Sprintf("  %-6s ", label), text, "")
	}
}

func (t *terminal) programs(programs []*analyzer.Program) {
	for _, p := range programs {
		t.text("  ", clip(oneLine(p.Name), 40)+": "+levelName(p.Level)+", ran "+times(p.Count), "")
		for i, shape := range p.Stmts {
			if i == terminalShapes && !t.opts.Verbose {
				t.text("           ", fmt.Sprintf("… and %s", plural(len(p.Stmts)-i, "statement")), dim)
				break
			}
			t.text("           ", clipStatement(shape, terminalText), dim)
		}
	}
}

func (t *terminal) explanation(f *analyzer.Finding, statements []string) {
	for i, sentence := range f.Explanation {
		label := ""
		if i == 0 {
			label = "How"
		}
		if i == terminalSentences && !t.opts.Verbose {
			t.section(label, fmt.Sprintf("… and %s", plural(len(f.Explanation)-i, "more step")))
			break
		}
		t.section(label, plain(prose(sentence, statements, proseCode)))
	}
}

func (t *terminal) witness(w *witness) {
	for i, txn := range w.txns {
		label := ""
		if i == 0 {
			label = "Txns"
		}
		t.section(label, fmt.Sprintf("%s = %s", w.name(txn), txnTitle(w, txn)))
	}
	for i := range w.finding.Witness {
		e := &w.finding.Witness[i]
		t.section(fmt.Sprint("(", i+1, ")"), fmt.Sprintf("%s -%s-> %s  %s%s", w.name(e.From), e.Kind, w.name(e.To),
			rowName(e.Row), edgeNotes(e)))
		from, to := deeds(e.Kind)
		t.statement(w, w.name(e.From)+" "+from, e.FromStmt)
		t.statement(w, w.name(e.To)+" "+to, e.ToStmt)
	}
}

func (t *terminal) statement(w *witness, who string, s *history.Stmt) {
	if s != nil {
		text := clipStatement(w.text(s), terminalText)
		if sender, ok := originOf(s); ok {
			text += " (sent by " + clip(sender.String(), 80) + ")"
		}
		t.text("           "+who+": ", text+" ("+at(s.Start, s.End)+")", dim)
	}
}

// txnTitle describes a transaction of a witness in one line.
func txnTitle(w *witness, t *history.Txn) string {
	parts := []string{t.ID.String()}
	if p := w.programName(t); p != "" {
		parts = append(parts, p)
	}
	return strings.Join(append(parts, who(t), t.Status.String()), ", ")
}

// edgeNotes says what limits an edge's weight as evidence.
func edgeNotes(e *analyzer.Edge) string {
	notes := ""
	if e.Current {
		notes += " (current read)"
	}
	if e.Inexact {
		notes += " (inexact)"
	}
	return notes
}

// Summary writes the result in at most ten lines, without color, for the end of isotap run: the
// verdict, the coverage, the first findings, and where the HTML report is. An empty htmlPath leaves
// the last out. The error is w's.
func Summary(w io.Writer, r *analyzer.Result, htmlPath string) error {
	c := &r.Coverage
	lines := []string{fmt.Sprintf("isotap: %s (%s, %s)", verdict(r), plural(c.Txns, "transaction"),
		plural(c.Sessions, "session"))}
	if c.Statements > 0 {
		lines = append(lines, fmt.Sprintf("  %s: %s", plural(c.Statements, "statement"), observed(c)))
	}
	if text := caution(c); text != "" {
		lines = append(lines, "  WARNING: "+text)
	}
	if len(r.Findings) == 0 && c.Exact > 0 {
		for _, why := range firstLines(doubts(c), summaryDoubts) {
			lines = append(lines, "  not known: "+why)
		}
	}
	for _, text := range []string{baselineText(r), provoked(r)} {
		if text != "" {
			lines = append(lines, "  "+text)
		}
	}
	fresh := New(r)
	most := summaryFindings
	if r.Baseline != "" {
		most-- // its line
	}
	if r.Provoked != nil {
		most--
	}
	for i, f := range fresh {
		if i == most {
			lines = append(lines, fmt.Sprintf("  … and %s", plural(len(fresh)-i, "more finding")))
			break
		}
		lines = append(lines, fmt.Sprintf("  %-9s  %s, %s, seen %s: %s", f.Class, oneLine(string(f.Anomaly)),
			programNames(f.Programs), times(f.Count), firstSentence(f, summaryText)))
	}
	if htmlPath != "" {
		lines = append(lines, "  report: "+oneLine(htmlPath))
	}
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

// firstLines returns so many texts, the last of them with what the others say.
func firstLines(texts []string, most int) []string {
	if len(texts) <= most {
		return texts
	}
	return append(slices.Clone(texts[:most-1]), strings.Join(texts[most-1:], "; "))
}

// programNames joins the names of a finding's programs. Those of one action have its name: of a request that is several
// transactions, say.
func programNames(programs []*analyzer.Program) string {
	if len(programs) == 0 {
		return "no program"
	}
	if one := programs[0].Action; one != "" &&
		!slices.ContainsFunc(programs, func(p *analyzer.Program) bool { return p.Action != one }) {
		return clip(oneLine(one), 40)
	}
	names := make([]string, len(programs))
	for i, p := range programs {
		names[i] = clip(oneLine(p.Name), 40)
	}
	return strings.Join(names, " with ")
}
