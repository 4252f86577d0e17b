package report

import (
	"io"

	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/robust"
)

// RobustnessSchema names the schema of [RobustnessJSON] and its version, as [Schema] does.
const RobustnessSchema = "isotap-robustness/1"

// The types below are the schema: their fields stand in the order in which they are written, and all
// of them are always written.
type (
	jsonRobustness struct {
		Schema      string              `json:"schema"`
		Name        string              `json:"name"`
		Programs    []jsonRobustProgram `json:"programs"`
		Assumptions []string            `json:"assumptions"`
		Notes       []string            `json:"notes"`
		Settings    []jsonSetting       `json:"settings"`
	}
	jsonRobustProgram struct {
		Name       string                `json:"name"`
		Short      string                `json:"short"`
		Origin     string                `json:"origin"`
		Unfolded   int                   `json:"unfolded"`
		Notes      []string              `json:"notes"`
		Statements []jsonRobustStatement `json:"statements"`
	}
	jsonRobustStatement struct {
		Name     string   `json:"name"`
		Type     string   `json:"type"`
		Relation string   `json:"relation"`
		PRead    []string `json:"pread"`
		Read     []string `json:"read"`
		Write    []string `json:"write"`
		Lock     string   `json:"lock"`
		Key      []string `json:"key"`
		SQL      string   `json:"sql"`
		Origin   string   `json:"origin"`
		Notes    []string `json:"notes"`
	}
	jsonSetting struct {
		Setting     string            `json:"setting"`
		Tuples      bool              `json:"tuples"`
		ForeignKeys bool              `json:"foreign_keys"`
		Nodes       int               `json:"nodes"`
		Edges       int               `json:"edges"`
		Counterflow int               `json:"counterflow"`
		Tests       []jsonTest        `json:"tests"`
		Levels      map[string]string `json:"levels"`
		Promotion   *jsonPromotion    `json:"promotion"`
	}
	jsonPromotion struct {
		Programs   []string       `json:"programs"`
		Statements []jsonPromoted `json:"statements"`
	}
	jsonPromoted struct {
		Program   string `json:"program"`
		Statement string `json:"statement"`
		SQL       string `json:"sql"`
	}
	jsonTest struct {
		Test     string          `json:"test"`
		Level    string          `json:"level"`
		Robust   bool            `json:"robust"`
		Maximal  [][]string      `json:"maximal"`
		Minimal  [][]string      `json:"minimal"`
		Complete bool            `json:"complete"`
		Why      []jsonRobustWhy `json:"why"`
	}
	jsonRobustWhy struct {
		Programs []string         `json:"programs"`
		Cycle    []jsonRobustEdge `json:"cycle"`
		Proven   bool             `json:"proven"`
		Runs     []jsonRobustRun  `json:"runs"`
		Steps    []jsonRobustStep `json:"steps"`
		Proof    []jsonRobustDep  `json:"proof"`
	}
	jsonRobustEdge struct {
		From          string `json:"from"`
		FromStatement string `json:"from_statement"`
		To            string `json:"to"`
		ToStatement   string `json:"to_statement"`
		Counterflow   bool   `json:"counterflow"`
	}
	jsonRobustRun struct {
		Program    string   `json:"program"`
		Statements []string `json:"statements"`
	}
	jsonRobustStep struct {
		Run       int      `json:"run"`
		Statement string   `json:"statement"`
		Tuples    []string `json:"tuples"`
		SQL       string   `json:"sql"`
	}
	jsonRobustDep struct {
		Kind          string `json:"kind"`
		Tuple         string `json:"tuple"`
		From          int    `json:"from"`
		FromStatement string `json:"from_statement"`
		To            int    `json:"to"`
		ToStatement   string `json:"to_statement"`
		Counterflow   bool   `json:"counterflow"`
		Text          string `json:"text"`
	}
)

// RobustnessJSON writes the answers about a workload's programs as one indented JSON document, as docs/robustness.md
// describes it. The error is w's.
func RobustnessJSON(w io.Writer, workload *robust.Workload, answers []*robust.Answer) error {
	d := jsonRobustness{Schema: RobustnessSchema, Name: workload.Name, Programs: []jsonRobustProgram{},
		Assumptions: robust.Assumptions, Notes: list(workload.Notes)}
	for _, p := range workload.Programs {
		d.Programs = append(d.Programs, newJSONRobustProgram(p))
	}
	for _, a := range answers {
		d.Settings = append(d.Settings, newJSONSetting(a))
	}
	return jsondoc.Write(w, "the JSON report", d)
}

