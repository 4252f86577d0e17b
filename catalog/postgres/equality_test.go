package postgres

import (
	"strconv"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/mutate"
)

// FuzzNumberIsThatOfTheField has a field of any text stand before a number.
func FuzzNumberIsThatOfTheField(f *testing.F) {
	f.Add("a", int64(5))
	f.Add(`it's "a", (b)\`, int64(-1))
	f.Add("", int64(0))
	mutate.Fuzz(f, func(t *testing.T, text string, n int64) {
		var d Databases
		d.Number(text, "1/3") // it may be anything
		field := `"` + strings.NewReplacer(`"`, `""`, `\`, `\\`).Replace(text) + `"`
		image := "(" + field + "," + strconv.FormatInt(n, 10) + ",)"
		if got, null, known := d.Number(image, "1/3"); got != n || null || !known {
			t.Errorf("%s: %d, %v, %v", image, got, null, known)
		}
		if _, null, known := d.Number(image, "2/3"); !null || !known {
			t.Errorf("%s: the last field is NULL: %v, %v", image, null, known)
		}
		if _, _, known := d.Number(image, "1/2"); known {
			t.Errorf("%s: a number is known of two columns", image)
		}
	})
}
