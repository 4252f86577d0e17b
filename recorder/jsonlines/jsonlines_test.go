package jsonlines_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/histgen"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/recorder/jsonlines"
	"github.com/isotap/isotap/report"
)

// save makes a recording of one run and its transactions.
func save(t *testing.T, dir string, info history.Info, sessions []history.Session, txns []*history.Txn,
	matches []history.Matches, logged []*history.LoggedTxn, definitions ...history.Definition) {
	t.Helper()
	w, err := recorder.Restore(dir, info, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if err := w.Session(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range txns {
		if err := w.Txn(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range matches {
		if err := w.Matches(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range logged {
		if err := w.Logged(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range definitions {
		if err := w.Definition(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func export(t *testing.T, dirs ...string) string {
	t.Helper()
	var b bytes.Buffer
	if err := jsonlines.Export(t.Context(), &b, dirs...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func analyzed(t *testing.T, dir string) string {
	t.Helper()
	result, err := analysis.Analyze(t.Context(), []string{dir}, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.JSON(&b, result); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRandomHistoriesComeBackTheSame: random histories come back and give the same analysis.
func TestRandomHistoriesComeBackTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		config := histgen.Random(rng)
		info := config.Info()
		info.Started, info.Ended = time.Unix(1_700_000_000, 5).UTC(), time.Unix(1_700_000_009, 0).UTC()
		dir := t.TempDir()
		was, is := filepath.Join(dir, "was"), filepath.Join(dir, "is")
		save(t, was, info, []history.Session{{ID: 1, Client: "c", User: "u", Start: 1, End: 2}},
			histgen.Generate(rng, config), nil, nil)
		text := export(t, was)
		if err := jsonlines.Import(t.Context(), strings.NewReader(text), "x", is); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again := export(t, is); again != text {
			t.Fatalf("seed %d: exported, imported and exported again:\n%s\nwant:\n%s", seed, again, text)
		}
		if got, want := analyzed(t, is), analyzed(t, was); got != want {
			t.Fatalf("seed %d: analysis of the import:\n%s\nwant:\n%s", seed, got, want)
		}
	}
}

// fill sets every field below v to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(int64(*n), int64(*n)).UTC()
		return
	case *history.Tag:
		*at = history.Tag{Txn: history.MakeTxnID(9, uint32(*n)), Stmt: uint32(*n)}
		return
	case *history.Run:
		*at = 7
		return
	case *history.Reason:
		*at = history.ParseReason(fmt.Sprintf("<é%d\x00\xff>", *n))
		return
	case *history.TxnID:
		*at = history.MakeTxnID(7, uint32(*n))
		return
	case *history.Status, *history.Level, *history.Conflicts, *history.Kind, *history.Locking,
		*history.Observation, *history.Op, *history.Asked:
		v.SetUint(1)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.String:
		v.SetString(fmt.Sprintf("<é%d\x00\xff>", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		v.SetUint(uint64(*n))
	default:
		panic(v.Type().String() + " is not known to this test")
	}
}

func TestEveryFieldOfTheModelComesBack(t *testing.T) {
	n := 0
	var info history.Info
	var session history.Session
	var txn history.Txn
	var matches history.Matches
	var definition history.Definition
	var logged history.LoggedTxn
	fill(reflect.ValueOf(&logged).Elem(), &n)
	logged.Number = 1 // the recorder gives it: it is the first one
	for i := range logged.Writes {
		logged.Writes[i].TupleID.Tagged = false // no log has such
	}
	fill(reflect.ValueOf(&definition).Elem(), &n)
	fill(reflect.ValueOf(&matches).Elem(), &n)
	fill(reflect.ValueOf(&info).Elem(), &n)
	fill(reflect.ValueOf(&session).Elem(), &n)
	fill(reflect.ValueOf(&txn).Elem(), &n)
	txn.Runner = history.AClient
	for i := range txn.Stmts {
		txn.Stmts[i].Unseen, txn.Stmts[i].Recorded = false, 0 // no recording has such
		txn.Stmts[i].Text = ""                                // a recording has it by itself, and the lines leave it out
		for j := range txn.Stmts[i].Accesses {
			a := &txn.Stmts[i].Accesses[j]
			a.Absent, a.Gone, a.Wide = false, false, false // no recording has such
		}
	}
	dir := t.TempDir()
	was, is := filepath.Join(dir, "was"), filepath.Join(dir, "is")
	matches.Predicate = matches.Predicate.Condition()
	want := txn // the recorder owns what it is given, but does not change it
	save(t, was, info, []history.Session{session}, []*history.Txn{&txn}, []history.Matches{matches},
		[]*history.LoggedTxn{&logged}, definition)
	if err := jsonlines.Import(t.Context(), strings.NewReader(export(t, was)), "x", is); err != nil {
		t.Fatal(err)
	}
	r, err := recorder.Open(is)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	recorded := func() history.Info { // what the recording itself does not keep is not asked of the lines
		r, err := recorder.Open(was)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Runs()[0]
	}()
	if got := r.Runs()[0]; !reflect.DeepEqual(got, recorded) || got.Run != info.Run || !got.Ended.Equal(info.Ended) {
		t.Errorf("run: %+v, want %+v", got, recorded)
	}
	for got, err := range r.Sessions(t.Context()) {
		if err != nil || got != session {
			t.Errorf("session: %+v, %v; want %+v", got, err, session)
		}
	}
	for got, err := range r.Txns(t.Context()) {
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("transaction: %+v, %v; want %+v", got, err, want)
		}
	}
	for got, err := range r.Definitions(t.Context(), info.Run) {
		if err != nil || got != definition {
			t.Errorf("definition: %+v, %v; want %+v", got, err, definition)
		}
	}
	for got, err := range r.Logged(t.Context(), info.Run) {
		if err != nil || !reflect.DeepEqual(*got, logged) {
			t.Errorf("logged: %+v, %v; want %+v", got, err, logged)
		}
	}
	for got, err := range r.Matches(t.Context(), info.Run) {
		if err != nil || !reflect.DeepEqual(got, matches) {
			t.Errorf("matches: %+v, %v; want %+v", got, err, matches)
		}
	}
}

func TestBadLinesAreNamedAndLeaveNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const (
		first = `{"isotap":{"format":1}}`
		run   = `{"run":{"run":"00000a","started":"2026-01-02T03:04:05Z","isotap":"v","mode":"items","engine":"mariadb","version":"10"}}`
		txn   = `{"txn":{"id":"00000a1","session":1,"status":"committed","level":"SERIALIZABLE","start":1,"end":2,"stmts":[]}}`
		end   = `{"end":{"runs":1,"sessions":0,"txns":1}}`
	)
	placeOf := func(place string) string {
		return `[{"num":1,"kind":"SELECT","observation":"exact","shape":"","start":1,"end":1,"accesses":[{"table":"t","row":"1","op":"read","version":"0","place":` + place + `}]}]`
	}
	swap := func(old, new string) string { return strings.Replace(txn, old, new, 1) }
	tests := []struct {
		lines []string
		says  string
	}{
		{nil, "x:2: the last line"},
		{[]string{first, run, txn}, "x:4: the last line"},
		{[]string{run, txn, end}, "x:1: the first line"},
		{[]string{`{"isotap":{"format":2}}`}, "x:1: format 2"},
		{[]string{first, run, txn[:30]}, "x:3: the line is cut off"},
		{[]string{first, run, "garbage"}, "x:3: invalid character"},
		{[]string{first, run, txn + txn}, "x:3: there is more than one value"},
		{[]string{first, run, `{}`}, "x:3: a line has one of"},
		{[]string{first, run, `{"commit":1}`}, `x:3: json: unknown field "commit"`},
		{[]string{first, txn}, "x:2: a session, a transaction or what matches stands before the first run"},
		{[]string{first, run, run}, "x:3: run 00000a begins twice"},
		{[]string{first, run, txn, txn}, "x:4: transaction 00000a1 stands twice"},
		{[]string{first, run, swap("00000a1", "00000b1")}, "x:3: transaction 00000b1 is not of run 00000a"},
		{[]string{first, run, swap("00000a1", "1")}, `x:3: transaction id "1" is too short`},
		{[]string{first, run, swap("committed", "done")}, `x:3: transaction 00000a1: status "done" is not known`},
		{[]string{first, run, swap("SERIALIZABLE", "TOP")}, `x:3: transaction 00000a1: level "TOP" is not known`},
		{[]string{first, run, swap("[]",
			`[{"num":1,"kind":"EAT","observation":"exact","shape":"","start":1,"end":1}]`)}, `statement 1: kind "EAT"`},
		{[]string{first, run, swap("[]",
			`[{"num":1,"kind":"SELECT","observation":"exact","shape":"","start":1,"end":1,"accesses":[{"table":"t","row":"1","op":"read","version":"x.y.z"}]}]`)}, "statement 1: access 1: tag"},
		{[]string{first, run, swap("[]", placeOf(`{"ctid":"(0;1)"}`))}, `statement 1: access 1: ctid "(0;1)" is not`},
		{[]string{first, run, swap("[]", placeOf(`{"new_ctid":"(0,65536)"}`))}, `ctid "(0,65536)" is not`},
		{[]string{first, run, swap("[]", placeOf(`{"lsn":"16B3748"}`))}, `lsn "16B3748" is not`},
		{[]string{first, run, swap("[]", placeOf(`{"lsn":"0/-1"}`))}, `lsn "0/-1" is not`},
		{[]string{first, run, swap("[]",
			`[{"num":0,"kind":"SELECT","observation":"exact","shape":"","start":1,"end":1}]`)}, "numbered from 1"},
		{[]string{first, run, swap("[]",
			`[{"num":1,"kind":"SELECT","observation":"exact","shape":7,"start":1,"end":1}]`)}, "neither a string"},
		{[]string{first, run, end}, "x:3: lines are missing"},
		{[]string{first, `{"end":{"runs":0,"sessions":0,"txns":0}}`}, "x:2: there is no run"},
		{[]string{first, run, txn, end, txn}, "x:5: a line stands behind"},
	}
	for _, tt := range tests {
		parent := t.TempDir()
		dir := filepath.Join(parent, "rec")
		err := jsonlines.Import(t.Context(), strings.NewReader(strings.Join(tt.lines, "\n")+"\n"), "x", dir)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v does not say %q", tt.lines, err, tt.says)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%q: left %v behind", tt.lines, left)
		}
	}
	dir := filepath.Join(t.TempDir(), "deep", "rec")
	if err := jsonlines.Import(t.Context(), strings.NewReader(strings.Join([]string{first, run, "", txn, end}, "\n")),
		"x", dir); err != nil {
		t.Fatalf("good lines: %v", err)
	}
	if err := jsonlines.Import(t.Context(), strings.NewReader(first), "x", dir); err == nil ||
		!strings.Contains(err.Error(), "is not empty") {
		t.Errorf("import into a recording: %v", err)
	}
	if !strings.Contains(export(t, dir), "00000a1") {
		t.Error("the recording that was there is damaged")
	}
}

func TestTheDocumentedExampleCanBeImported(t *testing.T) {
	doc, err := os.ReadFile("../../docs/recording-json.md")
	if err != nil {
		t.Fatal(err)
	}
	var example strings.Builder
	for line := range strings.Lines(string(doc)) {
		if code, ok := strings.CutPrefix(line, "    {"); ok {
			example.WriteString("{" + code)
		}
	}
	dir := filepath.Join(t.TempDir(), "rec")
	if err := jsonlines.Import(t.Context(), strings.NewReader(example.String()), "docs/recording-json.md",
		dir); err != nil {
		t.Fatal(err)
	}
	if got := export(t, dir); got != example.String() {
		t.Errorf("exported again:\n%s", got)
	}
}

// A transaction that only defines stands by itself: it is none of the run's transactions.
func TestDefinitionsThatRanComeBack(t *testing.T) {
	dir := t.TempDir()
	was, is := filepath.Join(dir, "was"), filepath.Join(dir, "is")
	info := history.Info{Run: 7, Started: time.Unix(1, 0).UTC()}
	w, err := recorder.Restore(was, info, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defined := history.DefiningTxn{Database: "shop", Txn: history.Txn{ID: history.MakeTxnID(7, 1), Session: 3, Status: history.Committed, Level: history.ReadCommitted,
		Implicit: true, Start: 5, End: 9, Stmts: []history.Stmt{{Num: 1, Kind: history.DDL, Shape: "CREATE TABLE t (a VARCHAR(?))",
			Args: []string{"10"}, Sender: history.Sender{Place: "m.py:3", Action: "migrate", Request: "7"}, Start: 5, End: 9, Error: history.Error{Code: 1050, SQLState: "42S01", Message: "exists"}}}}}
	want := defined
	if err := errors.Join(w.Defined(t.Context(), &defined), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := jsonlines.Import(t.Context(), strings.NewReader(export(t, was)), "x", is); err != nil {
		t.Fatal(err)
	}
	r, err := recorder.Open(is)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for got, err := range r.Defined(t.Context(), info.Run) {
		if n++; err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	for x, err := range r.Txns(t.Context()) {
		t.Errorf("transaction: %+v, %v", x, err)
	}
	if n != 1 {
		t.Errorf("%d transactions came back", n)
	}
}
