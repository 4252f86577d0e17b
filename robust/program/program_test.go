package program_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/program"
)

const tables = `
CREATE TABLE parent (id INT PRIMARY KEY, v INT);
CREATE TABLE child (id INT PRIMARY KEY, parent INT NOT NULL, v INT, CONSTRAINT f FOREIGN KEY (parent) REFERENCES parent (id));
`

func compile(t *testing.T, family dbms.Family, text string) (*robust.Workload, error) {
	t.Helper()
	schema, _, err := footprint.ReadSchema(family, tables)
	if err != nil {
		t.Fatal(err)
	}
	return program.Compile("test", family, schema, program.Source{Name: "test.sql", Text: text})
}

// ways writes the linear programs of all programs, each by the types of its statements and the columns of their foreign
// keys.
func ways(w *robust.Workload) string {
	var all []string
	for _, l := range robust.Unfold(w.Programs...) {
		var way []string
		for _, o := range l.Statements {
			s := o.Type.String() + " " + o.Relation
			for _, p := range o.Parents {
				s += fmt.Sprintf(" -%s-> %d", p.ForeignKey, p.At+1)
			}
			way = append(way, s)
		}
		all = append(all, strings.Join(way, "; "))
	}
	return strings.Join(all, "\n")
}

func TestProgramsRunInTheirWays(t *testing.T) {
	const read, write = "SELECT v INTO :v FROM parent WHERE id = :p", "UPDATE parent SET v = :v WHERE id = :p"
	for _, c := range []struct{ name, body, want string }{
		{"a sequence", read + ";" + write + ";", "key sel parent; key upd parent"},
		{"IF", "IF :v > 1 THEN " + read + "; END IF; " + write + ";", "key sel parent; key upd parent\nkey upd parent"},
		{"the paper's IF", "IF :v < :p: " + read + "; ENDIF; " + write + ";",
			"key sel parent; key upd parent\nkey upd parent"},
		{"ELSE", "IF :v THEN " + read + "; ELSE " + write + "; END IF;", "key sel parent\nkey upd parent"},
		{"ELSIF", "IF :v THEN " + read + "; ELSIF :p THEN " + write + "; END IF;", "key sel parent\nkey upd parent\n"},
		{"CASE in a condition", "IF CASE WHEN :v THEN 1 END = 1 THEN " + read + "; END IF;", "key sel parent\n"},
		{"a query in a condition", "IF EXISTS (SELECT 1 FROM child WHERE parent = :p) THEN " + read + "; END IF;",
			"pred sel child -f-> 2; key sel parent\npred sel child"},
		{"LOOP", "LOOP " + read + "; END LOOP;", "\nkey sel parent\nkey sel parent; key sel parent"},
		{"FOR over a query", "FOR :c IN (SELECT id FROM child) LOOP DELETE FROM child WHERE id = :c; END LOOP;",
			"pred sel child\npred sel child; key del child\npred sel child; key del child; key del child"},
		{"COMMIT inside of IF", "IF :v THEN COMMIT; END IF; " + read + ";", "key sel parent\n"},
		{"COMMIT on one of three ways", "IF :v THEN " + read + "; ELSIF :p THEN COMMIT; END IF; " + write + ";",
			"key sel parent; key upd parent\nkey upd parent\n"},
		{"ROLLBACK inside of IF", "IF :v THEN " + read + "; ROLLBACK; END IF; " + write + ";", "key upd parent"},
		{"what may find nothing", read + "; IF NOT FOUND THEN INSERT INTO parent VALUES (:p, 0); END IF;",
			"pred sel parent; ins parent\npred sel parent"},
		{"what may select nothing", read + "; IF :v IS NULL THEN ROLLBACK; END IF;", "pred sel parent"},
		{"a key that is changed", read + "; UPDATE parent SET id = :new WHERE id = :p;",
			"pred sel parent; pred upd parent"},
	} {
		for _, family := range dbms.Families {
			t.Run(family.String()+"/"+c.name, func(t *testing.T) {
				w, err := compile(t, family, "Test (:p, :v): "+c.body+" COMMIT;")
				if err != nil {
					t.Fatal(err)
				}
				if have := ways(w); have != c.want {
					t.Errorf("have:\n%s\nwant:\n%s", have, c.want)
				}
			})
		}
	}
}

