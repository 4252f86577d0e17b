package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

const testRun history.Run = 36 * 36 * 36 * 36 * 36 * 20 // "k00000"

const ms = int64(time.Millisecond)

// fixtures are the results that the golden files show, by name.
func fixtures() map[string]*analyzer.Result {
	return map[string]*analyzer.Result{
		"clean":       clean(),
		"lost-update": lostUpdate(),
		"skew":        skewAndCycle(),
		"hostile":     hostile(),
		"unseen":      unseen(),
		"spread":      spreadOut(),
		"baseline":    compared(),
	}
}

func testInfo() history.Info {
	started := time.Date(2026, 3, 14, 9, 26, 53, 589_000_000, time.UTC)
	return history.Info{
		Run: testRun, Started: started, Ended: started.Add(41 * time.Second), Isotap: "0.1.0", Mode: "items",
		Server: history.Server{Engine: "mariadb", Version: "10.11.19-MariaDB"},
	}
}

func tag(seq, stmt uint32) history.Tag {
	return history.Tag{Txn: history.MakeTxnID(testRun, seq), Stmt: stmt}
}

// stmt makes an exactly observed statement that runs from start to end, in milliseconds.
func stmt(kind history.Kind, start, end float64, shape string, args ...string) history.Stmt {
	s := history.Stmt{
		Kind: kind, Observation: history.Exact, Shape: shape, Args: args,
		Start: int64(math.Round(start * float64(ms))), End: int64(math.Round(end * float64(ms))),
	}
	switch kind {
	case history.Select:
		s.Rows = 1
	case history.Begin, history.Commit, history.Rollback:
		s.Observation = history.Nothing
	default:
		s.Affected = 1
	}
	return s
}

// txn makes a committed transaction of the statements, numbered from 1.
func txn(seq uint32, session history.SessionID, level history.Level, stmts ...history.Stmt) *history.Txn {
	for i := range stmts {
		stmts[i].Num = uint32(i + 1)
	}
	t := &history.Txn{ID: history.MakeTxnID(testRun, seq), Session: session,
		Status: history.Committed, Level: level, Stmts: stmts}
	if len(stmts) > 0 {
		t.Start, t.End = stmts[0].Start, stmts[len(stmts)-1].End
	}
	return t
}

// shapes returns what a program of a transaction's statements is.
func shapes(t *history.Txn) []string {
	var out []string
	for i := range t.Stmts {
		if k := t.Stmts[i].Kind; k != history.Begin && k != history.Commit {
			out = append(out, t.Stmts[i].Shape)
		}
	}
	return out
}

func fullCoverage() analyzer.Coverage {
	return analyzer.Coverage{
		Sessions: 4, Txns: 1302, Committed: 1290, Aborted: 11, Indeterminate: 1, Statements: 5208, Exact: 5122,
		Inexact: 12, Opaque: 74,
		Reasons: map[history.Reason]int{history.ReasonView: 40, history.ReasonTrigger: 34, history.ReasonPlan: 12},
		Reads:   9120, Writes: 2604, Several: 1190,
		Levels: map[history.Level]int{history.RepeatableRead: 1200, history.ReadCommitted: 102},
		Causes: map[history.Reason]analyzer.Observed{history.ReasonView: {Opaque: 40},
			history.ReasonTrigger: {Opaque: 34}, history.ReasonPlan: {Inexact: 12}},
		Kinds: map[history.Kind]analyzer.Observed{history.Select: {Exact: 3906, Opaque: 40},
			history.Update: {Exact: 1216, Inexact: 12, Opaque: 34}},
	}
}

func clean() *analyzer.Result {
	return &analyzer.Result{Runs: []history.Info{testInfo()}, Coverage: fullCoverage(),
		Levels: analyzer.Verdict{Satisfied: []string{"PL-3", "PL-SS"}, Strongest: []string{"PL-SS"}}}
}

