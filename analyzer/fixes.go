package analyzer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// advice returns what to change, the smallest fix first, and whether it would have helped.
func (t *explainer) advice() ([]string, error) {
	if t.f.Class == Violation && t.a.opts.Model == nil && t.a.opts.Expect == history.LevelUnknown {
		return []string{"This is the engine's fault, not the application's: report it to its developers, " +
			"with the statements of the witness."}, nil
	}
	if t.f.Class == Unprotected {
		return t.protect(), nil
	}
	level := t.levelAgainst()
	if slices.Contains([]Anomaly{G0, G1a, G1b, G1c}, t.f.Anomaly.base()) {
		if level == "" {
			return nil, nil
		}
		return []string{"Run these transactions at " + level + "."}, nil
	}
	again := t.keepBegun()
	if again != nil && t.allSerializable() {
		return again, nil
	}
	fixes, err := t.statementFixes()
	if err != nil {
		return nil, err
	}
	fixes = append(again, fixes...)
	if t.allSerializable() && !t.postgres() {
		return fixes, nil
	}
	return append(fixes, t.levelFix(level, fixes)), nil
}

// allSerializable reports whether all transactions of the witness ran at SERIALIZABLE.
func (t *explainer) allSerializable() bool {
	return !slices.ContainsFunc(t.f.Txns(), func(x *history.Txn) bool { return x.Level != history.Serializable })
}

// keepBegun advises to keep what a transaction has read so far through a ROLLBACK TO, where it gave that back.
func (t *explainer) keepBegun() []string {
	i := slices.IndexFunc(t.f.Witness, func(e Edge) bool { return e.BegunAgain })
	if i < 0 {
		return nil
	}
	return []string{"Set the savepoint behind the transaction's first read of a table, so that ROLLBACK TO keeps the " +
		"locks and the snapshot; or read again, behind it, what " + t.name(t.f.Witness[i].beganAgain()) +
		" had read before."}
}

// statementFixes advise to change statements or tables.
func (t *explainer) statementFixes() ([]string, error) {
	// What is to be locked and what is to be kept away goes together.
	fixes := append(t.keepAway(), t.lockReads()...)
	together := len(fixes)
	remedies := make([]remedy, max(0, len(fixes)-1), len(fixes)+3)
	if len(fixes) > 0 {
		remedies = append(remedies, t.guarded())
	}
	if t.f.Anomaly == LostUpdate {
		more, how, err := t.keepUpdate()
		if err != nil {
			return nil, err
		}
		fixes, remedies = append(fixes, more...), append(remedies, how...)
	}
	if key, how := t.uniqueKey(); key != "" {
		fixes, remedies = append(fixes, key), append(remedies, how)
	}
	for i, r := range remedies {
		if r == nil {
			continue
		}
		with := "With this"
		if i == together-1 && i > 0 {
			with = "With all of this"
		}
		var err error
		if fixes[i], err = t.checked(fixes[i], with, r); err != nil {
			return nil, err
		}
	}
	return fixes, nil
}

// levelFix advises another level, which forbids the anomaly.
func (t *explainer) levelFix(level string, before []string) string {
	switch {
	case level == "":
		return "No isolation level of this server forbids it: only the statements can be changed."
	case t.snapshotsOnly():
		return orElse(before) + "un these transactions at " + level + "."
	case t.postgres() && level == history.Serializable.String():
		return orElse(before) + "un these transactions at SERIALIZABLE, all of them: " +
			"it protects serializable transactions from each other only. " +
			"Repeat those that the server then refuses with SQLSTATE 40001."
	case t.postgres():
		return orElse(before) + "un these transactions at " + level +
			", and repeat those that the server then refuses with SQLSTATE 40001."
	}
	return orElse(before) + "un these transactions at " + level + ", and repeat those that the server then refuses."
}

// orElse begins a sentence with "run": the first piece of advice, or one more.
func orElse(before []string) string {
	if len(before) == 0 {
		return "R"
	}
	return "Or r"
}

