//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// stored is what the server has in the works' tables, to hold clients' words and recordings against.
type stored struct {
	slots   map[int]storedSlot
	entries map[string]storedEntry // by row id
	markers map[string]int         // how many entries have each marker
}

type storedSlot struct{ row, marker string }

// A storedEntry is a row of the table entry. Its version is the list of its tags, on PostgreSQL xmin and ctid.
type storedEntry struct{ marker, version string }

// readStored reads the tables. slots is a query for the slots' numbers, row ids and markers, entries one for the
// entries' row ids, markers and versions.
func readStored(ctx context.Context, db *sql.DB, slots, entries string) (*stored, error) {
	s := &stored{make(map[int]storedSlot), make(map[string]storedEntry), make(map[string]int)}
	err := read(ctx, db, slots, func(scan func(...any) error) error {
		var id int
		var found storedSlot
		err := scan(&id, &found.row, &found.marker)
		s.slots[id] = found
		return err
	})
	return s, errors.Join(err, read(ctx, db, entries, func(scan func(...any) error) error {
		var row string
		var e storedEntry
		err := scan(&row, &e.marker, &e.version)
		s.entries[row] = e
		s.markers[e.marker]++
		return err
	}))
}

// read calls take with the scanner of each row of a query.
func read(ctx context.Context, db *sql.DB, query string, take func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows.Scan); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// check returns what is wrong with the record of a committed transaction. Where exactly is false, a statement that was
// not observed exactly may have no accesses: the server was gone before it could be asked for them.
func (a *ack) check(t *history.Txn, s *stored, exactly bool) error {
	if t.Status != history.Committed {
		return fmt.Errorf("it is recorded as %v", t.Status)
	}
	if len(t.Stmts) != len(a.work.stmts) {
		return fmt.Errorf("%d statements of %d are recorded", len(t.Stmts), len(a.work.stmts))
	}
	for i, want := range a.work.stmts {
		st := &t.Stmts[i]
		if !exactly && st.Kind == want.kind && st.Observation != history.Exact {
			continue
		}
		if st.Kind != want.kind || len(st.Accesses) != want.rows || st.Void || st.Error.Code != 0 {
			return fmt.Errorf("statement %d, a %v of %d rows, is recorded as %+v", i+1, want.kind, want.rows, *st)
		}
		if want.rows > 0 && st.Observation != history.Exact {
			return fmt.Errorf("statement %d is %v: %s", i+1, st.Observation, st.Reason)
		}
		for j := range st.Accesses {
			if got := &st.Accesses[j]; got.Op != want.op {
				return fmt.Errorf("statement %d: %v of row %s, not %v", i+1, got.Op, got.Row.ID, want.op)
			}
			if err := s.check(a, st, j, history.Tag{Txn: t.ID, Stmt: st.Num}); err != nil {
				return fmt.Errorf("statement %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// check returns what is wrong with an access that a transaction made by a statement.
func (s *stored) check(a *ack, st *history.Stmt, access int, tag history.Tag) error {
	got := &st.Accesses[access]
	if got.Op != history.InsertRow {
		if want := s.slots[a.changes()].row; got.Row.ID != want {
			return fmt.Errorf("%v of row %s, not %s", got.Op, got.Row.ID, want)
		}
		return nil
	}
	recorded := storedEntry{a.marker, tag.String()}
	if st.TupleIDs != nil {
		if len(st.TupleIDs) != len(st.Accesses) {
			return fmt.Errorf("%d places of %d rows", len(st.TupleIDs), len(st.Accesses))
		}
		place := &st.TupleIDs[access]
		recorded.version = fmt.Sprintf("%d (%d,%d)", place.NewXID, place.NewID>>16, place.NewID&0xffff)
	}
	if s.entries[got.Row.ID] != recorded {
		return fmt.Errorf("the server has %q as row %s, not %q", s.entries[got.Row.ID], got.Row.ID, recorded)
	}
	return nil
}

// changes is the slot that the transaction changes.
func (a *ack) changes() int {
	if len(a.work.stmts) > 1 {
		return sharedSlot
	}
	return a.slot
}

// inserts is how many entries the transaction makes.
func (w *work) inserts() (n int) {
	for _, st := range w.stmts {
		if st.op == history.InsertRow {
			n += st.rows
		}
	}
	return n
}

// recordedTxns reads a recording and returns its transactions by their marker.
func recordedTxns(ctx context.Context, dir string) (_ map[string]*history.Txn, _ []history.Info, err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open the recording: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	byMarker := make(map[string]*history.Txn)
	for txn, err := range r.Txns(ctx) {
		if err != nil {
			return nil, nil, fmt.Errorf("read the recording: %w", err)
		}
		for _, marker := range markers(txn) {
			if other := byMarker[marker]; other != nil {
				return nil, nil, fmt.Errorf("read the recording: transactions %v and %v both have %s", other.ID, txn.ID,
					marker)
			}
			byMarker[marker] = txn
		}
	}
	return byMarker, r.Runs(), nil
}

// markers are the distinct markers among a transaction's arguments.
func markers(t *history.Txn) []string {
	var found []string
	for _, s := range t.Stmts {
		for _, arg := range s.Args {
			if m := strings.Trim(arg, "'"); strings.HasPrefix(m, "m") && !slices.Contains(found, m) {
				found = append(found, m)
			}
		}
	}
	return found
}
