package baseline

import (
	"errors"
	"fmt"
	"os"

	"github.com/isotap/isotap/analyzer"
)

// An Update says what becomes of a baseline's file.
type Update string

// The updates of a baseline.
const (
	Keep    Update = ""        // the file stays as it is
	Add     Update = "add"     // findings that it does not know are added
	Replace Update = "replace" // and those that were not seen are removed
)

// A Use is a baseline as one analysis uses it: [Open] before it, [Use.Finish] after.
type Use struct {
	path   string
	update Update
	file   *File
}

// Open reads the file of a baseline. Only an update may make one that is not there.
func Open(path string, update Update) (*Use, error) {
	switch update {
	case Keep, Add, Replace:
	default:
		return nil, fmt.Errorf("update of the baseline: %q is neither add nor replace", update)
	}
	f, err := ReadFile(path)
	switch {
	case err == nil:
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case update == Keep:
		return nil, fmt.Errorf("baseline %s does not exist: --update-baseline makes it of the findings", path)
	default:
		f = &File{}
	}
	return &Use{path, update, f}, nil
}

// Finish updates the file as was asked and compares a result with it. It says what it changed; nothing
// where it was only to compare.
func (u *Use) Finish(r *analyzer.Result) (said string, err error) {
	if u.update != Keep {
		added, removed := u.file.Add(r), 0
		if u.update == Replace {
			removed = u.file.Prune(r)
		}
		if err := u.file.WriteFile(u.path); err != nil {
			return "", err
		}
		said = fmt.Sprintf("baseline %s: %d added, %d removed, %d in all", u.path, added, removed, len(u.file.Findings))
	}
	u.file.Compare(u.path, r)
	return said, nil
}
