//go:build unix

package private

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFilesArePrivateWhateverTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("longer than what follows"), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, there: 0o600,
		filepath.Join(dir, "new"): 0o600} {
		if want == 0o600 {
			if err := WriteFile(path, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "x" {
				t.Errorf("%s holds %q, %v", path, text, err)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if f, err := Create("/dev/null"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().Perm() == 0o600 {
		t.Errorf("/dev/null has mode %v, %v", info.Mode(), err)
	}
}
