package report

import (
	"bytes"
	"strings"
	"testing"
)

// TestRacesStandBehindTheFindings has the page show what could have happened, with nothing in it that a browser would
// take for more than text.
func TestRacesStandBehindTheFindings(t *testing.T) {
	race := Race{Kind: "lost update", Of: "stock.qty", Programs: [2]string{"UPDATE stock", "UPDATE stock"},
		Sentence: "Both read 3 and both set 2; one after the other, the second reads 2. <script>alert(1)</script>",
		Advice:   "Read it with FOR UPDATE.", Steps: []RaceStep{
			{SQL: "SELECT qty FROM stock WHERE id = 7", Says: "reads 3"},
			{Second: true, SQL: "SELECT qty FROM stock WHERE id = 7", Says: "reads 3", Wrong: true}}}
	write := func(races []Race) string {
		t.Helper()
		var b bytes.Buffer
		if err := HTMLWithRaces(&b, fixtures()["clean"], races); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	page := write([]Race{race})
	for _, want := range []string{"What could have happened", "lost update of stock.qty", "Both read 3 and both set 2",
		`<div class="event marked"><code dir="ltr">SELECT qty FROM stock WHERE id = 7</code><p class="meta">reads 3</p>`,
		"Read it with FOR UPDATE.", "&lt;script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "may race") {
		t.Error("the page has what it should not have")
	}
	if page := write([]Race{}); !strings.Contains(page, "No race was shown") {
		t.Error("that none was shown is not said")
	}
	if page := write(nil); strings.Contains(page, "could have happened") {
		t.Error("something is said of what was not looked for")
	}
	many := make([]Race, maxRaces+2)
	if page := write(many); !strings.Contains(page, "2 more are in the output") {
		t.Error("that there are more is not said")
	}
}
