package mysql

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// rowCounts is what the server's reply said of the rows that a statement found and changed, for comparison with what
// was observed.
type rowCounts struct {
	affected   uint64
	matched    uint64 // UPDATE: see counted
	changed    uint64 // UPDATE: how many of the matched rows it changed
	counted    bool   // matched and changed are known
	records    uint64 // INSERT ... SELECT, LOAD DATA: how many rows there were
	hasRecords bool   // records is known
	returned   bool   // the reply was the client's own result set: its rows stand in affected
	foundRows  bool   // CLIENT_FOUND_ROWS: rows that stay as they are count as affected
}

// takeCounts takes the counts of a reply. foundRows says that the client has set CLIENT_FOUND_ROWS.
func (o *pendingStatement) takeCounts(r *reply, foundRows bool) {
	o.affected = r.ok.affected
	o.matched, o.changed, o.counted = matchedRows(r.ok.info)
	o.records, _, o.hasRecords = numberBehind(r.ok.info, "Records: ")
	o.foundRows = foundRows
	if o.returned = r.fields > 0; o.returned {
		o.affected = r.rows
	}
}

// rowsFound returns how many rows a statement found: for an UPDATE those that stay as they are, too. Where that is not
// known it is as many as a LIMIT can let it.
func (o *pendingStatement) rowsFound(x *exchange) uint64 {
	switch o.plan.Kind {
	case history.Update:
		if matched, _, counted := matchedRows(x.ok.info); counted {
			return matched
		}
		return math.MaxUint64 - 1
	case history.Delete:
		return max(x.rows, x.ok.affected)
	}
	return o.stmt.Rows
}

// mayHaveEntries reports whether the statement may have collected entries.
func (o *pendingStatement) mayHaveEntries() bool {
	switch {
	case !o.rewritten || !o.plan.Writes.Captured:
		return false
	case o.plan.Result.Collects:
		return true
	case o.plan.Writes.Inserts > 0:
		return len(o.plan.Writes.Beside) > 0 || !o.allInserted()
	case o.plan.Writes.Inserts == sqlmysql.CountUnknown:
		return o.affected > 0 || o.records > 0
	case o.plan.Kind == history.Update && o.counted:
		return o.matched > 0
	}
	return o.returned || o.affected > 0
}

// allInserted reports whether an INSERT's count alone tells that every row went in. Under ON DUPLICATE KEY
// UPDATE two rows count as affected where one is changed, and under CLIENT_FOUND_ROWS one where it stays.
func (o *pendingStatement) allInserted() bool {
	n := uint64(o.rowsToInsert)
	if !o.plan.Writes.Captured {
		return o.affected == n
	}
	return o.affected == 1 && n == 1 && !o.foundRows && !o.returned
}

// addCaptured records the versions that a statement found, by the entries that it collected. The server's own
// counts must agree.
func (o *pendingStatement) addCaptured(entries []sqlmysql.CaptureEntry) {
	entries, shown := splitArrays(entries)
	switch o.doubtful = false; {
	case o.plan.Result.Collects:
		o.addCollected(entries)
	case o.plan.Writes.Inserts != 0:
		o.addDuplicates(o.addReadRows(entries))
	default:
		o.addFoundRows(entries)
	}
	st := &o.txn.Stmts[o.index]
	for i := range st.Accesses {
		st.Accesses[i].Inexact = o.doubtful
	}
	o.addConstants(st)
	o.addBeside(shown)
}

// splitArrays tells entries of what subqueries read from others.
func splitArrays(entries []sqlmysql.CaptureEntry) (others, arrays []sqlmysql.CaptureEntry) {
	isArray := func(e sqlmysql.CaptureEntry) bool { return e.Array != "" }
	if !slices.ContainsFunc(entries, isArray) {
		return entries, nil
	}
	for _, e := range entries {
		if isArray(e) {
			arrays = append(arrays, e)
		} else {
			others = append(others, e)
		}
	}
	return others, arrays
}

