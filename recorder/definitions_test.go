package recorder

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/history"
)

func TestDefinitionsComeBackInTheirOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := Create(dir, history.Info{}, Options{})
	require.NoError(t, err)
	was := []history.Definition{
		{Database: "shop", Name: "`item`", At: 5, SQL: "CREATE TABLE `item` (`id` INT NOT NULL);\n"},
		{Database: "shop", Name: "v", At: 6, References: "CREATE VIEW v AS SELECT 1;\n"},
		{Database: "gone", At: 7, Missing: "there is no such database"},
		{Database: "shop", Name: "long", At: 8, SQL: strings.Repeat("x", maxDefinition)},
	}
	for _, d := range was {
		require.NoError(t, w.Definition(t.Context(), d))
	}
	require.NoError(t, w.Close())

	r, err := Open(dir)
	require.NoError(t, err)
	defer r.Close()
	var is []history.Definition
	for d, err := range r.Definitions(t.Context(), w.Run()) {
		require.NoError(t, err)
		is = append(is, d)
	}
	want := slices.Clone(was)
	want[3] = history.Definition{Database: "shop", At: 8, Missing: "a definition is too long to be recorded"}
	require.Equal(t, want, is)
}
