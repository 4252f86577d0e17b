// Package truth holds what isotap says of a history against what its clients saw. It knows nothing of row versions,
// tags or catalogs: every write leaves a token in its row that no other write leaves, behind those that it found there,
// so that a row itself tells who wrote it, in which order. Package analyzer is no part of it.
package truth

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Token is what a write leaves in a row: the number of its statement, a dot and the row's key; 0 for what was there
// from the beginning, and another letter before the number where isotap could not see the writer.
type Token string

// original is what was there from the beginning.
const original Token = "0"

// Statement returns the number of the statement that left the token; false where isotap could not see it.
func (t Token) Statement() (int, bool) {
	number, _, _ := strings.Cut(string(t), ".")
	n, err := strconv.Atoi(number)
	return n, err == nil && n > 0
}

// key returns the key of the row that the token was left in.
func (t Token) key() string {
	_, key, _ := strings.Cut(string(t), ".")
	return key
}

// A Chain is what a row tells: the tokens of those who wrote it, oldest first.
type Chain []Token

// ParseChain reads a row's chain: tokens with commas between them.
func ParseChain(text string) Chain {
	var c Chain
	for token := range strings.SplitSeq(text, ",") {
		if token != "" {
			c = append(c, Token(token))
		}
	}
	return c
}

// A Log is what all clients of a history saw. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	last int
	// saw are the chains that statements were shown, by their numbers: as they found the rows.
	saw map[int][]Chain
	// before are, by token, those that stood before it in some chain, and next those that stood right behind it.
	before map[Token]map[Token]bool
	next   map[Token]map[Token]bool
	// deleted are the versions that a statement deleted, where it was shown them.
	deleted map[int][]Chain
	// beside are, of what statements saw, the rows that they read beside those that they wrote.
	beside map[int][]Chain
	// Continued says that a row that is put anew, once one of its key was deleted, is the same row to isotap. Who wrote
	// the one then comes behind who wrote the other, and the chains do not tell which of them was first.
	Continued bool
}

// NewLog returns a Log that knows nothing yet.
func NewLog() *Log {
	return &Log{saw: make(map[int][]Chain), before: make(map[Token]map[Token]bool),
		next: make(map[Token]map[Token]bool), deleted: make(map[int][]Chain), beside: make(map[int][]Chain)}
}

// Number returns the number of the next statement, from 1.
func (l *Log) Number() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return l.last
}

// Saw takes in that a statement was shown rows, as they were before it wrote them.
func (l *Log) Saw(statement int, chains []Chain) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saw[statement] = append(l.saw[statement], chains...)
	for _, c := range chains {
		l.learn(c)
	}
}

// SawBeside takes in that a statement that wrote rows was shown others, which it read beside these.
func (l *Log) SawBeside(statement int, chains []Chain) {
	l.Saw(statement, chains)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beside[statement] = append(l.beside[statement], chains...)
}

// Deleted takes in that a statement deleted rows that it was shown.
func (l *Log) Deleted(statement int, chains []Chain) {
	l.Saw(statement, chains)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[statement] = append(l.deleted[statement], chains...)
}

// Found takes in what rows tell to nobody in particular, as to who looks when all is over.
func (l *Log) Found(chains []Chain) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range chains {
		l.learn(c)
	}
}

// learn takes in the order that a chain tells.
func (l *Log) learn(c Chain) {
	for i, t := range c {
		if i > 0 {
			add(l.next, c[i-1], t)
		}
		for _, older := range c[:i] {
			add(l.before, t, older)
		}
	}
}

func add(to map[Token]map[Token]bool, key, value Token) {
	if to[key] == nil {
		to[key] = make(map[Token]bool)
	}
	to[key][value] = true
}

// Showed reports whether the statement was shown rows, or that there were none.
func (l *Log) Showed(statement int) bool {
	_, ok := l.saw[statement]
	return ok
}

// Newest returns the numbers of the statements that wrote what a statement was shown, sorted: of each row the newest
// one, 0 for what was there or came past isotap.
func (l *Log) Newest(statement int) []int { return newest(l.saw[statement]) }