// addBeside takes what subqueries read: each version once, since rows repeat them.
func (o *pendingStatement) addBeside(arrays []sqlmysql.CaptureEntry) {
	st := o.recorded()
	from := len(st.Accesses)
	known := make(map[string]bool)
	shown := make([]bool, len(o.plan.Writes.Beside))
	o.tooMuchBeside = false
	if o.withheld {
		arrays = nil // a read's copies had NULL in the place of the client's values
	}
	for _, e := range arrays {
		if e.Source >= len(shown) {
			continue
		}
		shown[e.Source] = true
		of := &o.plan.Writes.Beside[e.Source]
		n, ok := eachText([]byte(e.Array), func(text []byte) {
			if key := of.Table + " " + string(text); !known[key] {
				known[key] = true
				rowID, wList, _ := strings.Cut(string(text), "=")
				o.addShown(st, history.Row{Table: of.Table, ID: rowID}, wList)
			}
		})
		o.tooMuchBeside = o.tooMuchBeside || !ok || n >= of.Limit
	}
	lacking := o.tooMuchBeside
	for i, of := range o.plan.Writes.Beside {
		lacking = lacking || of.Whole && !shown[i]
	}
	if st.Images != nil { // those of the accesses before
		st.Images = append(st.Images, make([]string, len(st.Accesses)-from)...)
	}
	if lacking && st.Observation == history.Exact {
		st.Observation, st.Reason = history.Inexact, history.ReasonSubquery
	}
}

// addShown records a row that a subquery read.
func (o *pendingStatement) addShown(st *history.Stmt, row history.Row, wList string) {
	tags, err := history.ParseWList(wList)
	if row.ID == "" || err != nil || len(tags) == 0 {
		if st.Observation == history.Exact {
			st.Observation, st.Reason = history.Inexact, history.ReasonNoIdentity
		}
		return
	}
	last := len(tags) - 1
	st.Accesses = append(st.Accesses, history.Access{Row: row, Op: history.Read, Subquery: true,
		Version: tags[last], Prior: tags[:last:last]})
}

// showsNothing reports whether nobody knows what the statement's subqueries read that hang on no row: it found none to
// collect that beside.
func (o *pendingStatement) showsNothing() bool {
	return slices.ContainsFunc(o.plan.Writes.Beside, func(of sqlmysql.Source) bool { return of.Whole })
}

// addFoundRows takes the entries of an UPDATE or DELETE, which finds each row once: of several entries for a
// row the last one counts, and for an UPDATE of joined tables the first, as it does for the server.
func (o *pendingStatement) addFoundRows(entries []sqlmysql.CaptureEntry) {
	entries = o.lastEvaluation(entries)
	counts := make(map[history.Row]sqlmysql.CaptureEntry, len(entries))
	first := o.plan.Kind == history.Update && len(o.plan.Result.Sources) > 0
	for _, e := range entries {
		if missing := e.RowID == "" && e.WList == nil; missing && e.Outcome == sqlmysql.Deleted &&
			len(o.plan.Result.Sources) > 0 {
			continue // the inner side of an outer join
		}
		row := o.rowOf(e)
		if _, again := counts[row]; !again || !first {
			counts[row] = e
		}
	}
	rows := make([]history.Row, 0, len(counts))
	for row := range counts {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b history.Row) int { return strings.Compare(a.Table+a.ID, b.Table+b.ID) })
	var changed, deleted uint64
	for _, row := range rows {
		e := counts[row]
		switch e.Outcome {
		case sqlmysql.Changed:
			changed++
		case sqlmysql.Deleted:
			deleted++
		}
		o.addFound(row, e)
	}
	agrees := o.counted && changed == o.changed && uint64(len(rows)) == o.matched
	if o.plan.Kind == history.Delete {
		agrees = deleted == o.affected
	}
	if !agrees {
		o.downgradeRecorded(history.ReasonMiscounted)
	}
}

// lastEvaluation returns the entries of the evaluation that counted, where the server may have evaluated the statement
// several times: one after the other, and the last found as many rows as the server says. Where these are not told from
// others it returns all.
func (o *pendingStatement) lastEvaluation(entries []sqlmysql.CaptureEntry) []sqlmysql.CaptureEntry {
	found, known := o.matched, o.counted
	if o.plan.Kind == history.Delete {
		found, known = o.affected, true
	}
	if !o.plan.Writes.Retried || !known || uint64(len(entries)) <= found {
		return entries
	}
	last := entries[uint64(len(entries))-found:]
	rows := make(map[history.Row]bool, len(last))
	for _, e := range last {
		rows[o.rowOf(e)] = true
	}
	if len(rows) < len(last) {
		return entries
	}
	return last
}