func newJSONRobustProgram(p *robust.Program) jsonRobustProgram {
	j := jsonRobustProgram{Name: p.Name, Short: p.Label(), Origin: p.Origin, Unfolded: len(robust.Unfold(p)),
		Notes: list(p.Notes), Statements: []jsonRobustStatement{}}
	for _, q := range p.Statements() {
		j.Statements = append(j.Statements, jsonRobustStatement{
			Name: q.Name, Type: q.Type.String(), Relation: q.Relation, PRead: attributes(q.PRead),
			Read: attributes(q.Read), Write: attributes(q.Write),
			Lock: q.Lock.String(), Key: list(q.Key), SQL: q.SQL, Origin: q.Origin, Notes: list(q.Notes),
		})
	}
	return j
}

// attributes returns null for ⊥ and "*" for all attributes of a relation.
func attributes(s robust.Set) []string {
	switch {
	case !s.Defined():
		return nil
	case s.IsAll():
		return []string{"*"}
	}
	return list(s.Attributes())
}

func newJSONSetting(a *robust.Answer) jsonSetting {
	g := a.Graph
	j := jsonSetting{
		Setting: g.Setting.String(), Tuples: g.Setting.Tuples, ForeignKeys: g.Setting.ForeignKeys,
		Nodes: len(g.Nodes), Edges: len(g.Edges), Counterflow: g.Counterflows(), Levels: make(map[string]string),
	}
	for i := range a.Tests {
		j.Tests = append(j.Tests, newJSONTest(a, &a.Tests[i]))
	}
	for i, level := range a.Levels {
		j.Levels[a.Programs[i].Name] = level.String()
	}
	j.Promotion = newJSONPromotion(a)
	return j
}

func newJSONPromotion(a *robust.Answer) *jsonPromotion {
	if a.Promotion == nil {
		return nil
	}
	j := &jsonPromotion{Statements: []jsonPromoted{}}
	for _, i := range a.Promotion.Programs {
		j.Programs = append(j.Programs, a.Programs[i].Name)
	}
	for _, p := range a.Promotion.Statements {
		j.Statements = append(j.Statements, jsonPromoted{a.Programs[p.Program].Name, p.Statement.Name, p.Statement.SQL})
	}
	return j
}

func newJSONTest(a *robust.Answer, t *robust.TestAnswer) jsonTest {
	names := func(sets [][]int) [][]string {
		all := [][]string{}
		for _, set := range sets {
			names := []string{}
			for _, i := range set {
				names = append(names, a.Programs[i].Name)
			}
			all = append(all, names)
		}
		return all
	}
	j := jsonTest{Test: t.Test.String(), Level: t.Test.Level().String(), Robust: t.Robust, Maximal: names(t.Maximal),
		Minimal: names(t.Minimal), Complete: t.Complete, Why: []jsonRobustWhy{}}
	for i, w := range t.Witnesses {
		why := newJSONRobustWhy(a.Graph, w)
		why.Programs = j.Minimal[i]
		j.Why = append(j.Why, why)
	}
	return j
}

func newJSONRobustWhy(g *robust.SummaryGraph, w *robust.Witness) jsonRobustWhy {
	j := jsonRobustWhy{Cycle: []jsonRobustEdge{}, Proven: w.Schedule != nil, Runs: []jsonRobustRun{},
		Steps: []jsonRobustStep{}, Proof: []jsonRobustDep{}}
	for _, e := range w.Cycle {
		from, to := g.Ends(e)
		j.Cycle = append(j.Cycle, jsonRobustEdge{g.Nodes[e.From].Name, from.Name, g.Nodes[e.To].Name, to.Name,
			e.Counterflow})
	}
	if w.Schedule == nil {
		return j
	}
	for _, run := range w.Schedule.Runs {
		statements := []string{}
		for _, o := range run.Program.Statements {
			statements = append(statements, o.Name)
		}
		j.Runs = append(j.Runs, jsonRobustRun{run.Program.Name, statements})
	}
	for _, step := range w.Schedule.Order {
		j.Steps = append(j.Steps, newJSONRobustStep(w.Schedule, step))
	}
	for _, d := range w.Proof {
		from, to := newJSONRobustStep(w.Schedule, d.From), newJSONRobustStep(w.Schedule, d.To)
		j.Proof = append(j.Proof, jsonRobustDep{string(d.Kind), d.Tuple.String(), from.Run, from.Statement, to.Run,
			to.Statement, d.Counterflow, w.Schedule.Explain(d)})
	}
	return j
}

// newJSONRobustStep numbers transactions from 1, as the text does.
func newJSONRobustStep(s *robust.Schedule, step robust.Step) jsonRobustStep {
	j := jsonRobustStep{Run: step.Run + 1, Statement: "COMMIT", Tuples: []string{}, SQL: "COMMIT"}
	run := s.Runs[step.Run]
	if step.At < len(run.Program.Statements) {
		q := run.Program.Statements[step.At]
		j.Statement, j.SQL = q.Name, q.SQL
		for _, t := range run.Tuples[step.At] {
			j.Tuples = append(j.Tuples, t.String())
		}
	}
	return j
}
