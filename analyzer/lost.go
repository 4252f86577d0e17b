package analyzer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// lost says in values and keys what came of the witness, and whether that is little: two updates that share no column,
// or only the time of the change. Both are empty where the statements do not tell.
func (t *explainer) lost() (sentence string, slight bool, err error) {
	switch t.f.Anomaly {
	case StaleOverwrite:
		if t.f.Witness[0].NotFound {
			return t.setOver(), false, nil
		}
		return t.lostUpdate()
	case SilentRevert:
		return t.tookBack(), false, nil
	case StaleDecision:
		return t.tookFromLess(), false, nil
	case DoubleInsert, DoubleSet:
		return t.insertedTwice(), false, nil
	}
	if len(t.f.Witness) != 2 {
		return "", false, nil
	}
	switch t.f.Anomaly {
	case LostUpdate:
		if sentence, slight, err = t.lostUpdate(); err != nil || !slight {
			return sentence, slight, err
		}
		more, err := t.besides()
		if more == "" || err != nil {
			return sentence, slight, err
		}
		return more + " Besides, " + sentence, false, nil
	case WriteSkew, PhantomSkew:
		return t.skewed(), false, nil
	}
	return "", false, nil
}

// insertedTwice tells what two requests looked for and inserted.
func (t *explainer) insertedTwice() string {
	switch table, by := t.lookedFor(); {
	case table == "":
		return ""
	case t.f.Anomaly == DoubleSet:
		return fmt.Sprintf("%s with %s: two requests looked for one, found none, and now two rows are.", table, settings(by))
	case len(by) == 0:
		return table + ": two requests looked for any row, found none, and both inserted one."
	default:
		return fmt.Sprintf("%s with %s: two requests looked for one, found none, and both inserted one.", table, settings(by))
	}
}

// writtenOver returns the statement of a double set that set a row.
func (t *explainer) writtenOver() *history.Stmt {
	if s := t.f.Witness[0].ToStmt; s.Kind == history.Update {
		return s
	}
	return t.f.Witness[2].ToStmt
}

// setOver tells of a row that a request did not find, another inserted, and the first set.
func (t *explainer) setOver() string {
	last := &t.f.Witness[1]
	first, second := leftBy(t.family, last.FromStmt), deedOf(t.family, last.ToStmt)
	if first == nil || second == nil || second.where == "" {
		return ""
	}
	columns := setOtherwise(t.family, first, second, "")
	if len(columns) == 0 {
		return ""
	}
	return fmt.Sprintf("%s where %s: a request had looked for it in vain when another inserted it with %s, and then set %s over that.",
		second.table, second.where, first.setting(columns), second.setting(columns))
}

// tookBack tells of a row that a request set back, beside something else, over another's change.
func (t *explainer) tookBack() string {
	e, last := &t.f.Witness[0], &t.f.Witness[1]
	before, first, second := leftBy(t.family, e.FromStmt), deedOf(t.family, last.FromStmt), deedOf(t.family, last.ToStmt)
	if before == nil || first == nil || second == nil {
		return ""
	}
	back := setBack(before, first, second)
	if len(back) == 0 {
		return ""
	}
	row := second.table
	if second.where != "" {
		row += " where " + second.where
	}
	return fmt.Sprintf("%s: a request set %s; then another set %s again, as before, and %s anew, as if it had read the row before "+
		"the first.", row, first.setting(back), second.setting(back), second.setting(alsoChanged(before, first, second)))
}

// tookFromLess tells of a row that one request read, another left less in, and the first took from.
func (t *explainer) tookFromLess() string {
	last := &t.f.Witness[1]
	first, second := deedOf(t.family, last.FromStmt), deedOf(t.family, last.ToStmt)
	if first == nil || second == nil || second.where == "" {
		return ""
	}
	m := collide(t.family, t.f.Witness[0].FromStmt.Shape, last.FromStmt.Shape, last.ToStmt.Shape)
	columns := slices.DeleteFunc(slices.Clone(m.taken), func(c string) bool { return second.settingOf(c).adds >= 0 })
	if len(columns) == 0 {
		return ""
	}
	return fmt.Sprintf("%s where %s: a request had read it when another set %s, and then set %s by what it had read. "+
		"Nothing checks that there was enough.", second.table, second.where, first.setting(columns), second.setting(columns))
}

