// Package debian fetches packages of Debian releases other than this machine's for tests, without installing them.
package debian

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// Mirror returns where this machine's packages come from.
func Mirror() (string, error) {
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("apt-get indextargets: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if uri, ok := strings.CutPrefix(line, "Debian main "); ok && !strings.Contains(uri, "security") {
			return strings.TrimSpace(uri), nil
		}
	}
	return "", errors.New("this machine has no Debian mirror (hint: on Debian, apt-get update)")
}

// options keep everything that apt reads and writes about a release in one folder.
const options = `Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
`

// Root returns the folder build/NAME with the packages unpacked that a script downloads with apt-get from the components of a
// release. Later calls find the folder, which appears when it is complete. args are $1, $2 and so on of the script.
func Root(name, suite, components, script string, args ...string) (string, error) {
	to, err := filepath.Abs(filepath.Join(tree.Root, "build", name))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	return to, fetch(to, suite, components, script, args)
}

func fetch(to, suite, components, script string, args []string) error {
	mirror, err := Mirror()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, text := range map[string]string{
		"apt.conf":     fmt.Sprintf(options, dir),
		"sources.list": "deb " + mirror + " " + suite + " " + components + "\n",
		"status":       "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	cmd := exec.Command("sh", append([]string{"-ec", "mkdir -p lists/partial cache/archives/partial root\napt-get -q update\n" + script +
		"\nfor package in *.deb; do dpkg -x \"$package\" root; done\n", "sh"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "APT_CONFIG="+filepath.Join(dir, "apt.conf"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("no packages of Debian %s for %s: %w\n%s", suite, filepath.Base(to), err, out)
	}
	if err := os.Rename(filepath.Join(dir, "root"), to); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
