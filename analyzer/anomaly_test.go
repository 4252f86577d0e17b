package analyzer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

// planted are histories with one anomaly each.
var planted = []struct{ name, history, want string }{
	{"dirty writes cross in two rows", `
T1 committed RC | u x 0 | u y T2.2
T2 committed RC | u x T1.1 | u y 0`, "violation G0"},
	{"dirty writes beside a read", `
T1 committed RC | r z T2.3 | u x 0 | u y T2.2
T2 committed RC | u x T1.2 | u y 0 | u z 0`, "violation G0"},
	{"dirty writes around a whole transaction", `
T1 committed RC | u x 0 | u x T2.1
T2 committed RC | u x T1.1`, "violation G0"},
	{"aborted read", `
T1 aborted RC | u x 0
T2 committed RC | r x T1.1`, "violation G1a"},
	{"read of what a savepoint undid", `
T1 committed RC | u! x 0 | r y 0
T2 committed RC | r x T1.1`, "violation G1a"},
	{"overwriting what was aborted", `
T1 aborted RC | u x 0
T2 committed RC | u x T1.1`, "violation dirty update"},
	{"intermediate read", `
T1 committed RC | u x 0 | u x T1.1
T2 committed RC | r x T1.1`, "violation G1b"},
	{"intermediate read of a row that was then deleted", `
T1 committed RC | i x | d x T1.1
T2 committed RC | r x T1.1`, "violation G1b"},
	{"circular flow of reads", `
T1 committed RC | u x 0 | r y T2.1
T2 committed RC | u y 0 | r x T1.1`, "violation G1c"},
	{"circular flow of a read and a write", `
T1 committed RC | u x 0 | r y T2.2
T2 committed RC | u x T1.1 | u y 0`, "violation G1c"},
	{"circular flow of a write and an UPDATE of equal values", `
T1 committed RC | u x 0 | e y T2.2
T2 committed RC | u x T1.1 | u y 0`, "violation G1c"},
	{"lost update", `
T1 committed RR | r x 0 | u x T2.2
T2 committed RR | r x 0 | u x 0`, "hazard lost update"},
	{"lost update over two others' writes", `
T1 committed RR | r x 0 | u x T3.1
T2 committed RR | u x 0
T3 committed RR | u x T2.1`, "hazard lost update"},
	{"lost update over two others' writes, behind a row that was not found", `
T1 committed RR | m z 0
T2 committed RR | R x 0 | u x T4.1
T3 committed RR | u x 0
T4 committed RR | u x T3.1`, "violation lost update"},
	{"lost update by equal values", `
T1 committed RR | r x 0 | e x T2.2
T2 committed RR | r x 0 | u x 0`, "hazard lost update"},
	{"an UPDATE's subquery sees what another wrote", `
T1 committed RR | r x 0 | u u.y 0 & s x T2.2
T2 committed RR | r x 0 | u x 0`, "hazard non-repeatable read"},
	{"lost update by delete", `
T1 committed RR | r x 0 | d x T2.1
T2 committed RR | u x 0`, "hazard lost update"},
	{"read skew", `
T1 committed RC | r x 0 | r y T2.2
T2 committed RC | u x 0 | u y 0`, "hazard read skew"},
	{"read-write skew", `
T1 committed RR | r x 0 | u y T2.2
T2 committed RR | u x 0 | u y 0`, "hazard read-write skew"},
	{"write skew", `
T1 committed RR | r x 0 & r y 0 | u x 0
T2 committed RR | r x 0 & r y 0 | u y 0`, "hazard write skew"},
	{"non-repeatable read", `
T1 committed RC | r x 0 | r x T2.1
T2 committed RC | u x 0`, "hazard non-repeatable read"},
	{"a statement that sees half of another tells more than that a row changed behind it", `
T1 committed RU | r x T2.1 & r y 0 | r x T2.1 & r y T2.2
T2 committed RU | u x 0 | u y 0`, "hazard read skew"},
	{"non-repeatable read over another's write", `
T1 committed RC | r x 0 | r x T3.1
T2 committed RC | u x 0
T3 committed RC | u x T2.1`, "hazard non-repeatable read"},
	{"non-repeatable read within one statement of a join", `
T1 committed RC | r x 0 & r x T2.1
T2 committed RC | u x 0`, "violation non-repeatable read"},
	{"non-repeatable read of a row that was deleted and created again", `
T1 committed RC | r x 0 | r x T2.2
T2 committed RC | d x 0 | i x T2.1`, "hazard non-repeatable read"},
	{"long fork", `
T1 committed RR | u x 0
T2 committed RR | u y 0
T3 committed RC | r y 0 | r x T1.1
T4 committed RC | r x 0 | r y T2.1`, "hazard G-nonadjacent"},
	{"long fork of reads that see the past later", `
T1 committed RR | u x 0
T2 committed RR | u y 0
T3 committed RC | r x T1.1 | r y 0
T4 committed RC | r y T2.1 | r x 0`, "violation G-nonadjacent"},
	{"two anti-dependencies apart, by way of writes", `
T1 committed RC | r x 0 | u p T4.2
T2 committed RC | u x 0 | u q 0
T3 committed RC | u q T2.2 | r y 0
T4 committed RC | u y 0 | u p 0`, "hazard G-nonadjacent"},
	{"a cycle of three with one anti-dependency", `
T1 committed RC | r x 0 | r y T3.2
T2 committed RC | u x 0
T3 committed RC | r x T2.1 | u y 0`, "hazard G-single"},
	{"read skew over another's write", `
T1 committed RC | r x 0 | r y T3.2
T2 committed RC | u x 0
T3 committed RC | u x T2.1 | u y 0`, "hazard read skew"},
	{"observed transaction vanishes", `
T1 committed RU | r x T2.1 | r y 0
T2 committed RU | u x 0 | u y 0`, "hazard OTV"},
	{"observed transaction vanishes under another's write", `
T1 committed RU | r x T3.2 | r y 0
T2 committed RU | u y 0
T3 committed RU | u y T2.1 | u x 0`, "hazard OTV"},
	{"a row as it was before", `
T1 committed RU | r x T2.1 | r x 0
T2 committed RU | u x 0`, "hazard G-monotonic"},
	{"the past, after what came of it", `
T1 committed RU | r x T3.2 | r y 0
T2 committed RU | u y 0
T3 committed RU | r y T2.1 | u x 0`, "hazard G-monotonic"},
	{"the past, after a write over what came of it", `
T1 committed RU | u x T2.2 | r y 0
T2 committed RU | u y 0 | u x 0`, "hazard G-monotonic"},
	{"a transaction that does not see its own write", `
T1 committed RU | u x 0 | r x 0`, "violation internal inconsistency"},
	{"a transaction that sees the first of its writes", `
T1 committed RU | u x 0 | u x T1.1 | r x T1.1`, "violation internal inconsistency"},
	{"a transaction that sees the row that it deleted", `
T1 committed RU | r x 0 | d x 0 | r x T1.2`, "violation internal inconsistency"},
	{"a transaction that sees what it writes later", `
T1 committed RU | r x T1.2 | u x 0`, "violation future read"},
	{"read-only transaction anomaly of three", `
T1 committed RR | r x 0 | u y 0
T2 committed RR | u x 0
T3 committed RR | r x T2.1 | r y 0`, "hazard G2-item"},
	{"phantom", `
T1 committed RC | m x 0 | r y T2.2
T2 committed RC | i x | i y`, "hazard phantom"},
	{"phantom: a row that was not found, and then updated", `
T1 committed RR | m x 0 | u x T2.1
T2 committed RR | i x`, "hazard phantom"},
	{"phantom of a row that came to match", `
T1 committed RC | m x 0 | r y T2.2
T2 committed RC | u x 0 | u y 0`, "hazard phantom"},
	{"predicate-many-preceders", `
T1 committed RC | m x 0 | r x T2.1
T2 committed RC | i x`, "hazard PMP"},
	{"predicate-many-preceders of a row that came and was changed", `
T1 committed RC | m x 0 | r x T3.1
T2 committed RC | i x
T3 committed RC | u x T2.1`, "hazard PMP"},
	{"a row that is gone when it is looked for again", `
T1 committed RC | r x 0 | g x T2.1
T2 committed RC | d x 0`, "hazard non-repeatable read"},
	{"a row that is gone, and another one as it was", `
T1 committed RC | r y 0 | g x T2.2
T2 committed RC | u y 0 | d x 0`, "hazard read skew"},
	{"circular flow by what is gone", `
T1 committed RC | u y 0 | g x T2.1
T2 committed RC | d x 0 | r y T1.1`, "hazard G1c"},
	{"a row that is gone by the hand of one who rolled back", `
T1 aborted RC | d x 0
T2 committed RC | g x T1.1`, "hazard G1a"},
	{"a row that is gone and came back in the same transaction", `
T1 committed RU | d x 0 | i x T1.1
T2 committed RU | g x T1.1`, "hazard G1b"},
	{"phantom write skew", `
T1 committed RR | m x 0 | i y
T2 committed RR | m y 0 | i x`, "hazard phantom write skew"},
	{"write skew of a row and of one that is not there", `
T1 committed RR | r x 0 | i y
T2 committed RR | m y 0 | u x 0`, "hazard phantom write skew"},
	{"long fork of rows that are not there", `
T1 committed RR | i x
T2 committed RR | i y
T3 committed RC | m y 0 | r x T1.1
T4 committed RC | m x 0 | r y T2.1`, "hazard phantom G-nonadjacent"},
	{"three who look for what the next one inserts", `
T1 committed RR | m x 0 | i y
T2 committed RR | m z 0 | i x
T3 committed RR | m y 0 | i z`, "hazard G2"},
	{"garbage read", `
T1 committed RU | r x X.1`, "violation garbage read"},
	{"read of a statement that the transaction does not have", `
T1 committed RU | u x 0
T2 committed RU | r x T1.7`, "violation garbage read"},
	{"read of a deleted row", `
T1 committed RU | d x 0
T2 committed RU | r x T1.1`, "violation garbage read"},
	{"two orders", `
T1 committed RU | u x 0
T2 committed RU | u x T1.1
T3 committed RU | r x 0,T2.1
T4 committed RU | r x 0,T1.1`, "violation incompatible order"},
	{"a row that was committed after the snapshot had been taken", `
T1 committed RR 1-9 | r y 0 @1-2 | r x T2.1 @7-8
T2 committed RC 1-6 | u x 0 @3-4`, "violation G-SIa"},
	{"lost write", `
T1 committed RU | u x 0
T2 committed RU | u x 0`, "violation lost write"},
	{"lost write behind one whose first write was undone", `
T1 committed RU | u! x 0 | u x T1.1
T2 committed RU | u x 0
T3 committed RU | u x 0`, "violation lost write"},
}