// NewestBeside returns the same of the rows that a statement read beside those that it wrote; false where it did not
// show these.
func (l *Log) NewestBeside(statement int) ([]int, bool) {
	chains, ok := l.beside[statement]
	return newest(chains), ok
}

func newest(chains []Chain) []int {
	var newest []int
	for _, c := range chains {
		n := 0
		if len(c) > 0 {
			n, _ = c[len(c)-1].Statement()
		}
		newest = append(newest, n)
	}
	slices.Sort(newest)
	return newest
}

// Last returns the newest token of the row that a statement was shown; false where it was shown none, or several rows.
func (l *Log) Last(statement int) (Token, bool) {
	if c := l.saw[statement]; len(c) == 1 && len(c[0]) > 0 {
		return c[0][len(c[0])-1], true
	}
	return "", false
}

// DeletedBy returns the statement that deleted the version with a token, as far as one was shown it; 0 for none.
func (l *Log) DeletedBy(t Token) int {
	for n, chains := range l.deleted {
		if slices.ContainsFunc(chains, func(c Chain) bool { return len(c) > 0 && c[len(c)-1] == t }) {
			return n
		}
	}
	return 0
}

// Met reports whether a statement was shown a row that another one had written, whoever wrote it since.
func (l *Log) Met(statement, writer int) bool {
	return slices.ContainsFunc(l.saw[statement], func(c Chain) bool {
		return slices.ContainsFunc(c, func(t Token) bool { n, _ := t.Statement(); return n == writer })
	})
}

// Foreign reports whether what a statement was shown came past isotap, newest of all in some row.
func (l *Log) Foreign(statement int) bool {
	return slices.ContainsFunc(l.saw[statement], func(c Chain) bool {
		if len(c) == 0 || c[len(c)-1] == original {
			return false
		}
		_, seen := c[len(c)-1].Statement()
		return !seen
	})
}

// A Kind of dependency is Adya's.
type Kind string

// The three dependencies: of a reader on a writer, of a writer on a writer, and of a writer on a reader that did not
// see it yet.
const (
	WR Kind = "wr"
	WW Kind = "ww"
	RW Kind = "rw"
)

// An Edge says that statement To depends on statement From.
type Edge struct {
	Kind     Kind
	From, To int
	// Unfound says that the reader looked for the row and did not find it: a wr then says that it came when From had
	// changed the row or taken it away, an rw that it came before To changed it or made it. Replaced is the statement
	// that left the version which From replaced, if that is known.
	Unfound  bool
	Replaced int
}

// A Verdict is what the clients' truth says of an edge.
type Verdict string

// The verdicts. Unknown: the rows told nobody, as of rows that were deleted or put anew before anybody looked.
const (
	True    Verdict = "true"
	False   Verdict = "false"
	Unknown Verdict = "unknown"
)

// Check says whether an edge is true.
func (l *Log) Check(e Edge) Verdict {
	if e.Unfound {
		return l.checkUnfound(e)
	}
	switch e.Kind {
	case WR:
		return l.checkRead(e)
	case WW:
		return l.checkOrder(l.tokens(e.From), e)
	case RW:
		if !l.Showed(e.From) {
			return Unknown
		}
		var read []Token
		for _, c := range l.saw[e.From] {
			if len(c) > 0 {
				read = append(read, c[len(c)-1])
			}
		}
		return l.checkOrder(read, e)
	}
	return False
}

// checkUnfound says whether the reader was shown none of the versions that it should not have found: of an rw what To
// left and what followed, of a wr what From left or took away, and what was before.
func (l *Log) checkUnfound(e Edge) Verdict {
	reader, writer := e.To, e.From
	if e.Kind == RW {
		reader, writer = e.From, e.To
	}
	missed := onlyOne(l.tokens(writer))
	if e.Kind == WR {
		var taken []Token
		for _, c := range l.deleted[writer] {
			taken = append(taken, c[max(0, len(c)-1):]...)
		}
		missed = slices.Concat(missed, onlyOne(taken), onlyOne(l.tokens(e.Replaced)))
	}
	if !l.Showed(reader) || len(missed) == 0 {
		return Unknown
	}
	verdict := True
	for _, c := range l.saw[reader] {
		for _, m := range missed {
			switch at := slices.Index(c, m); {
			case at >= 0 && slices.ContainsFunc(c[at:], func(t Token) bool { _, seen := t.Statement(); return !seen }):
				verdict = Unknown // a copy of it that others put there is another row
			case at >= 0, e.Kind == WR && len(c) > 0 && c[len(c)-1] != original && l.before[m][c[len(c)-1]]:
				return False
			}
		}
	}
	return verdict
}