// lockReads advises to lock the rows that a decision rests on, for each plain SELECT of an rw.
func (t *explainer) lockReads() []string {
	var fixes []string
	seen := make(map[string]bool)
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind != RW || e.NotFound || e.FromStmt == nil || seen[e.FromStmt.Shape] {
			continue
		}
		seen[e.FromStmt.Shape] = true
		if locked, ok := withLock(t.family, e.FromStmt, e.Row.Table); ok {
			t.f.Suggested = append(t.f.Suggested, locked)
			fixes = append(fixes, fmt.Sprintf("Lock the rows that the transaction goes by: `%s`%s.", locked,
				t.weakerLock()))
		} else if e.FromStmt.Locking == history.NoLock {
			fixes = append(fixes, fmt.Sprintf("Lock the rows of %s that the transaction goes by before %s reads them.",
				e.Row.Table, shapeOf(e.FromStmt)))
		}
	}
	return fixes
}

// keepAway advises what keeps rows away that a condition looked for and did not find: no lock on rows does.
func (t *explainer) keepAway() []string {
	var fixes []string
	seen := make(map[string]bool)
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind != RW || !e.NotFound || e.FromStmt == nil || seen[e.FromStmt.Shape] {
			continue
		}
		seen[e.FromStmt.Shape] = true
		unique := "UNIQUE"
		if names := keyColumns(e.FromStmt, e.ToStmt); len(names) > 0 {
			unique += " (" + strings.Join(names, ", ") + ")"
		}
		fixes = append(fixes, fmt.Sprintf("Let a constraint of %s (%s, or EXCLUDE for ranges) "+
			"forbid the rows that %s looks for, or lock first, in every such transaction, "+
			"one row that stands for all of them, such as their parent's: "+
			"locks on the rows that it finds keep no new ones away.", e.Row.Table, unique, shapeOf(e.FromStmt)))
	}
	return fixes
}

// weakerLock names the lock that does where FOR UPDATE does more than is needed.
func (t *explainer) weakerLock() string {
	if t.postgres() {
		return " (FOR NO KEY UPDATE is enough where no key changes)"
	}
	return ""
}

// withLock appends FOR UPDATE to a plain SELECT where that is all it takes to lock the rows of a table
// ([history.Row].Table) that it reads.
func withLock(family dbms.Family, s *history.Stmt, table string) (string, bool) {
	if s.Kind != history.Select || s.Locking != history.NoLock {
		return "", false
	}
	shape := strings.TrimRight(s.Shape, " \t\r\n;")
	selects, end := 0, 0
	for _, token := range sqltoken.Shape(family, shape) {
		if strings.TrimSpace(shape[end:token.Start]) != "" {
			return "", false // a comment
		}
		end = token.End
		switch {
		case slices.ContainsFunc(unlockable, token.Is):
			return "", false
		case token.Is("SELECT"):
			selects++
		}
	}
	if selects != 1 || end < len(shape) {
		return "", false
	}
	of, ok := "", true
	if family == dbms.PostgreSQLFamily {
		of, ok = lockable(wordsOf(family, shape), table)
	}
	return shape + " FOR UPDATE" + of, ok
}

// lockable returns what is to stand behind FOR UPDATE on PostgreSQL, which locks no rows that an outer join may lack,
// and none under an aggregate.
func lockable(words []word, table string) (of string, ok bool) {
	outer, first := false, ""
	for i := range words {
		w := &words[i]
		switch {
		case slices.ContainsFunc(aggregates, w.keyword) && i+1 < len(words) && words[i+1].text == "(",
			w.keyword("HAVING"), w.keyword("OVER"), w.keyword("RIGHT"), w.keyword("FULL"):
			return "", false
		case w.keyword("LEFT") && i+1 < len(words) && (words[i+1].keyword("JOIN") || words[i+1].keyword("OUTER")):
			outer = true
		case w.keyword("FROM") && first == "":
			if first = firstOf(words[i+1:], table); first == "" {
				first = "("
			}
		}
	}
	switch {
	case !outer:
		return "", true
	case first == "(":
		return "", false
	}
	return " OF " + first, true
}

