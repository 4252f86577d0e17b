package explore

import (
	"io"

	"github.com/isotap/isotap/internal/jsondoc"
)

// schemaName names the document's schema; see docs/explore.md.
const schemaName = "isotap-explore/1"

// document is a Result as JSON.
type document struct {
	Schema       string         `json:"schema"`
	Transactions int            `json:"transactions"`
	Programs     int            `json:"programs"`
	Twins        int            `json:"twins"`
	Judged       int            `json:"judged"`
	Diverged     int            `json:"diverged"`
	Refused      int            `json:"refused"`
	Wrapped      int            `json:"wrapped"`
	Seconds      float64        `json:"seconds"`
	Live         bool           `json:"live"`
	Races        []raceDocument `json:"races"`
	NotPlayed    map[Reason]int `json:"not_played"`
}

type raceDocument struct {
	Kind     Kind     `json:"kind"`
	Proved   bool     `json:"proved"`
	Program  string   `json:"program"`
	Beside   string   `json:"beside"`
	Table    string   `json:"table"`
	Column   string   `json:"column"`
	Row      string   `json:"row"`
	Racing   string   `json:"racing"`
	Serial   string   `json:"serial"`
	Wrote    string   `json:"wrote"`
	UndoneBy string   `json:"undone_by"`
	Likewise []string `json:"likewise"`
	Other    string   `json:"other"`
	Read     string   `json:"read"`
	Write    string   `json:"write"`
	Sentence string   `json:"sentence"`
	Txn      string   `json:"txn"`
	Times    int      `json:"times"`
	Idle     bool     `json:"idle"`
}

// JSON writes the result for programs.
func (r *Result) JSON(w io.Writer) error {
	d := document{Schema: schemaName, Transactions: r.Transactions, Programs: r.Programs, Twins: r.Plays, Judged: r.Judged,
		Diverged: r.Diverged, Refused: r.Refused, Wrapped: r.Wrapped,
		Seconds: r.Took.Seconds(), Live: r.Live, Races: make([]raceDocument, len(r.Races)), NotPlayed: r.NotPlayed}
	for i := range r.Races {
		x := &r.Races[i]
		d.Races[i] = raceDocument{x.Kind, x.Proved, x.Program, x.Beside, x.Table, x.Column, x.Row, x.Racing, x.Serial, x.Wrote,
			x.UndoneBy, append([]string{}, x.Likewise...), x.Other, x.Read,
			x.Write, x.Sentence(), x.Txn, x.Times, x.Idle()}
	}
	return jsondoc.Write(w, "the exploration", d)
}
