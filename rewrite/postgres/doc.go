// Package postgres plans PostgreSQL statements: given a text of one or several statements and what the
// tables look like, a [Script] says what goes upstream in its place and how the replies become those that
// the client expects. It is pure, as package rewrite says.
//
// A row's versions are known by PostgreSQL's own system columns (ADR 23): nothing is added to the
// user's tables, and no value has to be filled in when a statement is sent.
//
// A statement passes two readers (ADR 20). A lexer of the server's own rules cuts the text into tokens: from
// these come the statements, their verbs, the literal-free shape, and every place where text is put in. A
// port of PostgreSQL's grammar reads what selects and writes, and says how it is built; it reads the changed
// statement once more, and unless it finds there what was meant to be added, the client's own text is sent.
// No statement makes [Rewriter.Plan] fail: what cannot be rewritten is opaque, with the reason.
//
// The files follow a statement's way.
//
//   - Known already? cache.go finds the script by its text, or makes it of one whose literals differ;
//     condition_template.go has their conditions.
//   - Reading: package pgtoken cuts the text into tokens, text.go these into statements, and verb.go tells what each
//     is. places.go finds the queries in the text, edits.go has the grammar's side and puts pieces into it; splice.go
//     knows where these stand, so that what the server says of a place is said of the client's. transaction.go tells
//     what a statement does to the transaction and the session's settings, ddl.go which tables a definition changes;
//     shape.go leaves the literals out. proof.go asks the grammar whether a RETURNING clause is all that was added.
//   - plan.go has what comes out of all this, a plan for each statement and the script that holds them, and what all
//     of them share: the plan in the making, refusals (the reason for being opaque), and what they know of tables;
//     session.go what they know of the session. rewriter.go decides, calls.go knows who calls functions, or may show
//     the client the text that runs. On tables with isotap's columns mask.go, star.go and columnlist.go keep these out
//     of what the client's statement means.
//   - tables.go finds the tables that names mean, from.go those of a FROM clause; identity.go spells what identifies
//     their rows, usage.go looks for what else a statement holds.
//   - Reads: reading.go tries and proves, and goes down into queries, each of which is a block (block.go); seen.go
//     says what is seen of it, and shown.go adds what shows it. from.go goes into what stands in FROM and beside
//     views, with.go into common table expressions; aggregate.go and union.go see to rows that stand for several,
//     subquery.go, subqueryplace.go (where they stand), subqueryfrom.go (queries and views in them), limited.go
//     (LIMIT), tree.go and hanging.go (what hangs on their rows), readsitself.go and besides.go to queries in WHERE
//     and in the select list (writes have these, too), behind what rehearsed.go has the server look at first;
//     outwards.go and lifted.go to those of queries in FROM. shortcut.go sees to what the server might not have read,
//     and to errors of indexes; priced.go to what it reads by a column's price; aside.go, flattened.go, untied.go,
//     flat.go, flatvalues.go, flatcomputed.go, joinedaside.go and distinctlimited.go to what shows less than it reads,
//     treeaside.go to trees in one row, spelledstar.go to stars.
//   - Cursors: cursor.go, whose queries are reads. What SQL prepares: prepared.go.
//   - Writes: write.go has what they share; insert.go and onconflict.go; insertselect.go, insertcopy.go and
//     insertwith.go for the query of an INSERT, of which excerpt.go makes a copy and alike.go says whether it reads
//     the same; update.go. writingfrom.go and writingflats.go look into what they join, and locksitself.go knows
//     subqueries that lock what is written, recalled.go those that name queries of the WITH clause, mergebeside.go
//     those of MERGE. returning.go adds their RETURNING clause, oldnew.go knows what it calls the versions.
//     writingwith.go is for WITH clauses with parts that write, part.go for such a part, sharedwith.go for the queries
//     that parts name.
//   - In mode predicates: predicate.go finds the condition by which a statement chooses rows, and images of those that
//     it writes; conditions.go and equalities.go find the wide ones of what chooses by more than the row.
//
// A [Rewriter] and a [Cache] are safe for concurrent use.
package postgres
