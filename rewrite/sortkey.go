package rewrite

import "strings"

// A SortKey is what a statement orders rows by: an expression over one table.
type SortKey struct {
	Expr                  string
	Descending, NullsLast bool
}

// Null is how the value of a [SortKey] is spelled that is NULL.
const Null = "NULL"

// Before returns the condition for rows of a predicate's table that stand before the last one that a statement showed,
// whose values of the predicate's Order are literals, empty where they are not known. It is empty where no row does, or
// that cannot be said. Rows with equal values may stand on either side, and are left out.
func (p *Predicate) Before(last []string) string {
	if len(p.Order) == 0 || len(last) != len(p.Order) {
		return ""
	}
	var any []string
	equal := ""
	for i, k := range p.Order {
		if last[i] == "" {
			break
		}
		if before := k.before(last[i]); before != "" {
			any = append(any, equal+before)
		}
		if last[i] == Null {
			equal += k.Expr + " IS NULL AND "
		} else {
			equal += k.Expr + " = " + last[i] + " AND "
		}
	}
	return strings.Join(any, " OR ")
}

// before returns the condition for values that stand before another one; empty where none do.
func (k *SortKey) before(value string) string {
	sign := " < "
	if k.Descending {
		sign = " > "
	}
	switch {
	case value == Null && k.NullsLast:
		return k.Expr + " IS NOT NULL"
	case value == Null:
		return ""
	case k.NullsLast:
		return k.Expr + sign + value
	}
	return "(" + k.Expr + sign + value + " OR " + k.Expr + " IS NULL)"
}
