package enginecheck

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestServersSayWhatTheyKeep(t *testing.T) {
	for _, c := range []struct {
		name   string
		url    func() string
		broken []int // of the assumptions, by their places
	}{
		{"MariaDB 10.11", func() string { return testdb.MariaDB(t).URL() }, []int{2, 3, 4}},
		{"PostgreSQL", func() string { return testdb.PostgreSQL(t).URL() }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := dsn.Parse(c.url())
			require.NoError(t, err)
			answers, err := Ask(t.Context(), target)
			require.NoError(t, err)
			require.Len(t, answers, len(asked))
			var broken []int
			for i := range answers {
				t.Log(answers[i].String())
				if len(answers[i].Broken) > 0 {
					broken = append(broken, i)
				}
			}
			require.Equal(t, c.broken, broken)
		})
	}
}
