package mutate

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// FuzzWords is what the tests below run in a process of its own: it fails where the words of two inputs meet.
func FuzzWords(f *testing.F) {
	fail := os.Getenv("ISOTAP_MUTATE_FAIL")
	f.Add("SELECT a", []byte{1, 2}, 3, true)
	f.Add("UPDATE b", []byte{}, -3, false)
	Fuzz(f, func(t *testing.T, text string, bytes []byte, n int, b bool) {
		if fail == "" || !strings.Contains(text, "UPDATE") || !strings.Contains(text, "FROM") {
			return
		}
		if fail == "panic" {
			panic("they meet")
		}
		t.Fatal("they meet")
	}, "FROM")
}

// fuzzWords runs FuzzWords in a copy of this program, in a directory of its own.
func fuzzWords(t *testing.T, fail, dir string, flags ...string) (string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-test.run=^FuzzWords$"}, flags...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ISOTAP_MUTATE_FAIL="+fail)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTargetsRunAsOftenAsAsked(t *testing.T) {
	out, err := fuzzWords(t, "", t.TempDir(), "-mutate.executions=5000", "-mutate.seed=7")
	if err != nil || !strings.Contains(out, "mutate: FuzzWords: 5000 executions in ") ||
		!strings.Contains(out, "-mutate.seed 7\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = fuzzWords(t, "", t.TempDir(), "-mutate.for=100ms"); err != nil || !strings.Contains(out, "executions in") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWhatFailsIsKept: the input that failed fails again, as one of go test's own.
func TestWhatFailsIsKept(t *testing.T) {
	for _, fail := range []string{"fatal", "panic"} {
		dir := t.TempDir()
		if out, err := fuzzWords(t, fail, dir, "-mutate.executions=1000000"); err == nil || !strings.Contains(out, "they meet") {
			t.Fatalf("%s: %v\n%s", fail, err, out)
		}
		kept, _ := filepath.Glob(filepath.Join(dir, "testdata", "fuzz", "FuzzWords", "*"))
		if len(kept) != 1 {
			t.Fatalf("%s: kept %q", fail, kept)
		}
		out, err := fuzzWords(t, fail, dir)
		if err == nil || !strings.Contains(out, "they meet") || !strings.Contains(out, filepath.Base(kept[0])) {
			t.Errorf("%s, again: %v\n%s", fail, err, out)
		}
	}
}

func TestInputsAreReadAsWritten(t *testing.T) {
	in := input{[]byte("a\x00\xff\n"), "it's\n\"ü\"", true, byte('\''), int8(-3), 70000, uint64(1) << 63, 'ü'}
	var types []reflect.Type
	for _, v := range in {
		types = append(types, reflect.TypeOf(v))
	}
	t.Chdir(t.TempDir())
	if _, err := in.write("FuzzX"); err != nil {
		t.Fatal(err)
	}
	got, err := readCorpus(filepath.Join("testdata", "fuzz"), "FuzzX", types)
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], in) {
		t.Errorf("%#v, %v", got, err)
	}
	quoted := corpusVersion + "\nbyte('\\'')\nrune('ü')\n"
	got2, err := unmarshal([]byte(quoted), []reflect.Type{reflect.TypeFor[byte](), reflect.TypeFor[rune]()})
	if err != nil || !reflect.DeepEqual(got2, input{byte('\''), 'ü'}) {
		t.Errorf("%#v, %v", got2, err)
	}
	for _, wrong := range []string{"", corpusVersion, corpusVersion + "\nint(x)\n", corpusVersion + "\n5\n", "go test fuzz v2\nint(5)\n"} {
		if got, err := unmarshal([]byte(wrong), []reflect.Type{reflect.TypeFor[int]()}); err == nil {
			t.Errorf("%q is read as %v", wrong, got)
		}
	}
}

// TestInputsAreChanged: each way to change a text is taken, what was given stays, and the same seed gives the same.
func TestInputsAreChanged(t *testing.T) {
	kept := []input{{"SELECT a FROM t WHERE b = 5", []byte("CQs 1\x00SZI")}, {"UPDATE item SET stock = 'x'", []byte("")}}
	var once []input
	for round := range 2 {
		given := []input{kept[0].clone(), kept[1].clone()}
		s := newSource(rand.New(rand.NewPCG(3, 0)), given, []string{"RETURNING", "SCDONE"})
		for n := range 100_000 {
			in := s.next()
			if len(in[0].(string)) > s.longest || len(in[1].([]byte)) > s.longest {
				t.Fatalf("longer than %d: %q", s.longest, in)
			}
			if round == 0 {
				once = append(once, in.clone())
			} else if !reflect.DeepEqual(in, once[n]) {
				t.Fatalf("input %d is %q, and was %q", n, in, once[n])
			}
			clear(in[1].([]byte)) // as a target might
		}
		if !reflect.DeepEqual(given, kept) {
			t.Fatalf("what was given became %q", given)
		}
	}
	for _, want := range []string{"SELECT a RETURNING t WHERE b = 5", "SELECT a FROM t WHERE b = 4", "SELECT a FROM WHERE b = 5",
		"SELECT a FROM t stock b = 5", "SELECT a FROM t SET stock = 'x'"} {
		if !slices.ContainsFunc(once, func(in input) bool {
			return strings.Join(strings.Fields(in[0].(string)), " ") == want
		}) {
			t.Errorf("none is %q", want)
		}
	}
	if !slices.ContainsFunc(once, func(in input) bool { return string(in[1].([]byte)) == "CQs 1\x00SCDONESZI" }) {
		t.Error("no message came before another")
	}
}
