package known

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/isotap/isotap/workload"
)

// An appending is Elle's list-append (Kingsbury and Alvaro, VLDB 2020) through SQL: transactions of a few operations,
// each of which reads a list or appends an element that no other does. A list is a text.
//
// The invariants: what was appended is in its list, once; what was read is how the list began; and whoever saw one of a
// transaction's appends saw all of them in the lists that it read (that much is already asked of read atomicity).
type appending struct {
	lists   int
	element atomic.Int64
	mu      sync.Mutex
	done    [][]operation // of each committed transaction
}

// An operation reads a list, or appends an element to it.
type operation struct {
	list    int
	element int64   // that it appends; 0: it reads
	read    []int64 // what it read
}

// activity is how many elements are appended before another list takes the place of the oldest of those in use.
const activity = 40

func newAppending(o Options) workload.Workload { return &appending{lists: 20 * o.Scale} }

func (w *appending) Setup() (tables, statements []string) {
	return []string{"CREATE TABLE list (id INT PRIMARY KEY, elements TEXT NOT NULL)"},
		[]string{workload.Rows("list (id, elements)", w.lists,
			func(i int) string { return fmt.Sprintf("(%d, '')", i) })}
}

func (w *appending) Programs() []workload.Program {
	return []workload.Program{{Name: "list-append", Weight: 1, Run: w.run}}
}

// draw makes a transaction. It appends to the lists in their order, so that two transactions do not wait for each
// other.
func (w *appending) draw(c *workload.Client) []operation {
	ops := make([]operation, 2+c.Random.IntN(3))
	base := int(w.element.Load()) / activity
	var appends []int
	for i := range ops {
		ops[i].list = 1 + (base+c.Random.IntN(3))%w.lists
		if c.Random.IntN(2) == 0 {
			ops[i].element = w.element.Add(1)
			appends = append(appends, ops[i].list)
		}
	}
	slices.Sort(appends)
	for i := range ops {
		if ops[i].element != 0 {
			ops[i].list, appends = appends[0], appends[1:]
		}
	}
	return ops
}

func (w *appending) run(ctx context.Context, c *workload.Client) error {
	ops := w.draw(c)
	err := c.Transaction(ctx, func(tx workload.Handle) error {
		for i := range ops {
			if err := ops[i].do(ctx, tx); err != nil {
				return err
			}
			if err := c.Think(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done = append(w.done, ops)
	}
	return err
}

// do does one operation.
func (o *operation) do(ctx context.Context, tx workload.Handle) (err error) {
	if o.element != 0 {
		// LEFT says to PostgreSQL that the argument is a text.
		return tx.Exec(ctx, "UPDATE list SET elements = CONCAT(elements, LEFT(?, 20)) WHERE id = ?",
			fmt.Sprintf("%d ", o.element), o.list)
	}
	var text string
	if err := tx.Row(ctx, []any{&text}, "SELECT elements FROM list WHERE id = ?", o.list); err != nil {
		return err
	}
	o.read, err = elements(text)
	return err
}

// elements reads a list's text.
func elements(text string) (list []int64, err error) {
	for _, word := range strings.Fields(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a list: %w", err)
		}
		list = append(list, n)
	}
	return list, nil
}

func (w *appending) Check(ctx context.Context, h workload.Handle) ([]workload.Check, error) {
	final := make(map[int][]int64)
	var bad error
	var id int
	var text string
	err := h.Each(ctx, []any{&id, &text}, func() {
		list, err := elements(text)
		if err != nil {
			bad = err
		}
		final[id] = list
	}, "SELECT id, elements FROM list ORDER BY id")
	if err == nil {
		err = bad
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	lost, odd := w.compare(final)
	return []workload.Check{
		{Name: "appends that are lost or doubled", Got: lost},
		{Name: "reads of what never was", Got: odd},
		{Name: "reads of a part of a transaction", Got: w.fractured()},
	}, err
}

// compare holds what transactions did against the lists at the end: appends that are not there once, and reads that are
// not how the list begins.
func (w *appending) compare(final map[int][]int64) (lost, odd int64) {
	times := make(map[int64]int)
	for _, list := range final {
		for _, e := range list {
			times[e]++
		}
	}
	for _, ops := range w.done {
		for _, o := range ops {
			list := final[o.list]
			switch {
			case o.element != 0 && times[o.element] != 1:
				lost++
			case o.element == 0 && (len(o.read) > len(list) || !slices.Equal(o.read, list[:len(o.read)])):
				odd++
			}
		}
	}
	return lost, odd
}

// fractured counts the transactions that saw an append of another, and in another list that they read later not an
// append that the same made there.
func (w *appending) fractured() (n int64) {
	writer := make(map[int64]int)
	for t, ops := range w.done {
		for _, o := range ops {
			if o.element != 0 {
				writer[o.element] = t
			}
		}
	}
	for t, ops := range w.done {
		saw := make(map[int]bool) // the writers that it saw something of
		seen := make(map[int64]bool)
		read := make(map[int]bool)
		for _, o := range ops {
			if o.element == 0 {
				read[o.list] = true
			}
			for _, e := range o.read {
				seen[e] = true
				if other, ok := writer[e]; ok && other != t {
					saw[other] = true
				}
			}
		}
		if w.partial(saw, seen, read) {
			n++
		}
	}
	return n
}

// partial reports whether of a transaction that was seen an append was not seen, though its list was read.
func (w *appending) partial(saw map[int]bool, seen map[int64]bool, read map[int]bool) bool {
	for other := range saw {
		for _, o := range w.done[other] {
			if o.element != 0 && read[o.list] && !seen[o.element] {
				return true
			}
		}
	}
	return false
}
