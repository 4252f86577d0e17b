package oracle

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// A verb is what a statement does, as far as it matters for what it sees.
type verb uint8

const (
	other verb = iota // what the model of views does not know
	selects
	locks // SELECT FOR UPDATE, and the like
	updates
	deletes
	inserts
	begins
	commits
	undoes // ROLLBACK
	saves
	undoesTo // ROLLBACK TO SAVEPOINT
	releases
	sets
)

// A part of a statement is one where it names tables.
type part uint8

const (
	inMain   part = iota // the FROM of a query
	inTarget             // the table that it writes
	inSource             // of an INSERT: the FROM of its query; of PostgreSQL's UPDATE and DELETE: what is joined
	inNested             // a query within
	parts
)

// A statement is what is known of one by its tokens.
type statement struct {
	verb
	text   string
	tokens []sqltoken.Token
	depths []int
	// named are the tables by the parts that name them.
	named [parts][]string
	name  string // of a savepoint
	// snapshot says that BEGIN takes the snapshot; readsLog that rows are skipped, or waits refused.
	snapshot, skips, refuses bool
	limited, grouped         bool
	joined                   bool // more than one table in the FROM, or written
	returning                bool
	locksWithin              bool // a query within it locks
}

// firstWords are what verbs begin with.
var firstWords = map[string]verb{"SELECT": selects, "TABLE": selects, "VALUES": selects, "WITH": selects, "UPDATE": updates,
	"DELETE": deletes, "INSERT": inserts, "REPLACE": inserts, "BEGIN": begins, "START": begins, "COMMIT": commits,
	"END": commits, "ROLLBACK": undoes, "ABORT": undoes, "SAVEPOINT": saves, "RELEASE": releases, "SET": sets}

