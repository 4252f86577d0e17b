package fuzz

import (
	"cmp"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/workload"
)

// Schema names the JSON document's schema and its version, which grows when a field goes away or changes its meaning.
const Schema = "isotap-fuzz/1"

// The types below are the schema, as docs/fuzz-json.md describes it: their fields stand in the order in which they are
// written, and all of them are always written.
type (
	jsonDocument struct {
		Schema string     `json:"schema"`
		Hunts  []jsonHunt `json:"hunts"`
	}
	jsonHunt struct {
		Engine            dbms.Engine    `json:"engine"`
		Version           string         `json:"version"`
		SnapshotIsolation bool           `json:"snapshot_isolation"`
		Isotap            string         `json:"isotap"`
		Began             time.Time      `json:"began"`
		Hunted            int64          `json:"hunted_ms"`
		Reducing          int64          `json:"reducing_ms"`
		End               End            `json:"end"`
		Failed            bool           `json:"failed"`
		Unfinished        int            `json:"unfinished"`
		Seed              uint64         `json:"seed"`
		Oracles           []Oracle       `json:"oracles"`
		Levels            []string       `json:"levels"`
		Graph             jsonGraph      `json:"graph"`
		Judged            []jsonJudged   `json:"judged"`
		Templates         []jsonTemplate `json:"templates"`
		Findings          []jsonCatch    `json:"findings"`
		Differences       []jsonMismatch `json:"differences"`
		Crashes           int            `json:"crashes"`
		Abnormal          []jsonAbnormal `json:"abnormal"`
	}
	jsonGraph struct {
		Rounds       int              `json:"rounds"`
		Transactions int              `json:"transactions"`
		Committed    int              `json:"committed"`
		Refused      int              `json:"refused"`
		Statements   int              `json:"statements"`
		Failed       int              `json:"failed"`
		Worked       int64            `json:"worked_ms"`
		Kinds        []jsonKind       `json:"kinds"`
		Reasons      []jsonCount      `json:"reasons"`
		Mistakes     []jsonMistake    `json:"mistakes"`
		Levels       []jsonGraphLevel `json:"levels"`
		Aggregated   jsonFound        `json:"aggregated"`
		Aborted      jsonFound        `json:"aborted"`
	}
	jsonKind struct {
		Kind    string `json:"kind"`
		Exact   int    `json:"exact"`
		Inexact int    `json:"inexact"`
		Opaque  int    `json:"opaque"`
	}
	jsonCount struct {
		Reason     string `json:"reason"`
		Statements int    `json:"statements"`
	}
	jsonMistake struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		SQL     string `json:"sql"`
		Count   int    `json:"count"`
	}
	jsonGraphLevel struct {
		Level        string        `json:"level"`
		Rounds       int           `json:"rounds"`
		Transactions int           `json:"transactions"`
		Violations   []jsonAnomaly `json:"violations"`
		Hazards      []jsonAnomaly `json:"hazards"`
	}
	jsonAnomaly struct {
		Anomaly string `json:"anomaly"`
		jsonFound
	}
	jsonFound struct {
		Times  int `json:"times"`
		Unique int `json:"unique"`
	}
	jsonJudged struct {
		Oracle       Oracle      `json:"oracle"`
		Level        string      `json:"level"`
		Rounds       int         `json:"rounds"`
		Transactions int         `json:"transactions"`
		Statements   int         `json:"statements"`
		Differences  int         `json:"differences"`
		Known        int         `json:"known"`
		ByDesign     int         `json:"by_design"`
		NotJudged    []jsonCount `json:"not_judged"`
	}
	jsonTemplate struct {
		Template string      `json:"template"`
		Level    string      `json:"level"`
		Plays    int         `json:"plays"`
		Shown    []jsonShown `json:"shown"`
		Wrong    []jsonWrong `json:"wrong"`
	}
	jsonShown struct {
		Anomaly string `json:"anomaly"`
		Plays   int    `json:"plays"`
	}
	jsonWrong struct {
		Oracle Oracle `json:"oracle"`
		Plays  int    `json:"plays"`
	}
	jsonFile struct {
		File         string    `json:"file"`
		Reduction    Reduction `json:"reduction"`
		Transactions int       `json:"transactions"`
		Statements   int       `json:"statements"`
		Shown        int       `json:"shown"`
		Replays      int       `json:"replays"`
	}
	jsonCatch struct {
		Key     string `json:"key"`
		ID      string `json:"id"`
		Anomaly string `json:"anomaly"`
		Class   string `json:"class"`
		Level   string `json:"level"`
		Seed    uint64 `json:"seed"`
		Seen    int    `json:"seen"`
		Summary string `json:"summary"`
		jsonFile
	}
	jsonMismatch struct {
		Key    string `json:"key"`
		Oracle Oracle `json:"oracle"`
		Level  string `json:"level"`
		Seed   uint64 `json:"seed"`
		Seen   int    `json:"seen"`
		Page   string `json:"page"`
		oracle.JSONDifference
		jsonFile
	}
	jsonAbnormal struct {
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Session string   `json:"session"`
		SQL     string   `json:"sql"`
		Level   string   `json:"level"`
		Seed    uint64   `json:"seed"`
		Seen    int      `json:"seen"`
		Files   []string `json:"files"`
	}
)

