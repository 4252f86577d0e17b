package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const summary = `SQL statistics:
    queries performed:
        read:                            8260
        total:                           11800
    transactions:                        590    (588.92 per sec.)
    queries:                             11800  (11778.41 per sec.)
    ignored errors:                      0      (0.00 per sec.)

Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       5.023 |*****                                    580
      13.219 |                                         7
      20.740 |                                         3

Latency (ms):
         min:                                    5.02
         50th percentile:                        13.22
`

func TestSummaryOfSysbenchIsRead(t *testing.T) {
	got, err := parseTurn([]byte(summary))
	if want := (roundResult{statements: 11800, rate: 11778.41, latency: 13220 * time.Microsecond, tail: 13219 * time.Microsecond}); err != nil || got != want {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseTurn([]byte("FATAL: unable to connect\n")); err == nil ||
		!strings.Contains(err.Error(), "unable to connect") {
		t.Errorf("without a summary the error is %v", err)
	}
}

func TestRatiosAreMediansOfRounds(t *testing.T) {
	at := func(rates ...float64) (turns []roundResult) {
		for _, r := range rates {
			turns = append(turns, roundResult{statements: 50_000, rate: r, latency: time.Duration(r) * time.Microsecond})
		}
		return turns
	}
	direct, copied := at(100, 1000, 10), at(50, 100, 9)
	for i, proxy := range []time.Duration{2, 3, 1} {
		copied[i].used = usage{proxy: proxy * time.Second, server: 4 * time.Second, others: time.Second, wall: 2 * time.Second}
		direct[i].used = usage{server: 2 * time.Second}
	}
	r := newResult(sysbenchLoad{clients: 1}, pathCopy, copied, []string{pathDirect, pathCopy}, [][]roundResult{direct, copied})
	if r.Ratio[pathDirect] != (spread{0.5, 0.1, 0.9}) || r.Rate != 50 || r.Added != -50 || r.CPU != 4 || r.Others != 0.5 ||
		r.ServerRatio[pathDirect].Median != 2 || r.CPURatio[pathDirect] != (spread{}) {
		t.Errorf("%+v", r)
	}
	if even := medianOf(at(4, 1, 2, 9), func(i int) float64 { return at(4, 1, 2, 9)[i].rate }); even != 3 {
		t.Errorf("the median of 1, 2, 4, 9 is %v", even)
	}
}

func TestTableComparesWithThePathsBefore(t *testing.T) {
	ratio := map[string]spread{pathDirect: {Median: 0.5}, pathCopy: {Median: 0.9}, pathOff: {Median: 1}}
	table := report{Results: []result{
		{Load: "load", Path: pathDirect, Rate: 1000, Latency: 10, Ratio: ratio},
		{Load: "load", Path: pathCopy, Rate: 900, Latency: 11, Added: 1, CPU: 0.5, Ratio: ratio},
		{Load: "load", Path: pathOff, Rate: 500, Latency: 30, Tail: 60, Added: 20, CPU: 1.5, Server: 2, Others: 0.3, Ratio: ratio},
	}, Recording: &recording{Txns: 7}}.table()
	for _, row := range []string{"direct 1000 10", "off 500 0.50 0.90 30 60 +20 1.50 2.00 0.30 noisy",
		"recorded: 7 transactions, 0 statements"} {
		if !strings.Contains(strings.Join(strings.Fields(table), " "), row) {
			t.Errorf("%q is not in\n%s", row, table)
		}
	}
}

func TestGoalsShowWhereTheyAreFurthest(t *testing.T) {
	of := func(load string, clients int, ratio float64) result {
		return result{Load: load, Clients: clients, Path: pathItems, Ratio: map[string]spread{pathOff: {ratio, ratio, ratio}},
			ServerRatio: map[string]spread{pathDirect: {1 / ratio, 1, 2}}}
	}
	all := attainments([]result{of("a", 1, 0.9), of("b", 1, 0.7), of("c", 8, 0.8), {Load: "a", Path: pathDirect, Clients: 1}})
	want := []attainment{
		{"statements/s, items to off >= 0.80", 1, spread{0.7, 0.7, 0.7}, "b", 0.9, 1, 2},
		{"statements/s, items to off >= 0.80", 8, spread{0.8, 0.8, 0.8}, "c", 0.8, 1, 1},
		{"server's processor, items to direct <= 1.15", 1, spread{1 / 0.7, 1, 2}, "b", 1 / 0.9, 1, 2},
		{"server's processor, items to direct <= 1.15", 8, spread{1.25, 1, 2}, "c", 1.25, 0, 1},
	}
	if !slices.Equal(all, want) {
		t.Errorf("%+v", all)
	}
}

func TestMeterTellsWhoUsedTheProcessor(t *testing.T) {
	const loop = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; "
	server := exec.Command("sh", "-c", "read go; ("+loop+"); echo done; read end")
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer in.Close()
	m, err := newMeter(0, server.Process.Pid)
	if err != nil {
		t.Skip(err)
	}
	used, err := m.during(func() error {
		fmt.Fprintln(in)
		_, err := out.Read(make([]byte, 10))
		return errors.Join(err, exec.Command("sh", "-c", loop).Run())
	})
	if err != nil || used.server < 20*time.Millisecond || used.proxy != 0 || used.server > used.wall {
		t.Errorf("%+v, %v", used, err)
	}
}

func TestCopyPassesBytesBothWays(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	said, announce := io.Pipe()
	go serveCopies(server.Addr().String(), announce)
	line := make([]byte, 100)
	n, err := said.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(string(line[:n]), announcement), ",")
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	echo := make([]byte, 5)
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, echo); err != nil || string(echo) != "hello" {
		t.Errorf("%q came back, %v", echo, err)
	}
}

