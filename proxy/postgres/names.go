package postgres

import (
	"maps"
	"strings"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A statement is one that the client prepared by Parse.
type statement struct {
	text  []byte // as the client wrote it
	types []byte // the parameters' types that Parse declared, as it had them
	form  form   // what stands under the client's name on the server
	env   sqlpostgres.Session
	// parameters is the server's ParameterDescription; nil where the client has not asked for it.
	parameters []byte
	// cut are the columns of isotap's that the client does not see of its rows, as the last description had them.
	cut    []int
	layout layout // of the rows of what stands under its name
	asked  bool   // the client has asked for a description
	// described says that isotap has asked for one, shown that it, or the client, has had it.
	described, shown bool
	// variants are other forms of the text that stand on the server under names of isotap's own.
	variants []variant
	// forgotten: there are too many names, and nothing is known of this one.
	forgotten bool
}

// A form is a text as it went upstream.
type form struct {
	script    *sqlpostgres.Script // nil: nothing is known of the text
	rewritten bool                // the script's pieces went upstream, not the client's text
	reason    history.Reason      // why they did not, where they would have been there
	namesOurs bool                // the text may name a column of isotap's
	bare      bool                // the client's text went, for the server has refused the plain one
	// runs is the prepared statement of isotap's own that an EXECUTE runs, and instead the one that the client named.
	runs, instead string
}

// upstream is the script whose pieces went upstream; nil where the client's own text did.
func (f *form) upstream() *sqlpostgres.Script {
	switch {
	case f.script == nil, f.bare:
		return nil
	case f.rewritten:
		return f.script
	}
	return f.script.Plain
}

// A portal is a statement that was bound to its parameters, or a cursor that SQL declared.
type portal struct {
	form   form              // that runs
	of     *statement        // that was bound; nil: SQL declared it
	on     string            // the name of what was bound on the server
	plan   *sqlpostgres.Plan // by which its rows are understood; nil: by none
	format byte              // of the hidden columns: 0 text, 1 binary
	layout layout            // of its rows, as they were described
	asked  bool              // the client has asked for a description
	wider  int               // how many format codes its Bind got for columns that are cut
	args   []string
	kept   []byte // the body of its Bind, where it may have to be bound anew
	// literals are the parameters as SQL reads them, for a form with predicates; empty where they cannot be read.
	literals []string
	reason   history.Reason // why its observation is less than its plan's
	opened   bool           // it has given some of its rows
	pieces   pieces
	cursor   *declaration // nil: a Bind made it
	sent     bool         // an Execute of it was sent
	bound    uint64       // how many statements the client had sent to be run before the Bind, and one; 0: no Bind made it
	early    bool         // some were run between the Bind and the first Execute: its snapshot is older than theirs
	done     bool         // it has run to its end
	bytes    int          // about how many it takes
	// forgotten: there are too many names, and nothing is known of this one.
	forgotten bool
}

// A namespace is what names mean on the server.
type namespace struct {
	statements map[string]*statement
	portals    map[string]*portal
}

func newNamespace() namespace {
	return namespace{make(map[string]*statement), make(map[string]*portal)}
}

func (n namespace) clone() namespace {
	return namespace{maps.Clone(n.statements), maps.Clone(n.portals)}
}

// names is what the client's names mean. They are given when a message is sent, and true once the server has
// said so: an error in between leaves the rest of a segment out.
type names struct {
	speculative namespace // once everything sent has been done
	confirmed   namespace // as the server's replies tell
	// unsure says that some of what was sent was not done: sent is to become real when nothing is owed.
	unsure bool
	// cursorsListed says that the client may look at pg_cursors.
	cursorsListed bool
	// declares says that SQL has declared a cursor in this session.
	declares bool
	made     int // names of isotap's own that were given
	// bytes is at least about how many the statements and portals take, those too that the server has not made yet.
	bytes int
	// counted is how many there were when they were counted last, and forgotten how many names were not remembered
	// since.
	counted, forgotten int
	// rebindable are the portals whose Bind is kept.
	rebindable []string
	// orphans stand beside statements that SQL took away.
	orphans []string
	preparations
}

// What a session remembers of names.
const (
	// maxNames is how many bytes the statements and portals may take.
	maxNames = 32 << 20
	// maxCursors is how many portals there may be when SQL declares another.
	maxCursors = 10_000
)

// bytesOf returns about how many bytes a statement of that text takes, with its plans.
func bytesOf(text []byte) int { return 1<<10 + 4*len(text) }

// admits reports whether a name may be remembered that takes so many bytes, and counts them.
func (s *Session) admits(bytes int) bool {
	n := &s.names
	if n.bytes+bytes > maxNames && n.forgotten >= n.counted { // to count takes time for each
		n.bytes, n.forgotten = s.bytesOfNames(), 0
		n.counted = len(n.speculative.statements) + len(n.confirmed.statements) + len(n.speculative.portals) + len(n.confirmed.portals) + len(s.pipeline.pending)
	}
	if n.bytes+bytes > maxNames {
		n.forgotten++
		return false
	}
	n.bytes += bytes
	return true
}

// bytesOfNames counts what is remembered of names.
func (s *Session) bytesOfNames() int {
	sent, real, total := s.names.speculative, s.names.confirmed, 0
	for _, st := range sent.statements {
		total += bytesOf(st.text)
	}
	for name, st := range real.statements {
		if st != sent.statements[name] {
			total += bytesOf(st.text)
		}
	}
	for _, p := range sent.portals {
		total += p.bytes
	}
	for name, p := range real.portals {
		if p != sent.portals[name] {
			total += p.bytes
		}
	}
	return total + s.pipeline.bytesBeyond(sent)
}

// agree has the names that were sent mean what the server says, once it owes nothing.
func (n *names) agree() {
	if n.unsure {
		n.speculative, n.unsure = n.confirmed.clone(), false
	}
}

// deallocated takes statements away that SQL took away: DEALLOCATE, whose own text says which, or all.
func (n *names) deallocated(tag, shape string) {
	switch tag {
	case "DEALLOCATE ALL", "DISCARD ALL":
		clear(n.confirmed.statements)
		n.preparations = preparations{listed: n.listed}
		if tag == "DISCARD ALL" {
			clear(n.confirmed.portals)
		}
	case "DEALLOCATE":
		words := strings.Fields(shape)
		name := words[len(words)-1]
		if quoted := strings.Trim(name, `"`); quoted != name {
			name = strings.ReplaceAll(quoted, `""`, `"`)
		} else {
			name = strings.ToLower(name)
		}
		if st := n.confirmed.statements[name]; st != nil {
			for _, other := range st.variants {
				n.orphans = append(n.orphans, other.name)
			}
		}
		delete(n.confirmed.statements, name)
		n.forget(name)
	default:
		return
	}
	n.unsure = true
}

// hidden is the number of columns that the form adds to a statement's result, under its plan.
func (f *form) hidden(plan *sqlpostgres.Plan) int {
	if !f.rewritten || plan == nil {
		return 0
	}
	return plan.HiddenColumns()
}

// plan is the plan of the statement at that place in the text; nil where there is none.
func (f *form) plan(at int) *sqlpostgres.Plan {
	if f.script == nil || at >= len(f.script.Statements) {
		return nil
	}
	return f.script.Statements[at]
}

// statements are the plans of the text's statements.
func (f *form) statements() []*sqlpostgres.Plan {
	if f.script == nil {
		return nil
	}
	return f.script.Statements
}
