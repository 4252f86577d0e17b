package mysql

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

const pointSelect = "SELECT name FROM item WHERE id=4988"

func TestCacheFindsAPlanByTextAndSession(t *testing.T) {
	c := NewCache(New(testSchema(), Options{}), 10, 1<<20)
	s := testSession()
	p := c.Plan([]byte(pointSelect), s)
	if c.Plan([]byte(pointSelect), s) != p {
		t.Error("the second lookup made another plan")
	}
	other := s
	other.NoBackslashEscapes = true
	if c.Plan([]byte(pointSelect), other) == p {
		t.Error("a session in another mode got the same plan")
	}
	if got := c.Stats(); got.Lookups != 3 || got.Hits != 1 || got.Misses() != 2 {
		t.Errorf("%+v, want one hit of 3 lookups", got)
	}
}

func TestCacheDoesNotKeepTheCallersBytes(t *testing.T) {
	c := NewCache(New(testSchema(), Options{}), 10, 1<<20)
	b := []byte(pointSelect)
	p := c.Plan(b, testSession())
	clear(b)
	if got := string(p.Append(nil, nil)); !strings.HasPrefix(got, "SELECT name, `item`.isotap_rowid") {
		t.Errorf("the plan became %q", got)
	}
}

func TestCacheHitDoesNotAllocate(t *testing.T) {
	c := NewCache(New(testSchema(), Options{}), 10, 1<<20)
	b, s := []byte(pointSelect), testSession()
	c.Plan(b, s)
	if n := testing.AllocsPerRun(100, func() { c.Plan(b, s) }); n != 0 {
		t.Errorf("%v allocations per hit", n)
	}
}

// slowSchema invalidates the cache while a plan is being made from it.
type slowSchema struct {
	tables
	during func()
}

func (s *slowSchema) Table(schema, name string) *Table {
	s.during()
	return s.tables.Table(schema, name)
}

func TestInvalidateAlsoForgetsPlansInTheMaking(t *testing.T) {
	schema := &slowSchema{tables: testSchema()}
	c := NewCache(New(schema, Options{}), 10, 1<<20)
	schema.during = func() {}
	first := c.Plan([]byte(pointSelect), testSession())
	c.Invalidate()
	schema.during = c.Invalidate
	second := c.Plan([]byte(pointSelect), testSession())
	schema.during = func() {}
	third := c.Plan([]byte(pointSelect), testSession())
	if first == second || second == third {
		t.Error("a plan survived a change of the schema")
	}
	if plans, _, bytes := c.Held(); bytes == 0 || plans != 1 {
		t.Errorf("%d plans of %d bytes after the last one", plans, bytes)
	}
}

func TestCacheServesSessionsAtOnce(t *testing.T) {
	c := NewCache(New(testSchema(), Options{}), 8, 1<<20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				n := (g + i) % 16
				p := c.Plan(fmt.Appendf(nil, "UPDATE item SET stock = %d", n), testSession())
				if len(p.Args) != 1 || p.Args[0] != fmt.Sprint(n) || !p.Writes.Captured {
					t.Errorf("statement %d got the plan of %v", n, p.Args)
				}
				if i%100 == 0 {
					c.Invalidate()
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkPlan(b *testing.B) {
	s := testSession()
	for _, bm := range []struct{ name, query string }{
		{"point-select", pointSelect},
		{"update", "UPDATE item SET stock = stock - 1 WHERE id = 7"},
		{"insert", "INSERT INTO item (id, name, price, stock) VALUES (1, 'a', 2.5, 7)"},
		{"commit", "COMMIT"},
	} {
		r := New(testSchema(), Options{})
		b.Run(bm.name+"/miss", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Plan(bm.query, s)
			}
		})
		c, text := NewCache(r, 10, 1<<20), []byte(bm.query)
		b.Run(bm.name+"/template", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.make(bm.query, s, 0)
			}
		})
		b.Run(bm.name+"/hit", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Plan(text, s)
			}
		})
	}
}
