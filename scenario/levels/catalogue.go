package levels

import (
	"fmt"

	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/library"
)

// A Row is an anomaly, and the scenarios that show it: it is permitted where one of them shows it.
type Row struct {
	Name      string // as the literature has it: "G-single"
	About     string // what it is, in words; empty for a scenario of somebody else's
	Scenarios []*scenario.Scenario
}

// label is the row's name and what it is.
func (r *Row) label() string {
	if r.About == "" {
		return r.Name
	}
	return fmt.Sprintf("%-8s %s", r.Name, r.About)
}

// An anomaly is a row of isotap's own, and the files of library.Files' hermitage.
type anomaly struct {
	name, about string
	files       []string
}

// The anomalies that what is said of a level goes by; others are only shown.
const (
	dirtyRead       = "aborted read"
	intermediate    = "intermediate read"
	circular        = "circular information flow"
	vanishes        = "observed transaction vanishes"
	phantomRead     = "phantom read"
	phantomByWrite  = "phantom, met by a write"
	lostUpdate      = "lost update"
	readSkew        = "read skew"
	readSkewByWrite = "read skew, met by a write"
	writeSkew       = "write skew"
	readOnly        = "write skew that a reader sees"
	phantomSkew     = "phantom write skew"
)

// own are the rows of the table, after Hermitage's: from what the weakest levels prevent on.
var own = []anomaly{
	{"G0", "dirty write", []string{"g0"}},
	{"G1a", dirtyRead, []string{"g1a"}},
	{"G1b", intermediate, []string{"g1b"}},
	{"G1c", circular, []string{"g1c"}},
	{"OTV", vanishes, []string{"otv", "otv-table"}},
	{"PMP", phantomRead, []string{"pmp"}},
	{"PMP", phantomByWrite, []string{"pmp-write", "pmp-write-first"}},
	{"P4", lostUpdate, []string{"p4"}},
	{"G-single", readSkew, []string{"g-single", "g-single-predicate"}},
	{"G-single", readSkewByWrite, []string{"g-single-write", "g-single-write-between"}},
	{"G2-item", writeSkew, []string{"g2-item"}},
	{"G2-item", readOnly, []string{"g2-two-edges", "g2-two-edges-open"}},
	{"G2", phantomSkew, []string{"g2"}},
}

// Catalogue returns the rows of isotap's own.
func Catalogue() ([]Row, error) {
	rows := make([]Row, len(own))
	for i, a := range own {
		rows[i] = Row{Name: a.name, About: a.about}
		for _, name := range a.files {
			s, err := read("hermitage/" + name + ".yaml")
			if err != nil {
				return nil, err
			}
			rows[i].Scenarios = append(rows[i].Scenarios, s)
		}
	}
	return rows, nil
}

func read(path string) (*scenario.Scenario, error) {
	file, err := library.Files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("isotap's catalogue: %w", err)
	}
	defer file.Close()
	s, err := scenario.Read(file)
	if err != nil {
		return nil, fmt.Errorf("isotap's catalogue: %s: %w", path, err)
	}
	s.File = "catalogue/" + path
	return s, nil
}

// Each returns a row for each of somebody else's scenarios.
func Each(all []*scenario.Scenario) []Row {
	rows := make([]Row, len(all))
	for i, s := range all {
		rows[i] = Row{Name: s.Name, Scenarios: []*scenario.Scenario{s}}
	}
	return rows
}
