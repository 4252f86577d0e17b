package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

// Schema names the JSON document's schema and its version, which grows when a field goes away or changes its meaning.
const Schema = "isotap-replay/1"

// The types below are the schema, as docs/replay-json.md describes it: their fields stand in the order in which they
// are written, and all of them are always written.
type (
	jsonDocument struct {
		Schema   string       `json:"schema"`
		Replays  []jsonReplay `json:"replays"`
		Verdicts []jsonJudged `json:"verdicts"`
	}
	jsonReplay struct {
		Scenario   string            `json:"scenario"`
		File       string            `json:"file"`
		Engine     dbms.Engine       `json:"engine"`
		Version    string            `json:"version"`
		Settings   scenario.Settings `json:"settings"`
		Level      string            `json:"level"`
		Shows      Showing           `json:"shows"`
		Steps      []jsonStep        `json:"steps"`
		Coverage   *jsonCoverage     `json:"coverage"`
		Anomalies  []string          `json:"anomalies"`
		Findings   []jsonFinding     `json:"findings"`
		Unexpected []string          `json:"unexpected"`
	}
	jsonStep struct {
		N         int           `json:"n"`
		Session   string        `json:"session"`
		SQL       string        `json:"sql"`
		Status    replay.Status `json:"status"`
		Waited    bool          `json:"waited"`
		WaitedFor []string      `json:"waited_for"`
		Queued    bool          `json:"queued"`
		DoneAfter *int          `json:"done_after"`
		Columns   []string      `json:"columns"`
		Rows      [][]*string   `json:"rows"`
		Affected  uint64        `json:"affected"`
		Error     *jsonError    `json:"error"`
		Notices   []string      `json:"notices"`
	}
	jsonError struct {
		Code     uint16 `json:"code"`
		SQLState string `json:"sqlstate"`
		Message  string `json:"message"`
	}
	jsonCoverage struct {
		Statements int `json:"statements"`
		Exact      int `json:"exact"`
		Inexact    int `json:"inexact"`
		Opaque     int `json:"opaque"`
	}
	jsonFinding struct {
		ID      string   `json:"id"`
		Anomaly string   `json:"anomaly"`
		Class   string   `json:"class"`
		Rule    string   `json:"rule"`
		Summary string   `json:"summary"`
		Tables  []string `json:"tables"`
		Advice  []string `json:"advice"`
	}
)

// JSON writes the performances and verdicts as one indented JSON document. There is nothing in it that differs between
// two plays in which the same happened. The error is w's.
func JSON(w io.Writer, all []*Result, verdicts []*Judged) error {
	doc := jsonDocument{Schema: Schema, Replays: make([]jsonReplay, len(all)), Verdicts: make([]jsonJudged, len(verdicts))}
	for i, j := range verdicts {
		doc.Verdicts[i] = j.json()
	}
	for i, p := range all {
		doc.Replays[i] = p.json()
	}
	return jsondoc.Write(w, "the replays as JSON", doc)
}

func (p *Result) json() jsonReplay {
	r := jsonReplay{
		Scenario: p.Scenario.Name, File: p.Scenario.File, Engine: p.Server.Engine, Version: p.Server.Version,
		Settings: p.Settings, Level: p.Level.String(), Shows: p.Shows(), Steps: make([]jsonStep, len(p.Trace.Results)),
		Anomalies: listed(p.Anomalies()), Findings: []jsonFinding{}, Unexpected: listed(p.Unexpected()),
	}
	if r.Settings == nil {
		r.Settings = scenario.Settings{}
	}
	for i := range p.Trace.Results {
		r.Steps[i] = stepJSON(&p.Trace.Results[i])
	}
	if p.Result == nil {
		return r
	}
	c := &p.Result.Coverage
	r.Coverage = &jsonCoverage{c.Statements, c.Exact, c.Inexact, c.Opaque}
	for _, f := range p.Result.Findings {
		r.Findings = append(r.Findings, p.findingJSON(f))
	}
	return r
}

// remainingCycle is how advice begins to tell of a cycle that it does not prevent.
const remainingCycle = "another cycle remains"

func (p *Result) findingJSON(f *analyzer.Finding) jsonFinding {
	j := jsonFinding{Anomaly: string(f.Anomaly), Class: string(f.Class), Rule: f.Rule, Summary: p.unnamed(f.Summary)[0],
		Tables: p.unnamed(f.Tables...), Advice: p.unnamed(f.Advice...)}
	for i, text := range j.Advice {
		// Which one it is names rows and versions, as another run does not.
		if advice, _, remains := strings.Cut(text, remainingCycle+":"); remains {
			j.Advice[i] = advice + remainingCycle + "."
		}
	}
	// The analyzer's own goes by the tables' whole names.
	sum := sha256.Sum256([]byte(strings.Join(append(j.Tables, j.Anomaly, j.Class, j.Summary), "\x00")))
	j.ID = hex.EncodeToString(sum[:6])
	return j
}

// unnamed takes the name of the run's database from texts: another run has another.
func (p *Result) unnamed(texts ...string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = text
		if p.Trace.Database != "" {
			all[i] = strings.ReplaceAll(text, p.Trace.Database+".", "")
		}
	}
	return all
}

func stepJSON(r *replay.Result) jsonStep {
	s := jsonStep{N: r.N, Session: r.Session, SQL: r.SQL, Status: r.Status, Waited: r.Blocked,
		WaitedFor: listed(r.WaitedFor), Queued: r.Queued,
		Affected: r.Affected, Notices: []string{}}
	if r.DoneAfter != 0 {
		s.DoneAfter = new(max(r.DoneAfter, 0)) // AtEnd is below 0
	}
	if r.Columns != nil {
		s.Columns, s.Rows = make([]string, len(r.Columns)), make([][]*string, len(r.Rows))
		for i, c := range r.Columns {
			s.Columns[i] = c.Name
		}
		for i, row := range r.Rows {
			s.Rows[i] = rowJSON(row)
		}
	}
	if r.Status == replay.Failed {
		s.Error = &jsonError{r.Code, r.State, r.Message}
	}
	for _, n := range r.Notices {
		s.Notices = append(s.Notices, n.String())
	}
	return s
}

func rowJSON(row []replay.Value) []*string {
	texts := make([]*string, len(row))
	for i := range row {
		if !row[i].Null {
			texts[i] = &row[i].Text
		}
	}
	return texts
}

// listed is a list that is written as [] when it is empty.
func listed(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}