// addReadRows takes the entries of what INSERT ... SELECT read, and gives the others. The rows that it made are
// as many as it has entries of its first table.
func (o *pendingStatement) addReadRows(entries []sqlmysql.CaptureEntry) []sqlmysql.CaptureEntry {
	st := &o.txn.Stmts[o.index]
	st.Accesses = nil
	if o.plan.Writes.Inserts > 0 {
		o.rowsToInsert = o.plan.Writes.Inserts
		return entries
	}
	o.rowsToInsert = 0
	var others []sqlmysql.CaptureEntry
	seen := make(map[history.Row]bool)
	for _, e := range entries {
		if e.Outcome != sqlmysql.Seen {
			others = append(others, e)
			continue
		}
		if e.Source == 0 {
			o.rowsToInsert++
		}
		row := o.rowOf(e)
		if missing := e.RowID == "" && e.WList == nil; !missing && !seen[row] {
			seen[row] = true
			o.addFound(row, e)
		}
	}
	return others
}

// addDuplicates takes the entries of INSERT ... ON DUPLICATE KEY UPDATE: each names a row that was not
// inserted. One row may be found several times, also by the statement that inserted it; what the statement
// itself wrote is no version of its own.
func (o *pendingStatement) addDuplicates(entries []sqlmysql.CaptureEntry) {
	st, tag := &o.txn.Stmts[o.index], o.tag()
	last := make(map[string]int, len(entries)) // by the row that was to be inserted
	for i, e := range entries {
		last[e.Instead] = i
	}
	found := make(map[history.Row]int) // where the row's access is
	affected := uint64(max(0, o.rowsToInsert-len(last)))
	for i, e := range entries {
		if last[e.Instead] != i {
			continue
		}
		switch {
		case e.Outcome == sqlmysql.Changed:
			affected += 2
		case o.foundRows:
			affected++
		}
		row := history.Row{Table: o.plan.Target, ID: e.RowID}
		if n := len(e.WList); n > 0 && e.WList[n-1] == tag {
			continue
		}
		if at, again := found[row]; !again {
			found[row] = len(st.Accesses)
			o.addFound(row, e)
		} else if e.Outcome == sqlmysql.Changed && at < len(st.Accesses) {
			st.Accesses[at].Op = history.UpdateRow
		}
	}
	left := make(map[string]bool, len(last))
	for id := range last {
		left[id] = true
	}
	st.Accesses = append(st.Accesses, o.insertedRows(left)...)
	if o.returned {
		affected = uint64(o.rowsToInsert)
	}
	switch {
	case o.plan.Kind == history.Replace && !o.returned && affected < o.affected && o.insertCountAgrees():
		o.downgradeReplace()
	case affected != o.affected || !o.insertCountAgrees():
		o.downgradeRecorded(history.ReasonMiscounted)
	}
}

// insertCountAgrees reports whether the server counted as many rows as there are entries.
func (o *pendingStatement) insertCountAgrees() bool {
	return o.plan.Writes.Inserts > 0 || !o.hasRecords || o.records == uint64(o.rowsToInsert)
}

// addCollected takes the entries of a read that collects: each row of its result was made of one at least, and what its
// queries read alike is read once.
func (o *pendingStatement) addCollected(entries []sqlmysql.CaptureEntry) {
	if uint64(len(entries)) < o.stmt.Rows {
		o.downgradeRecorded(history.ReasonMiscounted)
	}
	if bound, known := o.plan.Result.Limit.Bound(o.literals); !known || o.stmt.Rows >= bound {
		o.downgradeRecorded(history.ReasonLimit)
	}
	sources := o.plan.Result.Sources
	seen := make(map[history.Row]bool)
	for _, e := range entries {
		if e.Source >= len(sources) || e.RowID == "" && e.WList == nil && !sources[e.Source].Always {
			continue // of no table, or the missing side of an outer join
		}
		if row := o.rowOf(e); !seen[row] {
			seen[row] = true
			o.addFound(row, e)
		}
	}
}