// JSON writes tallies as one indented JSON document. The error is w's.
func JSON(w io.Writer, all []*Tally) error {
	doc := jsonDocument{Schema: Schema, Hunts: make([]jsonHunt, len(all))}
	for i, t := range all {
		doc.Hunts[i] = t.json()
	}
	return jsondoc.Write(w, "the hunts as JSON", doc)
}

func (t *Tally) json() jsonHunt {
	h := jsonHunt{Engine: t.Server.Engine, Version: t.Server.Version, SnapshotIsolation: t.Server.SnapshotIsolation,
		Isotap: t.Isotap, Began: t.Began.UTC().Truncate(time.Millisecond), Hunted: t.Hunted.Milliseconds(),
		Reducing: t.Reducing.Milliseconds(), End: t.End, Failed: t.Failed(), Unfinished: t.left(), Seed: t.Seed,
		Oracles: append([]Oracle{}, t.Oracles...), Levels: []string{}, Graph: t.graphJSON(), Judged: []jsonJudged{},
		Templates: t.templatesJSON(), Findings: []jsonCatch{},
		Differences: []jsonMismatch{}, Crashes: t.Crashes, Abnormal: []jsonAbnormal{}}
	for _, level := range t.levels() {
		h.Levels = append(h.Levels, level.String())
	}
	for _, by := range Oracles() {
		for _, level := range t.levels() {
			if j := t.Levels[level].Judged[by]; j != nil {
				h.Judged = append(h.Judged, jsonJudged{Oracle: by, Level: level.String(), Rounds: j.Rounds,
					Transactions: j.Transactions, Statements: j.Statements, Differences: j.Differences, Known: j.Known,
					ByDesign: j.ByDesign, NotJudged: countsJSON(j.NotJudged)})
			}
		}
	}
	for _, c := range t.Catches {
		h.Findings = append(h.Findings, c.json())
	}
	for _, m := range t.Mismatches {
		h.Differences = append(h.Differences, m.json())
	}
	for _, a := range t.Abnormal {
		h.Abnormal = append(h.Abnormal, a.json())
	}
	return h
}

// levels are those of the hunt, weakest first.
func (t *Tally) levels() []workload.Isolation {
	return slices.SortedFunc(maps.Keys(t.Levels), workload.Isolation.Compare)
}

