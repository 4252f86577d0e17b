package postgres

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/proxy/txnstate"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

func TestElementsOfArraysMayHoldSeveralIdentities(t *testing.T) {
	items := []sqlpostgres.Item{sqlpostgres.ItemTID, sqlpostgres.ItemXID, sqlpostgres.ItemKeyText}
	source := sqlpostgres.Source{Array: true, Physical: &sqlpostgres.Physical{Items: items}}
	for _, c := range []struct {
		array   string
		rows    []string
		partial bool
		unread  bool
	}{
		{array: `{"(0,1);7;a"}`, rows: []string{"a"}},
		{array: `{"(0,1);7;a;,(0,2);7;b","(0,2);7;b;,(0,1);7;a",NULL}`, rows: []string{"a", "b"}},
		{array: `{"(0,1);7;\\,\\;;,(0,2);7;"}`, rows: []string{`\,\;`, ""}},
		{array: `{""}`},
		{array: `{*}`, partial: true},
		{array: `{"(0,1);7;a;,*"}`, rows: []string{"a"}, partial: true},
		{array: `{"(0,1)"}`, unread: true},
	} {
		s := rowIdentities{of: &txnstate.Unrecorded{}}
		s.array([]byte(c.array), 0, []sqlpostgres.Source{source}, 0)
		var rows []string
		start := 0
		for _, seen := range s.list {
			rows = append(rows, string(s.arena[start:seen.end]))
			start = seen.end
		}
		if !slices.Equal(rows, c.rows) || s.partial != c.partial || s.unread != c.unread {
			t.Errorf("%s: rows %q, partial %t, unread %t", c.array, rows, s.partial, s.unread)
		}
	}
}

// TestLoneArrayIsMissed: an array that is the only one is missed.
func TestLoneArrayIsMissed(t *testing.T) {
	sources := []sqlpostgres.Source{{Array: true}, {Array: true, Whole: true}}
	s := rowIdentities{of: &txnstate.Unrecorded{}}
	for _, c := range []struct {
		source int
		array  []byte
		lacks  bool
	}{{0, []byte("{}"), true}, {1, nil, true}, {1, []byte("{}"), false}} {
		s.array(c.array, c.source, sources[c.source:], 0)
		if s.lack(sources) != c.lacks {
			t.Errorf("after %q of %d: %t", c.array, c.source, !c.lacks)
		}
	}
}

// TestLoneElementIsMissed: so is one of an array that several tell by, where no part of the statement wrote a row.
func TestLoneElementIsMissed(t *testing.T) {
	sources := []sqlpostgres.Source{{Array: true, Joint: 2, Physical: &sqlpostgres.Physical{}},
		{Array: true, Joint: -1, Whole: true, Physical: &sqlpostgres.Physical{}}}
	for array, lacks := range map[string]bool{`{"",NULL}`: true, `{"",""}`: false} {
		s := rowIdentities{of: &txnstate.Unrecorded{}}
		s.array([]byte(array), 0, sources, 0)
		if s.lack(sources) != lacks {
			t.Errorf("after %s: %t", array, !lacks)
		}
	}
}
