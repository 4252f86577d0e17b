package oracle

import (
	"maps"
	"slices"
)

// The types below are what JSON documents say of verdicts (docs/replay-json.md, docs/fuzz-json.md): their fields stand
// in the order in which they are written, and all of them are always written.
type (
	// A JSONDifference is a [Difference].
	JSONDifference struct {
		Text     string   `json:"text"` // both answers in words
		Step     int      `json:"step"`
		SQL      string   `json:"sql"`
		Aspect   Aspect   `json:"aspect"`
		Got      string   `json:"got"`
		Want     string   `json:"want"`
		GotOnly  []string `json:"got_only"`
		WantOnly []string `json:"want_only"`
		By       string   `json:"by"`
		Known    string   `json:"known"`
	}
	// A JSONVerdict is a [Verdict].
	JSONVerdict struct {
		Wrong        bool             `json:"wrong"`
		Transactions int              `json:"transactions"`
		Statements   int              `json:"statements"`
		Differences  []JSONDifference `json:"differences"`
		ByDesign     []string         `json:"by_design"`
		NotJudged    []JSONReason     `json:"not_judged"`
		Order        []int            `json:"order"`
	}
	// A JSONReason is why statements were not judged.
	JSONReason struct {
		Reason     string `json:"reason"`
		Statements int    `json:"statements"`
	}
)

// JSON returns what JSON documents say of the difference.
func (d Difference) JSON() JSONDifference {
	return JSONDifference{Text: d.Words(), Step: d.Step, SQL: d.SQL, Aspect: d.Aspect, Got: d.Got, Want: d.Want,
		GotOnly: listed(d.GotOnly), WantOnly: listed(d.WantOnly), By: d.By, Known: d.Known}
}

// Difference is the inverse of [Difference.JSON].
func (j JSONDifference) Difference() Difference {
	d := Difference{Step: j.Step, SQL: j.SQL, Aspect: j.Aspect, Got: j.Got, Want: j.Want, By: j.By, Known: j.Known}
	if len(j.GotOnly) > 0 {
		d.GotOnly = j.GotOnly
	}
	if len(j.WantOnly) > 0 {
		d.WantOnly = j.WantOnly
	}
	return d
}

// JSON returns what JSON documents say of the verdict.
func (v *Verdict) JSON() JSONVerdict {
	j := JSONVerdict{Wrong: v.Wrong(), Transactions: v.Transactions, Statements: v.Statements, Differences: []JSONDifference{},
		ByDesign: listed(v.ByDesign), NotJudged: []JSONReason{}, Order: listed(v.Order)}
	for _, d := range v.Differences {
		j.Differences = append(j.Differences, d.JSON())
	}
	for _, why := range slices.Sorted(maps.Keys(v.NotJudged)) {
		j.NotJudged = append(j.NotJudged, JSONReason{why, v.NotJudged[why]})
	}
	return j
}

// listed is a list that is written as [] when it is empty.
func listed[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
