package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/isotap/isotap/analyzer"
)

func isViolation(f *analyzer.Finding) bool { return f.Class == analyzer.Violation }

func export(t *testing.T, write func(io.Writer, *analyzer.Result) error, r *analyzer.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func junit(w io.Writer, r *analyzer.Result) error { return JUnit(w, r, isViolation) }

// TestJUnitIsWellFormed: j unit is well formed and counts its cases.
func TestJUnitIsWellFormed(t *testing.T) {
	for name, r := range fixtures() {
		text := export(t, junit, r)
		var got junitSuites
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for dec := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := token.(xml.StartElement); ok &&
				!slices.Contains([]string{"testsuites", "testsuite", "properties", "property", "testcase", "failure",
					"skipped"}, e.Name.Local) {
				t.Errorf("%s: there is an element %s", name, e.Name.Local)
			}
		}
		failures, skipped := 0, 0
		for _, c := range got.Suite.Cases {
			if c.Failure != nil {
				failures++
			}
			if c.Skipped != nil {
				skipped++
			}
		}
		if len(got.Suite.Cases) != got.Tests || failures != got.Failures || skipped != got.Skipped ||
			got.Tests != 1+len(r.Findings)+len(r.Gone) {
			t.Errorf("%s: %d cases, %d failures, %d skipped; it counts %d, %d, %d", name, len(got.Suite.Cases),
				failures, skipped, got.Tests, got.Failures, got.Skipped)
		}
	}
}

// TestJUnitFailsOnlyForNewFailures: j unit fails only for what fails and is new.
func TestJUnitFailsOnlyForNewFailures(t *testing.T) {
	for _, c := range []struct {
		r        *analyzer.Result
		failures string
	}{{lostUpdate(), `failures="0" skipped="1"`}, {skewAndCycle(), `failures="1"`}, {compared(), `failures="0"`}} {
		if text := export(t, junit, c.r); !strings.Contains(text, c.failures) {
			t.Errorf("want %s in\n%s", c.failures, text)
		}
	}
}

// required are the properties that the SARIF 2.1.0 schema requires, and the values of its enumerations,
// by the path of an object.
var required = map[string][]string{
	"":                           {"version", "runs"},
	"runs[]":                     {"tool"},
	"runs[].tool":                {"driver"},
	"runs[].tool.driver":         {"name"},
	"runs[].tool.driver.rules[]": {"id"},
	"runs[].tool.driver.rules[].shortDescription": {"text"},
	"runs[].invocations[]":                        {"executionSuccessful"},
	"runs[].results[]":                            {"message"},
	"runs[].results[].message":                    {"text"},
	"runs[].results[].codeFlows[]":                {"threadFlows"},
	"runs[].results[].codeFlows[].threadFlows[]":  {"locations"},
}

var enumerated = map[string][]string{
	"version":                        {"2.1.0"},
	"runs[].columnKind":              {"utf16CodeUnits", "unicodeCodePoints"},
	"runs[].results[].level":         {"none", "note", "warning", "error"},
	"runs[].results[].kind":          {"notApplicable", "pass", "fail", "review", "open", "informational"},
	"runs[].results[].baselineState": {"new", "unchanged", "updated", "absent"},
}

func TestSARIFHasWhatItsSchemaRequires(t *testing.T) {
	for name, r := range fixtures() {
		var log map[string]any
		if err := json.Unmarshal([]byte(export(t, SARIF, r)), &log); err != nil {
			t.Fatal(err)
		}
		checkSARIF(t, name, "", log)
		run := log["runs"].([]any)[0].(map[string]any)
		rules := run["tool"].(map[string]any)["driver"].(map[string]any)["rules"].([]any)
		for _, x := range run["results"].([]any) {
			result := x.(map[string]any)
			if i := int(result["ruleIndex"].(float64)); rules[i].(map[string]any)["id"] != result["ruleId"] {
				t.Errorf("%s: rule %d is not %s", name, i, result["ruleId"])
			}
		}
	}
}

