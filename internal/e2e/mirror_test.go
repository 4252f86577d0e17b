package e2e

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// A mirror is two equal databases on one server: one for a direct connection, one behind isotap.
type mirror struct {
	names [2]string // equally long
	b     *bench
	addrs [2]string
	caps  uint32
}

// mirrors counts them, for names of their own.
var mirrors atomic.Int64

func newMirror(t *testing.T, caps uint32, change func(*proxyserver.Options), setup ...string) *mirror {
	t.Helper()
	n := mirrors.Add(1)
	m := &mirror{names: [2]string{fmt.Sprintf("mirror_%d_a", n), fmt.Sprintf("mirror_%d_b", n)},
		caps: caps | gomysql.CLIENT_MULTI_STATEMENTS | gomysql.CLIENT_MULTI_RESULTS | gomysql.CLIENT_PS_MULTI_RESULTS}
	admin, b := testdb.Open(t, ""), &bench{t: t}
	for _, name := range m.names {
		b.exec(admin, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
		t.Cleanup(func() { _, _ = admin.Exec("DROP DATABASE " + name) })
		if len(setup) > 0 {
			b.exec(testdb.Open(t, name), setup...)
		}
	}
	m.b = newBenchIn(t, m.names[1], change)
	m.addrs = [2]string{testdb.Current(t).Addr(), m.b.srv.Addr().String()}
	return m
}

// A reflection is one session on each side of a mirror, on tables of their own.
type reflection struct {
	m        *mirror
	sides    [2]*rawClient
	prepared int
	history  []string
}

// reflect makes the tables anew and opens a session on each side.
func (m *mirror) reflect(t *testing.T) *reflection {
	r := &reflection{m: m}
	for i := range r.sides {
		r.sides[i] = dialRaw(t, m.addrs[i], m.names[i], m.caps)
	}
	for _, name := range []string{"t1", "t2", "t3"} {
		r.both(command{name: "drop", bytes: query("DROP TABLE IF EXISTS " + name)})
	}
	for _, s := range mirrorTables {
		r.both(command{name: s, bytes: query(s)})
	}
	return r
}

func (r *reflection) close() {
	for _, side := range r.sides {
		side.conn.Close()
	}
}

// both sends a command to both sides, and returns the replies.
func (r *reflection) both(c command) (direct, through [][]byte) {
	r.history = append(r.history, c.name)
	return r.sides[0].hear(c, r.m.caps), r.sides[1].hear(c, r.m.caps)
}

// run has both sides run a statement and returns where the replies differ.
func (r *reflection) run(s randomStatement) string {
	if strings.Contains(s.text, "FOUND_ROWS") && !strings.HasPrefix(r.history[len(r.history)-1], "SELECT") {
		return "" // it is defined behind a SELECT only
	}
	if s.prepared {
		r.prepared++
	}
	for _, c := range s.commands(r.prepared) {
		direct, through := r.both(c)
		r.m.forgetPlan(direct)
		r.m.forgetPlan(through)
		if s.converts {
			r.m.forgetHowOften(direct)
			r.m.forgetHowOften(through)
		}
		if strings.Contains(s.text, "GROUP BY") {
			forgetGrouping(direct)
			forgetGrouping(through)
		}
		if !s.ordered {
			direct, through = sorted(direct), sorted(through)
		}
		if diff := firstDifference(through, direct, r.m.names); diff != "" {
			return c.name + ": " + diff
		}
		if direct[0][4] == 0xff {
			if strings.HasPrefix(c.name, "prepare ") {
				r.prepared--
			}
			break
		}
	}
	return ""
}

// indexUse are the status flags that tell how the server read its tables. A wider select list can take it
// from an index to the rows.
const indexUse = byte(gomysql.SERVER_STATUS_NO_GOOD_INDEX_USED | gomysql.SERVER_STATUS_NO_INDEX_USED)

// wasSlow is in the upper byte of the status: the statement took longer than long_query_time, as a wide DISTINCT does
// on a busy machine, now directly and now through isotap.
const wasSlow = byte(gomysql.SERVER_QUERY_WAS_SLOW >> 8)

// forgetPlan clears the flags that depend on the server's plan, and on its time, in the packets that end results.
func (m *mirror) forgetPlan(packets [][]byte) {
	for _, p := range packets {
		switch {
		case p[4] == 0xfe && m.caps&gomysql.CLIENT_DEPRECATE_EOF == 0 && len(p) == 9:
			p[7], p[8] = p[7]&^indexUse, p[8]&^wasSlow
		case (p[4] == 0xfe || p[4] == 0) && len(p) >= 11 && len(p) < 80:
			// Counts below 251 take one byte.
			p[7], p[8] = p[7]&^indexUse, p[8]&^wasSlow
		}
	}
}

// forgetHowOften makes the counts of warnings, in the packets that end results, say no more than whether there are any.
func (m *mirror) forgetHowOften(packets [][]byte) {
	for _, p := range packets {
		at := 0
		switch {
		case p[4] == 0xfe && m.caps&gomysql.CLIENT_DEPRECATE_EOF == 0 && len(p) == 9:
			at = 5
		case (p[4] == 0xfe || p[4] == 0) && len(p) >= 11 && len(p) < 80:
			at = 9
		default:
			continue
		}
		if binary.LittleEndian.Uint16(p[at:]) > 0 {
			binary.LittleEndian.PutUint16(p[at:], 1)
		}
	}
}

// groupFlags are the flags of a column that depend on whether the server groups in a temporary table
// (docs/adr/0010): PRI_KEY, UNIQUE_KEY, MULTIPLE_KEY, BLOB, BINARY of numbers, AUTO_INCREMENT, TIMESTAMP,
// NO_DEFAULT_VALUE, ON_UPDATE_NOW, PART_KEY and GROUP.
const groupFlags = 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x200 | 0x400 | 0x1000 | 0x2000 | 0x4000 | 0x8000

// forgetGrouping clears these flags in the definitions of columns.
func forgetGrouping(packets [][]byte) {
	for _, p := range packets {
		if n := len(p); n > 20 && string(p[4:8]) == "\x03def" && p[n-13] == 12 {
			flags := binary.LittleEndian.Uint16(p[n-5:])
			binary.LittleEndian.PutUint16(p[n-5:], flags&^groupFlags)
		}
	}
}

// sorted takes the packets of a reply for a multiset: their numbers go. The first stays where it is.
func sorted(packets [][]byte) [][]byte {
	sorted := make([][]byte, len(packets))
	for i, p := range packets {
		sorted[i] = slices.Clone(p)
		sorted[i][3] = 0
	}
	slices.SortFunc(sorted[1:], func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
	return sorted
}

// TestRandomStatementsAreAnsweredAsByTheServer runs random sessions directly and through isotap on equal
// tables: every reply is equal byte for byte (rows as a multiset where the statement leaves their order
// open), and so are the tables in the end.
func TestRandomStatementsAreAnsweredAsByTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, c := range []struct {
		name   string
		caps   uint32
		change func(*proxyserver.Options)
	}{
		{"few capabilities", 0, nil},
		{"more capabilities", gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_FOUND_ROWS, nil},
		{"in mode predicates", gomysql.CLIENT_DEPRECATE_EOF, inModePredicates},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMirror(t, c.caps, c.change)
			rapid.Check(t, func(rt *rapid.T) {
				r := m.reflect(t)
				defer r.close()
				for range rapid.IntRange(3, 20).Draw(rt, "statements") {
					if diff := r.run(drawStatement(rt)); diff != "" {
						rt.Fatalf("%s\nafter:\n%s", diff, strings.Join(r.history[9:], "\n"))
					}
				}
				for _, s := range []string{"COMMIT", "SELECT * FROM t1", "SELECT * FROM t2", "SELECT * FROM t3"} {
					if diff := r.run(randomStatement{text: s}); diff != "" {
						rt.Fatalf("in the end: %s\nafter:\n%s", diff, strings.Join(r.history[9:], "\n"))
					}
				}
			})
		})
	}
}