// plants calls yield with each planted history, those of the orders of sessions and time among them.
func plants(yield func(name, history, want string)) {
	for _, c := range planted {
		yield(c.name, c.history, c.want)
	}
	for base, text := range map[Anomaly]string{G0: staleWrite, G1c: earlyRead, GSingle: staleRead, GNonadjacent: apart,
		G2Item: strings.ReplaceAll(batch, "RC", "SR")} {
		for session, variant := range map[string]Anomaly{"1": base.Process(), "7": base.Realtime()} {
			yield(string(variant), strings.ReplaceAll(text, "%s", session), "violation "+string(variant))
		}
	}
}

func TestFindsPlantedAnomalyAloneUnderItsName(t *testing.T) {
	plants(func(name, history, want string) {
		t.Run(name, func(t *testing.T) {
			batch := expect(t, scriptInfo(), history, want)
			_, live := play(t, rand.New(rand.NewPCG(1, 1)), scriptInfo(), script(t, history),
				LiveOptions{Window: forever, Patience: forever})
			sameAsBatch(t, live, batch)
		})
	})
}

// Every name that a finding can have is planted.
func TestEveryAnomalyIsPlanted(t *testing.T) {
	found := make(map[Anomaly]bool)
	plants(func(_, _, want string) {
		_, name, _ := strings.Cut(want, " ")
		found[Anomaly(name)] = true
	})
	for _, a := range append(anomalies(t), variants()...) {
		switch a {
		case GCursor, GSIb, FracturedRead, GCausal, OTV.Process(), FracturedRead.Process(), DuplicateElements,
			CyclicVersions: // no finding of the analyzer has such a name
		case StaleOverwrite, StaleDecision, SilentRevert, DoubleInsert, DoubleSet: // requests_test.go and doubleinserts_test.go
		default:
			if !found[a] {
				t.Errorf("no planted history has a %s", a)
			}
		}
	}
}

