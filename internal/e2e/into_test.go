package e2e

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/recorder"
)

// TestSelectIntoVariablesIsObserved runs SELECT ... INTO directly and through isotap: the variables and what
// the server tells about the statement are the same, and the row that was read is recorded, at every level
// and in every way to run it.
func TestSelectIntoVariablesIsObserved(t *testing.T) {
	setup := []string{"CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20), stock INT)",
		"INSERT INTO item VALUES (1,'a',10),(2,'b',20),(3,'c',30)"}
	statements := []struct{ sql, shape, seen string }{
		{"SELECT name INTO @n FROM item WHERE id = 1", "SELECT name INTO @n FROM item WHERE id = ?", "exact r"},
		{"SELECT name, stock FROM item WHERE id = 2 INTO @n, @m",
			"SELECT name, stock FROM item WHERE id = ? INTO @n, @m", "exact r"},
		{"SELECT stock INTO @n FROM item ORDER BY stock DESC LIMIT 1",
			"SELECT stock INTO @n FROM item ORDER BY stock DESC LIMIT ?", "exact r"},
		{"SELECT COUNT(*), SUM(stock) INTO @n, @m FROM item WHERE id > 1",
			"SELECT COUNT(*), SUM(stock) INTO @n, @m FROM item WHERE id > ?", "exact rr"},
		{"SELECT a.name, b.name INTO @n, @m FROM item a JOIN item b ON b.id = a.id - 1 WHERE a.id = 3 LOCK IN SHARE MODE",
			"SELECT a.name, b.name INTO @n, @m FROM item a JOIN item b ON b.id = a.id - ? WHERE a.id = ? LOCK IN SHARE MODE", "exact rr"},
		{"SELECT name INTO @n FROM item WHERE id = 99", "SELECT name INTO @n FROM item WHERE id = ?", "exact "},
		{"SELECT name INTO @n FROM item", "SELECT name INTO @n FROM item", "exact "}, // more than one row: an error
	}
	probes := []string{"SELECT @n, @m", "SELECT ROW_COUNT(), FOUND_ROWS()", "SHOW WARNINGS", "SELECT @@warning_count"}
	for _, durability := range []recorder.Durability{recorder.Relaxed, recorder.Commit} {
		t.Run(durability.String(), func(t *testing.T) {
			b := newBench(t, func(o *proxyserver.Options) { o.Durability = durability }, setup...)
			for _, begin := range []string{"DO 1", "BEGIN", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"} {
				direct, through := b.conn(b.direct), b.conn(b.through)
				b.exec(direct, begin)
				b.exec(through, begin)
				for _, s := range statements {
					for _, probe := range probes {
						for _, run := range []func(c *sql.Conn) string{
							func(c *sql.Conn) string { return answer(t.Context(), c, s.sql) },
							func(c *sql.Conn) string {
								p, err := c.PrepareContext(t.Context(), s.sql)
								if err != nil {
									return err.Error()
								}
								defer p.Close()
								_, err = p.Exec()
								if err != nil {
									return err.Error()
								}
								return "done"
							},
						} {
							want, got := run(direct)+answer(t.Context(), direct, probe),
								run(through)+answer(t.Context(), through, probe)
							if got != want {
								t.Errorf("%s, %s; %s:\nthrough isotap %s\ndirectly       %s",
									begin, s.sql, probe, got, want)
							}
						}
					}
				}
				b.exec(through, "ROLLBACK")
				direct.Close()
				through.Close()
			}
			txns := b.txns()
			for _, s := range statements[1:5] {
				if got := seen(txns, s.shape); got != strings.TrimSuffix(strings.Repeat(s.seen+",", 24), ",") {
					t.Errorf("%s is seen as %s", s.sql, got)
				}
			}
			if got := seen(txns, statements[0].shape); strings.Count(got, "exact r") != 24 ||
				strings.Count(got, "exact") != 48 {
				t.Errorf("%s is seen as %s", statements[0].sql, got)
			}
		})
	}
}
