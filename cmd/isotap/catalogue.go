package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/isotap/isotap/scenario/library"
)

// catalogueName is what the paths of isotap's own scenarios begin with.
const catalogueName = "catalogue"

// A scenarioFile is where a scenario is read from.
type scenarioFile struct {
	fsys fs.FS
	path string // in fsys
	name string // for people
}

// findScenarios returns the scenarios of files and directories; names that are in no directory here are of isotap's own
// catalogue.
func findScenarios(names []string) ([]scenarioFile, error) {
	var all []scenarioFile
	for _, name := range names {
		root := filepath.Dir(name)
		fsys, matches := os.DirFS(root), []string{filepath.Base(name)}
		_, err := os.Stat(name)
		if own, ok := ownScenario(name); ok && errors.Is(err, fs.ErrNotExist) {
			root, fsys = catalogueName, library.Files
			if matches, err = fs.Glob(fsys, own); len(matches) == 0 && err == nil {
				err = fmt.Errorf("there is no %s, and isotap's catalogue has none", name)
			}
		}
		if err != nil {
			return nil, err
		}
		for _, match := range matches {
			found, err := scenariosIn(fsys, match, root)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// ownScenario returns the path in isotap's catalogue that a name may stand for.
func ownScenario(name string) (string, bool) {
	rest, ok := strings.CutPrefix(path.Clean(filepath.ToSlash(name)), catalogueName)
	switch {
	case ok && rest == "":
		return ".", true
	case ok && rest[0] == '/':
		return rest[1:], true
	}
	return "", false
}

// scenariosIn returns a file, or those of a directory; root is the name of fsys.
func scenariosIn(fsys fs.FS, match, root string) ([]scenarioFile, error) {
	var all []scenarioFile
	err := fs.WalkDir(fsys, match, func(at string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (at == match || path.Ext(at) == ".yaml") {
			all = append(all, scenarioFile{fsys, at, filepath.Join(root, at)})
		}
		return err
	})
	return all, err
}
