package catalogue_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/catalogue"
	"github.com/isotap/isotap/internal/stage"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// all reads the whole catalogue, by the files' paths.
func all(t *testing.T) map[string]*scenario.Scenario {
	t.Helper()
	scenarios := make(map[string]*scenario.Scenario)
	err := fs.WalkDir(catalogue.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := catalogue.Files.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		scenarios[path], err = scenario.Read(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return scenarios
}

func TestScenariosSayWhatTheyAreAndComeFrom(t *testing.T) {
	for path, s := range all(t) {
		if s.Name == "" || s.From == "" || strings.Contains(s.From, "\n") || len(s.Outcomes) == 0 {
			t.Errorf("%s has no name, no line of where it comes from, or no outcomes", path)
		}
		if strings.HasPrefix(path, "hermitage/") && len(s.Shows) == 0 {
			t.Errorf("%s does not say which anomalies it is about", path)
		}
	}
}

func TestScenariosComeAsTheyAreExpectedOnMariaDB(t *testing.T) { play(t, testdb.MariaDB(t).URL()) }

func TestScenariosComeAsTheyAreExpectedOnPostgreSQL(t *testing.T) {
	play(t, testdb.PostgreSQL(t).URL())
}

// play plays the catalogue at all levels of a server.
func play(t *testing.T, url string) {
	t.Parallel()
	target, err := catalog.ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stage.Open(t.Context(), target, stage.Options{Columns: true, Predicates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for path, sc := range all(t) {
		if !sc.RunsOn(s.Server) {
			continue
		}
		for _, level := range s.Levels() {
			p, err := s.Play(t.Context(), sc, level)
			if err != nil {
				t.Fatalf("%s at %s: %v", path, level, err)
			}
			for _, text := range p.Unexpected() {
				t.Errorf("%s at %s: %s", path, level, text)
			}
		}
	}
}