// onlyOne returns the tokens where there is one: of several the edge is about one row, and nothing says which.
func onlyOne(tokens []Token) []Token {
	if len(tokens) != 1 {
		return nil
	}
	return tokens
}

// checkRead says whether To was shown what From wrote last. A copy of that, which others put back, is as good as it.
func (l *Log) checkRead(e Edge) Verdict {
	if !l.Showed(e.To) {
		return Unknown
	}
	if slices.Contains(l.Newest(e.To), e.From) {
		return True
	}
	for _, c := range l.saw[e.To] {
		for i := len(c) - 1; i >= 0; i-- {
			if n, seen := c[i].Statement(); n == e.From {
				return Unknown // a copy of what it left, put there by others
			} else if seen {
				break
			}
		}
	}
	return False
}

// checkOrder says whether To wrote over one of the versions, or over one that came after it. Only what stands in one
// chain can tell that it did not: rows that were put anew, or are gone before anybody looked, tell nothing.
func (l *Log) checkOrder(versions []Token, e Edge) Verdict {
	for _, c := range l.deleted[e.To] {
		for _, v := range versions {
			if slices.Contains(c, v) {
				return True
			}
		}
	}
	verdict, left := Unknown, l.tokens(e.To)
	for _, t := range left {
		for _, v := range versions {
			switch {
			case l.before[t][v]:
				return True
			case l.isCopyBelow(v, t):
				return Unknown
			case t.key() == v.key() && (l.before[v][t] || len(l.before[t]) > 0 && len(l.next[v]) > 0 &&
				(!l.Continued || l.oneLife(t, v))):
				verdict = False
			}
		}
	}
	for _, v := range versions {
		if !slices.ContainsFunc(left, func(t Token) bool { return t.key() == v.key() }) {
			return Unknown // what it left in that row, if anything, is not known
		}
	}
	return verdict
}

// isCopyBelow reports whether a token is of a copy that others put into a row, of a version that the other token came
// after: nothing but the token tells that copy from another.
func (l *Log) isCopyBelow(v, t Token) bool {
	if _, seen := v.Statement(); seen {
		return false
	}
	for older := range l.before[v] {
		if _, seen := older.Statement(); (seen || older == original) && l.before[t][older] {
			return true
		}
	}
	return false
}

// oneLife reports whether two tokens are known to have something before them in common. What was there from the
// beginning is the same in each row of each table, so that it tells nothing.
func (l *Log) oneLife(t, v Token) bool {
	for older := range l.before[t] {
		if older != original && (older == v || l.before[v][older]) {
			return true
		}
	}
	return false
}

// tokens returns those that a statement left and somebody was shown.
func (l *Log) tokens(statement int) []Token {
	prefix := strconv.Itoa(statement) + "."
	var tokens []Token
	for _, of := range []map[Token]map[Token]bool{l.before, l.next} {
		for t := range of {
			if strings.HasPrefix(string(t), prefix) && !slices.Contains(tokens, t) {
				tokens = append(tokens, t)
			}
		}
	}
	slices.Sort(tokens)
	return tokens
}

// Story returns what a statement was shown, for people.
func (l *Log) Story(statement int) string {
	return fmt.Sprintf("statement %d was shown %v, deleted %v, left %v", statement, l.saw[statement],
		l.deleted[statement], l.tokens(statement))
}

// Statements returns the numbers of the statements that were shown rows, sorted.
func (l *Log) Statements() []int { return slices.Sorted(maps.Keys(l.saw)) }
