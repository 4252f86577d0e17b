package main

import (
	"reflect"
	"testing"
	"testing/fstest"
)

func TestLongTestsAreThoseThatAskWhetherToBeShort(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("package p\n" + text)} }
	tests, dirs, err := longTests(fstest.MapFS{
		"plain/a_test.go": file("func TestQuick(t *testing.T) {}"),
		"asks/a_test.go": file("func TestAsks(t *testing.T) { if testing.Short() { t.Skip() } }\n" +
			"func TestBeside(t *testing.T) {}"),
		"through/a_test.go": file("func TestThrough(t *testing.T) { new(rig).run() }\nfunc TestMain(m *testing.M) { times() }"),
		"through/b_test.go": file("func (*rig) run() { times() }\nfunc times() int { if testing.Short() { return 1 }; return 9 }\n" +
			"func FuzzThrough(f *testing.F) { f.Add(times) }"),
		"scripts/a_test.go": file("func TestScripts(t *testing.T) { run(`testdata/script`) }\n" +
			"func TestLongScripts(t *testing.T) { run(\"testdata/long\") }"),
		"scripts/testdata/long/one.txtar":   {Data: []byte("# slow\n[short] skip\nexec true\n")},
		"scripts/testdata/script/two.txtar": {Data: []byte("exec true\n")},
		"other/a_test.go":                   file("func TestOther(t *testing.T) { run(\"testdata/script\") }"),
		"other/testdata/script/one.txtar":   {Data: []byte("exec true\n")},
		"other/testdata/a_test.go":          file("func TestData(t *testing.T) { testing.Short() }"),
		".hidden/a_test.go":                 file("func TestHidden(t *testing.T) { testing.Short() }"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"FuzzThrough", "TestAsks", "TestLongScripts", "TestThrough"}; !reflect.DeepEqual(tests, want) {
		t.Errorf("tests %q, want %q", tests, want)
	}
	if want := []string{"./asks", "./scripts", "./through"}; !reflect.DeepEqual(dirs, want) {
		t.Errorf("packages %q, want %q", dirs, want)
	}
}

func TestTestsThatDoNotParseAreNamed(t *testing.T) {
	if _, _, err := longTests(fstest.MapFS{"a/b_test.go": {Data: []byte("package\n")}}); err == nil {
		t.Error("no error")
	}
}
