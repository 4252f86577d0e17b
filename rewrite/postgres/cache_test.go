package postgres

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

const pointSelect = "SELECT name FROM item WHERE id=4988"

func newCache(entries, bytes int) *Cache {
	return NewCache(New(testSchema(), Options{}), entries, bytes)
}

func TestCacheFindsAScriptByTextAndSession(t *testing.T) {
	c := newCache(10, 1<<20)
	s := testSession()
	first := c.Plan([]byte(pointSelect), s)
	if c.Plan([]byte(pointSelect), s) != first {
		t.Error("the second lookup made another script")
	}
	other := s
	other.Serializable = true
	if c.Plan([]byte(pointSelect), other) == first {
		t.Error("a session at another level got the same script")
	}
	if got := c.Stats(); got.Lookups != 3 || got.Hits != 1 || got.Misses() != 2 {
		t.Errorf("%+v, want one hit of 3 lookups", got)
	}
}

func TestCacheDoesNotKeepTheCallersBytes(t *testing.T) {
	c := newCache(10, 1<<20)
	b := []byte(pointSelect)
	s := c.Plan(b, testSession())
	clear(b)
	if got := string(s.Append(nil)); !strings.HasPrefix(got, `SELECT name, "item".tableoid`) {
		t.Errorf("the text became %q", got)
	}
}

func TestCacheHitDoesNotAllocate(t *testing.T) {
	c := newCache(10, 1<<20)
	b, s := []byte(pointSelect), testSession()
	c.Plan(b, s)
	if n := testing.AllocsPerRun(100, func() { c.Plan(b, s) }); n != 0 {
		t.Errorf("%v allocations per hit", n)
	}
}

// slowSchema invalidates the cache while a script is being made from it.
type slowSchema struct {
	tables
	during func()
}

func (s *slowSchema) Table(schema, name string) *Table {
	s.during()
	return s.tables.Table(schema, name)
}

func TestInvalidateAlsoForgetsScriptsInTheMaking(t *testing.T) {
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
		t.Error("a script survived a change of the schema")
	}
	if scripts, templates, bytes := c.Held(); bytes == 0 || scripts != 1 || templates != 1 {
		t.Errorf("%d scripts of %d bytes, %d templates after the last one", scripts, bytes, templates)
	}
}