func (t *Tally) graphJSON() jsonGraph {
	r := &t.Random
	g := jsonGraph{Rounds: t.Rounds, Transactions: r.Transactions, Committed: r.Committed, Refused: r.Refused,
		Statements: r.Statements, Failed: r.Failed, Worked: t.worked.Milliseconds(), Kinds: []jsonKind{},
		Mistakes: []jsonMistake{}, Levels: []jsonGraphLevel{}, Aggregated: jsonFound(t.Aggregated), Aborted: jsonFound(t.Aborted)}
	for _, k := range slices.Sorted(maps.Keys(t.Kinds)) {
		o := t.Kinds[k]
		g.Kinds = append(g.Kinds, jsonKind{k.String(), o.Exact, o.Inexact, o.Opaque})
	}
	g.Reasons = countsJSON(t.Reasons)
	for _, code := range slices.Sorted(maps.Keys(r.Mistakes)) {
		m := r.Mistakes[code]
		g.Mistakes = append(g.Mistakes, jsonMistake{m.Code, m.Message, m.SQL, m.Count})
	}
	for _, level := range t.levels() {
		l := t.Levels[level]
		g.Levels = append(g.Levels, jsonGraphLevel{level.String(), l.Rounds, l.Transactions, foundJSON(l.Violations),
			foundJSON(l.Hazards)})
	}
	return g
}

func (t *Tally) templatesJSON() []jsonTemplate {
	all := []jsonTemplate{}
	for _, level := range t.levels() {
		of := t.Levels[level].Templates
		for _, name := range slices.Sorted(maps.Keys(of)) {
			j := jsonTemplate{Template: name, Level: level.String(), Plays: of[name].Plays, Shown: []jsonShown{}, Wrong: []jsonWrong{}}
			for _, a := range slices.Sorted(maps.Keys(of[name].Shown)) {
				j.Shown = append(j.Shown, jsonShown{string(a), of[name].Shown[a]})
			}
			for _, o := range slices.Sorted(maps.Keys(of[name].Wrong)) {
				j.Wrong = append(j.Wrong, jsonWrong{o, of[name].Wrong[o]})
			}
			all = append(all, j)
		}
	}
	return all
}

func foundJSON(found map[analyzer.Anomaly]*Found) []jsonAnomaly {
	all := []jsonAnomaly{}
	for _, a := range slices.Sorted(maps.Keys(found)) {
		all = append(all, jsonAnomaly{string(a), jsonFound(*found[a])})
	}
	return all
}

// countsJSON are statements by reason, the most frequent first.
func countsJSON(counts map[string]int) []jsonCount {
	all := []jsonCount{}
	for reason, n := range counts {
		all = append(all, jsonCount{reason, n})
	}
	slices.SortFunc(all, func(a, b jsonCount) int {
		return cmp.Or(b.Statements-a.Statements, strings.Compare(a.Reason, b.Reason))
	})
	return all
}

func (c *Catch) json() jsonCatch {
	f := c.Finding
	j := jsonCatch{Key: c.Key, ID: f.ID, Anomaly: string(f.Anomaly), Class: string(f.Class), Level: c.Level.String(), Seed: c.Seed,
		Seen: c.Seen, Summary: f.Summary, jsonFile: jsonFile{File: filepath.ToSlash(c.File), Reduction: c.Reduction, Shown: c.Shown,
			Replays: c.Replays}}
	if c.Scenario != nil {
		j.Transactions, j.Statements = reduce.Count(c.Scenario)
	}
	return j
}

func (m *Mismatch) json() jsonMismatch {
	j := jsonMismatch{Key: m.Key, Oracle: m.Oracle, Level: m.Level.String(), Seed: m.Seed, Seen: m.Seen,
		Page: filepath.ToSlash(m.Page()), JSONDifference: m.Difference.JSON(), jsonFile: jsonFile{File: filepath.ToSlash(m.File), Reduction: m.Reduction,
			Shown: m.Shown, Replays: m.Replays}}
	j.Transactions, j.Statements = reduce.Count(m.Scenario)
	return j
}

func (a *Abnormality) json() jsonAbnormal {
	j := jsonAbnormal{Code: a.Code, Message: a.Message, SQL: a.SQL, Level: a.Level.String(), Seed: a.Seed, Seen: a.Seen,
		Files: []string{}}
	if a.SQL != "" {
		j.Session = sessionName(a.Session)
	}
	for _, f := range a.Files {
		j.Files = append(j.Files, filepath.ToSlash(f))
	}
	return j
}