// anomalies returns the names that the package declares.
func anomalies(t *testing.T) (names []Anomaly) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "finding.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Anomaly" {
				name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, Anomaly(name))
			}
		}
		return true
	})
	if len(names) < 20 {
		t.Fatalf("only %v are declared", names)
	}
	return names
}

// What looks like an anomaly and is none.
func TestStaysSilent(t *testing.T) {
	for _, c := range []struct{ name, history string }{
		{"serial read-modify-writes", `
T1 committed SR | r x 0 | u x 0
T2 committed SR | r x T1.2 | u x T1.2
T3 committed SR | r x T1.2,T2.2 | d x T2.2`},
		{"equal values after a locking read", `
T1 committed RR | R x T2.2 | e x T2.2
T2 committed RR | R x 0 | u x 0`},
		{"a transaction that sees what it wrote, and what it undid", `
T1 committed RC | u x 0 | r x T1.1 | u! x T1.1 | r x T1.3 | d x T1.1 | i x T1.5 | r x T1.6`},
		{"a row that does not match what its own transaction made of it", `
T1 committed RC | u x 0 | m x 0`},
		{"a row that was deleted, and created again in vain", `
T1 committed RU | d x 0 | i! x T1.1
T2 committed RU | g x T1.1`},
		{"an aborted transaction that does not see its own write", `
T1 aborted RC | u x 0 | r x 0`},
		{"a read after the own write was undone", `
T1 committed RC | u! x 0 | r x 0`},
		{"an inexact read beside the own write, and one after an inexact write", `
T1 committed RC | u x 0 | r~ x 0 | u~ y 0 | r y 0`},
		{"a read of a row that a procedure may have changed since the own write", `
T1 committed RC | u x 0 | o | r x F.1`},
		{"an aborted transaction in a cycle", `
T1 aborted RR | r x 0 | u x T2.2
T2 committed RR | r x 0 | u x 0`},
		{"an aborted reader of an aborted write", `
T1 aborted RC | u x 0
T2 aborted RC | r x T1.1`},
		{"a read of one's own intermediate and undone versions", `
T1 committed RC | u x 0 | r x T1.1 | u! x T1.1 | r x T1.3 | u x T1.1`},
		{"an undone write takes part in nothing", `
T1 committed RR | r x 0 | u! x T2.1
T2 committed RR | u x 0`},
		{"the last of several versions is read", `
T1 committed RC | u x 0 | u x T1.1
T2 committed RC | r x T1.2`},
		{"a version after which the writer only may have written", `
T1 committed RC | u x 0 | u~ x T1.1
T2 committed RC | r x T1.1`},
		{"an undone version between two others", `
T1 committed RC | u x 0 | u! x T1.1 | u x T1.1
T2 committed RC | r x T1.3`},
		{"versions of foreign runs", `
T1 committed RC | r x F.1 | u x F.1
T2 committed RC | r x F.1,T1.2 | r y F.7`},
		{"a list without what aborted and what its transaction wrote before", `
T1 committed RU | u x 0 | u x T1.1
T2 aborted RU | u x T1.2
T3 committed RU | u x T1.2
T4 committed RU | r x 0,T1.2,T3.1 | r y 0
T5 aborted RU | r x 0,T1.2,T2.1`},
		{"a tag that stands in a list twice", `
T1 committed RC | u x 0
T2 committed RC | r x 0,T1.1,T1.1`},
		{"a list with an aborted version in a place of its own", `
T1 committed RC | u x 0
T2 aborted RC | u x 0
T3 committed RC | u x T1.1
T4 committed RC | r x 0,T1.1,T2.1,T3.1`},
		{"a list without the writer's own version of which nothing is known", `
T1 committed RC | o | u x T1.1
T2 committed RC | r x F.1,T1.2`},
		{"a transaction that replaced one version twice", `
T1 committed RC | u x 0 | u x 0`},
		{"a row deleted and created again", `
T1 committed RC | u x 0
T2 committed RC | d x T1.1
T3 committed RC | i x T1.1
T4 committed RC | r x T3.1`},
		{"a row created again before it was deleted, as told", `
T1 committed RC | u x 0
T2 committed RC | i x T1.1
T3 committed RC | d x T1.1
T4 committed RC | r x T2.1`},
		{"an order that an inexact list tells of a foreign run", `
T1 committed RR | r y 0 | u x F.1
T2 committed RR | u x 0 | u y 0
T3 committed RR | r~ x 0,T2.1,F.1`},
		{"an undone write over an aborted one", `
T1 aborted RC | u x 0
T2 committed RC | u! x T1.1`},
		{"garbage that only an aborted transaction saw", `
T1 aborted RC | r x X.1`},
		{"a write that nothing captured", `
T1 committed RC | o
T2 committed RC | r x T1.1`},
		{"an inexact read of garbage", `
T1 committed RC | r~ x X.1 | r~ y 0,X.2,X.1`},
		{"an inexact aborted read", `
T1 aborted RC | u x 0
T2 committed RC | r~ x T1.1`},
		{"an inexact intermediate read", `
T1 committed RC | u x 0 | u x T1.1
T2 committed RC | r~ x T1.1`},
		{"a cycle that rests on an inexact read", `
T1 committed RR | r~ x 0 | u x T2.2
T2 committed RR | r x 0 | u x 0`},
		{"a cycle that rests on an inexact write", `
T1 committed RR | r x 0 & r y 0 | u~ x 0
T2 committed RR | r x 0 & r y 0 | u y 0`},
		{"a fork that an inexact write makes", `
T1 committed RR | u x 0
T2 committed RR | u~ x 0`},
		{"an inexact list against an exact write", `
T1 committed RC | u x 0
T2 committed RC | u x T1.1
T3 committed RC | r~ x 0,T2.1`},
		{"an inexact write whose place an exact list corrects", `
T1 committed RC | u x 0
T2 committed RC | u~ x 0
T3 committed RC | r x 0,T1.1,T2.1`},
		{"a row deleted and created again in the deleted version's succession", `
T1 committed RC | d x 0
T2 committed RC | i x 0
T3 committed RC | r x T2.1`},
		{"a row created again, told in the other order", `
T1 committed RC | i x 0
T2 committed RC | d x 0
T3 committed RC | r x T1.1`},
		{"a row replaced by one statement", `
T1 committed RC | d x 0 & i x 0
T2 committed RC | r x T1.1 | u x T1.1`},
		{"unrecorded writers in between", `
T1 committed RC | u x 0
T2 committed RC | r x 0,T1.1,F.3`},
		{"an indeterminate writer that only READ UNCOMMITTED saw", `
T1 indeterminate RU | u x 0 | u x T1.1 | u y 0
T2 committed RU | r x T1.1 | r y 0`},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, scriptInfo(), c.history) })
	}
}