func TestCacheServesSessionsAtOnce(t *testing.T) {
	c := newCache(8, 1<<20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				n := (g + i) % 16
				s := c.Plan(fmt.Appendf(nil, "UPDATE item SET stock = %d", n), testSession())
				p := s.Statements[0]
				if len(p.Args) != 1 || p.Args[0] != fmt.Sprint(n) || p.Result.Reply != rewrite.Returning {
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

func TestTooLargeHoldsForTheShape(t *testing.T) {
	c := newCache(8, 1<<20)
	p := c.Plan([]byte("SELECT name FROM item WHERE id = 1"), testSession()).Statements[0]
	c.TooLarge(p.Shape)
	if !c.IsTooLarge(c.Plan([]byte("SELECT name FROM item WHERE id = 2"), testSession()).Statements[0].Shape) {
		t.Error("another literal made another shape")
	}
	if c.IsTooLarge(c.Plan([]byte("SELECT name FROM item"), testSession()).Statements[0].Shape) {
		t.Error("another statement is too large")
	}
	if c.Invalidate(); c.IsTooLarge(p.Shape) {
		t.Error("it outlived the schema")
	}
}

// otherLiterals returns the text with other values in its literals: mostly plain ones, and some that are not.
func otherLiterals(t *rapid.T, text string, s Session) string {
	numbers := rapid.OneOf(rapid.StringMatching(`[0-9]{1,15}(\.[0-9]{0,3})?`),
		rapid.SampledFrom([]string{"1e3", "0x1F", "9999999999999999999999"}))
	strs := rapid.OneOf(rapid.StringMatching(`'[a-z ;#ä?(),-]{0,20}'`),
		rapid.SampledFrom([]string{`'it''s'`, `E'\''`, `x'41'`, `$$a$$`, `'a\'`}))
	var b strings.Builder
	pos := 0
	toks, _ := pgtoken.Scan(nil, text, s.Backslashes)
	for _, tok := range toks {
		b.WriteString(text[pos:tok.Start])
		pos = tok.End
		switch tok.Kind {
		case pgtoken.Number:
			b.WriteString(numbers.Draw(t, "number"))
		case pgtoken.String:
			b.WriteString(strs.Draw(t, "string"))
		default:
			b.WriteString(text[tok.Start:tok.End])
		}
	}
	return b.String() + text[pos:]
}

func TestTemplateGivesTheScriptThatTheRewriterGives(t *testing.T) {
	texts := goldenTexts(t)
	r := New(testSchema(), Options{})
	rapid.Check(t, func(t *rapid.T) {
		s := testSession()
		s.Backslashes, s.Serializable = rapid.Bool().Draw(t, "backslashes"), rapid.Bool().Draw(t, "serializable")
		s.Version = rapid.SampledFrom([]int{12, 17, 18}).Draw(t, "version")
		text := rapid.SampledFrom(texts).Draw(t, "text")
		c := NewCache(r, 10, 1<<20)
		for range 3 {
			text := otherLiterals(t, text, s)
			if got, want := withoutModel(c.Plan([]byte(text), s)), r.Plan(text, s); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nfrom a template: %s\nby the rewriter: %s", text, render(got), render(want))
			}
		}
	})
}

// TestTemplatesOfRandomStatementsGiveWhatTheRewriterGives is of what random statements are: a copy of a literal in what
// isotap adds is that of the text at hand.
func TestTemplatesOfRandomStatementsGiveWhatTheRewriterGives(t *testing.T) {
	r := New(serverSchema(), Options{})
	rapid.Check(t, func(t *rapid.T) {
		s := Session{Version: rapid.SampledFrom([]int{12, 15, 18}).Draw(t, "version"), Role: "postgres",
			Path: rewrite.ListOf("pg_catalog", "public")}
		g := rapid.SampledFrom([]grammar{reads, writes, besideGroups, joinedGroups}).Draw(t, "grammar")
		start := "<read>"
		if _, ok := g["write"]; ok && (g["read"] == nil || rapid.Bool().Draw(t, "write")) {
			start = "<write>"
		}
		text, c := g.draw(t, start), NewCache(r, 10, 1<<20)
		for range 3 {
			text := otherLiterals(t, text, s)
			if got, want := withoutModel(c.Plan([]byte(text), s)), r.Plan(text, s); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nfrom a template: %s\nby the rewriter: %s", text, render(got), render(want))
			}
		}
	})
}

// TestTemplateGivesThePredicatesThatTheRewriterGives: literals are distinct, and without zeros before them: as the
// grammar prints conditions, 007 is 7, and of two equal ones there is one.
func TestTemplateGivesThePredicatesThatTheRewriterGives(t *testing.T) {
	texts := goldenTexts(t)
	r := New(testSchema(), Options{Predicates: true})
	templated := 0
	rapid.Check(t, func(t *rapid.T) {
		s := testSession()
		text := rapid.SampledFrom(texts).Draw(t, "text")
		c := NewCache(r, 10, 1<<20)
		given := make(map[string]bool)
		number := rapid.StringMatching(`[1-9][0-9]{0,9}(\.[0-9]{1,3})?`).Filter(func(v string) bool { return !given[v] })
		str := rapid.OneOf(rapid.StringMatching(`'[a-z ;#ä?(),-]{0,20}'`),
			rapid.SampledFrom([]string{`'it''s'`, `'now'`, `'2026-11-26 today'`, `x'41'`})).
			Filter(func(v string) bool { return !given[v] })
		for range 3 {
			clear(given)
			var b strings.Builder
			pos := 0
			toks, _ := pgtoken.Scan(nil, text, s.Backslashes)
			for _, tok := range toks {
				literal := text[tok.Start:tok.End]
				switch tok.Kind {
				case pgtoken.Number:
					literal = number.Draw(t, "number")
				case pgtoken.String:
					literal = str.Draw(t, "string")
				}
				given[literal] = true
				b.WriteString(text[pos:tok.Start] + literal)
				pos = tok.End
			}
			text := b.String() + text[pos:]
			got, want := withoutModel(c.Plan([]byte(text), s)), r.Plan(text, s)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nfrom a template: %s\nby the rewriter: %s", text, render(got), render(want))
			}
		}
		if _, held, _ := c.Held(); held == 1 && slices.ContainsFunc(r.Plan(text, s).Statements,
			func(p *Plan) bool { return len(p.Predicates) > 0 }) {
			templated++
		}
	})
	if templated == 0 {
		t.Error("no condition came from a template")
	}
}

