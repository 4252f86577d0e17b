package interop

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/mutate"
)

func TestMistakesAreNamedWithTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name   string
		format Format
		text   string
		want   string
	}{
		{"nothing", Elle, " \n ", "h:2:2: the file is empty"},
		{"a truncated map", Elle, "{:type :ok\n :value [[:r :x",
			"h:2:16: the file ends inside the vector that begins at 2:10: it is cut off"},
		{"a truncated vector of operations", Elle, "[{:type :ok :value []}\n",
			"h:2:1: the file ends inside the vector that begins at 1:1: it is cut off"},
		{"a truncated string", Elle, `{:type "ok`, "h:1:11: the string that begins at 1:8 does not end"},
		{"text behind the end", Elle, "[{:type :ok :value []}]\n{:type :ok}",
			"h:2:1: '{' stands behind the end of the history"},
		{"a bracket that closes nothing", Elle, "{:type :ok :value []}\n]", "h:2:1: ']' closes nothing"},
		{"a map without a value", Elle, "{:type}", "h:1:1: a map has a key without a value"},
		{"an escape that there is not", Elle, `{:type "\x"}`, `h:1:9: \x is no escape`},
		{"a string in another charset", Elle, "{:type \"\xff\"}", "h:1:8: a string is not UTF-8"},
		{"values without end", Elle, strings.Repeat("[", 100), "h:1:66: values are nested more than 64 deep"},
		{"an operation that is none", Elle, "[:type :ok]",
			"h:1:2: :type is a keyword, and no operation: a map with :type and :value"},
		{"an operation without a type", Elle, "{:value []}", "h:1:1: the operation has no :type"},
		{"an unknown type", Elle, "{:type :done :value []}", "h:1:8: type :done is none of :invoke, :ok, :fail, :info"},
		{"an outcome without a transaction", Elle, "{:type :ok}", "h:1:1: the operation has no :value"},
		{"a value that is no transaction", Elle, "{:type :ok :value 3}",
			"h:1:19: 3 is an integer, and no transaction: a vector of micro-operations such as [:r :x nil]"},
		{"an unknown micro-operation", Elle, "{:type :ok :value [[:cas :x 1]]}",
			"h:1:21: :cas is not known: micro-operations are :r, :append and :w"},
		{"a micro-operation too short", Elle, "{:type :ok :value [[:append :x]]}",
			"h:1:20: [:append :x] is no micro-operation: a vector of a function, a key and a value"},
		{"a write among appends", Elle, "{:type :ok :value [[:w :x 1]]}",
			"h:1:21: :w stands in a history of lists: histories of registers are read with --format elle-rw"},
		{"a read of a list that is none", Elle, "{:type :ok :value [[:r :x 1]]}",
			"h:1:27: a read of a list gave 1, which is an integer: histories of registers are read with --format elle-rw"},
		{"a read of a register that is a list", ElleRW, "{:type :ok :value [[:r :x [1]]]}",
			"h:1:27: a read of a register gave [1]: histories of lists are read with --format elle"},
		{"lists and registers", JepsenJSON, `{"type":"ok","value":[["w","x",1],["append","y",1]]}`,
			`h:1:36: "append" stands in a history of registers: a history has lists or registers, not both`},
		{"nil written", ElleRW, "{:type :ok :value [[:w :x nil]]}",
			"h:1:27: nil is written, which is what stands for no value"},
		{"one value appended twice", Elle, "{:type :ok :value [[:append :x 1]]}\n{:type :ok :value [[:append :x 1]]}",
			"h:2:20: 1 is written to key :x a second time, after the transaction at 1:1: it does not name one version"},
		{"an index that stands twice", Elle, "{:index 1 :type :ok :value []}\n{:index 1 :type :ok :value []}",
			"h:2:9: index 1 comes after index 1: an operation stands twice, or not in its place"},
		{"a field that stands twice", Elle, "{:type :ok :type :ok :value []}",
			"h:1:12: :type stands twice in the operation"},
		{"two invocations", Elle, "{:type :invoke :process 1 :value []}\n{:type :invoke :process 1 :value []}",
			"h:2:1: process 1 invokes a transaction, and the one that it invoked at 1:1 has not ended"},
		{"two outcomes", Elle, "{:type :invoke :process 1 :value []}\n{:type :ok :process 1 :value []}\n{:type :ok :process 1 :value []}", "h:3:1: process 1 completes a transaction that it has not invoked"},
		{"truncated JSON", JepsenJSON, `[{"type":"ok",`,
			"h:1:2: the file ends inside a value that begins here: it is cut off"},
		{"an unended array", JepsenJSON, `[{"type":"ok","value":[]}`,
			"h:1:26: the file ends inside a value that begins here: it is cut off"},
		{"wrong JSON", JepsenJSON, "[{\"type\":\"ok\",\"value\":[]},\n {type}]",
			"h:2:2: invalid character 't' looking for beginning of object key string"},
		{"a line that is none", Plume, "w(1,2,3,4)\nhello",
			`h:2:1: "hello" is not r(key,value,session,transaction) or w(...)`},
		{"an unknown operation in a line", Plume, "w(1,2,3,4)\n x(1,2,3,4)",
			"h:2:2: operation 'x' is not known: a line is r(key,value,session,transaction) or w(...)"},
		{"too few numbers", Plume, "w(1,2,3)",
			"h:1:1: the line has 3 numbers: it is to be r(key,value,session,transaction) or w(...)"},
		{"a number that is none", Plume, "w(1,a,3,4)", `h:1:5: "a" is no 64-bit integer`},
		{"a line too long", Plume, "w(" + strings.Repeat("1", 1<<17), "h:1:1: the line is longer than 65536 bytes"},
		{"a transaction in two sessions", Plume, "w(1,2,3,4)\nr(1,2,5,4)",
			"h:2:1: transaction 4 stands twice: it began at 1:1, and another one of its session, or another session, came in between"},
		{"a transaction that goes on after the next", Plume, "w(1,2,3,4)\nr(1,2,3,5)\nr(1,2,3,4)",
			"h:3:1: transaction 4 stands twice: it began at 1:1, and another one of its session, or another session, came in between"},
		{"a line of AWDIT's that is none", AWDIT, "w 1 2\nr 1",
			`h:2:1: "r 1" is not r or w with a key and a value, nor a line of - or =`},
		{"a number of AWDIT's that is none", AWDIT, "w 1 x", `h:1:1: "x" is no 64-bit integer`},
		{"no lines of AWDIT's", AWDIT, "---\n====\n", "h:1:1: the file holds no transaction"},
		{"no lines", Plume, "\n\n", "h:1:1: the file holds no transaction"},
		{"no sessions", DBCop, `{"data": 3}`, "h:1:8: the array of sessions is missing: there is 3 in its place"},
		{"a session that is none", DBCop, `[{"events": []}]`,
			"h:1:2: a session's array of transactions is missing: there is { in its place"},
		{"a transaction without an outcome", DBCop, `[[{"events": []}]]`,
			"h:1:3: a transaction has an array of events, and says whether it is committed"},
		{"an event that is none", DBCop, `[[{"events": [{"Drop": 1}], "committed": true}]]`,
			`h:1:16: an event has no field "Drop"`},
		{"an event in a tuple that is none", DBCop, `[[{"events": [["x", 1, 2]], "committed": true}]]`,
			`h:1:15: ["x" 1 2] is no event: ["r", variable, version] or ["w", ...]`},
		{"a version that is none", DBCop, `[[{"events": [["w", 1, null]], "committed": true}]]`,
			"h:1:24: version nil is no 64-bit integer"},
		{"a version written twice", DBCop, `[[{"events": [["w", 1, 1], ["w", 1, 1]], "committed": true}]]`,
			"h:1:28: 1 is written to key 1 a second time, after the transaction at 1:3: it does not name one version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), "h", c.format, Options{})
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
}

// fuzzRead reads anything in some formats. What is read is judged.
func fuzzRead(f *testing.F, formats ...Format) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i := range formats {
			f.Add(uint8(i), text)
		}
	}
	mutate.Fuzz(f, func(t *testing.T, how uint8, text []byte) {
		format := formats[int(how&0x0f)%len(formats)]
		timed := format != Plume && format != AWDIT && format != DBCop
		h, err := Read(bytes.NewReader(text), "h", format,
			Options{SequentialKeys: how&0x40 != 0, LinearizableKeys: how&0x80 != 0 && timed})
		if err != nil {
			return
		}
		if _, err := h.Analyze(t.Context(), analyzer.Options{Work: 1000}); err != nil {
			t.Fatal(err)
		}
		h.Notes()
	})
}

func FuzzEDN(f *testing.F)   { fuzzRead(f, Elle, ElleRW) }
func FuzzJSON(f *testing.F)  { fuzzRead(f, JepsenJSON) }
func FuzzAWDIT(f *testing.F) { fuzzRead(f, AWDIT) }
func FuzzPlume(f *testing.F) { fuzzRead(f, Plume) }
func FuzzDBCop(f *testing.F) { fuzzRead(f, DBCop) }