// TestIndeterminateTransactionCountsOnceItsWritesAreSeen: indeterminate transaction counts once others show that it
// committed.
func TestIndeterminateTransactionCountsOnceItsWritesAreSeen(t *testing.T) {
	const cycle = `
T1 indeterminate RR | r x 0 | u x T2.2
T2 committed RR | r x 0 | u x 0
`
	expect(t, scriptInfo(), cycle)
	for _, witness := range []string{
		"T3 committed RC | r x T1.2",
		"T3 aborted RC | r x T1.2",
		"T3 committed RU | R x T1.2",
		"T3 committed RU | u x T1.2",
		"T3 committed RC | r x 0,T2.2,T1.2,F.1",
	} {
		t.Run(witness, func(t *testing.T) { expect(t, scriptInfo(), cycle+witness, "hazard lost update") })
	}
	for _, silent := range []string{
		"T3 committed RU | r x T1.2",
		"T3 committed RU | r x 0,T2.2,T1.2,F.1",
		"T3 committed RC | r~ x T1.2",
	} {
		t.Run(silent, func(t *testing.T) { expect(t, scriptInfo(), cycle+silent) })
	}
}

// TestUnknownTagsAreUnrecordedAfterACrash: unknown tags are unrecorded where the run did not end cleanly.
func TestUnknownTagsAreUnrecordedAfterACrash(t *testing.T) {
	expect(t, scriptInfo(), `T1 committed RC | r x X.1`, "violation garbage read")
	crashed := scriptInfo()
	crashed.Ended = time.Time{}
	expect(t, crashed, `T1 committed RC | r x X.1`)
	expect(t, crashed, `
T1 committed RR | r x X.1 | u y T2.2
T2 committed RR | u x X.1 | u y 0`, "hazard read-write skew")
}

