package report

import (
	"io"
	"slices"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/jsondoc"
)

// Schema names the JSON document's schema and its version. The number grows when a field is removed
// or changes its meaning; new fields may appear under the same number.
const Schema = "isotap-report/1"

// JSON writes the result as one indented JSON document, as docs/report-json.md describes it. The
// error is w's.
func JSON(w io.Writer, r *analyzer.Result) error {
	return jsondoc.Write(w, "the JSON report", newDocument(r))
}

// The types below are the schema: their fields stand in the order in which they are written, and all
// of them are always written.
type (
	document struct {
		Schema   string        `json:"schema"`
		Verdict  jsonVerdict   `json:"verdict"`
		Runs     []jsonRun     `json:"runs"`
		Coverage jsonCoverage  `json:"coverage"`
		Levels   jsonLevels    `json:"levels"`
		Programs []jsonProgram `json:"programs"`
		Findings []jsonFinding `json:"findings"`
		Baseline *jsonBaseline `json:"baseline"`
		Provoked *jsonProvoked `json:"provoked"`
	}
	jsonBaseline struct {
		Name  string     `json:"name"`
		New   int        `json:"new"`
		Known int        `json:"known"`
		Gone  []jsonGone `json:"gone"`
	}
	jsonGone struct {
		ID      string   `json:"id"`
		Anomaly string   `json:"anomaly"`
		Class   string   `json:"class"`
		Tables  []string `json:"tables"`
	}
	jsonVerdict struct {
		Violations  int    `json:"violations"`
		Hazards     int    `json:"hazards"`
		Unprotected int    `json:"unprotected"`
		Coverage    grade  `json:"coverage"`
		Text        string `json:"text"`
	}
	jsonLevels struct {
		Satisfied []string        `json:"satisfied"`
		Strongest []string        `json:"strongest_satisfied"`
		Violated  []jsonViolation `json:"violated"`
		Doubts    []string        `json:"doubts"`
	}
	jsonViolation struct {
		Level   string `json:"level"`
		By      string `json:"by"`
		Weakest bool   `json:"weakest"`
	}
	jsonRun struct {
		ID      string     `json:"id"`
		Started time.Time  `json:"started"`
		Ended   *time.Time `json:"ended"`
		Isotap  string     `json:"isotap"`
		Mode    string     `json:"mode"`
		Server  jsonServer `json:"server"`
		Gaps    []jsonGap  `json:"gaps"`
	}
	jsonGap struct {
		FromNS       int64  `json:"from_ns"`
		ToNS         int64  `json:"to_ns"`
		Transactions uint64 `json:"transactions"`
		Reason       string `json:"reason"`
	}
	jsonServer struct {
		Engine            dbms.Engine `json:"engine"`
		Version           string      `json:"version"`
		SnapshotIsolation bool        `json:"snapshot_isolation"`
	}
	jsonCoverage struct {
		Sessions          int          `json:"sessions"`
		Transactions      int          `json:"transactions"`
		Committed         int          `json:"committed"`
		Aborted           int          `json:"aborted"`
		Indeterminate     int          `json:"indeterminate"`
		Statements        int          `json:"statements"`
		Exact             int          `json:"exact"`
		Inexact           int          `json:"inexact"`
		Opaque            int          `json:"opaque"`
		Reasons           []jsonReason `json:"reasons"`
		RowReads          int          `json:"row_reads"`
		RowWrites         int          `json:"row_writes"`
		Levels            []jsonLevel  `json:"levels"`
		Kinds             []jsonKind   `json:"kinds"`
		Unrecorded        int          `json:"unrecorded"`
		Unreadable        int          `json:"unreadable"`
		Damaged           bool         `json:"damaged"`
		UnseenOrigins     int          `json:"reads_of_unseen_origin"`
		OldTags           int          `json:"statements_that_kept_tags"`
		PutBack           int          `json:"rows_put_back"`
		Several           int          `json:"transactions_of_several_statements"`
		Looked            int          `json:"statements_that_looked_for_rows"`
		Conditions        int          `json:"statements_with_conditions"`
		Limited           int          `json:"statements_with_limit"`
		Without           []jsonCause  `json:"statements_without_conditions"`
		Wide              int          `json:"statements_with_wide_conditions"`
		Widened           []jsonCause  `json:"statements_with_conditions_widened"`
		Untested          int          `json:"conditions_not_tested"`
		BeyondBound       int          `json:"conditions_beyond_bound"`
		Imageless         int          `json:"versions_not_tested"`
		LookedAndInserted int          `json:"transactions_that_looked_and_inserted"`
		ServerLog         jsonLog      `json:"server_log"`
	}
	jsonLog struct {
		Stretches    []jsonStretch `json:"stretches"`
		Transactions int           `json:"transactions"`
		Past         int           `json:"past_isotap"`
		Either       int           `json:"past_isotap_or_unseen"`
		Effects      int           `json:"unseen_writes"`
		Told         int           `json:"unseen_writes_told"`
		Ends         int           `json:"ends_told"`
		Unlogged     int           `json:"unlogged"`
		Left         int           `json:"left"`
		Disputed     int           `json:"disputed"`
	}
	jsonStretch struct {
		From   int64  `json:"from"`
		To     int64  `json:"to"`
		Reason string `json:"reason"`
	}
	jsonCause struct {
		Cause      string `json:"cause"`
		Statements int    `json:"statements"`
	}
	jsonReason struct {
		Reason     string `json:"reason"`
		Statements int    `json:"statements"`
		Inexact    int    `json:"inexact"`
		Opaque     int    `json:"opaque"`
		Hint       string `json:"hint"`
	}
	jsonKind struct {
		Kind       string `json:"kind"`
		Statements int    `json:"statements"`
		Exact      int    `json:"exact"`
		Inexact    int    `json:"inexact"`
		Opaque     int    `json:"opaque"`
	}
	jsonLevel struct {
		Level        string `json:"level"`
		Transactions int    `json:"transactions"`
	}
	jsonProgram struct {
		Name         string   `json:"name"`
		Level        string   `json:"level"`
		Transactions int      `json:"transactions"`
		Statements   []string `json:"statements"`
	}
	jsonFinding struct {
		ID           string        `json:"id"`
		Anomaly      string        `json:"anomaly"`
		Class        string        `json:"class"`
		Rule         string        `json:"rule"`
		Summary      string        `json:"summary"`
		Lost         string        `json:"lost"`
		Slight       bool          `json:"slight"`
		Programs     []string      `json:"programs"`
		Count        int           `json:"count"`
		AtLeast      bool          `json:"at_least"`
		FirstNS      int64         `json:"first_ns"`
		LastNS       int64         `json:"last_ns"`
		Explanation  []string      `json:"explanation"`
		Advice       []string      `json:"advice"`
		Witness      []jsonEdge    `json:"witness"`
		Transactions []jsonTxn     `json:"transactions"`
		Tables       []string      `json:"tables"`
		Patterns     int           `json:"patterns"`
		ProgramSets  int           `json:"program_sets"`
		Covers       []jsonCovered `json:"covers"`
		Known        bool          `json:"known"`
	}
	jsonCovered struct {
		Class   string `json:"class"`
		Anomaly string `json:"anomaly"`
		Count   int    `json:"count"`
	}
	jsonEdge struct {
		Kind          string   `json:"kind"`
		From          *string  `json:"from"`
		FromStatement *uint32  `json:"from_statement"`
		To            *string  `json:"to"`
		ToStatement   *uint32  `json:"to_statement"`
		Row           *jsonRow `json:"row"`
		Version       *string  `json:"version"`
		Next          *string  `json:"next"`
		Current       bool     `json:"current"`
		Inexact       bool     `json:"inexact"`
		NotFound      bool     `json:"not_found"`
		Wide          bool     `json:"wide"`
		BegunAgain    bool     `json:"begun_again"`
	}
	jsonRow struct {
		Table string `json:"table"`
		ID    string `json:"id"`
	}
	jsonTxn struct {
		ID         string          `json:"id"`
		Name       string          `json:"name"`
		Program    *string         `json:"program"`
		Session    uint32          `json:"session"`
		Level      string          `json:"level"`
		Status     string          `json:"status"`
		Autocommit bool            `json:"autocommit"`
		Start      *time.Time      `json:"start"`
		StartNS    int64           `json:"start_ns"`
		End        *time.Time      `json:"end"`
		EndNS      int64           `json:"end_ns"`
		Statements []jsonStatement `json:"statements"`
	}
	jsonStatement struct {
		Num         uint32     `json:"num"`
		Kind        string     `json:"kind"`
		Text        string     `json:"text"`
		Shape       string     `json:"shape"`
		Origin      *string    `json:"origin"`
		Action      *string    `json:"action"`
		Request     *string    `json:"request"`
		Locking     string     `json:"locking"`
		Observation string     `json:"observation"`
		Reason      string     `json:"reason"`
		Void        bool       `json:"void"`
		Unseen      bool       `json:"unseen"`
		StartNS     int64      `json:"start_ns"`
		EndNS       int64      `json:"end_ns"`
		Rows        uint64     `json:"rows"`
		Affected    uint64     `json:"affected"`
		Error       *jsonError `json:"error"`
	}
	jsonError struct {
		Code     uint16 `json:"code"`
		SQLState string `json:"sqlstate"`
		Message  string `json:"message"`
	}
)