// TestLargeIntegersHaveTemplatesOfTheirOwn: the grammar takes an integer of more than 32 bits for a number of another
// kind, which may not stand in all places.
func TestLargeIntegersHaveTemplatesOfTheirOwn(t *testing.T) {
	r := New(testSchema(), Options{Predicates: true})
	c := NewCache(r, 100, 1<<20)
	for _, number := range []string{"3", "2147483647", "2147483648", "3000000000", "3.5", "4"} {
		for _, text := range []string{"SELECT id FROM item WHERE added > CURRENT_TIMESTAMP(" + number + ")",
			"SELECT id FROM item WHERE added > '2026-11-27'::timestamp(" + number + ")",
			"SELECT name FROM item WHERE id = " + number, "SELECT name FROM item WHERE id > 1 ORDER BY id LIMIT " + number} {
			got, want := withoutModel(c.Plan([]byte(text), testSession())), r.Plan(text, testSession())
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s\nfrom a template: %s\nby the rewriter: %s", text, render(got), render(want))
			}
		}
	}
	before, _, _ := c.Held()
	c.Plan([]byte("SELECT name FROM item WHERE id = 98765432109"), testSession())
	if after, _, _ := c.Held(); after != before {
		t.Error("large integers share no template")
	}
}

func TestTextsWithConditionsShareATemplate(t *testing.T) {
	c := NewCache(New(testSchema(), Options{Predicates: true}), 100, 1<<20)
	for i := range 20 {
		for format, want := range map[string]string{
			"SELECT name FROM item WHERE name = 'n%d' AND id > -%d LIMIT 1": "name = 'n%d' AND id > -%d",
			"UPDATE item SET name = 'n%d' WHERE id = %d":                    "id = %[2]d",
			"DELETE FROM item WHERE name IN ('n%d', 'x') OR id=%d":          "name IN ('n%d', 'x') OR id=%d",
			"SELECT 1 FROM item i JOIN item j ON i.id = j.id WHERE i.name = 'n%d' AND i.id < %d": "i.name = 'n%d' AND " +
				"i.id < %d",
		} {
			got := c.Plan(fmt.Appendf(nil, format, i, i+1), testSession()).Statements[0].Predicates
			want := fmt.Sprintf(want, i, i+1)
			want, _, _ = strings.Cut(want, "%!(EXTRA")
			if len(got) == 0 || got[0].Where[0] != want {
				t.Errorf("%s has the conditions %+v, want %s", format, got, want)
			}
		}
	}
	if _, templates, _ := c.Held(); templates != 4 {
		t.Errorf("%d templates for four skeletons", templates)
	}
}

func withoutModel(s *Script) *Script {
	if s == nil {
		return nil
	}
	bare := *s
	bare.model, bare.Plain = nil, withoutModel(s.Plain)
	return &bare
}

func TestScriptsOfOneSkeletonHaveOneModel(t *testing.T) {
	c := newCache(100, 1<<20)
	plan := func(format string, n int) *Script { return c.Plan(fmt.Appendf(nil, format, n), testSession()) }
	first := plan("SELECT name FROM item WHERE id = %d", 1)
	if first.Model() != first || plan("SELECT name FROM item WHERE id = %d", 2).Model() != first {
		t.Error("a script from a template has another model than the first of its skeleton")
	}
	if plan("SELECT name FROM item WHERE id < %d", 2).Model() == first {
		t.Error("scripts of two skeletons have one model")
	}
	if c.Invalidate(); plan("SELECT name FROM item WHERE id = %d", 3).Model() == first {
		t.Error("a model outlived the schema")
	}
}

