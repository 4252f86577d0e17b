package mysql

import (
	"fmt"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
)

// inTrans is the low byte of the status in the replies.
const inTrans = byte(gomysql.SERVER_STATUS_IN_TRANS | gomysql.SERVER_STATUS_AUTOCOMMIT)

// BenchmarkSession measures what a session itself takes for statements inside a transaction, without
// sockets and planner: a select of one row and of a range of 100, as sysbench has them, and an insert.
func BenchmarkSession(b *testing.B) {
	row := strings.Repeat("c", 120)
	for _, bench := range []struct {
		name, query string
		rows        int
	}{{"point", "s WHERE id=5013", 1}, {"range", "s WHERE id BETWEEN 5013 AND 5112", 100},
		{"insert", "i VALUES (5013)", 0}} {
		b.Run(bench.name, func(b *testing.B) {
			s := loggedIn(b, gomysql.CLIENT_PROTOCOL_41)
			s.settings.stale, s.settings.known, s.txn.inTrans, s.txn.autocommit = false, true, true, true
			query, _ := appendPacket(nil, 0, append([]byte{gomysql.COM_QUERY}, bench.query...))
			reply := selectReply(bench.rows, row)
			if bench.rows == 0 {
				reply, _ = appendPacket(nil, 1, []byte{markOK, 2, 0, inTrans, 0, 0, 0})
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(reply)))
			for i := 0; b.Loop(); i++ {
				if _, err := s.FromClient(1, query); err != nil {
					b.Fatal(err)
				}
				s.Output()
				if err := s.FromServer(2, reply); err != nil {
					b.Fatal(err)
				}
				if toClient, _ := s.Output(); len(toClient) == 0 {
					b.Fatal("no reply")
				}
				if len(s.txn.open.Stmts) == 20 {
					s.endOpen(history.Committed)
					s.Events()
				}
			}
		})
	}
}

// selectReply is a text result set of one column and the identities of one table. The lists have the
// length that they have after a few updates.
func selectReply(rows int, column string) []byte {
	b, seq := appendPacket(nil, 1, []byte{3})
	for _, name := range []string{"c", "isotap_rowid", "isotap_wlist"} {
		d := []byte("\x03def")
		for _, s := range []string{"sbtest", "sbtest1", "sbtest1", name, name} {
			d = appendString(d, s)
		}
		d = append(d, 12, 45, 0, 224, 1, 0, 0, gomysql.MYSQL_TYPE_STRING, 0, 0, 0, 0, 0)
		b, seq = appendPacket(b, seq, d)
	}
	end := []byte{markEOF, 0, 0, inTrans, 0}
	b, seq = appendPacket(b, seq, end)
	for i := range rows {
		r := appendString(nil, column)
		r = appendString(r, fmt.Sprint(100623142874513408+i))
		r = appendString(r, "0,0l0cfh1.g,0l0cfh2f.h,0l0cfha3.g")
		b, seq = appendPacket(b, seq, r)
	}
	b, _ = appendPacket(b, seq, end)
	return b
}

func appendString(b []byte, s string) []byte { return append(appendLenenc(b, uint64(len(s))), s...) }