func newDocument(r *analyzer.Result) *document {
	found := Count(r.Findings)
	doc := &document{
		Schema:   Schema,
		Verdict:  jsonVerdict{found.Violations, found.Hazards, found.Unprotected, gradeOf(&r.Coverage), verdict(r)},
		Runs:     make([]jsonRun, 0, len(r.Runs)),
		Coverage: newJSONCoverage(&r.Coverage),
		Levels:   newJSONLevels(r),
		Programs: make([]jsonProgram, 0),
		Findings: make([]jsonFinding, 0, len(r.Findings)),
		Baseline: newJSONBaseline(r),
		Provoked: newJSONProvoked(r.Provoked),
	}
	for i := range r.Runs {
		doc.Runs = append(doc.Runs, newJSONRun(&r.Runs[i]))
	}
	clock := newClock(r.Runs)
	known := make(map[string]bool)
	for _, f := range r.Findings {
		for _, p := range f.Programs {
			if !known[p.Name] {
				known[p.Name] = true
				doc.Programs = append(doc.Programs, newJSONProgram(p))
			}
		}
		doc.Findings = append(doc.Findings, newJSONFinding(f, clock))
	}
	return doc
}

func newJSONBaseline(r *analyzer.Result) *jsonBaseline {
	if r.Baseline == "" {
		return nil
	}
	fresh := len(New(r))
	b := &jsonBaseline{r.Baseline, fresh, len(r.Findings) - fresh, make([]jsonGone, 0, len(r.Gone))}
	for _, f := range r.Gone {
		b.Gone = append(b.Gone, jsonGone{f.ID, string(f.Anomaly), string(f.Class), list(f.Tables)})
	}
	return b
}

