package plancache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/isotap/isotap/rewrite"
)

// TestCacheOfManyTextsIsBounded gives a cache texts and shapes that all differ, of which it would have 300 MiB and more
// if it kept them all.
func TestCacheOfManyTextsIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const (
		most  = 16 << 20
		times = 50_000
	)
	long := strings.Repeat("x", 8<<10)
	for _, test := range []struct {
		name string
		put  func(c *Cache[struct{}, int, *rewrite.Statement, *rewrite.Statement], text string)
	}{
		{"plans", func(c *Cache[struct{}, int, *rewrite.Statement, *rewrite.Statement], text string) {
			_, epoch, _ := c.Get([]byte(text), 0)
			c.Put(text, 0, &rewrite.Statement{Shape: text}, 2*len(text), epoch)
		}},
		{"templates", func(c *Cache[struct{}, int, *rewrite.Statement, *rewrite.Statement], text string) {
			_, epoch, _ := c.Get([]byte(text), 0)
			c.PutTemplate(text[:4000], 0, &rewrite.Statement{}, epoch)
		}},
		{"shapes that read too much", func(c *Cache[struct{}, int, *rewrite.Statement, *rewrite.Statement],
			text string) {
			c.TooLarge(text)
		}},
		{"shapes that are misplanned", func(c *Cache[struct{}, int, *rewrite.Statement, *rewrite.Statement], text string) {
			c.Misplanned(text)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			heap := func() int {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc)
			}
			before := heap()
			c := New[int, *rewrite.Statement, *rewrite.Statement](new(struct{}), 100_000, most)
			for i := range times {
				test.put(c, fmt.Sprint(i, long))
			}
			if grew := heap() - before; grew > 2*most {
				t.Errorf("the cache keeps %d MiB", grew>>20)
			}
			runtime.KeepAlive(c)
		})
	}
}
