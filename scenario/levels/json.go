package levels

import (
	"io"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
)

// Schema names the JSON document's schema and its version, which grows when a field goes away or changes its meaning.
const Schema = "isotap-levels/1"

// The types below are the schema, as docs/levels-json.md describes it: their fields stand in the order in which they
// are written, and all of them are always written.
type (
	jsonDocument struct {
		Schema  string      `json:"schema"`
		Engine  dbms.Engine `json:"engine"`
		Version string      `json:"version"`
		Levels  []jsonLevel `json:"levels"`
	}
	jsonLevel struct {
		Level     string            `json:"level"`
		Settings  scenario.Settings `json:"settings"`
		Default   bool              `json:"default"`
		Says      string            `json:"says"`
		Anomalies []jsonAnomaly     `json:"anomalies"`
	}
	jsonAnomaly struct {
		Name      string         `json:"name"`
		About     string         `json:"about"`
		Outcome   string         `json:"outcome"`
		Scenarios []jsonScenario `json:"scenarios"`
	}
	jsonScenario struct {
		Scenario string         `json:"scenario"`
		File     string         `json:"file"`
		Shows    runner.Showing `json:"shows"`
		Unplayed string         `json:"unplayed"`
	}
)

var outcomes = map[Outcome]string{Permitted: "permitted", Fails: "error", Waits: "waits", Prevented: "prevented",
	NotPlayed: "not played"}

// JSON writes the table, and what it says of each level, as one indented JSON document. The error is w's.
func (t *Table) JSON(w io.Writer) error {
	doc := jsonDocument{Schema: Schema, Engine: t.Server.Engine, Version: t.Server.Version,
		Levels: make([]jsonLevel, len(t.Columns))}
	for j := range t.Columns {
		doc.Levels[j] = t.levelJSON(j)
	}
	return jsondoc.Write(w, "the levels as JSON", doc)
}

func (t *Table) levelJSON(column int) jsonLevel {
	c := &t.Columns[column]
	l := jsonLevel{Level: c.Level.String(), Settings: c.Settings, Default: c.Default, Says: t.says(column),
		Anomalies: make([]jsonAnomaly, len(t.Rows))}
	if l.Settings == nil {
		l.Settings = scenario.Settings{}
	}
	for i := range t.Rows {
		of := t.cells[i][column]
		a := jsonAnomaly{Name: t.Rows[i].Name, About: t.Rows[i].About, Outcome: outcomes[of.outcome()],
			Scenarios: make([]jsonScenario, len(of))}
		for k, s := range t.Rows[i].Scenarios {
			a.Scenarios[k] = jsonScenario{s.Name, s.File, of[k].shows, of[k].why}
		}
		l.Anomalies[i] = a
	}
	return l
}