// unseen is a run whose tables nobody instrumented.
func unseen() *analyzer.Result {
	c := analyzer.Coverage{
		Sessions: 2, Txns: 40, Committed: 40, Statements: 80, Opaque: 80, Several: 40,
		Reasons: map[history.Reason]int{history.ReasonNotInstrumented: 80},
		Causes:  map[history.Reason]analyzer.Observed{history.ReasonNotInstrumented: {Opaque: 80}},
		Kinds:   map[history.Kind]analyzer.Observed{history.Select: {Opaque: 50}, history.Delete: {Opaque: 30}},
		Levels:  map[history.Level]int{history.RepeatableRead: 40},
	}
	return &analyzer.Result{Runs: []history.Info{testInfo()}, Coverage: c}
}

// spreadOut is a finding that many statements on many tables make.
func spreadOut() *analyzer.Result {
	r := lostUpdate()
	f := r.Findings[0]
	f.Count, f.Patterns, f.ProgramSets, f.Tables = 4711, 45, 312, []string{"sbtest.sbtest#"}
	f.Covers = []analyzer.Covered{{Class: analyzer.Hazard, Anomaly: analyzer.GSingle, Count: 536},
		{Class: analyzer.Hazard, Anomaly: analyzer.G2Item, Count: 1}}
	return r
}

// compared is a result of which a baseline knows one finding, and has another that was not seen.
func compared() *analyzer.Result {
	r := skewAndCycle()
	r.Findings[0].Known = true
	r.Baseline = "isotap-baseline.json"
	r.Gone = []*analyzer.Finding{{ID: "5f21c07a0b1c", Class: analyzer.Hazard, Anomaly: analyzer.LostUpdate,
		Tables: []string{"bank.account", "bank.entry"}}}
	return r
}

// lostUpdateLevels are those of a history that loses an update.
func lostUpdateLevels() analyzer.Verdict {
	return analyzer.Verdict{
		Satisfied: []string{"PL-1", "PL-2", "RA", "strong PL-2"}, Strongest: []string{"RA", "strong PL-2"},
		Violated: []analyzer.LevelViolation{{Level: "PL-CS", By: analyzer.LostUpdate, Weakest: true},
			{Level: "PL-2+", By: analyzer.LostUpdate}},
	}
}

func lostUpdate() *analyzer.Result {
	const read, write = "SELECT `balance` FROM `account` WHERE `id` = ?",
		"UPDATE `account` SET `balance` = ? WHERE `id` = ?"
	t1 := txn(0x2a1, 3, history.RepeatableRead,
		stmt(history.Begin, 4210, 4210.2, "BEGIN"),
		stmt(history.Select, 4210.6, 4211.1, read, "7"),
		stmt(history.Update, 4216.4, 4217.2, write, "90", "7"),
		stmt(history.Commit, 4230.1, 4231.9, "COMMIT"))
	t2 := txn(0x2a2, 4, history.RepeatableRead,
		stmt(history.Begin, 4210.9, 4211, "BEGIN"),
		stmt(history.Select, 4211.4, 4211.9, read, "7"),
		stmt(history.Update, 4218.0, 4232.2, write, "80", "7"),
		stmt(history.Commit, 4233, 4234.1, "COMMIT"))
	for _, t := range []*history.Txn{t1, t2} {
		t.Stmts[1].Sender.Place, t.Stmts[2].Sender.Place = "app/transfer service.py:12", "app/transfer service.py:31"
	}
	row := history.Row{Table: "bank.account", ID: "k000001.1:6"}
	p := &analyzer.Program{Name: "UPDATE account", Stmts: shapes(t1), Level: history.RepeatableRead, Count: 512}
	return &analyzer.Result{
		Runs: []history.Info{testInfo()}, Coverage: fullCoverage(), Levels: lostUpdateLevels(),
		Findings: []*analyzer.Finding{{
			ID: "lu-5f21c07a", Anomaly: analyzer.LostUpdate, Class: analyzer.Hazard,
			Rule: "InnoDB's REPEATABLE READ does not detect lost updates: a write goes to the newest committed " +
				"version, whatever the snapshot showed (MariaDB Knowledge Base, \"SET TRANSACTION\").",
			Summary: "Two transactions read the same row of bank.account, then each wrote it; the second write erased the first.",
			Lost: "account where id = 7, balance was 140: two transactions read it, and both set balance = 150. " +
				"One of the two changes (+10) is gone.",
			Programs: []*analyzer.Program{p}, Count: 17, First: 1200 * ms, Last: 39_400 * ms,
			Witness: []analyzer.Edge{
				{From: t2, To: t1, Kind: analyzer.RW, Row: row, FromStmt: &t2.Stmts[1], ToStmt: &t1.Stmts[2],
					Version: tag(1, 1), Next: tag(0x2a1, 3)},
				{From: t1, To: t2, Kind: analyzer.WW, Row: row, FromStmt: &t1.Stmts[2], ToStmt: &t2.Stmts[2],
					Version: tag(0x2a1, 3), Next: tag(0x2a2, 3)},
			},
			Explanation: []string{
				"T1 read bank.account #k000001.1:6 before T2 wrote it, so T1 comes before T2.",
				"T2 overwrote what T1 read and T1 then overwrote that, so T2 comes before T1: no order of the two explains both.",
			},
			Advice: []string{
				"Lock the row when reading it: `SELECT `balance` FROM `account` WHERE `id` = ? FOR UPDATE`.",
				"Or let `UPDATE `account` SET `balance` = ? WHERE `id` = ?` compute the new value from the column itself.",
				"Or run these transactions at SERIALIZABLE and retry on error 1213.",
			},
		}},
	}
}

