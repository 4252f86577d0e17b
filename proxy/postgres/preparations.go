package postgres

import (
	"maps"
	"slices"

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

// forget takes a statement away that is prepared no more. What stands beside it is to be closed.
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
