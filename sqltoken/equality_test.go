package sqltoken_test

import (
	"reflect"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

func TestEqualitiesAreWhatEachRowMustHave(t *testing.T) {
	id := sqltoken.Equality{Column: "id", Value: 5}
	alone := sqltoken.Equality{Column: "id", Value: 5, Alone: true}
	for _, c := range []struct {
		condition string
		want      []sqltoken.Equality
	}{
		{"id = 5", []sqltoken.Equality{alone}},
		{"((id = '005'))", []sqltoken.Equality{alone}},
		{"5 = id", []sqltoken.Equality{alone}},
		{"id = 5 AND n > 1", []sqltoken.Equality{id}},
		{"id = 5 and (n = 2 and s = 'a or b')", []sqltoken.Equality{id, {Column: "n", Value: 2}}},
		{"(id = 5) AND NOT (n = 2)", []sqltoken.Equality{id}},
		{"t.id = 5", []sqltoken.Equality{{Of: "t", Column: "id", Value: 5, Alone: true}}},
		{"s = 'x AND id = 6' AND id = 5", []sqltoken.Equality{id}},
		{"a IN (1, 2) AND id = 5", []sqltoken.Equality{id}},
		{"id = 5 AND id = 6", []sqltoken.Equality{id, {Column: "id", Value: 6}}},
		{"id = 5 OR n = 1", nil},
		{"(id = 5 OR n = 1)", nil},
		{"(id = 5) OR (n = 1) AND id = 6", nil},
		{"n BETWEEN 1 AND id = 5", nil},
		{"CASE WHEN n = 1 AND id = 5 THEN TRUE END", nil},
		{"NOT id = 5", nil},
		{"id = 5 IS NULL", nil},
		{"n = id = 5", nil},
		{"id = 5.0", nil},
		{"id = -5", nil},
		{"id + 1 = 5", nil},
		{"id = 5 -- AND n = 1", nil},
		{"id >= 5", nil},
		{"id <> 5", nil},
		{"id = '5 '", nil},
		{"id = 1234567890123456", nil},
		{"id = n", nil},
		{"", nil},
		{"(id = 5", nil},
	} {
		for _, family := range dbms.Families {
			if got := sqltoken.Equalities(family, c.condition); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v: %s: %+v, want %+v", family, c.condition, got, c.want)
			}
		}
	}
	for family, conditions := range map[dbms.Family][]string{
		dbms.MySQLFamily:      {"n = 1 || id = 5 AND a = 1", "id = 5 XOR n = 1", `"id" = 5`, `s = 'a\' AND id = 5 AND \''`, "id = 5 /*! OR 1 */"},
		dbms.PostgreSQLFamily: {`s = E'\'' AND id = 5`, "id = 5 /* */"},
	} {
		for _, condition := range conditions {
			if got := sqltoken.Equalities(family, condition); got != nil {
				t.Errorf("%v: %s: %+v", family, condition, got)
			}
		}
	}
	if got := sqltoken.Equalities(dbms.PostgreSQLFamily, `"t"."id" = E'5'`); len(got) != 1 || got[0].Of != `"t"` ||
		got[0].Column != `"id"` || !got[0].Alone {
		t.Errorf("%+v", got)
	}
	if got := sqltoken.Equalities(dbms.MySQLFamily, "`t`.`id` = 5 LIMIT"); got != nil {
		t.Errorf("%+v", got)
	}
}
