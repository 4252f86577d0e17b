package explore

import "github.com/isotap/isotap/report"

// Page returns the races for the HTML report: of each request, or pair of requests, the surest. It is never nil.
func (r *Result) Page() []report.Race {
	found, _ := r.pairs()
	races := make([]report.Race, 0, len(found))
	for _, of := range found {
		races = append(races, of[0].page())
	}
	return races
}

// page is the race with its statements in the order in which they were played.
func (r *Race) page() report.Race {
	of := r.Table
	if r.Table != "" && r.Column != "" {
		of += "." + r.Column
	}
	return report.Race{Kind: string(r.Kind), Of: of, Programs: r.programs(), Sentence: r.Sentence(), Advice: advice[r.Kind],
		Perhaps: !r.Proved, Steps: r.steps()}
}

// programs names the two requests: the one that commits first, and the one that goes by what it read before.
func (r *Race) programs() [2]string {
	if r.Beside == "" {
		return [2]string{r.Program + ", first", r.Program + ", second"}
	}
	return [2]string{r.Beside, r.Program}
}

func (r *Race) steps() []report.RaceStep {
	read := "reads what the other then changes"
	switch {
	case r.Racing != "":
		read = "reads " + r.Racing
	case !r.some && (r.Kind == DoubleInsert || r.Kind == LostUpdate):
		read = "finds none"
	}
	var steps []report.RaceStep
	first := r.Other
	if r.Beside == "" {
		first = r.Write
		steps = append(steps, report.RaceStep{SQL: r.Read, Says: read})
	}
	steps = append(steps, report.RaceStep{Second: true, SQL: r.Read, Says: read, Wrong: true},
		report.RaceStep{SQL: first, Says: "and commits"},
		report.RaceStep{Second: true, SQL: r.Write, Says: "goes through all the same", Wrong: true})
	if r.Serial != "" {
		steps = append(steps, report.RaceStep{Second: true, Says: "One after the other it reads " + r.Serial + "."})
	}
	return steps
}
