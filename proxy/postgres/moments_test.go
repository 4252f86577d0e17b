package postgres

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// TestStatementsSentTogetherBeganWhenSent answers statements that were sent together one by one, long after. The server
// may have run and committed all of them before the proxy read the first reply: a statement that begins with the reply
// before it would begin after others have read what it wrote, and a serializable history would show a G-SIa.
func TestStatementsSentTogetherBeganWhenSent(t *testing.T) {
	const written = "\x00\x03\x00\x00\x00\x05(0,1)\x00\x00\x00\x030/1\x00\x00\x00\x01f"
	described := "ST" + string(descriptionOf("isotap_1", "isotap_2", "isotap_3"))
	const bind = "\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		client, replies []string
		sent            int64 // when the INSERTs go to the server
	}{
		"in one Query": {
			client: []string{"CQb;i;i;c\x00"},
			replies: []string{"SCBEGIN\x00", "SD" + written, "SCINSERT 0 1\x00", "SD" + written, "SCINSERT 0 1\x00",
				"SCCOMMIT\x00", "SZI"},
			sent: 1000,
		},
		"as Queries in a row": {
			client: []string{"CQb\x00", "CQi\x00", "CQi\x00", "CQc\x00"},
			replies: []string{"SCBEGIN\x00", "SZT", "SD" + written, "SCINSERT 0 1\x00", "SZT", "SD" + written,
				"SCINSERT 0 1\x00",
				"SZT", "SCCOMMIT\x00", "SZI"},
			sent: 3000, // with the reply to BEGIN, which decides how they are planned
		},
		"before one Sync": {
			client: []string{"CP\x00i\x00\x00\x00", "CB" + bind, "CE\x00\x00\x00\x00\x00", "CP\x00i\x00\x00\x00", "CB" +
				bind,
				"CE\x00\x00\x00\x00\x00", "CS"},
			replies: []string{"S1", "S2", described, "SD" + written, "SCINSERT 0 1\x00", "S1", "S2", described,
				"SD" + written, "SCINSERT 0 1\x00", "SZI"},
			sent: 1000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := loggedIn(t)
			var ahead []byte
			for _, m := range c.client {
				ahead = appendMessage(ahead, m[1], []byte(m[2:])...)
			}
			now := int64(1000)
			for i := 0; ; i++ {
				n, err := s.FromClient(now, ahead)
				if err != nil {
					t.Fatal(err)
				}
				ahead = ahead[n:]
				if i == len(c.replies) {
					break
				}
				now += 1000
				r := c.replies[i]
				if err := s.FromServer(now, appendMessage(nil, r[1], []byte(r[2:])...)); err != nil {
					t.Fatal(err)
				}
			}
			var inserts []history.Stmt
			for _, e := range s.Events() {
				if e.Txn == nil {
					continue
				}
				for _, st := range e.Txn.Stmts {
					if st.Kind == history.Insert {
						inserts = append(inserts, st)
					}
				}
			}
			if len(inserts) != 2 {
				t.Fatalf("%d INSERTs recorded, want 2", len(inserts))
			}
			for i, st := range inserts {
				if st.Start != c.sent || i > 0 && st.End <= inserts[i-1].End {
					t.Errorf("INSERT %d ran from %d to %d, want from %d on, and one after the other",
						i+1, st.Start, st.End, c.sent)
				}
			}
		})
	}
}