func (o *pendingStatement) rowOf(e sqlmysql.CaptureEntry) history.Row {
	table := o.plan.Target
	if e.Source < len(o.plan.Result.Sources) {
		table = o.plan.Result.Sources[e.Source].Table
	}
	return history.Row{Table: table, ID: e.RowID}
}

// addFound records one row that a statement found: changed, deleted, or as it was.
func (o *pendingStatement) addFound(row history.Row, e sqlmysql.CaptureEntry) {
	if row.ID == "" || len(e.WList) == 0 {
		o.downgradeRecorded(history.ReasonNoIdentity)
		return
	}
	op := history.Read
	switch e.Outcome {
	case sqlmysql.Changed:
		op = history.UpdateRow
	case sqlmysql.Deleted:
		op = history.DeleteRow
	}
	last := len(e.WList) - 1
	st := &o.txn.Stmts[o.index]
	st.Accesses = append(st.Accesses, history.Access{Row: row, Op: op, Version: e.WList[last],
		Prior: e.WList[:last:last]})
}

// addInserted records the rows of an INSERT, whose ids derive from its tag. When its count does not tell that all of
// them went in, each is only a candidate; entries may tell more later. Where they are more than there is room for, none
// is kept.
func (o *pendingStatement) addInserted(room *txnstate.Unrecorded) {
	o.rowsToInsert = o.plan.Writes.Inserts
	switch {
	case o.rowsToInsert == 0, o.rowsToInsert == sqlmysql.CountUnknown && o.plan.Writes.Captured:
		return
	case o.rowsToInsert == sqlmysql.CountUnknown && o.hasRecords:
		o.rowsToInsert = int(o.records)
	case o.rowsToInsert == sqlmysql.CountUnknown:
		o.rowsToInsert = int(o.affected)
	}
	if o.doubtful = !o.allInserted(); o.doubtful && !o.plan.Writes.Captured {
		o.downgradeInserted()
	}
	switch {
	case o.rowsToInsert < 0, o.rowsToInsert > maxIdentities:
		o.rowsToInsert = 0
		o.downgrade(history.Inexact, history.ReasonTooManyRows)
	case !room.Admits(txnstate.AccessBytes * o.rowsToInsert):
		o.rowsToInsert = 0
		o.downgrade(history.Inexact, history.ReasonTxnMemory)
	}
	o.stmt.Accesses = o.insertedRows(nil)
	for i := range o.stmt.Accesses {
		o.stmt.Accesses[i].Inexact = o.doubtful
	}
	o.addConstants(&o.stmt)
}

// addConstants gives the rows that an INSERT surely made the image that they have alike.
func (o *pendingStatement) addConstants(st *history.Stmt) {
	if o.constant == "" || o.doubtful {
		return
	}
	image := o.constant
	if column := o.plan.Writes.Images.Constant.AutoIncrement; column != "" && o.rowsToInsert == 1 && o.insertID > 0 {
		columns, values, _ := strings.Cut(image, sqlmysql.ImageValues)
		image = "(" + column + ", " + columns[1:] + sqlmysql.ImageValues + strconv.FormatUint(o.insertID, 10) + ", " + values
	}
	st.Images = make([]string, len(st.Accesses))
	for i := range st.Accesses {
		if st.Accesses[i].Op == history.InsertRow {
			st.Images[i] = image
		}
	}
}

// downgradeInserted downgrades an INSERT whose count is not that of its rows. REPLACE counts the rows that it
// replaced, too; the only row of one is there in any case.
func (o *pendingStatement) downgradeInserted() {
	if o.plan.Kind != history.Replace && o.affected < uint64(o.rowsToInsert) {
		o.downgrade(history.Inexact, history.ReasonRowsLeftOut)
		return
	}
	o.downgrade(history.Inexact, history.ReasonReplace)
	o.doubtful = o.rowsToInsert > 1
}

// downgradeReplace is downgradeInserted for a REPLACE that stands in its transaction already.
func (o *pendingStatement) downgradeReplace() {
	if o.doubtful = o.doubtful || o.rowsToInsert > 1; o.doubtful {
		o.downgradeRecorded(history.ReasonReplace)
		return
	}
	if st := &o.txn.Stmts[o.index]; st.Observation == history.Exact {
		st.Observation, st.Reason = history.Inexact, history.ReasonReplace
	}
}

