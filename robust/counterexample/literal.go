package counterexample

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/isotap/isotap/robust/footprint"
)

// first is the day that number 0 stands for.
var first = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// ordinal returns the number that a constant stands for: its own, or that of its day.
func ordinal(constant string) (int, bool) {
	constant = strings.Trim(constant, "'")
	if f, err := strconv.ParseFloat(constant, 64); err == nil && math.Abs(f) < math.MaxInt32 {
		return int(math.Ceil(f)), true
	}
	if day, _, _ := strings.Cut(constant, " "); len(day) == len(time.DateOnly) {
		if t, err := time.Parse(time.DateOnly, day); err == nil {
			return int(t.Sub(first).Hours() / 24), true
		}
	}
	return 0, false
}

// literal writes a number as a value of a column: greater numbers as greater values, but for types that have few.
// Without a column it is the number.
func literal(n int, c *footprint.Column) string {
	if c == nil {
		return strconv.Itoa(n)
	}
	value := plain(n, c)
	if c.Array {
		return "'{" + strings.Trim(value, "'") + "}'"
	}
	return value
}

func plain(n int, c *footprint.Column) string {
	day := first.AddDate(0, 0, n)
	kind := func(names ...string) bool {
		for _, name := range names {
			if strings.HasPrefix(c.Type, name) {
				return true
			}
		}
		return false
	}
	switch {
	case len(c.Members) > 0:
		return "'" + c.Members[(max(n, 1)-1)%len(c.Members)] + "'"
	case c.Text:
		return "'" + text(n, c.Size) + "'"
	case kind("timestamp", "datetime"):
		return "'" + day.Format(time.DateTime) + "'"
	case kind("timetz", "time"):
		return "'" + first.Add(time.Duration(n)*time.Second).Format(time.TimeOnly) + "'"
	case kind("date"):
		return "'" + day.Format(time.DateOnly) + "'"
	case kind("year"):
		return strconv.Itoa(2000 + n%100)
	case kind("interval") && !kind("integer"):
		return fmt.Sprintf("'%d days'", n)
	case kind("uuid"):
		return fmt.Sprintf("'00000000-0000-0000-0000-%012d'", n)
	case kind("bool"):
		return strconv.FormatBool(n%2 == 1)
	case kind("numeric", "decimal"):
		return fixed(n, c)
	case kind("tinyint") && c.Size != 1:
		return strconv.Itoa(n % 128)
	case kind("int", "smallint", "mediumint", "bigint", "tinyint", "serial", "smallserial", "bigserial", "float",
		"double", "real"):
		return strconv.Itoa(n)
	case kind("bit"):
		return fmt.Sprintf("b'%d'", n%2)
	case kind("inet", "cidr"):
		return fmt.Sprintf("'10.0.%d.%d'", n/256%256, n%256)
	}
	return "'" + strconv.Itoa(n) + "'"
}

// text writes a number as a text of so many characters at most (0: any).
func text(n, size int) string {
	s := strconv.Itoa(n)
	if size > 0 && len(s) > size {
		s = strconv.FormatInt(int64(n), 36)
		s = s[max(0, len(s)-size):]
	}
	return s
}

// fixed writes a number as one of so many digits: where it is too large, the digits behind the point are its.
func fixed(n int, c *footprint.Column) string {
	if c.Size == 0 || float64(n) < math.Pow10(c.Size-c.Scale) {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("0.%0*d", c.Scale, n%int(math.Pow10(c.Scale)))
}

// quoted writes a constant as a value of a column.
func quoted(constant string, c *footprint.Column) string {
	if strings.HasPrefix(constant, "'") {
		return constant
	}
	_, err := strconv.ParseFloat(constant, 64)
	word := strings.EqualFold(constant, "true") || strings.EqualFold(constant, "false")
	if c == nil && (err == nil || word) || c != nil && !c.Text &&
		(err == nil || word && strings.HasPrefix(c.Type, "bool")) {
		return constant
	}
	return "'" + strings.ReplaceAll(constant, "'", "''") + "'"
}
