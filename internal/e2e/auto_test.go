package e2e

import (
	"testing"

	"github.com/isotap/isotap/internal/proxyserver"
)

// registration looks for a user with LIMIT 1, as frameworks do, and registers it.
var registration = []string{"BEGIN", "SELECT 1 FROM users WHERE email = 'a@b.c' LIMIT 1",
	"INSERT INTO users (email) VALUES ('a@b.c')", "COMMIT"}

// inModeAuto is the mode that isotap run has by default.
func inModeAuto(o *proxyserver.Options) { o.Auto, o.Args = true, true }

// TestTwoRegistrationsAreFoundByDefault has two clients register a user at a time.
func TestTwoRegistrationsAreFoundByDefault(t *testing.T) {
	b := startPostgresBench(t, tapMode{change: inModeAuto}, "CREATE TABLE users (id serial PRIMARY KEY, email text)")
	first, second := b.connect(b.through(), postgresModes[0]), b.connect(b.through(), postgresModes[1])
	for _, step := range registration {
		if _, err := first.Exec(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Exec(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	holdPhantomSkew(t, b.analyze())
}

// TestTwoRegistrationsAreFoundOnMySQLByDefault does so on MySQL's family.
func TestTwoRegistrationsAreFoundOnMySQLByDefault(t *testing.T) {
	b := newBench(t, inModeAuto, "CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(50))")
	db := b.open("")
	first, second := b.conn(db), b.conn(db)
	for _, step := range registration {
		b.exec(first, step)
		b.exec(second, step)
	}
	holdPhantomSkew(t, b.analyze())
}