func TestDDLRatiosAreMediansOfRounds(t *testing.T) {
	m := ddlMeter{took: make(map[string][]map[string]float64)}
	for _, round := range [][2]float64{{2, 3}, {10, 40}, {1, 2}} {
		m.note("CREATE TABLE", map[string]float64{pathDirect: round[0], pathItems: round[1]})
	}
	report := ddlReport{Server: "server", Rounds: 3, Results: m.results(500)}
	if got := report.Results[0].Ratio[pathItems]; got != (ddlRatio{Median: 2, Least: 1.5, Greatest: 4}) {
		t.Errorf("the ratio is %+v", got)
	}
	table := strings.Join(strings.Fields(report.table()), " ")
	for _, row := range []string{"500 tables on the server direct ms items", "CREATE TABLE 2.00 2.00 (1.50 to 4.00)"} {
		if !strings.Contains(table, row) {
			t.Errorf("%q is not in\n%s", row, table)
		}
	}
}

func TestDDLProgramsTellTheirDefinitionsApart(t *testing.T) {
	m := ddlMeter{took: make(map[string][]map[string]float64)}
	m.noteProgram(program{name: "a dump of tables"}, "", map[string][]took{
		pathDirect: {{"connecting", 4}, {"CREATE TABLE", 1}, {"INSERT INTO", 8}, {"DROP TABLE", 2}},
		pathItems:  {{"connecting", 9}, {"CREATE TABLE", 2}, {"INSERT INTO", 9}, {"DROP TABLE", 4}},
	})
	if got := m.took["  definitions of dump"][0]; got[pathDirect] != 3 || got[pathItems] != 6 {
		t.Errorf("the definitions took %v", got)
	}
	if got := m.took["a dump of tables"][0]; got[pathDirect] != 15 || got[pathItems] != 24 {
		t.Errorf("the whole took %v", got)
	}
}

func TestDDLProgramsLeaveNothingBehind(t *testing.T) {
	for _, e := range engines {
		for _, p := range ddlPrograms {
			all := p.statements(e.ddl, "schema1")
			if first, last := all[0], all[len(all)-1]; !strings.HasPrefix(first, "CREATE ") ||
				!strings.HasPrefix(last, "DROP ") ||
				!strings.Contains(first, " schema1") || !strings.Contains(last, " schema1") {
				t.Errorf("%s, %s begins with %q and ends with %q", e.name, p.name, first, last)
			}
			for _, text := range all {
				if strings.Contains(text, "%") {
					t.Errorf("%s, %s: %q has a hole", e.name, p.name, text)
				}
			}
		}
	}
}
