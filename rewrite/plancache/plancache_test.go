package plancache

import (
	"fmt"
	"testing"

	"github.com/isotap/isotap/rewrite"
)

type testCache = Cache[struct{}, int, *rewrite.Statement, string]

func put(c *testCache, text string, session, size int) (found bool) {
	_, epoch, found := c.Get([]byte(text), session)
	if !found {
		c.Put(text, session, &rewrite.Statement{Shape: text}, size, epoch)
	}
	return found
}

func TestLeastRecentlyUsedAreDropped(t *testing.T) {
	one := New[int, *rewrite.Statement, string](new(struct{}), 10, 1<<20)
	put(one, "0", 1, 1000)
	_, _, size := one.Held()
	for _, c := range []*testCache{New[int, *rewrite.Statement, string](new(struct{}), 20, 1<<30),
		New[int, *rewrite.Statement, string](new(struct{}), 1<<30, 20*size+size/2)} {
		for i := range 100 {
			put(c, fmt.Sprint(i), 1, 1000)
			put(c, "0", 1, 1000)
		}
		if plans, _, bytes := c.Held(); plans != 20 || bytes != 20*size {
			t.Errorf("%d plans of %d bytes, want 20 of %d each", plans, bytes, size)
		}
		for text, kept := range map[string]bool{"0": true, "99": true, "82": true, "81": true, "80": false} {
			if _, _, ok := c.Get([]byte(text), 1); ok != kept {
				t.Errorf("%s is kept: %v", text, ok)
			}
		}
	}
}

func TestHugePlansAreNotKept(t *testing.T) {
	c := New[int, *rewrite.Statement, string](new(struct{}), 10, 1<<16)
	put(c, "a", 1, 1<<14)
	if plans, _, bytes := c.Held(); plans != 0 || bytes != 0 {
		t.Errorf("a plan of a quarter of the cache was kept: %d bytes", bytes)
	}
}

func TestPlansAreOfTheirSession(t *testing.T) {
	c := New[int, *rewrite.Statement, string](new(struct{}), 10, 1<<16)
	put(c, "a", 1, 1)
	if put(c, "a", 2, 1) || !put(c, "a", 1, 1) {
		t.Error("a plan was found under another session, or not under its own")
	}
	if got := c.Stats(); got.Lookups != 3 || got.Hits != 1 {
		t.Errorf("%+v", got)
	}
}

// TestPlansOfEarlierEpochsAreNotKept: what is made in an earlier epoch is not kept.
func TestPlansOfEarlierEpochsAreNotKept(t *testing.T) {
	c := New[int, *rewrite.Statement, string](new(struct{}), 10, 1<<16)
	plan := &rewrite.Statement{Shape: "a"}
	_, epoch, _ := c.Get([]byte("a"), 1)
	c.TooLarge(plan.Shape)
	c.Invalidate()
	c.Put("a", 1, plan, 1, epoch)
	c.PutTemplate("a", 1, "template", epoch)
	if plans, templates, _ := c.Held(); plans != 0 || templates != 0 || c.IsTooLarge(plan.Shape) {
		t.Errorf("%d plans and %d templates outlived their epoch", plans, templates)
	}
}

func TestRepeatedTextsAreKeptFromTheSecondTime(t *testing.T) {
	c := New[int, *rewrite.Statement, string](new(struct{}), 10, 1<<16)
	for i := range 3 {
		_, epoch, found := c.Get([]byte("a"), 1)
		if found != (i == 2) {
			t.Errorf("found the %d. time: %v", i+1, found)
		}
		c.PutRepeated("a", 1, &rewrite.Statement{}, 1, epoch)
	}
}

func TestHitsDoNotAllocate(t *testing.T) {
	c := New[int, *rewrite.Statement, string](new(struct{}), 10, 1<<16)
	put(c, "a text", 1, 1)
	text := []byte("a text")
	if n := testing.AllocsPerRun(100, func() { c.Get(text, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