func skewAndCycle() *analyzer.Result {
	r := &analyzer.Result{Runs: []history.Info{testInfo()}, Coverage: fullCoverage(), Levels: lostUpdateLevels()}
	r.Coverage.Exact, r.Coverage.Opaque = 3100, 2096
	r.Coverage.Reasons[history.ParseReason("procedure")] = 2022
	r.Findings = []*analyzer.Finding{threeCycle(), writeSkew()}
	return r
}

func writeSkew() *analyzer.Finding {
	const count, leave = "SELECT `id`, `on_call` FROM `doctor` WHERE `shift` = ? AND `on_call`",
		"UPDATE `doctor` SET `on_call` = ? WHERE `id` = ?"
	t1 := txn(0x51, 1, history.RepeatableRead, stmt(history.Select, 100, 100.8, count, "'night'"),
		stmt(history.Update, 103, 103.6, leave, "FALSE", "1"))
	t2 := txn(0x52, 2, history.RepeatableRead, stmt(history.Select, 101, 101.7, count, "'night'"),
		stmt(history.Update, 104, 104.5, leave, "FALSE", "2"))
	t1.End, t2.End = 106*ms, 108*ms
	alice, bob := history.Row{Table: "clinic.doctor", ID: "1"}, history.Row{Table: "clinic.doctor", ID: "2"}
	return &analyzer.Finding{
		ID: "ws-09c1", Anomaly: analyzer.WriteSkew, Class: analyzer.Hazard, Count: 1, First: 108 * ms, Last: 108 * ms,
		Rule:    "REPEATABLE READ permits G2-item in InnoDB.",
		Summary: "Each transaction read a row that the other then changed, and neither saw the other's change.",
		Programs: []*analyzer.Program{{Name: "P3", Stmts: []string{count, leave}, Level: history.RepeatableRead,
			Count: 40}},
		Witness: []analyzer.Edge{
			{From: t1, To: t2, Kind: analyzer.RW, Row: bob, FromStmt: &t1.Stmts[0], ToStmt: &t2.Stmts[1],
				Next: tag(0x52, 2)},
			{From: t2, To: t1, Kind: analyzer.RW, Row: alice, FromStmt: &t2.Stmts[0], ToStmt: &t1.Stmts[1],
				Next: tag(0x51, 2), Inexact: true},
		},
		Explanation: []string{"T1 read clinic.doctor #2 before T2 changed it.",
			"T2 read clinic.doctor #1 before T1 changed it."},
		Advice: []string{"Add FOR UPDATE to the SELECT of P3."},
	}
}

