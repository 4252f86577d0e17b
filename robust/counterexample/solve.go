package counterexample

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/robust/footprint"
)

// A solver finds values for cells: the variables of runs, and the columns of rows. Cells that are equal make one class,
// known by one of them. A class has a constant, or a number, which [literal] makes a value of any type of.
type solver struct {
	same        map[string]string // leads to the class's cell
	constants   map[string]string
	symbols     map[string]int // the number that the execution has for a value: others differ from it
	nulls       map[string]bool
	columns     map[string]*footprint.Column // the first that the class is of
	numbers     map[string]int
	comparisons []comparison
	cells       []string // all, in the order in which they are seen
}

// A comparison says that a cell and a number on top of another one are in an order: < <= > >= or <>.
type comparison struct {
	left, op, right string
	plus            int
}

func newSolver() *solver {
	return &solver{same: map[string]string{}, constants: map[string]string{}, symbols: map[string]int{},
		nulls:   map[string]bool{},
		columns: map[string]*footprint.Column{}, numbers: map[string]int{}}
}

// class returns the cell that a cell's class is known by.
func (s *solver) class(cell string) string {
	if _, known := s.same[cell]; !known {
		s.same[cell] = cell
		s.cells = append(s.cells, cell)
	}
	for s.same[cell] != cell {
		cell = s.same[cell]
	}
	return cell
}

// of says that a cell is a column's.
func (s *solver) of(cell string, c *footprint.Column) {
	if class := s.class(cell); s.columns[class] == nil {
		s.columns[class] = c
	}
}

// constant has a cell be a constant, if it is not another one.
func (s *solver) constant(cell, literal string) {
	if class := s.class(cell); s.constants[class] == "" {
		s.constants[class] = literal
	}
}

// symbol has a cell be a value that the execution knows by a number.
func (s *solver) symbol(cell string, n int) {
	known := "#" + strconv.Itoa(n)
	s.symbols[s.class(known)] = n
	s.unite(cell, known)
}

// unite has two cells be equal. Where both have a value that does not differ from the other's they become it; else
// nothing is done: the statement will not find its row.
func (s *solver) unite(a, b string) {
	a, b = s.class(a), s.class(b)
	if a == b || s.constants[a] != "" && s.constants[b] != "" && s.constants[a] != s.constants[b] {
		return
	}
	if s.symbols[a] > 0 || s.constants[a] != "" {
		a, b = b, a
	}
	s.same[a] = b
	if s.constants[b] == "" && s.constants[a] != "" {
		s.constants[b] = s.constants[a]
	}
	if s.symbols[b] == 0 {
		s.symbols[b] = s.symbols[a]
	}
	if s.columns[b] == nil {
		s.columns[b] = s.columns[a]
	}
}

// equal reports whether two cells have one value.
func (s *solver) equal(a, b string) bool {
	a, b = s.class(a), s.class(b)
	return a == b || s.constants[a] != "" && s.constants[a] == s.constants[b]
}

// number gives all classes that have no constant a number: the execution's own, and different ones to all others, as
// far as the comparisons allow.
func (s *solver) number() {
	next := 1
	for _, n := range s.symbols {
		next = max(next, n+1)
	}
	for _, cell := range s.cells {
		class := s.class(cell)
		if _, known := s.numbers[class]; known {
			continue
		}
		switch n, ok := ordinal(s.constants[class]); {
		case ok:
			s.numbers[class] = n
		case s.symbols[class] > 0:
			s.numbers[class] = s.symbols[class]
		default:
			s.numbers[class] = next
			next++
		}
	}
	for range 100 {
		if !slices.ContainsFunc(s.comparisons, s.move) {
			return
		}
	}
}

// move makes a comparison true that is not, and reports whether it had to: by the side that is freer to have another
// number, else by the lesser one, so that numbers grow until all are true.
func (s *solver) move(c comparison) bool {
	left, right := s.class(c.left), s.class(c.right)
	if left == right || compares(s.numbers[left], c.op, s.numbers[right]+c.plus) || s.free(left)+s.free(right) == 0 {
		return false
	}
	apart := map[string]int{"<": 1, ">": -1, "<>": 1}[c.op] // by how much the right side is greater
	raiseRight := strings.HasPrefix(c.op, "<")
	if s.free(right) > s.free(left) || s.free(right) == s.free(left) && raiseRight {
		s.numbers[right] = s.numbers[left] - c.plus + apart
	} else {
		s.numbers[left] = s.numbers[right] + c.plus - apart
	}
	return true
}

// free returns how free a class is to have another number.
func (s *solver) free(class string) int {
	switch {
	case s.constants[class] != "":
		return 0
	case s.symbols[class] > 0:
		return 1
	}
	return 2
}

func compares(a int, op string, b int) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	}
	return a != b
}

// value writes a cell as a value of a column; of nil: as one of the first that its class is of, else as a number.
func (s *solver) value(cell string, c *footprint.Column) string {
	class := s.class(cell)
	if c == nil {
		c = s.columns[class]
	}
	if constant := s.constants[class]; constant != "" {
		return quoted(constant, c)
	}
	return literal(s.numbers[class], c)
}

// demand takes a comparison that must be true of a row: column gives the cell of its column, operand those of its
// operands; an empty cell is one of which nothing is known.
func (s *solver) demand(c *footprint.Comparison, column string, operand func(*footprint.Operand) string) {
	if column == "" {
		return
	}
	s.of(column, c.Table.Column(c.Column))
	if c.Op == "null" {
		s.nulls[column] = true
		return
	}
	o := &c.Operands[0]
	if c.Op == "like" && o.Constant != "" {
		s.constant(column, strings.NewReplacer("%", "", "_", "x").Replace(o.Constant))
		return
	}
	cell := operand(o)
	switch {
	case cell == "":
	case (c.Op == "=" || c.Op == "in" || c.Op == "like") && o.Plus == 0:
		s.unite(column, cell)
	case c.Op == "=":
		s.comparisons = append(s.comparisons, comparison{column, "<=", cell, o.Plus},
			comparison{column, ">=", cell, o.Plus})
	default:
		s.class(column)
		s.class(cell)
		s.comparisons = append(s.comparisons, comparison{column, c.Op, cell, o.Plus})
	}
}

// constantCell returns the cell of a constant.
func (s *solver) constantCell(literal string) string {
	cell := "=" + literal
	s.constant(cell, literal)
	return cell
}

// isNull reports whether a cell is to be NULL.
func (s *solver) isNull(cell string) bool {
	for null := range s.nulls {
		if s.class(null) == s.class(cell) {
			return true
		}
	}
	return false
}
