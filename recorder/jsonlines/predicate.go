package jsonlines

import (
	"fmt"
	"slices"

	"github.com/isotap/isotap/history"
)

func writeCondition(p *history.Predicate) condition {
	return condition{Table: text(p.Table), Of: text(p.Of), As: text(p.As), Where: text(p.Where),
		TimeZone: text(p.Settings.TimeZone), DateStyle: text(p.Settings.DateStyle),
		IntervalStyle: text(p.Settings.IntervalStyle),
		SQLMode:       text(p.Settings.SQLMode), Collation: text(p.Settings.Collation), Wide: p.Wide,
		Told: writeAsked(p.Told)}
}

// askedWords are what history.Asked says, in words.
var askedWords = []struct {
	asked history.Asked
	word  string
}{{history.AskedTime, "time"}, {history.AskedUser, "user"}}

func writeAsked(a history.Asked) (words []string) {
	for _, of := range askedWords {
		if a.Has(of.asked) {
			words = append(words, of.word)
		}
	}
	return words
}

// readAsked takes words, of which later versions may know more.
func readAsked(words []string) (a history.Asked) {
	for _, of := range askedWords {
		if slices.Contains(words, of.word) {
			a |= of.asked
		}
	}
	return a
}

func readCondition(x *condition) history.Predicate {
	return history.Predicate{Table: string(x.Table), Of: string(x.Of), As: string(x.As), Where: string(x.Where),
		Wide: x.Wide, Told: readAsked(x.Told), Settings: history.LiteralSettings{TimeZone: string(x.TimeZone),
			DateStyle:     string(x.DateStyle),
			IntervalStyle: string(x.IntervalStyle),
			SQLMode:       string(x.SQLMode), Collation: string(x.Collation)}}
}

func writeMatches(m *history.Matches) *matches {
	x := &matches{Database: text(m.Database), Predicate: writeCondition(&m.Predicate),
		Versions: make([]version, len(m.Versions))}
	for i, v := range m.Versions {
		x.Versions[i] = version{history.Tag{Txn: v.Txn, Stmt: v.Stmt}.String(), v.Access}
	}
	return x
}

func readMatches(x *matches, run history.Run) (history.Matches, error) {
	m := history.Matches{Database: string(x.Database), Predicate: readCondition(&x.Predicate)}
	for _, v := range x.Versions {
		tag, err := history.ParseTag(v.Tag)
		if err != nil {
			return m, err
		}
		if tag.Txn.Run() != run || v.Access < 0 {
			return m, fmt.Errorf("version %s, access %d is not of run %s, among whose lines it stands", v.Tag, v.Access,
				run)
		}
		m.Versions = append(m.Versions, history.VersionRef{Txn: tag.Txn, Stmt: tag.Stmt, Access: v.Access})
	}
	return m, nil
}
