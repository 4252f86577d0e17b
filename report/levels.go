package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// levels says which levels of the theory the history satisfies and violates, as Elle does; empty where nothing
// was observed.
func levels(r *analyzer.Result) string {
	v := &r.Levels
	if r.Coverage.Exact == 0 || len(v.Violated)+len(v.Satisfied) == 0 {
		return ""
	}
	if len(v.Violated) == 0 {
		if slices.ContainsFunc(r.Runs, func(i history.Info) bool { return i.Mode == "predicates" }) {
			return "satisfies every level, strict serializability too, as far as rows and the conditions that were tested tell"
		}
		return "satisfies every level, strict serializability too, as far as rows tell (predicates were not observed)"
	}
	most := "satisfies no level"
	if len(v.Strongest) > 0 {
		most = "satisfies " + strings.Join(named(v.Strongest), ", ") + " at most"
	}
	var weakest []string
	for _, l := range v.Violated {
		if l.Weakest {
			weakest = append(weakest, fmt.Sprintf("%s (%s)", levelAlias(l.Level), l.By))
		}
	}
	return most + "; violates " + strings.Join(weakest, ", ") + " and what is stronger"
}

// named returns each level's name with the one that Elle has for it.
func named(levels []string) []string {
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = levelAlias(l)
	}
	return names
}

func levelAlias(name string) string {
	if l, err := analyzer.FindLevel(name); err == nil && !strings.HasPrefix(name, "strong") {
		return name + " " + l.Usual()
	}
	return name
}
