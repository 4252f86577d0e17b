package postgres

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A preparation is a statement that the client prepared by SQL.
type preparation struct {
	text  []byte
	types string // as PREPARE lists them
	env   sqlpostgres.Session
	calls bool // it may run functions of the database's own
	// forms are what isotap prepared of it.
	forms      []variant
	executions map[execution]*sqlpostgres.Script
}

// An execution is an EXECUTE as the client wrote it, that runs a statement of isotap's own as a script understands it.
type execution struct {
	text, runs string
	script     *sqlpostgres.Script
}

// A variantRequest is for a preparation to have another form.
type variantRequest struct {
	of   *preparation
	form variant
}

// preparations are the statements that the client prepared by SQL, as the server's replies tell.
type preparations struct {
	bySQL    map[string]*preparation
	requests []variantRequest
	executed int // how many executions are kept of all
	// listed says that the client may look at what is prepared: isotap prepares nothing beside SQL's own.
	listed bool
}

// The most of each that is kept.
const (
	maxPreparations = 1000
	maxExecutions   = 1000
	maxExecution    = 4 << 10 // bytes of an EXECUTE
	maxForms        = 8
)

// forget takes a statement away that is prepared no more. Its variants are to be closed.
func (n *names) forget(name string) {
	if p := n.bySQL[name]; p != nil {
		for _, f := range p.forms {
			n.orphans = append(n.orphans, f.name)
		}
		n.requests = slices.DeleteFunc(n.requests, func(w variantRequest) bool { return w.of == p })
		delete(n.bySQL, name)
	}
}

// forgetAll does so with all: what the names mean is not known.
func (n *names) forgetAll() {
	for _, name := range slices.Sorted(maps.Keys(n.bySQL)) {
		n.forget(name)
	}
}

// mayList takes a text of the client's that may look at what is prepared: what isotap has prepared beside SQL's own is
// gone before it runs, and nothing is prepared so again in the session.
func (n *names) mayList(text []byte) {
	n.cursorsListed = n.cursorsListed || containsFold(text, "pg_cursors")
	if n.listed || !containsFold(text, preparedStatements) {
		return
	}
	n.listed, n.requests = true, nil
	for _, name := range slices.Sorted(maps.Keys(n.bySQL)) {
		p := n.bySQL[name]
		for _, f := range p.forms {
			n.orphans = append(n.orphans, f.name)
		}
		p.forms = nil
	}
}

// preparedStatements is the view that lists what a session has prepared.
const preparedStatements = "pg_prepared_statements"

// containsFold reports whether a text holds a name that begins with pg_, in any case, without an allocation.
func containsFold(text []byte, name string) bool {
	for rest := text; ; {
		at := bytes.IndexByte(rest, '_')
		if at < 0 {
			return false
		}
		if from := at - len("pg"); from >= 0 && len(rest)-from >= len(name) &&
			strings.EqualFold(string(rest[from:from+len(name)]), name) {
			return true
		}
		rest = rest[at+1:]
	}
}

// executesKnown reports whether a statement runs one that the client prepared by SQL, which runs no functions of the
// database's own.
func (n *names) executesKnown(p *sqlpostgres.Plan) bool {
	if p.Session.Prepared == nil {
		return false
	}
	known := n.bySQL[p.Session.Prepared.Name]
	return known != nil && !known.calls
}
