package explore

import (
	"fmt"
	"regexp"

	"github.com/isotap/isotap/scenario/replay"
)

// A mapping is what a twin has in place of a transaction's values: keys that the server made for it, and values that a
// client made by chance, which a unique key would not take twice.
//
// A value alone does not say what it is: the 5 of an order is not the 5 of a product. Keys are mapped by the column
// that they come from.
type mapping struct {
	keys  map[key]string
	fresh map[string]string // by the value, whatever the column
}

type key struct {
	domain column
	value  string
}

func newMapping() *mapping {
	return &mapping{keys: make(map[key]string), fresh: make(map[string]string)}
}

// other returns the twin's value for one of the transaction's. Where the column is not known, no key is looked for.
func (m *mapping) other(s *schema, of column, known bool, value string) (string, bool) {
	if to, ok := m.fresh[value]; ok {
		return to, true
	}
	if !known {
		return "", false
	}
	if to, ok := m.keys[key{s.domain(of), value}]; ok {
		return to, true
	}
	if s.namesNoTable(of) {
		return m.made(value)
	}
	return "", false
}

// made returns the twin's key for one that the server made for the transaction, if there is one of that value alone.
func (m *mapping) made(value string) (twins string, one bool) {
	for k, to := range m.keys {
		if k.value != value {
			continue
		}
		if one && to != twins {
			return "", false
		}
		twins, one = to, true
	}
	return twins, one
}

// same reports whether the twin's value is what it has in place of the transaction's.
func (m *mapping) same(s *schema, of column, known bool, value, twins replay.Value) bool {
	if value == twins {
		return true
	}
	to, ok := m.other(s, of, known, value.Text)
	return ok && !value.Null && !twins.Null && to == twins.Text
}

// learn takes in the keys that an INSERT made for the transaction and for the twin.
func (m *mapping) learn(s *schema, st *statement, own, twins *replay.Result) {
	if !st.inserts() || own.Status != replay.OK || twins.Status != replay.OK {
		return
	}
	if name := s.counts[st.target]; name != "" && own.InsertID != twins.InsertID {
		m.keys[key{s.domain(column{st.target, name}), fmt.Sprint(own.InsertID)}] = fmt.Sprint(twins.InsertID)
	}
	if len(own.Rows) != len(twins.Rows) {
		return
	}
	for i, row := range own.Rows {
		for j, value := range row {
			of, known := s.shown(&own.Columns[j])
			if known && value != twins.Rows[i][j] && !value.Null && !isTime(s.family, own.Columns[j].Type) {
				m.keys[key{s.domain(of), value.Text}] = twins.Rows[i][j].Text
			}
		}
	}
}

// random are values that nobody typed: tokens, codes and UUIDs.
var random = regexp.MustCompile(`^([0-9a-fA-F]{24,}|[A-Z0-9]{16,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// renew gives the twin a new value for each random one that an INSERT of its statements brings to a unique key, also
// where it looks for that before. A value that earlier instances had refers to a row that is there, and stays.
func (m *mapping) renew(s *schema, statements []statement, seen map[string]bool) {
	for i := range statements {
		if statements[i].inserts() {
			m.renewInserted(s, &statements[i], seen)
		}
	}
}

func (m *mapping) renewInserted(s *schema, st *statement, seen map[string]bool) {
	for i := range st.literals {
		l := &st.literals[i]
		of, known := s.of(l)
		if known && s.unique[of] && l.quoted && random.MatchString(l.value) && !seen[l.value] && m.fresh[l.value] == "" {
			m.fresh[l.value] = another(l.value)
		}
	}
}

// another returns a value of the same form: its last digits are other ones.
func another(value string) string {
	text := []byte(value)
	for i := max(0, len(text)-6); i < len(text); i++ {
		if text[i] >= '0' && text[i] <= '9' {
			text[i] = '0' + ('9' - text[i])
			if text[i] == value[i] {
				text[i] = '0'
			}
		} else {
			text[i] = '7'
		}
	}
	return string(text)
}
