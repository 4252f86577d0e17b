package report

import "testing"

func TestStatementsAreCutInTheirColumns(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"SELECT a FROM t WHERE id = 1", 40, "SELECT a FROM t WHERE id = 1"},
		{"SELECT alpha, beta, gamma, delta, epsilon, zeta FROM t WHERE id = 1", 48,
			"SELECT alpha, beta, gamma… FROM t WHERE id = 1"},
		{"SELECT (SELECT x FROM u WHERE u.id = t.id), beta, gamma, delta FROM t WHERE id = 1", 60,
			"SELECT (SELECT x FROM u WHERE u.id = t.… FROM t WHERE id = 1"},
		{"SELECT ' FROM ', beta, gamma, delta, epsilon, zeta, eta, theta FROM t WHERE id = 1", 50,
			"SELECT ' FROM ', beta, gamma… FROM t WHERE id = 1"},
		{"UPDATE t SET alpha = 1, beta = 2, gamma = 3, delta = 4, epsilon = 5 WHERE id = 1", 48,
			"UPDATE t SET alpha = 1, beta = 2… WHERE id = 1"},
		{"SELECT a FROM t WHERE id = 1 AND alpha = 2 AND beta = 3 AND gamma = 4", 30, "SELECT a FROM t WHERE id = 1 …"},
		{"SELECT alpha, beta, gamma, delta, epsilon FROM t WHERE id = 1 AND alpha = 2 AND beta = 3", 50,
			"SELECT … FROM t WHERE id = 1 AND alpha = 2 AND be…"},
		{"UPDATE t SET alpha = 1, beta = 2, gamma = 3 WHERE id = 1 AND alpha = 2 AND beta = 3", 50,
			"UPDATE t SET … WHERE id = 1 AND alpha = 2 AND bet…"},
		{"INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9)", 30, "INSERT INTO t VALUES (1, 2, 3…"},
		{"SELECT ää, öö, üü, ßß, éé, èè, àà, ûû, îî, ôô FROM t", 32, "SELECT ää, öö, üü, ßß, é… FROM t"},
	} {
		got := clipStatement(c.text, c.n)
		if len([]rune(got)) > c.n {
			t.Errorf("%q has %d characters, %d are allowed", got, len([]rune(got)), c.n)
		}
		if got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
