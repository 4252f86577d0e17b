package scenario

import (
	"reflect"
	"strings"
	"testing"
)

func TestReplBugScriptsAreRead(t *testing.T) {
	got, err := ReadReplBug(strings.NewReader(`
create table t(a int,
  b int);
insert into t values (0, ';'); -- a row
-- nothing
    conn_0> SET GLOBAL TRANSACTION ISOLATION LEVEL
                {isolation_level.value};
    conn_0> select *

      from t;          -- [(0, 0)]
      -- one row
conn_12>commit;

conn_0> select '-- x;' -- y
`), "MDEV-1")
	if err != nil {
		t.Fatal(err)
	}
	want := &Scenario{Format: Format, Name: "MDEV-1", Setup: []string{"create table t(a int,\n  b int)",
		"insert into t values (0, ';')"},
		Sessions: []Session{{Name: "conn_0"}, {Name: "conn_12"}},
		Steps: []Step{{Session: "conn_0", SQL: "select *\n\n      from t"}, {Session: "conn_12", SQL: "commit"},
			{Session: "conn_0", SQL: "select '-- x;' -- y"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestFilesAreReadByTheirNamesAndTexts(t *testing.T) {
	const spec, script = "session a\n  step x { SELECT 1 }", "conn_0> SELECT 1;"
	const own = "format: isotap-scenario/1\nname: mine\nsetup: []\nsessions: []\nsteps: []\n"
	for _, tt := range []struct{ file, text, want string }{
		{"dir/a.spec", spec, "a, permutation 1 of 1"}, {"a.txt", spec, "a, permutation 1 of 1"},
		{"MDEV-1.sql", script, "MDEV-1"}, {"b", own, "mine"}, {"b.yaml", own + "# conn_0> \n", "mine"},
	} {
		all, err := ReadFile(strings.NewReader(tt.text), tt.file)
		if err != nil || len(all) != 1 || all[0].Name != tt.want {
			t.Errorf("%+v: %+v, %v", tt, all, err)
		}
	}
	for file, text := range map[string]string{"a.spec": script, "a.yaml": spec, "a.sql": "SELECT 1",
		"b.sql": "conn_0> ;", "c.yaml": own + "steps: [{session: a, sql: x, until: [{step: y}]}]"} {
		if _, err := ReadFile(strings.NewReader(text), file); err == nil || !strings.HasPrefix(err.Error(), file+":") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestBadScriptsAreRefusedWithTheLine(t *testing.T) {
	const twoSteps = "session a\nstep x { SELECT 1 }\nsession b\nstep y { SELECT 2 }\n"
	for text, want := range map[string]string{
		"CREATE TABLE t (a INT);\nconn_0> BEGIN;\nconn_1>;\n":              "a:3: read the script: conn_1 has no statement",
		"conn_0> BEGIN;\nconn1> COMMIT;":                                   "a:2: read the script: conn1> is no connection",
		"conn_0> BEGIN;\nconn_1 > COMMIT;":                                 "a:2: read the script: conn_1 > is no connection",
		twoSteps + "permutation x z":                                       `a:5: read the specification: there is no step "z"`,
		twoSteps + "permutation x(y) y(x)":                                 "a:5: read the specification: steps wait for each other: x, y, x",
		twoSteps + "permutation x(z) y":                                    `a:5: read the specification: step "x" has a marker with step "z"`,
		"session a\nstep x { SELECT 1":                                     "a:2: read the specification: ",
		"session a\nstep x { SELECT 1 }\nsession b\nstep x { SELECT 2 }\n": `a:4: read the specification: there are two steps "x"`,
	} {
		file := "a"
		if strings.HasPrefix(text, "session") {
			file = "a.spec"
			want = strings.Replace(want, "a:", "a.spec:", 1)
		}
		if _, err := ReadFile(strings.NewReader(text), file); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