func TestForeignKeysAreFollowedThroughParametersAndVariables(t *testing.T) {
	const parent, child = "UPDATE parent SET v = 1 WHERE id = :p;", "INSERT INTO child VALUES (:c, :p, 1);"
	for _, c := range []struct{ name, body, want string }{
		{"a parameter", parent + child, "key upd parent; ins child -f-> 1"},
		{"a constant", "UPDATE parent SET v = 1 WHERE id = 7; INSERT INTO child VALUES (:c, 7, 1);",
			"key upd parent; ins child -f-> 1"},
		{"another value", "UPDATE parent SET v = 1 WHERE id = :q;" + child, "key upd parent; ins child"},
		{"a column that was selected", "SELECT parent INTO :p FROM child WHERE id = :c;" + parent,
			"key sel child -f-> 2; key upd parent"},
		{"a variable that another is equal to", ":q = :p; UPDATE parent SET v = 1 WHERE id = :q;" + child,
			"key upd parent; ins child -f-> 1"},
		{"a variable that has changed", parent + ":p = next(:p);" + child, "key upd parent; ins child"},
		{"one that has changed on one way", parent + "IF :v THEN :p = 2; END IF;" + child, "key upd parent; ins child"},
		{"a predicate", parent + "SELECT v FROM child WHERE parent = :p;", "key upd parent; pred sel child -f-> 1"},
		{"a parent by predicate", "UPDATE parent SET v = 1 WHERE v = :p;" + child, "pred upd parent; ins child"},
		{"a parent outside of the loop", parent +
			"FOR :c IN :all LOOP UPDATE child SET v = 1 WHERE id = :c AND parent = :p; END LOOP;",
			"key upd parent\n" +
				"key upd parent; key upd child -f-> 1\nkey upd parent; key sel child -f-> 1\n" +
				"key upd parent; key upd child -f-> 1; key upd child -f-> 1\nkey upd parent; key upd child -f-> 1; key sel child -f-> 1\n" +
				"key upd parent; key sel child -f-> 1; key upd child -f-> 1\nkey upd parent; key sel child -f-> 1; key sel child -f-> 1"},
		{"each iteration's own", "FOR EACH :p, :c IN :all LOOP " + parent + child + " END LOOP;",
			"\nkey upd parent; ins child -f-> 1\nkey upd parent; ins child -f-> 1; key upd parent; ins child -f-> 3"},
		{"a foreign key that is changed", parent + child + "UPDATE child SET parent = :q WHERE id = :d;",
			"key upd parent; ins child; key upd child"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := compile(t, dbms.PostgreSQLFamily, "Test (:p, :v): "+c.body+" COMMIT;")
			if err != nil {
				t.Fatal(err)
			}
			if have := ways(w); have != c.want {
				t.Errorf("have:\n%s\nwant:\n%s", have, c.want)
			}
		})
	}
}

