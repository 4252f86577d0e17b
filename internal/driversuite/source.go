package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// processLimit bounds a suite that is one process of another language's.
const processLimit = "60m"

// needCheckout is the error of a suite that no package has.
func needCheckout(repository, tag string) error {
	return fmt.Errorf("no package has this suite: -source is to name a checkout of %s, tag %s or near it", repository,
		tag)
}

// aptInstall installs Debian packages that are missing.
func aptInstall(ctx context.Context, packages ...string) error {
	var missing []string
	for _, p := range packages {
		status, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f=${Status}", p).Output()
		if err != nil || !strings.HasSuffix(string(status), "ok installed") {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	args := append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...)
	if out, err := exec.CommandContext(ctx, "apt-get", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("install %s: %w\n%s", strings.Join(missing, " "), err, out)
	}
	return nil
}

// debianSource unpacks a Debian source package of the system's own release below dir, and returns where. The system's
// lists of packages stay as they are.
func debianSource(ctx context.Context, dir, name string) (string, error) {
	if err := aptInstall(ctx, "dpkg-dev", "xz-utils", "bzip2"); err != nil {
		return "", err
	}
	apt := filepath.Join(dir, "apt")
	for _, d := range []string{"lists/partial", "cache/archives/partial", "unpacked"} {
		if err := os.MkdirAll(filepath.Join(apt, d), 0o755); err != nil {
			return "", err
		}
	}
	// The binary packages' list, for their sources.
	script := `set -e
. /etc/os-release
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
	awk '/^URIs:.*debian/ {print $2; exit} /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /^http.*debian/) {print $i; exit}}')
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $VERSION_CODENAME main" >sources.list
options="-o Dir::Etc::sourcelist=$PWD/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache"
apt-get $options update -qq
cd unpacked
apt-get $options source -qq "$1"
`
	c := exec.CommandContext(ctx, "bash", "-c", script, "bash", name)
	c.Dir = apt
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("get the source package %s: %w\n%s", name, err, out)
	}
	found, err := filepath.Glob(filepath.Join(apt, "unpacked", "*", "debian"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(err, fmt.Errorf("get the source package %s: %d directories", name, len(found)))
	}
	return filepath.Dir(found[0]), nil
}

// copyTree copies a checkout's directory below dir, so that what is installed beside the tests does not change it.
func copyTree(source, dir string) error {
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		return fmt.Errorf("copy %s: %w", source, err)
	}
	return nil
}