// lookedFor returns the table and the values that the witness' first statement looked for and the next one inserted; an
// empty table where that is not known.
func (t *explainer) lookedFor() (table string, by []setting) {
	e := &t.f.Witness[0]
	l, ins := lookupOf(t.family, e.FromStmt.Shape), rowValuesOf(t.family, e.ToStmt.Shape)
	if l == nil || ins == nil {
		return "", nil
	}
	if by = l.finds(e.FromStmt.Args, ins, e.ToStmt.Args); by == nil {
		return "", nil
	}
	return l.table, by
}

// lostUpdate tells of a row that one transaction read, another wrote, and the first wrote over.
func (t *explainer) lostUpdate() (sentence string, slight bool, err error) {
	last := &t.f.Witness[1]
	first, second := deedOf(t.family, last.FromStmt), deedOf(t.family, last.ToStmt)
	if first == nil || second == nil || second.where == "" {
		return "", false, nil
	}
	row := second.table + " where " + second.where
	if t.f.Class != Unprotected && t.lockedAgain(last) {
		return fmt.Sprintf("%s: a transaction that had read the row read it again, with a lock, and then wrote it over what another "+
			"had done in between: nothing is lost unless it went by what it had read first.", row), true, nil
	}
	if sawWhatItOverwrote(last) {
		return "", false, nil
	}
	if second.kind == history.Delete {
		return fmt.Sprintf("%s: one %s %s, and another, which had read the row before, deleted it.", row, t.party(),
			first.did()), false, nil
	}
	if first.kind != history.Update {
		return "", false, nil
	}
	both := first.shared(second)
	if len(both) == 0 {
		return fmt.Sprintf("%s: one %s set %s, and another, which had read the row before, set %s: "+
			"no column of both, so that neither change is lost by itself.", row, t.party(), first.columns(), second.columns()), true, nil
	}
	values := slices.DeleteFunc(slices.Clone(both), tellsTime)
	if len(values) == 0 {
		return fmt.Sprintf("%s: of what two %ss set, only %s collides.", row, t.party(), strings.Join(both, ", ")), true, nil
	}
	before, err := t.before()
	if err != nil {
		return "", false, err
	}
	if was := before.was(values); was != "" {
		row += ", " + was
	}
	return row + ": " + second.over(t.party(), first, before, values), false, nil
}

// sawWhatItOverwrote reports whether a transaction read a version before it wrote over it: it may have gone by that
// one, whatever it had read earlier.
func sawWhatItOverwrote(e *Edge) bool {
	return slices.ContainsFunc(e.To.Stmts, func(s history.Stmt) bool { return s.Num < e.ToStmt.Num && sawOverwritten(&s, e) })
}

// sawOverwritten reports whether a statement read the version that another of its transaction wrote over.
func sawOverwritten(s *history.Stmt, e *Edge) bool {
	return slices.ContainsFunc(s.Accesses, func(a history.Access) bool {
		return a.Op == history.Read && a.Row == e.Row && a.Version == e.Version
	})
}

// lockedAgain reports whether a transaction read a version with a lock before it wrote over it: who does that means to
// go by it, whatever he had read earlier. A SELECT that locks rows of the table, and was not observed, may have.
func (t *explainer) lockedAgain(e *Edge) bool {
	first := t.f.Witness[0].FromStmt
	return first != nil && slices.ContainsFunc(e.To.Stmts, func(s history.Stmt) bool {
		if s.Num <= first.Num || s.Num >= e.ToStmt.Num || s.Kind != history.Select || s.Locking == history.NoLock || s.Void {
			return false
		}
		return s.Observation != history.Exact && t.names(s.Shape, e.Row.Table) || sawOverwritten(&s, e)
	})
}