// TestListsFillInForUncapturedWrites: lists fill in for writes that were not captured.
func TestListsFillInForUncapturedWrites(t *testing.T) {
	// T2's statement 2 wrote x, as the lists tell, but nothing captured it.
	expect(t, scriptInfo(), `
T1 committed RR | r x 0 | u x T2.2
T2 committed RR | r x 0 | r z 0
T3 committed RC | r x 0,T2.2,T1.2`, "hazard lost update")
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r y T2.2
T2 committed RC | r z 0 | u y 0
T3 committed RC | r x 0,T2.1`, "hazard read skew")
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r y T2.2
T2 committed RC | o | u y 0
T3 committed RC | r x 0,T2.1,T2.1`, "hazard read skew")
	expect(t, scriptInfo(), `
T1 aborted RC | r z 0
T2 committed RC | r x T1.1`, "violation G1a")
	expect(t, scriptInfo(), `
T1 committed RC | r z 0 | u x T1.1
T2 committed RC | r x T1.1`, "violation G1b")
}

// TestUnobservedUndoneStatementLeavesAbortedVersions: undone statement of which nothing was observed leaves aborted
// versions.
func TestUnobservedUndoneStatementLeavesAbortedVersions(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RC | o! | r z 0
T2 committed RC | r x T1.1`, "violation G1a")
}

// A row created again in the succession of a deleted one comes after the deletion.
func TestCreatedRowFollowsTheDeletionOfItsPredecessor(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RC | u x 0
T2 committed RC | d x T1.1 | u y 0
T3 committed RC | r y 0 | i x T1.1`, "hazard read-write skew")
	expect(t, scriptInfo(), `
T1 committed RC | u x 0
T2 committed RC | r y 0 | i x T1.1
T3 committed RC | d x T1.1 | u y 0`, "hazard read-write skew")
}