// aggregates are functions under which PostgreSQL locks no rows.
var aggregates = []string{"COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG", "STRING_AGG", "JSON_AGG", "JSONB_AGG",
	"BOOL_AND", "BOOL_OR", "EVERY"}

// firstOf returns the name by which a query refers to the first table of its FROM, behind which the words begin, as the
// text has it; empty where that is another than the wanted one.
func firstOf(words []word, table string) string {
	at := 0
	if len(words) > 2 && words[1].text == "." {
		at = 2
	}
	_, bare, _ := strings.Cut(table, ".")
	bare, _, _ = strings.Cut(bare, "@")
	if len(words) <= at || !words[at].name || !strings.EqualFold(words[at].text, bare) {
		return ""
	}
	name := &words[at]
	if at++; at < len(words) && words[at].keyword("AS") {
		at++
	}
	if at < len(words) && words[at].name && !slices.ContainsFunc(behindTable, words[at].keyword) {
		name = &words[at]
	}
	if name.quoted {
		return `"` + strings.ReplaceAll(name.text, `"`, `""`) + `"`
	}
	return name.text
}

// behindTable are keywords that may stand behind a table's name.
var behindTable = []string{"LEFT", "JOIN", "INNER", "CROSS", "NATURAL", "WHERE", "ORDER", "LIMIT", "OFFSET", "FETCH",
	"TABLESAMPLE"}

// unlockable are words of queries whose rows are none of a table's.
var unlockable = []string{"UNION", "INTERSECT", "EXCEPT", "GROUP", "DISTINCT", "INTO", "PROCEDURE"}

// keepUpdate advises how the write of a lost update can do without what was read.
func (t *explainer) keepUpdate() (fixes []string, how []remedy, err error) {
	read, write := t.f.Witness[0].FromStmt, t.f.Witness[len(t.f.Witness)-1].ToStmt
	if read == nil || write == nil || write.Unseen { // nobody knows what it says
		return nil, nil, nil
	}
	if write.Kind == history.Update && computes(t.family, write.Shape) {
		return []string{fmt.Sprintf("Or put the condition that %s was read for into the WHERE of %s, "+
			"which computes from the column already, and look at the number of affected rows.",
			shapeOf(read), shapeOf(write))}, []remedy{t.unread()}, nil
	}
	if write.Kind == history.Update {
		inPlace, err := t.writeInPlace(read, write)
		if err != nil {
			return nil, nil, err
		}
		if inPlace != "" {
			fixes, how = append(fixes, inPlace), append(how, t.unread())
		}
	}
	version := fmt.Sprintf("Or add a version column: check it in the WHERE of %s, "+
		"and begin again when no row is affected.", shapeOf(write))
	return append(fixes, version), append(how, t.refused(t.g.witness[0].from)), nil
}

// writeInPlace advises to let the server compute the new value, where what was recorded allows that it was computed
// from what was read; empty elsewhere.
func (t *explainer) writeInPlace(read, write *history.Stmt) (string, error) {
	set, err := t.computedInPlace(read, write)
	if err != nil || set == nil {
		return "", err
	}
	if len(assignmentsOf(t.family, write.Shape)) > 1 {
		return fmt.Sprintf("Or let %s compute the new value from the column itself (SET %s = %s + ?) "+
			"in place of writing what %s read.", shapeOf(write), set.target, set.target, shapeOf(read)), nil
	}
	text := set.inPlace(write.Shape)
	t.f.Suggested = append(t.f.Suggested, text)
	return fmt.Sprintf("Or let the server compute the new value, in place of writing what %s read: "+
		"`%s`, with the difference.", shapeOf(read), text), nil
}

