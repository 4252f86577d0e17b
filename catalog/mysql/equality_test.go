package mysql

import (
	"strconv"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/mutate"
)

// FuzzNumberIsThatOfTheColumn has a column of any name, with a value of any text, stand before a number.
func FuzzNumberIsThatOfTheColumn(f *testing.F) {
	f.Add("a", int64(5))
	f.Add(`it's "a", (b)\`, int64(-1))
	f.Add("`b`) VALUES (", int64(0))
	mutate.Fuzz(f, func(t *testing.T, text string, n int64) {
		var m Matching
		m.Number(text, "`b`") // it may be anything
		value := "FROM_BASE64('" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(text) + "')"
		image := "(" + quote("a"+text) + ", `b`, `c`) VALUES (" + value + "," + strconv.FormatInt(n, 10) + ",NULL)"
		if got, null, known := m.Number(image, "`b`"); got != n || null || !known {
			t.Errorf("%s: %d, %v, %v", image, got, null, known)
		}
		if _, null, known := m.Number(image, "`c`"); !null || !known {
			t.Errorf("%s: the last value is NULL: %v, %v", image, null, known)
		}
		if _, _, known := m.Number(image, "`d`"); known {
			t.Errorf("%s: the number of a column is known that there is not", image)
		}
	})
}