// insertedRows returns accesses for the rows of an INSERT but those left out.
func (o *pendingStatement) insertedRows(left map[string]bool) []history.Access {
	accesses := make([]history.Access, 0, o.rowsToInsert)
	tag := o.tag()
	var id []byte
	for i := range o.rowsToInsert {
		id = sqlmysql.AppendRowID(id[:0], tag, i)
		if !left[string(id)] {
			row := history.Row{Table: o.plan.Target, ID: string(id)}
			accesses = append(accesses, history.Access{Row: row, Op: history.InsertRow})
		}
	}
	return accesses
}

// mayHaveImages reports whether images of what the statement wrote may have been collected.
func (o *pendingStatement) mayHaveImages() bool {
	return o.rewritten && !o.plan.Writes.Images.Empty() && (o.returned || max(o.affected, o.changed) > 0)
}

// takeImages gives the images that a read found to the statements of its batch. With an error it gives those before the
// bad one.
func takeImages(batch []*pendingStatement, collected []byte) error {
	entries, err := sqlmysql.ParseImages(collected)
	byTag := make(map[history.Tag][]sqlmysql.ImageEntry, len(batch))
	for _, e := range entries {
		byTag[e.Tag] = append(byTag[e.Tag], e)
	}
	for _, o := range batch {
		if found := byTag[o.tag()]; len(found) > 0 {
			o.addImages(found)
		}
	}
	return err
}

// addImages gives a recorded statement its images. Of several of a row the last one is what the statement left.
func (o *pendingStatement) addImages(entries []sqlmysql.ImageEntry) {
	if o.doubtful && o.plan.Writes.Inserts == sqlmysql.CountUnknown {
		return // LOAD DATA pictures the rows that it leaves out, too
	}
	last := make(map[string]*sqlmysql.ImageEntry, len(entries))
	unnumbered := 0
	for i := range entries {
		e := &entries[i]
		last[e.RowID] = e
		if e.Inserted && strings.HasPrefix(e.Values, zeroFirst) {
			unnumbered++
		}
	}
	numbers := o.insertID > 0 && o.plan.Writes.Images.Consecutive && unnumbered == o.rowsToInsert
	st := o.recorded()
	images := make([]string, len(st.Accesses))
	for i := range st.Accesses {
		a := &st.Accesses[i]
		if e := last[a.Row.ID]; e != nil && (a.Op == history.InsertRow || a.Op == history.UpdateRow) {
			images[i] = o.image(e, numbers)
		}
	}
	st.Images = images
}

// zeroFirst begins the values of a row that the server has not numbered yet.
const zeroFirst = "0,"

// image returns an image in the form that the server reads again. numbers says that the server numbered every row of
// the statement.
func (o *pendingStatement) image(e *sqlmysql.ImageEntry, numbers bool) string {
	picture := &o.plan.Writes.Images
	if !e.Inserted {
		columns, values := picture.Updated, e.Values
		if names, constants, known := strings.Cut(o.constant, sqlmysql.ImageValues); known { // ends with a parenthesis
			columns, values = columns[:len(columns)-1]+", "+names[1:], values+", "+strings.TrimSuffix(constants, ")")
		}
		return columns + sqlmysql.ImageValues + values + ")"
	}
	columns, values := picture.Inserted, e.Values
	if rest, zero := strings.CutPrefix(values, zeroFirst); picture.AutoIncrement && zero {
		if told := o.numbersTold[e.RowID]; told != "" {
			values = told + "," + rest
		} else if n := o.numbered(e.RowID); numbers && n > 0 {
			values = strconv.FormatUint(n, 10) + "," + rest
		} else { // what the server gave the row is not known
			_, others, _ := strings.Cut(columns, "`, ")
			columns, values = "("+others, rest
		}
	}
	return columns + sqlmysql.ImageValues + values + ")"
}

// numbered returns the number that the server gave an inserted row, where it numbered all of the statement; 0 where
// that is not known.
func (o *pendingStatement) numbered(rowID string) uint64 {
	_, text, _ := strings.Cut(rowID, ":")
	ordinal, err := strconv.ParseUint(text, 36, 32)
	if err != nil || ordinal > 0 && o.increment == 0 {
		return 0
	}
	return o.insertID + ordinal*o.increment
}
