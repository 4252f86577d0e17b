package report

import (
	_ "embed"
	"io"

	"github.com/isotap/isotap/analyzer"
)

//go:embed race.html.tmpl
var raceSource string

// A Race is what could have happened: two requests at once, as they were played on a copy of the database (package
// explore). It is no finding, for it did not happen.
type Race struct {
	Kind     string    // "lost update"
	Of       string    // what it is about: "stock.qty"; empty if it is not one thing
	Programs [2]string // of the two requests
	Sentence string    // what the server has shown
	Advice   string
	// Perhaps says that the second was answered otherwise than alone before it wrote: a real client may have gone
	// another way.
	Perhaps bool
	Steps   []RaceStep // in their order
}

// A RaceStep is a statement of one of a race's two requests.
type RaceStep struct {
	Second bool   // it is the second request's
	SQL    string // empty: it is only said
	Says   string // what it was answered, or what it does
	Wrong  bool   // it is where the race shows
}

// maxRaces is how many races the page shows.
const maxRaces = 100

// raceView is a Race for the template.
type raceView struct {
	Race
	Anchor string
}

// HTMLWithRaces writes the page of [HTML], and behind its findings what could have happened. Nil races: nothing is said
// of that; none, that nothing was shown. The error is w's.
func HTMLWithRaces(w io.Writer, r *analyzer.Result, races []Race) error {
	p, err := newPage(r)
	if err != nil {
		return err
	}
	p.Explored = races != nil
	p.MoreRaces = max(0, len(races)-maxRaces)
	for i, race := range races[:min(len(races), maxRaces)] {
		race.Sentence, race.Of = clip(printable(oneLine(race.Sentence)), proseWords), printable(race.Of)
		race.Steps = append([]RaceStep(nil), race.Steps...)
		for k := range race.Steps {
			s := &race.Steps[k]
			s.SQL, s.Says = printable(clipStatement(s.SQL, timelineText)), clip(printable(oneLine(s.Says)), timelineText)
		}
		p.Races = append(p.Races, raceView{race, "race-" + number(i+1)})
	}
	return p.write(w)
}