func newJSONLevels(r *analyzer.Result) jsonLevels {
	v := &r.Levels
	out := jsonLevels{Doubts: list(doubts(&r.Coverage)), Satisfied: list(v.Satisfied), Strongest: list(v.Strongest),
		Violated: make([]jsonViolation, 0, len(v.Violated))}
	for _, l := range v.Violated {
		out.Violated = append(out.Violated, jsonViolation{l.Level, string(l.By), l.Weakest})
	}
	return out
}

func newJSONProgram(p *analyzer.Program) jsonProgram {
	return jsonProgram{p.Name, p.Level.String(), p.Count, list(p.Stmts)}
}

func newJSONRun(info *history.Info) jsonRun {
	run := jsonRun{
		ID: info.Run.String(), Started: info.Started.UTC(), Isotap: info.Isotap, Mode: info.Mode,
		Server: jsonServer{info.Server.Engine, info.Server.Version, info.Server.SnapshotIsolation},
		Gaps:   make([]jsonGap, 0, len(info.Gaps)),
	}
	for _, g := range info.Gaps {
		run.Gaps = append(run.Gaps, jsonGap{g.From, g.To, g.Txns, g.Reason})
	}
	if !info.Ended.IsZero() {
		ended := info.Ended.UTC()
		run.Ended = &ended
	}
	return run
}

