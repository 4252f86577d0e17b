package e2e

import (
	"bytes"
	"fmt"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// TestGroupsAreWarnedOfAsOften has the server warn of what statements group, order and choose groups by, in every
// place, and asks how often it did.
func TestGroupsAreWarnedOfAsOften(t *testing.T) {
	m := newMirror(t, gomysql.CLIENT_DEPRECATE_EOF, nil)
	r := m.reflect(t)
	defer r.close()
	texts := []string{"SELECT DISTINCT b + 0 FROM t1", "SELECT MAX(b + 0) FROM t1",
		"SELECT n FROM (SELECT b + 0 AS n FROM t1) d GROUP BY n",
		"SELECT k1, COUNT(*) AS n FROM t2 GROUP BY k1 HAVING n > '1x'", "SELECT b + 0 AS n FROM t1 GROUP BY n",
		"SELECT b + 0, COUNT(*) FROM t1 GROUP BY 1"}
	for _, e := range []string{"'a' || 'b'", "b + 0", "1 / (id - 1)", "b > 1", "CAST(b AS DATE)", "DATE(b)", "-b",
		"IF(b, 1, 2)", "LOWER(b)", "a % 3",
		"id IN (1, '2x')", "CASE id WHEN 'x' THEN 1 END"} {
		for _, form := range []string{"SELECT id, COUNT(*) FROM t1 GROUP BY id, %s",
			"SELECT b, COUNT(*) FROM t1 GROUP BY b, %s ORDER BY 1", "SELECT %s AS n FROM t1 GROUP BY n",
			"SELECT COUNT(*), %s FROM t1 GROUP BY 2 ORDER BY NULL", "SELECT id, b FROM t1 GROUP BY id, b HAVING %s",
			"SELECT b, SUM(a) FROM t1 WHERE %s GROUP BY b",
			"SELECT a, SUM(%s) FROM t1 GROUP BY a", "SELECT a, COUNT(*) FROM t1 GROUP BY a ORDER BY MAX(%s)",
			"SELECT p.id FROM t1 p JOIN t1 q ON p.id <= q.id GROUP BY p.id, (SELECT %s FROM t1 LIMIT 1)"} {
			texts = append(texts, fmt.Sprintf(form, e))
		}
	}
	for _, text := range texts {
		direct, through := r.both(command{name: text, bytes: query(text)})
		m.forgetPlan(direct)
		m.forgetPlan(through)
		ends := [2][]byte{direct[len(direct)-1], through[len(through)-1]} // which have the number of warnings
		if len(direct) != len(through) || !bytes.Equal(ends[0][4:], ends[1][4:]) {
			t.Errorf("%s: %d packets that end with %q, directly %d that end with %q", text, len(through),
				ends[1], len(direct), ends[0])
		}
		if diff := r.run(randomStatement{text: "SHOW COUNT(*) WARNINGS"}); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
