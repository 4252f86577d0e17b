// Package mysql rewrites statements of the MySQL protocol family, so that each reveals
// the row versions it read and wrote. It is pure: SQL text, the session's settings and a
// [Schema] go in, a [Plan] comes out.
//
// A statement passes two readers. A tolerant lexer of MariaDB's own rules (mysqltoken) cuts it into tokens; from
// these come the verb, what the statement means for the session (does it end the transaction? does
// it ask about the statement before it?), the literal-free shape, and every place where text is
// put in. TiDB's parser reads SELECT, INSERT, UPDATE and DELETE and says how they are built: which
// tables, which columns, what else they hold. Where the two do not see the same statement (the
// items of a select list do not begin at the same bytes, say), or the parser does not know the
// syntax, or touching the statement could change what it does, it stays as the client wrote it and
// its plan is opaque, with the reason. No statement makes [Rewriter.Plan] fail.
//
// What becomes of a statement:
//
//   - SELECT gets the identity columns of its base tables behind its last item, and so does each arm of
//     a UNION ALL. One that removes duplicates stays as it is and has a companion, which does not;
//     distinct.go has a SELECT DISTINCT show its rows itself, union.go has a UNION collect them.
//   - INSERT and REPLACE ... VALUES or SET give each row an id made from the statement's tag and the
//     row's ordinal, and the tag as its first version. So do ... SELECT and LOAD DATA, where the server
//     counts the ordinals.
//   - UPDATE, and ON DUPLICATE KEY UPDATE, append their tag to the rows that they really change and
//     collect what was there before in session variables; see [CaptureInit], [CaptureRead] and
//     [ParseCapture]. So does UPDATE of joined tables where its assignments tell which rows change.
//   - DELETE returns the identities of the rows that it deleted, or collects them where the server has
//     no RETURNING.
//   - CREATE TABLE gains the auxiliary columns.
//
// Statements are spliced, never printed: apart from the inserted pieces, a plan is the client's text
// byte for byte. Inserted text is ASCII unless it names a table or column that is not.
//
// The files follow a statement's way.
//
//   - Known already? cache.go finds the plan by text, or makes it of one whose literals differ.
//     Both depend on the session's settings, its dialect and version (session.go).
//   - Reading: package mysqltoken cuts the text into tokens, text.go asks for these, has TiDB's parser read what they
//     are, and puts pieces into the text; verb.go tells what the statement is, transaction.go what it does to the
//     transaction and the session, changed.go which tables DDL changes, shape.go what is left without literals,
//     beyond.go which clauses are there that TiDB's parser does not know.
//   - plan.go has what comes out of all this, the plan, and what all of them share: the plan in the making, refusals
//     (the reason for being opaque), and what they know of tables. mysql.go decides.
//   - Reads: select.go, which has what is known of a query and passes the identities of queries in its FROM clause
//     outwards, with.go those of common table expressions. sources.go finds the tables, usage.go looks for what else
//     the statement holds, subquery.go into queries in WHERE and in the select list, which links.go, alternatives.go
//     (behind OR) and branches.go (in CASE) find and besides.go shows, nestedsubquery.go into those in these, tree.go
//     into those in their lists, carried.go into those of queries in FROM, aside.go shows what counted queries read,
//     aggregate.go collects identities in arrays unless warnings.go finds that the client might hear other warnings
//     for it, setop.go, distinct.go and union.go are for UNION, DISTINCT and their kind.
//   - Writes: insert.go makes row ids, update.go and updatejoin.go tag rows with the capture of assign.go, delete.go
//     collects what goes, writesubquery.go, updatesubquery.go and, on TiDB, tidbsubquery.go what subqueries of some of
//     them read. unchanged.go tells from assignments alone whether they leave a row as it is.
//   - ddl.go defines the columns. On TiDB, which has no invisible ones, mask.go and star.go keep them out of what the
//     client's statement means.
//   - hole.go fills the pieces in when the text is sent; counts.go has ROW_COUNT() and FOUND_ROWS() be filled in,
//     found.go tells what leaves the latter without rows.
//   - In mode predicates conditions.go and joincondition.go find the conditions by which a statement and the queries in
//     it choose rows, choice.go tells what such a condition hangs on and spells it, and image.go has writes collect the
//     values that they leave. constant.go knows those that the text of an INSERT ... SELECT tells.
//   - Afterwards the session reads with capture.go what was collected, and what SHOW WARNINGS asks for.
//
// A [Rewriter] and a [Cache] are safe for concurrent use.
package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// Plan returns how a statement is observed. It never fails: what cannot be rewritten is opaque, with
// the reason. The plan shares memory with text.
func (r *Rewriter) Plan(text string, s Session) *Plan {
	return r.decide(scan(text, s.ANSIQuotes, s.NoBackslashEscapes), &s).finish()
}