func newJSONCoverage(c *analyzer.Coverage) jsonCoverage {
	out := jsonCoverage{
		Sessions: c.Sessions, Transactions: c.Txns, Committed: c.Committed, Aborted: c.Aborted,
		Indeterminate: c.Indeterminate,
		Statements:    c.Statements, Exact: c.Exact, Inexact: c.Inexact, Opaque: c.Opaque,
		Reasons: make([]jsonReason, 0), RowReads: c.Reads, RowWrites: c.Writes, Levels: make([]jsonLevel, 0),
		Kinds:      make([]jsonKind, 0),
		Unrecorded: c.Unrecorded, Unreadable: c.Unreadable, Damaged: c.Damaged,
		UnseenOrigins: c.UnseenOrigins, OldTags: c.OldTags, PutBack: c.PutBack, Several: c.Several, Looked: c.Looked, Conditions: c.Conditions,
		Limited: c.Without[analyzer.AnyRows] + c.Without[analyzer.Limited], Without: make([]jsonCause, 0), Wide: c.Wide,
		Widened: make([]jsonCause, 0), Untested: c.Untested,
		Imageless: c.Imageless, BeyondBound: c.BeyondBound, LookedAndInserted: c.LookedAndInserted,
	}
	for _, cause := range sortedCauses(c.Without) {
		out.Without = append(out.Without, jsonCause{cause.String(), c.Without[cause]})
	}
	for _, cause := range sortedCauses(c.Widened) {
		out.Widened = append(out.Widened, jsonCause{cause.String(), c.Widened[cause]})
	}
	l := &c.Log
	out.ServerLog = jsonLog{Stretches: make([]jsonStretch, 0), Transactions: l.Txns, Past: l.Past, Either: l.Either,
		Effects: l.Effects, Told: l.Told, Ends: l.Ends, Unlogged: l.Unlogged, Left: l.Left, Disputed: l.Disputed}
	for _, s := range l.Stretches {
		out.ServerLog.Stretches = append(out.ServerLog.Stretches, jsonStretch{s.From, s.To, s.Reason})
	}
	for _, r := range sortedReasons(c) {
		o := c.Causes[r.Why]
		out.Reasons = append(out.Reasons, jsonReason{r.Why.String(), r.Count, o.Inexact, o.Opaque, hint(c, r.Why)})
	}
	for _, k := range usedKinds(c) {
		o := c.Kinds[k]
		out.Kinds = append(out.Kinds, jsonKind{k.String(), o.Statements(), o.Exact, o.Inexact, o.Opaque})
	}
	for _, l := range usedLevels(c) {
		out.Levels = append(out.Levels, jsonLevel{l.String(), c.Levels[l]})
	}
	return out
}

