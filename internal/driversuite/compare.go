package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// What the tests of MariaDB's connector for Node.js that differ begin with, and why they do.
const (
	batch         = "test/integration/test-batch.js::batch "
	batchCallback = "test/integration/test-batch-callback.js::batch callback "
	bulkIsMasked  = "isotap does not offer COM_STMT_BULK_EXECUTE (ADR 4), and without it (bulk: false) " +
		"the test fails or is skipped directly, too"
	batchGeometry = "test/integration/test-batch-geometry-type.js::batch geometry type "
)

// What the tests of MySQL Connector/J that differ begin with, and why they do.
const (
	attributes         = "testsuite.simple.QueryAttributesTest::"
	attributesAreAsked = "isotap does not offer CLIENT_QUERY_ATTRIBUTES (ADR 4), and the test asks the server for attributes"
)

// explained are the differences that have to be, by engine and test (of PostgreSQL's drivers "postgresql
// pgconn.TestX").
var explained = map[string]string{
	"mariadb " + batchCallback + "named parameter with bulk non rewritable batch":                     bulkIsMasked,
	"mariadb " + batchCallback + "standard question mark and compress with bulk non rewritable batch": bulkIsMasked,
	"mariadb " + batchCallback + "standard question mark using bulk non rewritable batch":             bulkIsMasked,
	"mariadb " + batch + "standard question mark and compress with bulk non rewritable batch":         bulkIsMasked,
	"mariadb " + batch + "standard question mark using bulk batch timeout error":                      bulkIsMasked,
	"mariadb " + batch + "standard question mark using bulk non rewritable batch":                     bulkIsMasked,
	"mariadb " + batchGeometry + "LineString insert":                                                  bulkIsMasked,
	"mariadb " + batchGeometry + "Multi-line insert":                                                  bulkIsMasked,
	"mariadb " + batchGeometry + "Multi-polygon insert":                                               bulkIsMasked,
	"mariadb " + batchGeometry + "MultiPoint insert":                                                  bulkIsMasked,
	"mariadb " + batchGeometry + "Polygon insert":                                                     bulkIsMasked,
	"mariadb test/integration/test-debug.js::debug select request debug":                              bulkIsMasked,
	"mariadb test/integration/test-debug.js::debug select request debug compress":                     bulkIsMasked,

	"mysql " + attributes + "cachedServerPreparedStatementsWithQueryAttributes()":     attributesAreAsked,
	"mysql " + attributes + "multiQueriesWithAttributesInPlainStatement()":            attributesAreAsked,
	"mysql " + attributes + "multiQueriesWithAttributesInPreparedStatement()":         attributesAreAsked,
	"mysql " + attributes + "plainStatementWithQueryAttributesInMultiHost()":          attributesAreAsked,
	"mysql " + attributes + "preserveAndClearAttributesInCallableStatement()":         attributesAreAsked,
	"mysql " + attributes + "preserveAndClearAttributesInClientPreparedStatement()":   attributesAreAsked,
	"mysql " + attributes + "preserveAndClearAttributesInPlainStatement()":            attributesAreAsked,
	"mysql " + attributes + "preserveAndClearAttributesInServerPreparedStatement()":   attributesAreAsked,
	"mysql " + attributes + "queryAttributesTypesInCallableStatement()":               attributesAreAsked,
	"mysql " + attributes + "queryAttributesTypesInClientPreparedStatement()":         attributesAreAsked,
	"mysql " + attributes + "queryAttributesTypesInPlainStatement()":                  attributesAreAsked,
	"mysql " + attributes + "queryAttributesTypesInServerPreparedStatement()":         attributesAreAsked,
	"mysql " + attributes + "rewriteQueriesWithAttributesInClientPreparedStatement()": attributesAreAsked,
	"mysql " + attributes + "rewriteQueriesWithAttributesInPlainStatement()":          attributesAreAsked,
	"mysql " + attributes + "rewriteQueriesWithAttributesInServerPreparedStatement()": attributesAreAsked,
	"mysql " + attributes + "serverPreparedStatementWithQueryAttributesInMultiHost()": attributesAreAsked,

	"mysql testsuite.simple.ConnectionTest::testTSLConflictingOptions()": "the test asks the server for the TLS of the " +
		"session (SHOW STATUS), which is that of isotap's leg: there is some where the client has none, and the reverse",

	"postgresql select_distinct": "rows that no ORDER BY sorts come in another order: " +
		"with what isotap asks for besides, the plan is another",
	"postgresql portals": "pg_cursors shows what isotap sent of cursors that were declared before the session " +
		"first named the view (ADR 48)",
	"postgresql xmlmap": "the first cursor that is read by its name, in a database's life, " +
		"was declared with hidden columns (ADR 48)",
}