// read reads a statement. Of the tables those that are given are known.
func read(family dbms.Family, text string, tables []string) *statement {
	s := &statement{text: text}
	tokens, err := sqltoken.Statement(family, text)
	if err != nil {
		return s
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].Text == ";" {
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 || slices.ContainsFunc(tokens, func(t sqltoken.Token) bool { return t.Text == ";" }) {
		return s
	}
	s.tokens, s.depths = tokens, make([]int, len(tokens))
	depth := 0
	for i, t := range tokens {
		if t.Text == ")" {
			depth--
		}
		if s.depths[i] = depth; t.Text == "(" {
			depth++
		}
	}
	s.verb = firstWords[strings.ToUpper(tokens[0].Text)]
	if tokens[0].Text == "(" {
		s.verb = selects
	}
	s.classify()
	s.find(tables)
	return s
}

// classify finds out what the first word does not say.
func (s *statement) classify() {
	if s.tokens[0].Is("WITH") {
		for _, word := range []string{"INSERT", "UPDATE", "DELETE"} {
			if s.at(word) >= 0 && s.at("SELECT") < 0 {
				s.verb = firstWords[word]
			}
			if s.anywhere(word) && s.verb == selects && s.at("FOR") < 0 {
				s.verb = other // a part of it writes
			}
		}
	}
	has := func(word string) bool { return s.at(word) >= 0 }
	switch s.verb {
	case selects:
		if at := s.at("FOR"); at > 0 && at+1 < len(s.tokens) || has("LOCK") {
			s.verb = locks
		}
		if has("INTO") {
			s.verb = other
		}
	case begins:
		s.snapshot = has("SNAPSHOT")
		if s.tokens[0].Is("START") && !has("TRANSACTION") || has("ISOLATION") {
			s.verb = other
		}
	case undoes:
		if has("TO") {
			s.verb = undoesTo
		}
	case sets:
		for _, word := range []string{"TRANSACTION", "autocommit", "SESSION", "GLOBAL", "CONSTRAINTS", "LOCAL", "CHARACTERISTICS"} {
			if s.anywhere(word) {
				s.verb = other
			}
		}
	}
	if (s.verb == commits || s.verb == undoes) && s.anywhere("CHAIN") {
		s.verb = other
	}
	s.name = strings.ToLower(s.tokens[len(s.tokens)-1].Text)
	s.skips, s.refuses = has("SKIP"), has("NOWAIT")
	s.limited = s.anywhere("LIMIT") || s.anywhere("FETCH") || s.anywhere("OFFSET")
	for _, word := range []string{"GROUP", "DISTINCT", "HAVING", "UNION", "INTERSECT", "EXCEPT", "OVER"} {
		s.grouped = s.grouped || has(word)
	}
	s.returning = has("RETURNING")
	for i, t := range s.tokens[:len(s.tokens)-1] {
		next := s.tokens[i+1]
		if s.depths[i] > 0 && (t.Is("FOR") && (next.Is("UPDATE") || next.Is("SHARE") || next.Is("NO") || next.Is("KEY")) ||
			t.Is("LOCK") && next.Is("IN")) {
			s.locksWithin = true
		}
	}
}

// at returns the place of a word outside of all parentheses; -1 where there is none.
func (s *statement) at(word string) int {
	for i, t := range s.tokens {
		if s.depths[i] == 0 && t.Is(word) {
			return i
		}
	}
	return -1
}

func (s *statement) anywhere(word string) bool {
	return slices.ContainsFunc(s.tokens, func(t sqltoken.Token) bool { return t.Is(word) })
}

// find finds the tables.
func (s *statement) find(tables []string) {
	set, query, where := s.at("SET"), s.at("SELECT"), s.at("WHERE")
	using := max(s.at("USING"), -1)
	for i, t := range s.tokens {
		name, _, ok := t.Name()
		if !ok || i+1 < len(s.tokens) && s.tokens[i+1].Text == "." || i > 0 && (s.tokens[i-1].Text == "." || s.tokens[i-1].Is("AS")) {
			continue
		}
		at := slices.IndexFunc(tables, func(table string) bool { return strings.EqualFold(table, name) })
		if at < 0 {
			continue
		}
		in := inNested
		if s.depths[i] == 0 || s.verb == selects {
			in = inMain
			switch s.verb {
			case updates:
				if in = inTarget; set >= 0 && i > set {
					in = inSource
				}
			case deletes:
				if in = inTarget; using >= 0 && i > using || where >= 0 && i > where {
					in = inSource
				}
			case inserts:
				if in = inTarget; query >= 0 && i > query {
					in = inSource
				}
			}
		}
		if !slices.Contains(s.named[in], tables[at]) {
			s.named[in] = append(s.named[in], tables[at])
		} else if in == inMain || in == inTarget {
			s.joined = true
		}
	}
	s.joined = s.joined || len(s.named[inMain]) > 1 || len(s.named[inTarget]) > 1 || s.verb != inserts && len(s.named[inSource]) > 0
}

// tables are the tables that it names.
func (s *statement) tables() (all []string) {
	for _, named := range s.named {
		for _, t := range named {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

// writes reports whether it does.
func (s *statement) writes() bool { return s.verb == updates || s.verb == deletes || s.verb == inserts }

// readsItsTarget reports whether a query within reads the table that is written, or locked.
func (s *statement) readsItsTarget() bool {
	return slices.ContainsFunc(append(slices.Clone(s.named[inTarget]), s.named[inMain]...), func(t string) bool {
		return slices.Contains(s.named[inNested], t) || slices.Contains(s.named[inSource], t)
	})
}

// chosen returns the FROM, and what is behind it, of a query for the rows that an UPDATE, DELETE or locking SELECT
// of one table chooses, in the MySQL family; empty where its text does not tell.
func (s *statement) chosen() string {
	if s.joined || s.grouped || s.returning || s.skips {
		return ""
	}
	cut := func(from, to int) string {
		end := len(s.text)
		if to < len(s.tokens) && to >= 0 {
			end = s.tokens[to].Start
		}
		return s.text[s.tokens[from].Start:end]
	}
	const query = " FROM "
	from, where := s.at("FROM"), s.at("WHERE")
	if where < 0 {
		where = max(s.at("ORDER"), s.at("LIMIT"))
		if order := s.at("ORDER"); order >= 0 {
			where = order
		}
	}
	rest := ""
	switch s.verb {
	case updates:
		set := s.at("SET")
		if set < 0 || slices.ContainsFunc(s.tokens[:set], func(t sqltoken.Token) bool { return t.Is("IGNORE") || t.Is("LOW_PRIORITY") }) {
			return ""
		}
		if where >= 0 {
			rest = s.text[s.tokens[where].Start:]
		}
		return query + cut(1, set) + rest
	case deletes:
		if from < 0 {
			return ""
		}
		return query + cut(from+1, len(s.tokens))
	case locks:
		end := s.at("FOR")
		if lock := s.at("LOCK"); end < 0 {
			end = lock
		}
		if from < 0 || end < from {
			return ""
		}
		return query + cut(from+1, end)
	}
	return ""
}