// decide makes everything of a statement's plan but for the pieces.
func (r *Rewriter) decide(st *statement, s *Session) *planner {
	p := &Plan{}
	pl := &planner{rewriter: r, session: s, st: st, plan: p}
	p.Params = st.Placeholders
	p.Shape, p.Args = st.shape()
	p.Text = st.written()
	p.Sender = st.sender()
	st.classify(p, s)
	if p.Result.Reply != rewrite.Unchanged && len(st.split()) == 1 {
		defer pl.keepReply(p.Result.Reply)
	}
	reason := st.refusal(s)
	pl.mask(reason)
	if !reason.IsZero() {
		opaque(p, reason)
		if reason == history.ReasonSeveralStatements {
			p.Upstream.Parts = st.parts(s)
		}
		return pl
	}
	defer pl.substituteCounts()
	if p.Observation != history.Exact {
		pl.readLockedTables()
		return pl // the verb alone settled it
	}
	err := pl.rewrite()
	if err == nil && pl.ownNames {
		err = refusal(history.ReasonOwnName)
	}
	if err != nil {
		opaque(p, reasonOf(err))
		pl.dropEdits()
	}
	return pl
}

// rewrite decides what becomes of a statement that the verb alone does not settle. Its errors are
// refusals.
func (pl *planner) rewrite() error {
	if pl.plan.Kind == history.DDL {
		return pl.createTable()
	}
	if pl.st.is(0, "LOAD") {
		return pl.loadData()
	}
	node, err := pl.parse()
	if err != nil {
		return err
	}
	pl.conditions(node)
	switch n := node.(type) {
	case *ast.SelectStmt:
		pl.alone = n
		err := pl.selectRows(n)
		switch {
		case err == refusal(history.ReasonDistinct) && !pl.into.empty():
			return refusal(history.ReasonInto) // a companion would assign the variables
		case err == refusal(history.ReasonDistinct) && pl.distinctRows(n):
			return nil
		case err == refusal(history.ReasonDistinct):
			pl.accompanyDistinct(n)
		}
		return err
	case *ast.SetOprStmt:
		if !pl.into.empty() {
			return refusal(history.ReasonInto)
		}
		return pl.setOperation(n)
	case *ast.InsertStmt:
		return pl.insert(n)
	case *ast.UpdateStmt:
		if pl.session.Dialect == TiDB {
			return pl.updateTiDB(n)
		}
		return pl.update(n)
	case *ast.DeleteStmt:
		return pl.deleteRows(n)
	}
	return refusal(history.ReasonUnparsable)
}

// finish returns the plan with its pieces.
func (pl *planner) finish() *Plan {
	pl.plan.NamedLocks = pl.plan.Observation == history.Nothing && pl.st.locksByName()
	pl.plan.Predicates = pl.predicates()
	pl.plan.Writes.Images.Constant = pl.constantImage()
	pl.assemble()
	if pl.companion != nil {
		if c := pl.companion.finish(); c.Upstream.Pieces != nil {
			pl.plan.Companion = c
		}
	}
	return pl.plan
}