func threeCycle() *analyzer.Finding {
	t1 := txn(0x61, 1, history.Serializable, stmt(history.Insert, 10, 10.4, "INSERT INTO `a` VALUES (?, ?)", "1",
		"'x'"), stmt(history.Select, 14, 14.2, "SELECT `v` FROM `c` WHERE `id` = ?", "3"))
	t2 := txn(0x62, 2, history.Serializable, stmt(history.Select, 11, 11.3, "SELECT `v` FROM `a` WHERE `id` = ?", "1"),
		stmt(history.Update, 12, 12.2, "UPDATE `b` SET `v` = ? WHERE `id` = ?", "'y'", "2"))
	t3 := txn(0x63, 3, history.Serializable, stmt(history.Select, 12.1, 12.5, "SELECT `v` FROM `b` WHERE `id` = ?",
		"2"), stmt(history.Update, 13, 15, "UPDATE `c` SET `v` = ? WHERE `id` = ?", "'z'", "3"))
	t3.Stmts[1].Error = history.Error{Code: 1205, SQLState: "HY000",
		Message: "Lock wait timeout exceeded; try restarting transaction"}
	t1.Implicit, t3.Status, t3.End = false, history.Indeterminate, 20*ms
	return &analyzer.Finding{
		ID: "g1c-77", Anomaly: analyzer.G1c, Class: analyzer.Violation, Count: 2, First: 15 * ms, Last: 900 * ms,
		Rule:    "SERIALIZABLE forbids every cycle (SQL:1992, 4.28).",
		Summary: "Three transactions each saw another's write, in a circle.",
		Programs: []*analyzer.Program{
			{Name: "P1", Stmts: shapes(t1), Level: history.Serializable, Count: 3},
			{Name: "P2", Stmts: shapes(t2), Level: history.Serializable, Count: 3},
		},
		Witness: []analyzer.Edge{
			{From: t1, To: t2, Kind: analyzer.WR, Row: history.Row{Table: "db.a", ID: "k00001p.1:0"},
				FromStmt: &t1.Stmts[0], ToStmt: &t2.Stmts[0], Version: tag(0x61, 1)},
			{From: t2, To: t3, Kind: analyzer.RW, Row: history.Row{Table: "warehouse.b_with_a_very_long_table_name@2",
				ID: "2"}, FromStmt: &t2.Stmts[1], ToStmt: &t3.Stmts[0], Version: tag(0x62, 2), Next: tag(0x63, 1),
				Current: true},
			{From: t3, To: t1, Kind: analyzer.WW, Row: history.Row{Table: "db.c", ID: "3"}, FromStmt: &t3.Stmts[1],
				ToStmt: &t1.Stmts[1], Version: tag(0x63, 2), Next: tag(0x61, 2)},
		},
		Explanation: []string{"T2 read what T1 wrote.", "T3 overwrote what T2 read.", "T1 overwrote what T3 wrote."},
		Advice:      []string{"Report this to the engine's makers: isotap export writes the recording."},
	}
}

