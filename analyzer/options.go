package analyzer

import (
	"github.com/isotap/isotap/history"
)

// Options say how to analyze. The zero value is ready for use.
type Options struct {
	// Load reads a transaction again from where it came, by its id and session, to explain a finding.
	// It is called once or twice for each transaction of a witness, and for each of at most sixteen others that ran a
	// lost update's UPDATE, where the witness does not tell whether that writes a constant; nothing else of what
	// [Analyzer.AddTxn] was given is kept then. Nil: the analyzer keeps all transactions, which needs
	// more memory than all else.
	Load func(history.TxnID, history.SessionID) (*history.Txn, error)
	// Inexact lets inexact accesses take part in findings, which are then hazards.
	Inexact bool
	// Expect judges all transactions by what their server documents for this level, whatever they ran at.
	Expect history.Level
	// Model judges all transactions by a level of the theory: what it forbids is a violation. The engine and
	// [Options.Expect] do not count then.
	Model *TheoryLevel
	// Scope says which transactions are of one request: between these it looks for what is [Unprotected].
	Scope Scope
	// PartialOrder says that the versions of rows may be in no known order, as in other checkers' histories of
	// registers. The levels that go by axioms are then asked of all transactions.
	PartialOrder bool
	// Known are anomalies that the caller found in the history itself: [Result.Levels] goes by them, too.
	Known []Anomaly
	// Work bounds the search for cycles of more than two transactions: edges visited, in each of its
	// steps. Past it every component still gives a finding, which counts what the others would have been.
	Work int
}

// DefaultWork is the bound on the search for longer cycles where [Options.Work] is 0.
const DefaultWork = 10_000_000
