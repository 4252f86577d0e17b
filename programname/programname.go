// Package programname gives programs the names by which people know them: what their client calls it in comments of the
// statements, "orders#create"; elsewhere what a program writes first, "UPDATE stock", or what it reads first where it
// writes nothing. So it has the same name in every report.
package programname

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// behind are the keywords behind which the table of a statement stands, by its verb.
var behind = map[string][]string{"UPDATE": {"UPDATE"}, "INSERT": {"INTO"}, "REPLACE": {"INTO"}, "DELETE": {"FROM"},
	"MERGE": {"INTO"}, "SELECT": {"FROM"}, "TABLE": {"TABLE"}, "CALL": {"CALL"}}

// beforeTable are words that may stand between such a keyword and the table.
var beforeTable = []string{"ONLY", "IGNORE", "LOW_PRIORITY", "LATERAL"}

// A Namer names the programs of one report. The zero value is ready for use, by one goroutine.
type Namer struct {
	given map[string]int
}

// Program names a program by the only action that it was seen in, or by the shapes of its statements, in their order. A
// program whose name another one has already gets a number behind it.
func (n *Namer) Program(family dbms.Family, actions Actions, shapes []string) string {
	name := actions.Only()
	if name == "" {
		name = Of(family, shapes)
	}
	if n.given == nil {
		n.given = make(map[string]int)
	}
	n.given[name]++
	if count := n.given[name]; count > 1 {
		return fmt.Sprintf("%s (%d)", name, count)
	}
	return name
}

// Actions gathers what the transactions of one program were said to be part of. The zero value has seen none.
type Actions struct {
	one     string
	several bool
}

// Add takes in a transaction's action; empty where its client did not say it.
func (a *Actions) Add(action string) {
	a.several = a.several || action != "" && a.one != "" && a.one != action
	if a.one == "" {
		a.one = action
	}
}

// Only returns the action that all were part of who said one; empty where there were several, or none.
func (a Actions) Only() string {
	if a.several {
		return ""
	}
	return a.one
}

// ActionOf returns the first action that a transaction's statements name.
func ActionOf(t *history.Txn) string {
	for i := range t.Stmts {
		if action := t.Stmts[i].Sender.Action; action != "" {
			return action
		}
	}
	return ""
}

// Of returns the name that a program has by itself: other programs may have it, too.
func Of(family dbms.Family, shapes []string) string {
	first := ""
	for _, shape := range shapes {
		verb, table := deed(family, shape)
		if table == "" {
			continue
		}
		if verb != "SELECT" && verb != "TABLE" {
			return verb + " " + table
		}
		if first == "" {
			first = verb + " " + table
		}
	}
	if first == "" {
		return "transaction"
	}
	return first
}

// deed returns the verb of a statement, in upper case, and the table that it is about. A WITH clause is passed over for
// what stands behind it, unless something in it writes.
func deed(family dbms.Family, shape string) (verb, table string) {
	tokens := sqltoken.Shape(family, shape)
	for i, t := range tokens {
		word := strings.ToUpper(t.Text)
		if t.Kind != sqltoken.Word || behind[word] == nil || verb != "" && word == "SELECT" {
			continue
		}
		if i > 0 && (tokens[i-1].Is("FOR") || tokens[i-1].Is("KEY")) { // FOR UPDATE, FOR NO KEY UPDATE
			continue
		}
		if found := tableBehind(tokens[i:], behind[word]); found != "" && (verb == "" || verb == "SELECT") {
			verb, table = word, found
		}
	}
	return verb, table
}

// tableBehind returns the first name behind one of the keywords, without its schema.
func tableBehind(tokens []sqltoken.Token, keywords []string) string {
	at := slices.IndexFunc(tokens, func(t sqltoken.Token) bool { return slices.ContainsFunc(keywords, t.Is) }) + 1
	for at > 0 && at < len(tokens) && slices.ContainsFunc(beforeTable, tokens[at].Is) {
		at++
	}
	if at == 0 || at >= len(tokens) {
		return ""
	}
	name, _, ok := tokens[at].Name()
	for ok && at+2 < len(tokens) && tokens[at+1].Text == "." {
		at += 2
		name, _, ok = tokens[at].Name()
	}
	if !ok {
		return ""
	}
	return name
}
