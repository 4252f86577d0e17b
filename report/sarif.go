package report

import (
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/jsondoc"
)

// The parts of SARIF 2.1.0 (OASIS, 27 March 2020) that are written. Optional ones are left out where there
// is nothing to say.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
		Properties  map[string]any    `json:"properties,omitempty"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		Name             string       `json:"name"`
		ShortDescription sarifMessage `json:"shortDescription"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool `json:"executionSuccessful"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Kind                string            `json:"kind"`
		Level               string            `json:"level"`
		Message             sarifMessage      `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		RelatedLocations    []sarifLocation   `json:"relatedLocations,omitempty"`
		CodeFlows           []sarifCodeFlow   `json:"codeFlows,omitempty"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
		BaselineState       string            `json:"baselineState,omitempty"`
		OccurrenceCount     int               `json:"occurrenceCount,omitempty"`
	}
	sarifLocation struct {
		ID               *int           `json:"id,omitempty"`
		PhysicalLocation *sarifPhysical `json:"physicalLocation,omitempty"`
		LogicalLocations []sarifLogical `json:"logicalLocations,omitempty"`
		Message          *sarifMessage  `json:"message,omitempty"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name               string `json:"name,omitempty"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	sarifCodeFlow struct {
		ThreadFlows []sarifThreadFlow `json:"threadFlows"`
	}
	sarifThreadFlow struct {
		ID        string          `json:"id"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifFlowStep `json:"locations"`
	}
	sarifFlowStep struct {
		Location         sarifLocation `json:"location"`
		ExecutionOrder   int           `json:"executionOrder"`
		ExecutionTimeUTC *time.Time    `json:"executionTimeUtc,omitempty"`
	}
)

const (
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifVersion = "2.1.0"
)

// SARIF writes the result as a SARIF 2.1.0 log: a result for each finding, at the line of the client's
// program where a statement's comment told it, with the interleaving as a code flow of one thread for each
// transaction. The error is w's.
func SARIF(w io.Writer, r *analyzer.Result) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{Name: "isotap", InformationURI: "https://github.com/isotap/isotap",
			Rules: []sarifRule{}}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: true}}, ColumnKind: "unicodeCodePoints",
		Results:    []sarifResult{},
		Properties: map[string]any{"verdict": verdict(r), "coverage": gradeOf(&r.Coverage)},
	}
	if len(r.Runs) > 0 {
		run.Tool.Driver.Version = r.Runs[0].Isotap
	}
	clock := newClock(r.Runs)
	for _, f := range slices.Concat(r.Findings, r.Gone) {
		result := newSarifResult(f, clock)
		result.RuleIndex = run.Tool.Driver.rule(f)
		if r.Baseline != "" {
			result.BaselineState = "new"
			if f.Known {
				result.BaselineState = "unchanged"
			}
			if slices.Contains(r.Gone, f) {
				result.BaselineState = "absent"
			}
		}
		run.Results = append(run.Results, result)
	}
	return jsondoc.Write(w, "the SARIF log", sarifLog{sarifSchema, sarifVersion, []sarifRun{run}})
}

// rule returns the place of a finding's rule, its anomaly, among those of the driver.
func (d *sarifDriver) rule(f *analyzer.Finding) int {
	id := sarifRuleID(f)
	if i := slices.IndexFunc(d.Rules, func(r sarifRule) bool { return r.ID == id }); i >= 0 {
		return i
	}
	text := oneLine(string(f.Anomaly))
	if words := gloss(f.Anomaly); words != "" {
		text += ": " + words
	}
	d.Rules = append(d.Rules, sarifRule{id, oneLine(string(f.Anomaly)), sarifText(text)})
	return len(d.Rules) - 1
}

func sarifRuleID(f *analyzer.Finding) string {
	return strings.ReplaceAll(oneLine(string(f.Anomaly)), " ", "-")
}

func newSarifResult(f *analyzer.Finding, clock clock) sarifResult {
	out := sarifResult{
		RuleID: sarifRuleID(f), Kind: "fail", Level: "warning", Locations: []sarifLocation{},
		PartialFingerprints: map[string]string{"isotapFinding/v1": oneLine(f.ID)}, OccurrenceCount: f.Count,
	}
	if f.Class == analyzer.Violation {
		out.Level = "error"
	}
	lines := append([]string{f.Lost, f.Summary}, f.Explanation[:min(len(f.Explanation), sentencesMax)]...)
	lines = slices.DeleteFunc(append(lines, f.Advice...), func(s string) bool { return s == "" })
	if len(lines) == 0 {
		lines = []string{brief(f)}
	}
	statements := quotable(f)
	for i := range lines {
		lines[i] = plain(prose(lines[i], statements, proseCode))
	}
	out.Message = sarifText(strings.Join(lines, "\n"))
	for i, at := range origins(f) {
		location := sarifLocation{PhysicalLocation: newSarifPhysical(at)}
		if i == 0 {
			location.LogicalLocations = sarifTables(f)
			out.Locations = append(out.Locations, location)
			continue
		}
		location.ID = new(i)
		out.RelatedLocations = append(out.RelatedLocations, location)
	}
	if tables := sarifTables(f); len(out.Locations) == 0 && tables != nil {
		out.Locations = append(out.Locations, sarifLocation{LogicalLocations: tables})
	}
	if flows := newWitness(f).sarifFlows(clock); flows != nil {
		out.CodeFlows = []sarifCodeFlow{{flows}}
	}
	return out
}

func sarifTables(f *analyzer.Finding) []sarifLogical {
	var tables []sarifLogical
	for _, t := range f.Tables {
		tables = append(tables, sarifLogical{FullyQualifiedName: oneLine(t), Kind: "table"})
	}
	return tables
}

func newSarifPhysical(at where) *sarifPhysical {
	p := &sarifPhysical{ArtifactLocation: sarifArtifact{(&url.URL{Path: at.file}).String()}}
	if at.line > 0 {
		p.Region = &sarifRegion{at.line}
	}
	return p
}

// sarifFlows returns the transactions of the witness as threads, their statements numbered in the order in
// which they were sent.
func (w *witness) sarifFlows(c clock) []sarifThreadFlow {
	var flows []sarifThreadFlow
	at := make(map[*history.Stmt]int)
	for i, step := range w.interleaving(c) {
		at[step.stmt] = i + 1
	}
	for _, t := range w.txns {
		flow := sarifThreadFlow{ID: w.name(t), Message: sarifText(txnTitle(w, t))}
		for i := range t.Stmts {
			s := &t.Stmts[i]
			step := sarifFlowStep{ExecutionOrder: at[s],
				Location: sarifLocation{Message: new(sarifText(clipStatement(w.text(s), statementMax)))}}
			if origin, ok := originOf(s); ok {
				step.Location.PhysicalLocation = newSarifPhysical(origin)
			}
			if wall, ok := c.wall(t.ID, s.Start); ok {
				step.ExecutionTimeUTC = &wall
			}
			flow.Locations = append(flow.Locations, step)
		}
		if len(flow.Locations) > 0 {
			flows = append(flows, flow)
		}
	}
	return flows
}

// sarifText makes a plain text message: braces are doubled (3.11.5), and what would read as a link (3.11.6)
// does not.
func sarifText(text string) sarifMessage {
	return sarifMessage{strings.NewReplacer("{", "{{", "}", "}}", "](", "] (").Replace(text)}
}
