package postgres

import (
	"slices"
)

// maxTargets is how many columns a result may have (MaxTupleAttributeNumber), less two that a SELECT around it adds.
const maxTargets = 1664 - 2

// covered reports whether an index alone might answer for a table.
func covered(s *source, u *usage) bool {
	if u.columns[s.ref] { // the whole row
		return false
	}
	return slices.ContainsFunc(s.table.Indexes, func(x Index) bool { return s.within(x, u) })
}

// within reports whether an index holds all columns of the source that the statement uses.
func (s *source) within(x Index, u *usage) bool {
	all := u.columns["*"] || u.columns[s.ref+".*"]
	for i, c := range s.table.Columns {
		used := all || u.columns[s.names[i]] || u.columns[s.ref+"."+s.names[i]]
		if used && !slices.Contains(x.Columns, c.Name) {
			return false
		}
	}
	return true
}