// names reports whether a shape has a table's name.
func (t *explainer) names(shape, table string) bool {
	return slices.ContainsFunc(wordsOf(t.family, shape), func(w word) bool {
		return w.name && strings.EqualFold(w.text, plainName(table))
	})
}

// party is what reads and writes.
func (t *explainer) party() string {
	if t.f.Class == Unprotected {
		return "request"
	}
	return "transaction"
}

// over says what it is to set columns that another party has set since they were read. Before is the deed that left
// what was read; nil if it is not known.
func (d *deed) over(party string, first, before *deed, columns []string) string {
	apart := first.differing(d, columns)
	if len(apart) > 0 {
		columns = apart
	}
	was, is := first.setting(columns), d.setting(columns)
	computed := slices.ContainsFunc(columns, func(c string) bool { return d.settingOf(c).computed })
	counted := slices.ContainsFunc(columns, func(c string) bool { return d.settingOf(c).amount() })
	switch {
	case computed:
		return fmt.Sprintf("one %s set %s; another had read the row before that, and by what it had read set %s.", party, was, is)
	case len(apart) == 0 && slices.ContainsFunc(columns, func(c string) bool { return d.settingOf(c).cut() }):
		return "two " + party + "s read it, and both wrote " + strings.Join(columns, ", ") + "."
	case len(apart) > 0:
		return fmt.Sprintf("one %s set %s, and another, which had read the row before that, set %s over it. "+
			"The first change%s is gone.", party, was, is, first.change(before, columns))
	case counted:
		return fmt.Sprintf("two %ss read it, and both set %s. One of the two changes%s is gone.", party, is,
			first.change(before, columns))
	}
	return fmt.Sprintf("two %ss read it, and both set %s. The second did not know of the first.", party, is)
}

// skewed tells of two transactions of which each read what the other was about to change.
func (t *explainer) skewed() string {
	var reads, deeds [2]*deed
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind != RW || e.FromStmt == nil {
			return ""
		}
		reads[i], deeds[1-i] = deedOf(t.family, e.FromStmt), deedOf(t.family, e.ToStmt)
	}
	for i := range reads {
		if reads[i] == nil || reads[i].where == "" || deeds[i] == nil {
			return ""
		}
	}
	if reads[0].kind != history.Select || reads[1].kind != history.Select {
		return ""
	}
	looked := [2]string{reads[0].table + " where " + reads[0].where, reads[1].table + " where " + reads[1].where}
	if looked[0] != looked[1] {
		return fmt.Sprintf("One transaction read %s and %s; another read %s and %s. Neither knew of the other's change.",
			looked[0], deeds[0].did(), looked[1], deeds[1].did())
	}
	if a, b := deeds[0].did(), deeds[1].did(); a != b {
		return fmt.Sprintf("Two transactions read %s; then one %s, and the other %s. Neither knew of the other's change.",
			looked[0], a, b)
	}
	return fmt.Sprintf("Two transactions read %s; then both %s. Neither knew of the other's change.", looked[0],
		deeds[0].did())
}

// change says by how much a number differs from what it was before; empty where that is not one number.
func (d *deed) change(before *deed, columns []string) string {
	if len(columns) != 1 || before.was(columns) == "" {
		return ""
	}
	from, known := before.settingOf(columns[0]).number()
	to, numeric := d.settingOf(columns[0]).number()
	if !known || !numeric || from == to {
		return ""
	}
	return fmt.Sprintf(" (%+.10g)", to-from)
}

// before returns the deed that left the row as the witness's first transaction read it; nil if it is not known.
func (t *explainer) before() (*deed, error) {
	tag := t.f.Witness[0].Version
	compact, err := t.a.store.tag(tag)
	if err != nil || tag.Initial() {
		return nil, err
	}
	i := t.a.store.find(compact)
	if i < 0 {
		return nil, nil
	}
	writer, err := t.a.load(i)
	if err != nil {
		return nil, err
	}
	for k := range writer.Stmts {
		if s := &writer.Stmts[k]; s.Num == tag.Stmt {
			return leftBy(t.family, s), nil
		}
	}
	return nil, nil
}
