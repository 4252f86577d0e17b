package postgres

import (
	"bytes"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// What a client prepares by SQL stays as it wrote it. Beside it isotap prepares what it makes of the text, between
// transactions, where an error does no harm. An EXECUTE that comes alone, while nothing is pending, then runs that
// (ADR 39).

// preparedBySQL takes a statement that has succeeded for what it prepared.
func (s *Session) preparedBySQL(p *sqlpostgres.Plan, tag string) {
	if tag != "PREPARE" || p.Session.Prepared == nil || p.Session.Prepared.Text == "" ||
		len(s.names.bySQL) >= maxPreparations ||
		s.planner == nil {
		return
	}
	bytes := bytesOf([]byte(p.Session.Prepared.Text))
	for _, other := range s.names.bySQL {
		bytes += bytesOf(other.text)
	}
	if bytes > maxNames {
		return
	}
	made := &preparation{text: []byte(p.Session.Prepared.Text), types: p.Session.Prepared.Types, env: s.settings.env,
		executions: make(map[execution]*sqlpostgres.Script)}
	script, _ := s.planSafely(made.text, s.planEnv(true))
	if script == nil || len(script.Statements) != 1 {
		return
	}
	made.calls = script.Statements[0].Session.Calls
	if s.names.bySQL == nil {
		s.names.bySQL = make(map[string]*preparation)
	}
	s.names.bySQL[p.Session.Prepared.Name] = made
	s.requestVariant(made, script)
}

// requestVariant has isotap prepare a form when it can.
func (s *Session) requestVariant(p *preparation, script *sqlpostgres.Script) {
	pending := func(w variantRequest) bool { return w.of == p && sameForm(w.form.form.script, script) }
	if script.Pieces == nil || s.names.listed || len(p.forms) >= maxForms ||
		slices.ContainsFunc(s.names.requests, pending) {
		return
	}
	s.names.requests = append(s.names.requests,
		variantRequest{p, variant{name: s.names.ownName(), form: form{script: script, rewritten: true}}})
}

// prepareInHaste has a PREPARE of isotap's own not wait for whoever has locked a table: the client may have something
// else to do meanwhile.
const prepareInHaste = "SET LOCAL lock_timeout = '10ms'; PREPARE "

// prepares prepares a form that was asked for, and reports whether it did. Nothing is pending.
func (s *Session) prepares() bool {
	if s.txn.status != txnIdle || len(s.names.requests) == 0 {
		return false
	}
	w := s.names.requests[0]
	s.names.requests = s.names.requests[1:]
	s.sendOwn(func(a *answer) { s.variantPrepared(&w, a) },
		w.form.form.script.Append([]byte(prepareInHaste+w.form.name+w.of.types+" AS ")))
	return true
}

// variantPrepared takes the answer.
func (s *Session) variantPrepared(w *variantRequest, a *answer) {
	switch {
	case a.failed == nil:
		w.of.forms = append(w.of.forms, w.form)
	case doubtful(a.failed.code):
		s.scripts.refuse(w.form.form.script, a.failed.code)
	}
}

// executing returns the form of a text of one EXECUTE: what isotap prepared runs in the place of the client's
// statement, where its text still means what it meant then. Any other text's form stays as it is.
func (s *Session) executing(f form, text []byte) form {
	plan := f.plan(0)
	if plan == nil || plan.Session.Prepared == nil || plan.Session.Prepared.Text != "" || len(f.statements()) != 1 {
		return f
	}
	if plan.Session.Prepared.Within {
		return s.executingWithin(f, text)
	}
	p := s.names.bySQL[plan.Session.Prepared.Name]
	switch {
	case p == nil, !s.pipeline.idle(), len(text) > maxExecution, s.txn.status == txnFailed,
		s.settings.stale, !s.settings.known:
		return f
	case s.settings.env.Backslashes != p.env.Backslashes, s.settings.env.Encoding != p.env.Encoding:
		return f // it was read otherwise
	}
	script, _ := s.planSafely(p.text, s.planEnv(true))
	switch {
	case script == nil, script.Pieces == nil:
		return f
	case !s.scripts.refusal(script).IsZero():
		f.reason = s.scripts.refusal(script)
		return f
	case s.isMisplanned(script.Statements):
		f.reason = history.ReasonMisplanned
		return f
	case s.tooLarge(script.Statements):
		f.reason = history.ReasonLargeAggregate
		return f
	}
	for i := range p.forms {
		if own := &p.forms[i]; sameForm(own.form.script, script) {
			return s.execution(f, p, script, own.name, string(text))
		}
	}
	s.requestVariant(p, script)
	return f
}

// executingWithin returns the form of a text that makes a table of what an EXECUTE gives, or explains it: of a
// statement that the client prepared by the protocol, the client's own text runs, which stands beside what isotap made
// of it.
func (s *Session) executingWithin(f form, text []byte) form {
	of := f.plan(0).Session.Prepared
	st := s.names.confirmed.statements[of.Name]
	if f.rewritten || f.upstream() != nil || st == nil || !st.form.rewritten || !s.pipeline.idle() ||
		s.txn.status == txnFailed || of.To > len(text) || !strings.EqualFold(string(text[of.From:of.To]), of.Name) {
		return f
	}
	for _, other := range st.variants {
		if !other.form.rewritten && !other.form.bare {
			return form{script: sqlpostgres.Execution(string(text), of, other.name, f.script), rewritten: true,
				runs: other.name, instead: of.Name}
		}
	}
	return f
}

// asExecuted returns the error of an EXECUTE as it would read for the client's own statement: with the name that the
// client gave it ("wrong number of parameters for prepared statement \"s\"").
func asExecuted(f *form, m message, e serverError) (message, serverError) {
	body := bytes.ReplaceAll(m.body, []byte(f.runs), []byte(f.instead))
	m = message{kind: m.kind, body: body, raw: appendMessage(nil, m.kind, body...)}
	if read, err := readError(body); err == nil {
		e = read
	}
	return m, e
}

// execution returns the form of an EXECUTE that runs a statement of isotap's own, understood by a script.
func (s *Session) execution(f form, p *preparation, script *sqlpostgres.Script, own, text string) form {
	of := f.plan(0).Session.Prepared
	key := execution{text, own, script}
	made := p.executions[key]
	if made == nil {
		if s.names.executed++; s.names.executed > maxExecutions {
			s.names.executed = 1
			for _, other := range s.names.bySQL {
				clear(other.executions)
			}
		}
		made = sqlpostgres.Execution(text, of, own, script)
		p.executions[key] = made
	}
	if f.reason = s.scripts.refusal(made); !f.reason.IsZero() {
		return f
	}
	s.tries(made)
	return form{script: made, rewritten: true, runs: own, instead: of.Name}
}
