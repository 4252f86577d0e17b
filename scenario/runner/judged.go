package runner

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
)

// A Judged is one scenario that an oracle judged at one level.
type Judged struct {
	Scenario *scenario.Scenario
	Server   history.Server
	Level    history.Level
	Settings scenario.Settings
	Oracle   string // its name
	Does     string // what it does, in words
	Verdict  *oracle.Verdict
}

// jsonJudged is what docs/replay-json.md says of a verdict.
type jsonJudged struct {
	Scenario string            `json:"scenario"`
	File     string            `json:"file"`
	Engine   dbms.Engine       `json:"engine"`
	Version  string            `json:"version"`
	Settings scenario.Settings `json:"settings"`
	Level    string            `json:"level"`
	Oracle   string            `json:"oracle"`
	oracle.JSONVerdict
}

func (j *Judged) json() jsonJudged {
	out := jsonJudged{Scenario: j.Scenario.Name, File: j.Scenario.File, Engine: j.Server.Engine, Version: j.Server.Version,
		Settings: j.Settings, Level: j.Level.String(), Oracle: j.Oracle, JSONVerdict: j.Verdict.JSON()}
	if out.Settings == nil {
		out.Settings = scenario.Settings{}
	}
	return out
}

// Text writes what the oracle says. The error is w's.
func (j *Judged) Text(w io.Writer) error {
	b, v := bufio.NewWriter(w), j.Verdict
	fmt.Fprintf(b, "%s at %s on %s %s, %s: %d transactions, %d statements\n", j.Scenario.Name, j.Level, j.Server.Engine,
		j.Server.Version, j.Does, v.Transactions, v.Statements)
	for _, d := range v.Differences {
		fmt.Fprintln(b, "wrong:", d)
	}
	for _, d := range v.ByDesign {
		fmt.Fprintln(b, "by design:", d)
	}
	for _, why := range slices.Sorted(maps.Keys(v.NotJudged)) {
		fmt.Fprintf(b, "not judged: %d statements: %s\n", v.NotJudged[why], why)
	}
	if !v.Wrong() {
		fmt.Fprintln(b, "no difference")
	}
	fmt.Fprintln(b)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the verdict: %w", err)
	}
	return nil
}