// Where several transactions ended at one time, or their ends are not known, cycles are found too.
func TestCyclesDoNotDependOnTheClock(t *testing.T) {
	for _, end := range []func(i int) int64{
		func(int) int64 { return 0 },
		func(i int) int64 { return int64(i) },
		func(i int) int64 { return -int64(i) },
	} {
		h := script(t, `
T1 committed RC | r x 0
T2 committed RC | r x 0 | r y T4.2
T3 committed RC | u x 0
T4 committed RC | r x T3.1 | u y 0
T5 committed RC | r y T4.2`)
		for i := range h {
			h[i].End = end(i)
		}
		r, err := Analyze([]history.Info{scriptInfo()}, h)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(r); len(got) != 1 || got[0] != "hazard G-single" {
			t.Errorf("findings %q", got)
		}
	}
}

func TestDependenciesPassThroughVersionsOfForeignRuns(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RR | r x 0 | u y T2.2
T2 committed RR | u x 0,F.1 | u y 0`, "hazard read-write skew")
	expect(t, scriptInfo(), `
T1 committed RR | r y 0 | u x 0,T2.1,F.2
T2 committed RR | u x 0 | u y 0`, "hazard read-write skew")
}

// PostgreSQL shows a row that was deleted since the snapshot beside one that the transaction made under its key.
func TestRowMadeAgainMayStandBesideDeletedOne(t *testing.T) {
	const text = `
T1 committed RC | i x
T2 committed RC | d x T1.1
T3 committed RR | i x T2.1 | r x T1.1`
	info := scriptInfo()
	expect(t, info, text, "violation internal inconsistency", "violation lost update")
	info.Server = history.Server{Engine: "postgresql", Version: "15.18"}
	expect(t, info, text, "hazard lost update") // what it made anew has replaced a deletion that it did not see
	expect(t, info, text+" | u x T3.1 | r x T1.1", "hazard lost update")
	expect(t, info, text+" | u x T3.1 | r x T3.1", "hazard lost update", "violation internal inconsistency")
}