// checkSARIF checks an object and what is below it.
func checkSARIF(t *testing.T, name, path string, x any) {
	switch x := x.(type) {
	case []any:
		for _, y := range x {
			checkSARIF(t, name, path+"[]", y)
		}
	case map[string]any:
		for _, key := range required[path] {
			if x[key] == nil {
				t.Errorf("%s: %q lacks %s", name, path, key)
			}
		}
		for key, y := range x {
			checkSARIF(t, name, strings.TrimPrefix(path+"."+key, "."), y)
		}
	case nil:
		t.Errorf("%s: %s is null", name, path)
	case string:
		if values := enumerated[path]; values != nil && !slices.Contains(values, x) {
			t.Errorf("%s: %s is %q", name, path, x)
		}
		if strings.HasSuffix(path, ".uri") {
			if u, err := url.Parse(x); err != nil || u.Scheme != "" || u.RawQuery != "" || u.Fragment != "" {
				t.Errorf("%s: %q is no relative reference (%v)", name, x, err)
			}
		}
	case float64:
		if strings.HasSuffix(path, "startLine") && x < 1 {
			t.Errorf("%s: line %v", name, x)
		}
	}
}

func TestSARIFPointsAtTheReadThatWasOverwritten(t *testing.T) {
	var log sarifLog
	if err := json.Unmarshal([]byte(export(t, SARIF, lostUpdate())), &log); err != nil {
		t.Fatal(err)
	}
	result := log.Runs[0].Results[0]
	at := result.Locations[0].PhysicalLocation
	if at == nil || at.ArtifactLocation.URI != "app/transfer%20service.py" || at.Region.StartLine != 12 ||
		len(result.RelatedLocations) != 1 {
		t.Errorf("it is at %+v, related are %+v", at, result.RelatedLocations)
	}
	var order []string
	for n := 1; n <= 8; n++ {
		for _, thread := range result.CodeFlows[0].ThreadFlows {
			for _, s := range thread.Locations {
				if s.ExecutionOrder == n {
					order = append(order, thread.ID)
				}
			}
		}
	}
	if want := "T2 T2 T1 T1 T2 T1 T2 T1"; strings.Join(order, " ") != want {
		t.Errorf("the threads ran in the order %v, want %s", order, want)
	}
}

func TestSARIFTellsBaselineStates(t *testing.T) {
	text := export(t, SARIF, compared())
	for _, state := range []string{"new", "unchanged", "absent"} {
		if strings.Count(text, `"baselineState": "`+state+`"`) != 1 {
			t.Errorf("there is not one result that is %s", state)
		}
	}
}

// dotLine and mermaidLine are all that the drawings may consist of: strings are closed on their line.
var (
	dotLine     = regexp.MustCompile(`^ *(digraph isotap \{|rankdir=LR;|(node|edge) \[[a-z=, "0-9-]+\];|subgraph cluster_\d+ \{|\}|(label=|f\d+_t\d+ (-> f\d+_t\d+ )?\[label=)"([^"\\]|\\["\\n])*"(, style=dashed)?\]?;)$`)
	mermaidLine = regexp.MustCompile(`^ *(flowchart LR|subgraph finding_\d+\["[^"]*"\]|end|f\d+_t\d+\["[^"]*"\]|f\d+_t\d+ (--|-\.) "[^"]*" (-->|\.->) f\d+_t\d+)$`)
)

func TestDrawingsHoldNothingButGraphs(t *testing.T) {
	for name, r := range fixtures() {
		for notation, c := range map[string]struct {
			write func(io.Writer, *analyzer.Result) error
			line  *regexp.Regexp
		}{"dot": {DOT, dotLine}, "mermaid": {Mermaid, mermaidLine}} {
			for line := range strings.Lines(export(t, c.write, r)) {
				line = strings.TrimSuffix(line, "\n")
				if !c.line.MatchString(line) || strings.ContainsFunc(line, unicode.IsControl) {
					t.Errorf("%s of %s: %q", notation, name, line)
				}
				if notation == "mermaid" && strings.ContainsAny(strings.ReplaceAll(line, "<br/>", ""), "<`&") {
					t.Errorf("%s has markup: %q", name, line)
				}
			}
		}
	}
}
