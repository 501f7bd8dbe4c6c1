package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestInstall installs into a folder: the program runs there by its link, Tab completes, and there is a manual page for each command.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	make := exec.Command("make", "install", "PREFIX=/usr", "DESTDIR="+dir)
	make.Dir = tree.Root
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make install: %v\n%s", err, out)
	}
	installed(t, filepath.Join(dir, "usr"))
}

// installed checks what lies below a prefix.
func installed(t *testing.T, prefix string) {
	t.Helper()
	program := filepath.Join(prefix, "bin/daqiri-run")
	run := exec.Command(program, "hello")
	run.Dir = t.TempDir()
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "8 packets") {
		t.Errorf("hello: %v\n%s", err, out)
	}
	for _, page := range []string{"daqiri-run.1", "daqiri-run-record.1", "daqiri-run-doctor.1"} {
		text, err := os.ReadFile(filepath.Join(prefix, "share/man/man1", page))
		if err != nil || !strings.Contains(string(text), ".TH ") || !strings.Contains(string(text), "SYNOPSIS") {
			t.Errorf("%s: %v\n%.200s", page, err, text)
		}
	}
	bash := exec.Command("bash", "-c", `source "$1" && complete -p daqiri-run`, "-", filepath.Join(prefix, "share/bash-completion/completions/daqiri-run"))
	if out, err := bash.CombinedOutput(); err != nil || !strings.Contains(string(out), "daqiri-run") {
		t.Errorf("completion: %v\n%s", err, out)
	}
}

// TestRelease makes the tarball, the package and the wheel, and runs what is in the first two; tests/files installs a wheel.
func TestRelease(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb here")
	}
	harness.Need(t, "pip")
	build := t.TempDir()
	make := exec.Command("make", "release", "BUILD=build/release-test")
	make.Dir = tree.Root
	t.Cleanup(func() { os.RemoveAll(filepath.Join(tree.Root, "build/release-test")) })
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make release: %v\n%s", err, out)
	}
	archives, _ := filepath.Glob(filepath.Join(tree.Root, "build/release-test/daqiri-run-*.tar.gz"))
	packages, _ := filepath.Glob(filepath.Join(tree.Root, "build/release-test/daqiri-run-*.deb"))
	wheels, _ := filepath.Glob(filepath.Join(tree.Root, "build/release-test/daqiri_run_reader-*.whl"))
	if len(archives) != 1 || len(packages) != 1 || len(wheels) != 1 {
		t.Fatalf("%v, %v, %v", archives, packages, wheels)
	}
	for _, args := range [][]string{{"tar", "-C", build, "-xzf", archives[0]}, {"dpkg-deb", "-x", packages[0], filepath.Join(build, "deb")}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	installed(t, filepath.Join(build, strings.TrimSuffix(filepath.Base(archives[0]), ".tar.gz")))
	installed(t, filepath.Join(build, "deb/usr"))
	version, err := exec.Command("dpkg-deb", "-f", packages[0], "Version").Output()
	if err != nil || !strings.Contains(filepath.Base(packages[0]), strings.TrimSpace(string(version))) {
		t.Errorf("version %s of %s: %v", version, packages[0], err)
	}
}
