// Package robust decides which transaction programs are safe at an isolation level weaker than serializable: whether
// every execution that the level allows, of any number of runs of them, is serializable. It looks at programs, not at
// executions.
//
// It is built on Vandevoort, Ketsman, Koch and Neven, "Detecting Robustness against MVRC for Transaction Programs with
// Predicate Reads" (EDBT 2023), and uses its names; sections, tables and figures in comments are that paper's. MVRC is
// multiversion READ COMMITTED: each statement reads what was committed last when it began, and nobody overwrites what
// is not committed.
//
// In the order of the algorithm's way:
//
//   - schema.go: relations and foreign keys (3.1). set.go: sets of attributes, which may be undefined.
//   - statement.go, program.go: basic transaction programs, BTPs (5.1), with loops, branches and foreign keys.
//   - unfold.go: linear programs, LTPs (6.1): no loop runs more than twice.
//   - tables.go: Tables 1a and 1b and the other conditions of both algorithms, as data.
//   - summary.go: the summary graph (6.2, Algorithm 1).
//   - structure.go, robustness.go: cycles that are dangerous (6.3, Algorithm 2), and the questions to ask.
//   - snapshot.go: what is vulnerable under SNAPSHOT ISOLATION, which the paper does not treat.
//   - allocation.go: the cheapest level for each program.
//   - subsets.go: maximal robust subsets (7.2). answer.go: all answers at once.
//   - witness.go, tuples.go: why programs are not robust. schedule.go, execution.go: executions, and what levels allow.
//   - smallbank.go, tpcc.go, auction.go: the paper's benchmarks (7.1).
//
// The package is pure: no input or output, no goroutines, and it imports nothing of isotap.
package robust