func newJSONFinding(f *analyzer.Finding, clock clock) jsonFinding {
	w := newWitness(f)
	out := jsonFinding{
		ID: f.ID, Anomaly: string(f.Anomaly), Class: string(f.Class), Rule: f.Rule, Summary: f.Summary, Lost: f.Lost, Slight: f.Slight,
		Programs: make([]string, 0, len(f.Programs)), Count: f.Count, AtLeast: f.AtLeast, FirstNS: f.First, LastNS: f.Last,
		Explanation: list(f.Explanation), Advice: list(f.Advice),
		Witness: make([]jsonEdge, 0, len(f.Witness)), Transactions: make([]jsonTxn, 0, len(w.txns)),
		Tables: list(f.Tables), Patterns: max(f.Patterns, 1), ProgramSets: max(f.ProgramSets, 1), Known: f.Known,
		Covers: make([]jsonCovered, 0, len(f.Covers)),
	}
	for _, c := range f.Covers {
		out.Covers = append(out.Covers, jsonCovered{string(c.Class), string(c.Anomaly), c.Count})
	}
	for _, p := range f.Programs {
		out.Programs = append(out.Programs, p.Name)
	}
	for i := range f.Witness {
		out.Witness = append(out.Witness, newJSONEdge(&f.Witness[i]))
	}
	for _, t := range w.txns {
		out.Transactions = append(out.Transactions, newJSONTxn(w, t, clock))
	}
	return out
}

func newJSONEdge(e *analyzer.Edge) jsonEdge {
	out := jsonEdge{Kind: string(e.Kind), Current: e.Current, Inexact: e.Inexact, NotFound: e.NotFound,
		Wide: e.Wide, BegunAgain: e.BegunAgain}
	if e.From != nil {
		out.From = new(e.From.ID.String())
	}
	if e.To != nil {
		out.To = new(e.To.ID.String())
	}
	if e.FromStmt != nil {
		out.FromStatement = new(e.FromStmt.Num)
	}
	if e.ToStmt != nil {
		out.ToStatement = new(e.ToStmt.Num)
	}
	if e.Row != (history.Row{}) {
		out.Row = &jsonRow{e.Row.Table, e.Row.ID}
	}
	if !slices.Contains(withoutRow, e.Kind) {
		out.Version = new(e.Version.String())
	}
	// A wr edge overwrites nothing: its zero Next means "none", not the initial version.
	if e.Kind == analyzer.WW || e.Kind == analyzer.RW {
		out.Next = new(e.Next.String())
	}
	return out
}

func newJSONTxn(w *witness, t *history.Txn, clock clock) jsonTxn {
	out := jsonTxn{
		ID: t.ID.String(), Name: w.name(t), Session: uint32(t.Session), Level: t.Level.String(),
		Status:     t.Status.String(),
		Autocommit: t.Implicit, StartNS: t.Start, EndNS: t.End, Statements: make([]jsonStatement, 0, len(t.Stmts)),
	}
	if p := w.program(t); p != nil {
		out.Program = &p.Name
	}
	if at, ok := clock.wall(t.ID, t.Start); ok {
		out.Start = &at
	}
	if at, ok := clock.wall(t.ID, t.End); ok {
		out.End = &at
	}
	for i := range t.Stmts {
		out.Statements = append(out.Statements, newJSONStatement(w, &t.Stmts[i]))
	}
	return out
}

func newJSONStatement(w *witness, s *history.Stmt) jsonStatement {
	out := jsonStatement{
		Num: s.Num, Kind: s.Kind.String(), Text: w.text(s), Shape: s.Shape, Locking: s.Locking.String(),
		Observation: s.Observation.String(), Reason: s.Reason.String(), Void: s.Void, Unseen: s.Unseen,
		StartNS: s.Start, EndNS: s.End, Rows: s.Rows, Affected: s.Affected,
	}
	out.Origin, out.Action, out.Request = orNull(s.Sender.Place), orNull(s.Sender.Action), orNull(s.Sender.Request)
	if s.Error != (history.Error{}) {
		out.Error = &jsonError{s.Error.Code, s.Error.SQLState, s.Error.Message}
	}
	return out
}

// orNull returns a text; null where it is empty.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// list makes an absent list an empty one: scripts must not have to tell null from [].
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