// A comparison holds what each way gave.
type comparison struct {
	driver          *driver
	engine, version string

	ways []way
	took []time.Duration
	// results of a test, one for each way; absent where it did not run.
	results map[string][]outcome
	// unsteady are tests whose outcomes once differed and no longer did when they were tried again.
	unsteady []string
}

func (c *comparison) add(w way, outcomes map[string]outcome, took time.Duration) {
	if c.results == nil {
		c.results = make(map[string][]outcome)
	}
	c.ways, c.took = append(c.ways, w), append(c.took, took)
	for test := range outcomes {
		if c.results[test] == nil {
			c.results[test] = slices.Repeat([]outcome{{result: absent}}, len(c.ways)-1)
		}
	}
	for test, results := range c.results {
		o, ok := outcomes[test]
		if !ok {
			o.result = absent
		}
		c.results[test] = append(results, o)
	}
}

// differing are the tests whose outcome is not the same on every way.
func (c *comparison) differing() []string {
	var tests []string
	for _, test := range slices.Sorted(maps.Keys(c.results)) {
		if differ(c.results[test]) {
			tests = append(tests, test)
		}
	}
	return tests
}

func differ(results []outcome) bool {
	return slices.ContainsFunc(results, func(o outcome) bool { return o.result != results[0].result })
}

// tryAgain runs the tests with different outcomes once more on every way. Some of the suite race against the
// clock, and on a busy machine lose whichever way they go.
func (c *comparison) tryAgain(ctx context.Context, s *suite, progress io.Writer) error {
	tests := c.differing()
	if len(tests) == 0 {
		return nil
	}
	fmt.Fprintf(progress, "again: %s ...\n", strings.Join(tests, ", "))
	retried := comparison{}
	for _, w := range c.ways {
		outcomes, err := s.run(ctx, w, selection{tests: tests})
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		retried.add(w, outcomes, 0)
	}
	c.settle(tests, retried.results)
	return nil
}

// settle takes over what became of tests that were tried again, where it is the same on every way.
func (c *comparison) settle(tests []string, retried map[string][]outcome) {
	for _, test := range tests {
		switch results := retried[test]; {
		case results != nil && !differ(results):
			c.results[test] = results
		case results == nil && holds(test, retried):
			delete(c.results, test)
		default:
			continue
		}
		c.unsteady = append(c.unsteady, test)
	}
}

// holds reports whether a name is that of a file or class some of whose tests have outcomes: such a name has
// one itself only when it did not come to its end.
func holds(name string, outcomes map[string][]outcome) bool {
	for test := range outcomes {
		if strings.HasPrefix(test, name+"::") {
			return true
		}
	}
	return false
}

// print writes the counts of each way and every difference, and returns the number of those that are not
// explained.
func (c *comparison) print(out io.Writer, verbose bool) (int, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tests of %s on %s %s\n", c.driver.name, c.engine, c.version)
	for i, w := range c.ways {
		counts := make(map[string]int)
		for _, results := range c.results {
			counts[results[i].result]++
		}
		fmt.Fprintf(&b, "  %-6s  %3d passed, %d failed, %d skipped, %d did not run (%.1f s)\n", w,
			counts[passed], counts[failed], counts[skipped], counts[absent], c.took[i].Seconds())
	}
	for _, test := range slices.Sorted(maps.Keys(c.results)) {
		if results := c.results[test]; results[0].result == failed && !differ(results) {
			fmt.Fprintf(&b, "  fails on every way: %s\n", test)
			if verbose {
				fmt.Fprintf(&b, "    %s said:\n%s", c.ways[0], results[0].said)
			}
		}
	}
	for _, test := range c.unsteady {
		fmt.Fprintf(&b, "  differed once and no more: %s\n", test)
	}
	var tests, known int
	for _, test := range c.differing() {
		if reason, ok := explained[c.engine+" "+test]; ok {
			fmt.Fprintf(&b, "  differs: %s: %s\n", test, reason)
			known++
			continue
		}
		tests++
		fmt.Fprintf(&b, "  DIFFERS: %s:", test)
		for i, o := range c.results[test] {
			fmt.Fprintf(&b, " %s %s", c.ways[i], o.result)
		}
		b.WriteString("\n")
		for i, o := range c.results[test] {
			if verbose && o.result != passed {
				fmt.Fprintf(&b, "    %s said:\n%s", c.ways[i], o.said)
			}
		}
	}
	fmt.Fprintf(&b, "%d tests, %d differences, %d more explained\n", len(c.results), tests, known)
	_, err := io.WriteString(out, b.String())
	return tests, err
}
