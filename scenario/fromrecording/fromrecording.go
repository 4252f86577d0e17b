// Package fromrecording makes scenarios of what recordings hold, such as a server can play: the interleaving of a
// finding's witness, on the tables as the recording says they were defined, with the rows that earlier transactions
// wrote.
package fromrecording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/sqltoken"
)

// maxWrites is how many statements of earlier transactions a scenario begins with at most.
const maxWrites = 2000

// Scenario returns the scenario of a finding in a recording. Of its set-up, rows are statements that make rows; without
// any, what committed transactions of the same run wrote into the witness's tables before it is played again, in the
// order in which they ended.
func Scenario(ctx context.Context, r *recorder.Reader, f *analyzer.Finding, rows []string) (*scenario.Scenario, error) {
	s := report.Scenario(f, r.Runs())
	if s == nil {
		return nil, fmt.Errorf("finding %s has no transaction to play", f.ID)
	}
	t := newTables(f)
	if err := t.define(ctx, r); err != nil {
		return nil, err
	}
	if err := t.plays(f.Txns(), rows != nil); err != nil {
		return nil, fmt.Errorf("finding %s: %w", f.ID, err)
	}
	if rows == nil {
		var err error
		if rows, err = t.writes(ctx, r, f.Txns()); err != nil {
			return nil, fmt.Errorf("finding %s: %w: say with --rows which rows it needs", f.ID, err)
		}
	}
	s.Setup = slices.Concat(t.made, rows, t.referring)
	for _, sql := range s.Setup {
		if err := t.stays(sql); err != nil {
			return nil, err
		}
	}
	for i := range s.Steps {
		if err := t.stays(s.Steps[i].SQL); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// plays returns why the witness's transactions cannot be played: somebody wrote past isotap, of which the server's log
// tells rows and no values, or something wrote that the recording does not have, like a trigger. Given says that
// whoever asks has said which statements are to come before: these may make it.
func (t *tables) plays(witness []*history.Txn, given bool) error {
	for _, x := range witness {
		if x.ID.Run().Past() {
			return errors.New("a transaction of it went past isotap: what it sent is not known")
		}
		for i := range x.Stmts {
			if x.Stmts[i].Reason == history.ReasonDoBlock {
				return errors.New("the body of a DO block is not recorded: it may have passwords")
			}
		}
		if given || !slices.ContainsFunc(x.Stmts, func(s history.Stmt) bool { return s.Unseen }) {
			continue
		}
		for i := range x.Stmts {
			s := &x.Stmts[i]
			switch {
			case s.Observation == history.Exact, s.Observation == history.Nothing,
				s.Reason == history.ReasonCascade:
			case s.Reason == history.ReasonCopy:
				return fmt.Errorf("the rows of %q are not in the recording", s.Shape)
			default:
				return fmt.Errorf("%q wrote by what is not in the recording (%s): say with --rows what makes it, and "+
					"which rows there are", s.Shape, s.Reason)
			}
		}
	}
	return nil
}

// tables are those of a witness, and those that they refer to.
type tables struct {
	run       history.Run
	family    dbms.Family
	schemas   []string        // as texts may name them
	wanted    map[string]bool // by their names without a schema
	made      []string        // statements that make them
	referring []string        // and that make foreign keys
}

func newTables(f *analyzer.Finding) *tables {
	t := &tables{run: f.Txns()[0].ID.Run(), family: f.Family, wanted: make(map[string]bool)}
	for _, x := range f.Txns() {
		for i := range x.Stmts {
			for _, a := range x.Stmts[i].Accesses {
				schema, name := split(a.Row.Table)
				t.wanted[name] = true
				if !slices.Contains(t.schemas, schema) {
					t.schemas = append(t.schemas, schema)
				}
			}
		}
	}
	return t
}

// split takes a row's table apart.
func split(table string) (schema, name string) {
	table, _, _ = strings.Cut(table, "@")
	schema, name, _ = strings.Cut(table, ".")
	return schema, name
}

// bare returns a name as SQL spells it without its quotes.
func bare(spelled string) string { return strings.Trim(spelled, "`\"") }

// define finds the last definitions of the tables.
func (t *tables) define(ctx context.Context, r *recorder.Reader) error {
	last := make(map[string]history.Definition)
	var order []string
	for d, err := range r.Definitions(ctx, t.run) {
		if err != nil {
			return fmt.Errorf("read the definitions of tables: %w", err)
		}
		name := bare(d.Name)
		if _, known := last[name]; !known {
			order = append(order, name)
		}
		last[name] = d
	}
	t.wantParents(last)
	for _, name := range order {
		if d := last[name]; t.wanted[name] && d.SQL != "" {
			t.made = append(t.made, t.statements(d.SQL)...)
			t.referring = append(t.referring, slices.DeleteFunc(t.statements(d.References),
				func(sql string) bool { return !strings.HasPrefix(sql, "ALTER TABLE") })...)
		}
	}
	for name := range t.wanted {
		if last[name].SQL == "" {
			return fmt.Errorf("the recording does not say how table %s was defined", name)
		}
	}
	return nil
}

// wantParents adds the tables that foreign keys of those wanted refer to.
func (t *tables) wantParents(last map[string]history.Definition) {
	for more := true; more; {
		more = false
		for name := range t.wanted {
			for other, d := range last {
				if !t.wanted[other] && strings.Contains(last[name].References, " REFERENCES "+d.Name) {
					t.wanted[other], more = true, true
				}
			}
		}
	}
}

// statements takes a definition apart at its semicolons. One that cannot be read is one statement.
func (t *tables) statements(text string) []string {
	tokens, err := sqltoken.Statement(t.family, text)
	if err != nil {
		return []string{text}
	}
	var all []string
	from := 0
	for _, token := range tokens {
		if token.Is(";") {
			all = append(all, text[from:token.Start])
			from = token.End
		}
	}
	all = append(all, text[from:]) // with a comment that the server may run
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.DeleteFunc(all, func(sql string) bool { return sql == "" })
}

// writes returns what transactions that had ended before the witness began wrote into the tables.
func (t *tables) writes(ctx context.Context, r *recorder.Reader, witness []*history.Txn) ([]string, error) {
	begins := slices.MinFunc(witness, func(a, b *history.Txn) int { return cmp.Compare(a.Start, b.Start) }).Start
	type earlier struct {
		end   int64
		texts []string
	}
	var all []earlier
	count := 0
	for x, err := range r.Txns(ctx) {
		if err != nil {
			return nil, err
		}
		if x.ID.Run() != t.run || x.Status != history.Committed || x.End >= begins {
			continue
		}
		e := earlier{end: x.End}
		for i := range x.Stmts {
			if s := &x.Stmts[i]; t.wrote(s) {
				text, whole := report.Statement(t.family, s)
				if !whole {
					return nil, fmt.Errorf("the values of %q are not in its places", s.Shape)
				}
				e.texts = append(e.texts, text)
			}
		}
		if count += len(e.texts); count > maxWrites {
			return nil, fmt.Errorf("more than %d statements wrote before it", maxWrites)
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b earlier) int { return cmp.Compare(a.end, b.end) })
	var texts []string
	for _, e := range all {
		texts = append(texts, e.texts...)
	}
	return texts, nil
}

// wrote reports whether a statement changed rows of the tables, as far as that is known: one that was not observed may
// have.
func (t *tables) wrote(s *history.Stmt) bool {
	if !slices.Contains([]history.Kind{history.Insert, history.Update, history.Delete, history.Replace}, s.Kind) ||
		s.Void || s.Error != (history.Error{}) {
		return false
	}
	if len(s.Accesses) == 0 {
		return s.Observation != history.Exact &&
			slices.ContainsFunc(sqltoken.Shape(t.family, s.Shape), func(token sqltoken.Token) bool {
				name, _, ok := token.Name()
				return ok && t.wanted[name]
			})
	}
	return slices.ContainsFunc(s.Accesses, func(a history.Access) bool {
		_, name := split(a.Row.Table)
		return t.wanted[name]
	})
}

// stays refuses a statement that names a schema of the recording: it would be played there, not in the scenario's own.
func (t *tables) stays(sql string) error {
	tokens, err := sqltoken.Statement(t.family, sql)
	if err != nil {
		return fmt.Errorf("read %q: %w", sql, err)
	}
	for i := range tokens[:max(0, len(tokens)-1)] {
		schema, _, ok := tokens[i].Name()
		if ok && tokens[i+1].Is(".") && (i == 0 || !tokens[i-1].Is(".")) && slices.Contains(t.schemas, schema) {
			return fmt.Errorf("%q names the schema %s: played again, it would use what is there", sql, schema)
		}
	}
	return nil
}
