package postgres

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
	"github.com/isotap/isotap/sqltoken"
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
	// told are the columns that the client was told of, where they are kept; nil: it was not.
	told  []twin.Column
	asked bool // the client has asked for a description
	// described says that isotap has asked for one, shown that it, or the client, has had it.
	described, shown bool
	// variants are other forms of the text that stand on the server under names of isotap's own.
	variants []variant
	// ran says that it was run: its text then names the request that prepared it, not the one that runs it again.
	ran bool
	// forgotten: there are too many names, and nothing is known of this one.
	forgotten bool
}

// A portal is a statement that was bound to its parameters, or a cursor that SQL declared.
type portal struct {
	form   form              // that runs
	of     *statement        // that was bound; nil: SQL declared it
	on     string            // the name of what was bound on the server
	plan   *sqlpostgres.Plan // by which its rows are understood; nil: by none
	format byte              // of the hidden columns: 0 text, 1 binary
	layout layout            // of its rows, as they were described
	told   []twin.Column     // see statement
	codes  []byte            // the result's format codes, as the client has bound it, where they are kept
	asked  bool              // the client has asked for a description
	wider  int               // how many format codes its Bind got for columns that are cut
	args   []string
	kept   []byte // the body of its Bind, where it may have to be bound once more
	// literals are the parameters as SQL reads them, for a form with predicates; empty where they cannot be read.
	literals []string
	reason   history.Reason // why its observation is less than its plan's
	opened   bool           // it has given some of its rows
	pieces   pieces
	cursor   *declaration // nil: a Bind made it
	sent     bool         // an Execute of it was sent
	bound    uint64       // one more than what the client had sent to be run before the Bind; 0: no Bind made it
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

// names is what the client's names mean: speculative once everything sent has been done, confirmed as the server's
// replies tell. A name is given in the former when a message is sent, and in the latter when its reply has come. An
// error leaves out what was sent behind it: unsure is set then, and must be followed by agree before the next message
// is sent with nothing pending.
type names struct {
	speculative namespace
	confirmed   namespace
	// unsure says that speculative has what was never done, or lacks what SQL has done.
	unsure bool
	// cursorsListed says that the client may look at pg_cursors.
	cursorsListed bool
	// declares says that SQL has declared a cursor in this session.
	declares bool
	made     int    // names of isotap's own that were given
	own      string // what these begin with: see [Config]
	// bytes is at least about how many the statements and portals take, those too that the server has not made yet.
	bytes int
	// counted is how many there were when they were counted last, and forgotten how many names were not remembered
	// since.
	counted, forgotten int
	// rebindable are the portals whose Bind is kept.
	rebindable []string
	// orphans are variants of statements that SQL took away: they are to be closed.
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

// mustCount reports whether the bytes are to be counted before a name can be told to be one too many.
func (n *names) mustCount(bytes int) bool {
	return n.bytes+bytes > maxNames && n.forgotten >= n.counted // to count takes time for each
}

// count counts what is remembered of names; pending is how many replies are, and beyond the bytes of what these will
// name.
func (n *names) count(pending, beyond int) {
	n.bytes, n.forgotten = beyond, 0
	n.counted = len(n.speculative.statements) + len(n.confirmed.statements) + len(n.speculative.portals) +
		len(n.confirmed.portals) + pending
	for _, st := range n.speculative.statements {
		n.bytes += bytesOf(st.text)
	}
	for name, st := range n.confirmed.statements {
		if st != n.speculative.statements[name] {
			n.bytes += bytesOf(st.text)
		}
	}
	for _, p := range n.speculative.portals {
		n.bytes += p.bytes
	}
	for name, p := range n.confirmed.portals {
		if p != n.speculative.portals[name] {
			n.bytes += p.bytes
		}
	}
}

// admit reports whether a name may be remembered that takes so many bytes, and counts them.
func (n *names) admit(bytes int) bool {
	if n.bytes+bytes > maxNames {
		n.forgotten++
		return false
	}
	n.bytes += bytes
	return true
}

// ownName returns a name of isotap's own, which no other has.
func (n *names) ownName() string {
	n.made++
	return cmp.Or(n.own, rewrite.NamePrefix) + strconv.Itoa(n.made)
}

// ownBytes is how many random bytes are in a name of isotap's own.
const ownBytes = 6

// NewOwn returns what the names of isotap's own statements may begin with, another text each time: a client that calls
// its own isotap_1, as another isotap before this one does, has none of them.
func NewOwn() string {
	random := make([]byte, ownBytes)
	rand.Read(random) // never fails
	return rewrite.NamePrefix + hex.EncodeToString(random) + "_"
}

// agree has the names that were sent mean what the server says, once nothing is pending.
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
		words := sqltoken.Shape(dbms.PostgreSQLFamily, shape)
		name, ok := nameAt(words, len(words)-1)
		if !ok {
			break
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

// A variant is another form of a client's statement.
type variant struct {
	name    string
	form    form
	segment uint64 // of the pipeline, in which its Parse was sent last
}

// dropVariant takes a form away that does not stand on the server, as its Parse in that segment was left out. One that
// was sent once more stays.
func (st *statement) dropVariant(name string, segment uint64) {
	st.variants = slices.DeleteFunc(st.variants,
		func(b variant) bool { return b.name == name && b.segment == segment })
}

// hasOriginal reports whether the client's own text is a variant of a statement of which something else was made.
func (st *statement) hasOriginal() bool {
	return slices.ContainsFunc(st.variants, func(b variant) bool { return !b.form.rewritten && !b.form.bare })
}

// describesRows reports whether the client has asked what the portal's rows look like, in the form that it runs in.
func (p *portal) describesRows() bool {
	return p.asked || p.of != nil && p.of.asked && p.form.script == p.of.form.script
}

// cutOf are the columns that are taken out of the rows of a portal, as its statement was described.
func (p *portal) cutOf() []int {
	if p.of == nil {
		return nil
	}
	return p.of.cut
}

// stands reports whether a statement has a name still.
func (n namespace) stands(st *statement) bool {
	for _, other := range n.statements {
		if other == st {
			return true
		}
	}
	return false
}

// layoutOf returns the layout of a portal's rows, if it was described, or the statement that it is of.
func (p *portal) layoutOf() layout {
	if !p.layout.known && p.of != nil && p.form.rewritten && p.form.script == p.of.form.script {
		return p.of.layout
	}
	return p.layout
}

// hiddenFields returns how many of the last fields of a description are hidden columns of a statement that the client
// prepared by the protocol and runs by EXECUTE, or FETCHes from. Nothing else shows the rows of another statement.
func (n *names) hiddenFields(p *sqlpostgres.Plan, description []byte) int {
	switch {
	case p != nil && p.Session.Prepared == nil && p.Session.Cursor == nil && p.Reason != history.ReasonExecute:
		return 0
	case p != nil && p.Session.Prepared != nil &&
		n.bySQL[p.Session.Prepared.Name] != nil: // the client's own text
		return 0
	case len(n.confirmed.statements) == 0 && len(n.confirmed.portals) == 0:
		return 0
	}
	r := reader{b: description}
	hidden := 0
	for range r.uint16() {
		if hidden++; !rewrite.IsColumn(string(r.cString())) {
			hidden = 0
		}
		r.bytes(fieldBytes)
	}
	return hidden
}

// executed returns the form of the statement that an EXECUTE runs which the client prepared by the protocol; nil
// where the plan is none of that.
func (n namespace) executed(p *sqlpostgres.Plan) *form {
	if p == nil || p.Reason != history.ReasonExecute {
		return nil
	}
	name, ok := nameAt(sqltoken.Shape(dbms.PostgreSQLFamily, p.Shape), 1)
	if st := n.statements[name]; ok && st != nil {
		return &st.form
	}
	return nil
}

// nameAt returns the name that word i of a statement stands for, and whether it is one.
func nameAt(words []sqltoken.Token, i int) (name string, ok bool) {
	if i < 0 || i >= len(words) {
		return "", false
	}
	if name, _, ok = words[i].Name(); words[i].Kind == sqltoken.Quoted {
		return strings.ReplaceAll(name, `""`, `"`), ok
	}
	return strings.ToLower(name), ok
}
