package report

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

const documentation = "../docs/report-json.md"

// example returns the documentation's text and its example.
func example(t *testing.T) (text, example string) {
	t.Helper()
	b, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "```json\n")
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatalf("%s has no example", documentation)
	}
	return string(b), example
}

func TestDocumentationShowsWhatJSONWrites(t *testing.T) {
	r := clean()
	r.Findings = []*analyzer.Finding{writeSkew()}
	var b bytes.Buffer
	if err := JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	text, shown := example(t)
	if *update {
		text = strings.Replace(text, "```json\n"+shown, "```json\n"+b.String(), 1)
		if err := os.WriteFile(documentation, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, shown = example(t)
	}
	if shown != b.String() {
		t.Errorf("the example in %s is not what JSON writes (go test ./report -update rewrites it)", documentation)
	}
}

func TestDocumentationNamesEveryField(t *testing.T) {
	text, _ := example(t)
	for _, path := range fieldPaths(reflect.TypeFor[document](), "") {
		short := strings.TrimPrefix(strings.TrimPrefix(path, "findings[].witness[]."), "findings[].transactions[].")
		if !strings.Contains(text, "`"+short+"`") {
			t.Errorf("%s does not describe %s", documentation, path)
		}
	}
}

// fieldPaths returns the paths of all leaves below a type of the schema.
func fieldPaths(typ reflect.Type, prefix string) []string {
	var paths []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		path := prefix + f.Tag.Get("json")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			inner, path = inner.Elem(), path+"[]"
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			paths = append(paths, fieldPaths(inner, path+".")...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestJSONReadsBackAsTheSameDocument(t *testing.T) {
	for name, r := range fixtures() {
		var b bytes.Buffer
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(&b)
		dec.DisallowUnknownFields()
		var got document
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.Findings) != len(r.Findings) || got.Coverage.Statements != r.Coverage.Statements {
			t.Errorf("%s: %d findings, %d statements; want %d, %d", name, len(got.Findings), got.Coverage.Statements,
				len(r.Findings), r.Coverage.Statements)
		}
		if name == "hostile" {
			continue // invalid UTF-8 cannot come back from JSON
		}
		if want := newDocument(r); !reflect.DeepEqual(&got, want) {
			t.Errorf("%s: the document does not survive being written and read", name)
		}
	}
}

func TestJSONGivesEdgesTheirRowsVersionsAndStatements(t *testing.T) {
	edge := newDocument(lostUpdate()).Findings[0].Witness[1]
	want := jsonEdge{
		Kind: "ww", From: new("k00000ip"), FromStatement: new(uint32(3)), To: new("k00000iq"),
		ToStatement: new(uint32(3)),
		Row:         &jsonRow{"bank.account", "k000001.1:6"}, Version: new("k00000ip.3"), Next: new("k00000iq.3"),
	}
	if !reflect.DeepEqual(edge, want) {
		t.Errorf("got %+v, want %+v", edge, want)
	}
}

// TestJSONOfSessionOrderEdgeHasNoRow: JSON of a session order edge has no row and no version.
func TestJSONOfSessionOrderEdgeHasNoRow(t *testing.T) {
	got := newJSONEdge(&analyzer.Edge{Kind: analyzer.SO, From: &history.Txn{ID: 1 << 32}})
	if got.Row != nil || got.Version != nil || got.Next != nil || got.To != nil || got.FromStatement != nil {
		t.Errorf("got %+v", got)
	}
}

// TestJSONTimesAreRFC3339: JSON times are RFC3339 where the run is known.
func TestJSONTimesAreRFC3339(t *testing.T) {
	r := lostUpdate()
	txn := newDocument(r).Findings[0].Transactions[0]
	if got, want := txn.Start.Format(time.RFC3339Nano), "2026-03-14T09:26:57.7999Z"; got != want ||
		txn.StartNS != 4_210_900_000 {
		t.Errorf("start is %s, %d ns; want %s", got, txn.StartNS, want)
	}
	r.Runs = nil
	if txn := newDocument(r).Findings[0].Transactions[0]; txn.Start != nil || txn.StartNS != 4_210_900_000 {
		t.Errorf("without its run the start is %v, %d ns", txn.Start, txn.StartNS)
	}
}