// hostile holds what strangers may send: markup, quotes, control characters, text that reorders,
// very long statements, transactions without statements, edges without ends.
func hostile() *analyzer.Result {
	const script = "<script>alert('x')</script>"
	long := "SELECT '" + strings.Repeat("long ", 4000) + "' FROM `t` WHERE \"a\" = ? -- " + script
	t1 := txn(1, 1, history.ReadCommitted,
		stmt(history.Select, 1, 1.2, "SELECT \"</style>"+script+
			"\" FROM `a`b` WHERE x IN (?) AND y = '\x1b[31mred\x07'", "1", "2", "'"+script+"'"),
		stmt(history.Update, 2, 9, long, "'O''Reilly \" onmouseover=alert(1) x=\"'"),
		stmt(history.Insert, 10, 10.1, "INSERT INTO `日本語` VALUES (?, ?)", "'مرحبا بالعالم'",
			"'\u202eevil\u2066 \xff\xfe'"))
	t1.Stmts[1].Observation, t1.Stmts[1].Reason = history.Opaque, history.ParseReason("<b>no</b>")
	t1.Stmts[0].Sender.Place, t1.Stmts[1].Sender.Place = "a\"b]]>"+script+"\x00.py:99999999999999999999",
		"../%2e%2e/\x1b[31m?x=1#y:7"
	t1.Stmts[2].Error = history.Error{Code: 1064, SQLState: "42000", Message: "near '" + script + "'"}
	empty := txn(2, 2, history.LevelUnknown)
	empty.Status, empty.Start, empty.End = history.Aborted, 3*ms, 4*ms
	row := history.Row{Table: "x.<img src=x onerror=alert(1)>", ID: "\"><svg onload=alert(1)>"}
	r := &analyzer.Result{
		Runs: []history.Info{{Run: testRun, Started: testInfo().Started,
			Server: history.Server{Engine: script, Version: "\x1b]0;owned\x07"}, Mode: "items"}},
		Coverage: analyzer.Coverage{
			Sessions: 2, Txns: 2, Committed: 1, Aborted: 1, Statements: 3, Exact: 1, Opaque: 2, Several: 1, UnseenOrigins: 7, Looked: 40, Conditions: 12, Wide: 5, Untested: 2, Imageless: 3, BeyondBound: 1,
			Without: map[analyzer.NoCondition]int{analyzer.Limited: 20, analyzer.Volatile: 5, analyzer.OtherCause: 3},
			Widened: map[analyzer.NoCondition]int{analyzer.Timed: 2},
			Reasons: map[history.Reason]int{history.ParseReason(script): 1, history.ParseReason("view\r\n"): 1},
		},
	}
	program := &analyzer.Program{Name: script, Stmts: []string{long, script}, Count: 1}
	for i, witness := range [][]analyzer.Edge{
		{
			{From: t1, To: empty, Kind: analyzer.RW, Row: row, FromStmt: &t1.Stmts[0]},
			{From: empty, To: t1, Kind: analyzer.WR, Row: row, ToStmt: &t1.Stmts[1]},
		},
		{{To: t1, Kind: analyzer.WR, Row: row, ToStmt: &t1.Stmts[0], Version: tag(99, 1)}},
		nil,
	} {
		r.Findings = append(r.Findings, &analyzer.Finding{
			ID: fmt.Sprintf("%s%d", "x\" onclick=\"alert(1)", i), Anomaly: analyzer.GarbageRead,
			Class: analyzer.Violation,
			Rule:  script, Summary: script, Programs: []*analyzer.Program{program}[:1-i/2], Witness: witness,
			Explanation: []string{script, "\u202eright to left"}, Advice: []string{"javascript:alert(1)", script},
		})
	}
	return r
}

// crowd is a result of n findings on programs of their own.
func crowd(n int) *analyzer.Result {
	r := skewAndCycle()
	base := r.Findings
	r.Findings = nil
	for i := range n {
		f := *base[i%len(base)]
		f.ID = fmt.Sprint("f", i)
		f.Programs = nil
		for _, p := range base[i%len(base)].Programs {
			renamed := *p
			renamed.Name = fmt.Sprintf("P%d", i/3+1)
			f.Programs = append(f.Programs, &renamed)
		}
		r.Findings = append(r.Findings, &f)
	}
	return r
}

// ring is a finding whose witness is a cycle of n transactions, each with extra statements.
func ring(n, extra int) *analyzer.Finding {
	txns := make([]*history.Txn, n)
	for i := range txns {
		var stmts []history.Stmt
		for j := range 2 + extra {
			at := float64(10*j + i)
			stmts = append(stmts, stmt(history.Update, at, at+0.5, "UPDATE `t` SET `v` = ? WHERE `id` = ?", "1",
				fmt.Sprint(j)))
		}
		txns[i] = txn(uint32(100+i), history.SessionID(i+1), history.ReadCommitted, stmts...)
	}
	f := &analyzer.Finding{ID: fmt.Sprint("ring-", n), Anomaly: analyzer.G2Item, Class: analyzer.Hazard,
		Summary: "A long way round.", Count: 1}
	for i, t := range txns {
		next := txns[(i+1)%n]
		kind := []analyzer.DepKind{analyzer.RW, analyzer.WW, analyzer.WR}[i%3]
		f.Witness = append(f.Witness, analyzer.Edge{
			From: t, To: next, Kind: kind, Row: history.Row{Table: "shop.order_line_items",
				ID: fmt.Sprint("k000001.1:", i)},
			FromStmt: &t.Stmts[0], ToStmt: &next.Stmts[1+extra], Version: tag(uint32(100+i), 1),
			Next: tag(uint32(101+i), 2),
		})
		f.Explanation = append(f.Explanation, fmt.Sprintf("T%d comes before T%d.", i+1, (i+1)%n+1))
	}
	return f
}