// uniqueKey advises a key where rows that come into being are at fault, which cannot be locked before: where two of the
// transactions insert into the table, the second then fails.
func (t *explainer) uniqueKey() (string, remedy) {
	for i := range t.f.Witness {
		e := &t.f.Witness[i]
		if e.Kind != RW || !inserts(e.ToStmt) || !t.insertsToo(e) {
			continue
		}
		columns := ""
		if names := keyColumns(e.FromStmt, e.ToStmt); len(names) > 0 {
			columns = " over (" + strings.Join(names, ", ") + ")"
		}
		key := fmt.Sprintf("Or give %s a unique key%s that the second %s then violates: "+
			"rows that are not there yet cannot be locked.", e.Row.Table, columns, shapeOf(e.ToStmt))
		if t.postgres() {
			if strings.Contains(strings.ToUpper(e.ToStmt.Shape), "ON CONFLICT") {
				return "", nil // it has the key already
			}
			key += " With ON CONFLICT the INSERT itself says what follows."
		}
		return key, t.refused(t.g.witness[i].from)
	}
	return "", nil
}

func inserts(s *history.Stmt) bool {
	return s != nil && (s.Kind == history.Insert || s.Kind == history.Replace)
}

// insertsToo reports whether the reader of an rw inserts a row into its table itself.
func (t *explainer) insertsToo(e *Edge) bool {
	return slices.ContainsFunc(e.From.Stmts, func(s history.Stmt) bool {
		return inserts(&s) && slices.ContainsFunc(s.Accesses,
			func(a history.Access) bool { return a.Row.Table == e.Row.Table && a.Op == history.InsertRow })
	})
}

var (
	// equality finds a column that is compared with a value, in a shape.
	equality = regexp.MustCompile("(?:`?[\\w$]+`?\\.|\"[^\"]+\"\\.)?(`[^`]+`|\"[^\"]+\"|[\\w$]+)\\s*=\\s*(?:\\?|\\$\\d+)")
	// columnList finds the columns of an INSERT.
	columnList = regexp.MustCompile(`(?is)^\s*(?:INSERT|REPLACE)\b[^(]*\(([^()]*)\)\s*(?:OVERRIDING\b.*?)?(?:VALUES?|SELECT)\b`)
)

// keyColumns returns the columns by which a SELECT looked for rows and that an INSERT then fills: what a key would be
// over.
func keyColumns(read, insert *history.Stmt) []string {
	if read == nil || insert == nil {
		return nil
	}
	_, where, ok := strings.Cut(strings.ToUpper(read.Shape), "WHERE")
	list := columnList.FindStringSubmatch(insert.Shape)
	if !ok || list == nil {
		return nil
	}
	bare := func(name string) string { return strings.Trim(strings.TrimSpace(name), "`\"") }
	filled := make(map[string]bool)
	for _, name := range strings.Split(list[1], ",") {
		filled[strings.ToUpper(bare(name))] = true
	}
	var names []string
	for _, m := range equality.FindAllStringSubmatch(read.Shape[len(read.Shape)-len(where):], -1) {
		if name := bare(m[1]); filled[strings.ToUpper(name)] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// levelAgainst names the weakest level of the engine that forbids the anomaly; empty where none does.
func (t *explainer) levelAgainst() string {
	protected := &t.a.store.txns[t.protected()]
	s := t.a.store.runs[protected.run].info.Server
	snapshot := slices.Contains([]Anomaly{GSingle, GNonadjacent}, t.f.Anomaly.base())
	for _, l := range []history.Level{history.ReadCommitted, history.RepeatableRead} {
		p := PromiseOf(s, l, protected.conflicts)
		if p.forbids(t.f.Anomaly) || p.FirstCommitterWins && snapshot || p.Snapshot && t.snapshotsOnly() {
			return l.String()
		}
	}
	switch {
	case s.Engine == dbms.MariaDB && snapshot:
		return "REPEATABLE READ with innodb_snapshot_isolation=ON, or SERIALIZABLE"
	case s.Engine == dbms.TiDB && snapshot:
		return "REPEATABLE READ in optimistic mode (BEGIN OPTIMISTIC)"
	case s.Engine == dbms.TiDB:
		return ""
	}
	return history.Serializable.String()
}

// snapshotsOnly reports whether the finding is one transaction's plain reads seeing two states.
func (t *explainer) snapshotsOnly() bool {
	first, last := &t.f.Witness[0], &t.f.Witness[len(t.f.Witness)-1]
	return t.f.Anomaly.base() == GSingle && first.Kind == RW && last.Kind == WR && !first.Current && !last.Current
}