// TestScriptsFromTemplatesAreKeptOnceRepeated: scripts from templates are kept once their texts come again.
func TestScriptsFromTemplatesAreKeptOnceRepeated(t *testing.T) {
	c := newCache(100, 1<<20)
	for i := range 20 {
		c.Plan(fmt.Appendf(nil, "SELECT name FROM item WHERE id = %d", i), testSession())
	}
	if scripts, _, _ := c.Held(); scripts != 1 {
		t.Errorf("%d scripts of texts that came once are kept", scripts-1)
	}
	text := []byte("SELECT name FROM item WHERE id = 19")
	if again := c.Plan(text, testSession()); c.Plan(text, testSession()) != again {
		t.Error("the script of a text that came three times is not kept")
	}
}

func TestTextsOfOneSkeletonShareATemplate(t *testing.T) {
	c := newCache(100, 1<<20)
	for i := range 20 {
		c.Plan(fmt.Appendf(nil, "UPDATE item SET name = 'n%d' WHERE id = %d", i, i), testSession())
		c.Plan(fmt.Appendf(nil, "BEGIN; INSERT INTO item (id, name) VALUES (%d, ''), (-%d, 'b'); COMMIT", i, i),
			testSession())
	}
	if _, templates, _ := c.Held(); templates != 2 {
		t.Errorf("%d templates for two skeletons", templates)
	}
}

func TestSkeletonKeepsWhatTheScriptDependsOn(t *testing.T) {
	for _, pair := range [][2]string{
		{"SELECT id FROM item ORDER BY 1", "SELECT id FROM item ORDER BY 2"},
		{"SELECT id FROM item ORDER BY id, 1", "SELECT id FROM item ORDER BY id, 2"},
		{"SELECT id FROM item WHERE name = 'a'", "SELECT id FROM item WHERE name = 1"},
		{"SELECT id FROM item WHERE name = 'a'", "SELECT id FROM item WHERE name = x'41'"},
		{"SELECT id FROM item WHERE id IN (1, 2)", "SELECT id FROM item WHERE id IN (1, 2, 3)"},
		{"SELECT id FROM item WHERE id = 1", "SELECT id FROM item WHERE  id = 1"},
		{"SELECT id FROM item /* 1 */", "SELECT id FROM item /* 2 */"},
		{"SELECT id FROM item LIMIT 1", "SELECT id FROM item LIMIT 2"},
		{"SELECT id FROM item OFFSET '0'", "SELECT id FROM item OFFSET '2'"},
		{"SET transaction_isolation = 'serializable'", "SET transaction_isolation = 'read committed'"},
		{"PREPARE TRANSACTION 'a'", "PREPARE TRANSACTION 'b'"},
	} {
		var skeletons [2]string
		for i, text := range pair {
			s := testSession()
			skeletons[i] = string(skeleton(nil, text, read(text, &s).statements, true))
		}
		if skeletons[0] == skeletons[1] {
			t.Errorf("%q and %q have the same skeleton", pair[0], pair[1])
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	s := testSession()
	for _, bm := range []struct {
		name, text string
		Options
	}{
		{"point-select", pointSelect, Options{}},
		{"point-select/predicates", pointSelect, Options{Predicates: true}},
		{"update", "UPDATE item SET stock = stock - 1 WHERE id = 7", Options{}},
		{"update/predicates", "UPDATE item SET stock = stock - 1 WHERE id = 7", Options{Predicates: true}},
		{"insert", "INSERT INTO item (id, name, price, stock) VALUES (1, 'a', 2.5, 7)", Options{}},
		{"insert/predicates", "INSERT INTO item (id, name, price, stock) VALUES (1, 'a', 2.5, 7)",
			Options{Predicates: true}},
		{"commit", "COMMIT", Options{}},
	} {
		c := NewCache(New(testSchema(), bm.Options), 10, 1<<20)
		b.Run(bm.name+"/miss", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Rewriter().Plan(bm.text, s)
			}
		})
		b.Run(bm.name+"/template", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.make(bm.text, s, 0)
			}
		})
		b.Run(bm.name+"/hit", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Plan([]byte(bm.text), s)
			}
		})
	}
}