func TestMistakesAreToldWithTheirPlace(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"\n(:a): COMMIT;", 2, `a program begins with Name (:parameter, ...):; there is none before "("`},
		{"A (:a) COMMIT;", 1, `a program begins with Name (:parameter, ...):: : is missing before "COMMIT"`},
		{"A (:a):\n SELECT v\n FROM nowhere;\nCOMMIT;", 2, "there is no table nowhere in the schema"},
		{"A (:a):\n SELECT w FROM parent;\nCOMMIT;", 2, "there is no column w"},
		{"A (:a):\n SELECT v FROM parent WHERE;\nCOMMIT;", 2, "syntax"},
		{"A (:a):\n SELECT v FROM parent\n", 3, "; is missing at the end of the file"},
		{"A (:a):\n IF :a THEN\nCOMMIT;", 3, "END IF is missing at the end of the file"},
		{"A (:a):\n IF :a\n;COMMIT;", 3, `THEN is missing before ";"`},
		{"A (:a):\n LOOP\n END IF;\nCOMMIT;", 3, `END LOOP is missing before "END"`},
		{"A (:a):\n SELECT 'v;\nCOMMIT;", 2, "a string is not closed"},
		{"A (): COMMIT;\nA (): COMMIT;", 2, "program A is there twice"},
		{"A (): ROLLBACK; COMMIT;", 1, "every way through it ends with ROLLBACK"},
		{"A (:a):\n SELECT v FROM parent;\n CALL pay(:a);\nCOMMIT;", 3,
			"test.sql:3: of CALL it is not known what it reads and writes: write the statements of the procedure in its place"},
		{"A ():\n\n copy parent FROM STDIN;\nCOMMIT;", 3,
			"test.sql:3: of COPY it is not known what it reads and writes: write INSERT INTO in a LOOP in the place " +
				"of COPY FROM, and SELECT in that of COPY TO"},
		{"A ():\n\n DO $$ BEGIN DELETE FROM child; END $$;\nCOMMIT;", 3, "test.sql:3: of DO "},
		{"A ():\n\n LOAD DATA INFILE 'f' INTO TABLE parent;\nCOMMIT;", 3, "test.sql:3: of LOAD "},
		{"A ():\n\n EXECUTE add(1);\nCOMMIT;", 3, "test.sql:3: of EXECUTE "},
		{"A ():\n\n TRUNCATE parent;\nCOMMIT;", 3, "test.sql:3: of this kind of statement it is not known"},
		{"A ():\n:x 1; COMMIT;", 2, "= is missing behind :x"},
	} {
		_, err := compile(t, dbms.PostgreSQLFamily, c.text)
		var at *program.Error
		if !errors.As(err, &at) {
			t.Errorf("%q: %v has no place", c.text, err)
		} else if !strings.Contains(err.Error(), c.want) || at.Line > c.line || at.Line < c.line-1 ||
			at.File != "test.sql" {
			t.Errorf("%q: %v, want %q in line %d", c.text, err, c.want, c.line)
		}
	}
}

// oneProgram is a program of a benchmark's file.
var oneProgram = regexp.MustCompile(`(?ms)^\w+ \[.*?^COMMIT;`)

// FuzzCompile has one program in a seed: the fuzzer takes up to a minute to make smaller each input that it likes,
// unless it is told not to (-fuzzminimizetime 1x).
func FuzzCompile(f *testing.F) {
	var schemas [2][]*footprint.Schema
	for i, name := range program.Benchmarks {
		programs, definitions, err := program.BenchmarkFiles(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, family := range dbms.Families {
			schema, _, err := footprint.ReadSchema(family, definitions.Text)
			if err != nil {
				f.Fatal(err)
			}
			schemas[family] = append(schemas[family], schema)
			for _, text := range oneProgram.FindAllString(programs.Text, -1) {
				f.Add(text, uint8(i), family == dbms.MySQLFamily)
			}
		}
	}
	f.Add("T (:a): IF :a THEN COMMIT; ELSE SELECT bid INTO :v FROM Bids WHERE buyerId = :a; END IF; "+
		"LOOP DELETE FROM Log; END LOOP; COMMIT;", uint8(2), true)
	mutate.Fuzz(f, func(t *testing.T, programs string, benchmark uint8, mysql bool) {
		family := dbms.PostgreSQLFamily
		if mysql {
			family = dbms.MySQLFamily
		}
		schema := schemas[family][int(benchmark)%len(program.Benchmarks)]
		w, err := program.Compile("fuzz", family, schema, program.Source{Name: "fuzz.sql", Text: programs})
		if err != nil {
			return
		}
		if err := w.Check(); err != nil {
			t.Error(err)
		}
		robust.Unfold(w.Programs...)
	}, mutate.SQL...)
}
