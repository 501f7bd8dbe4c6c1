package require

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
)

// Tool returns the path of the first of the named commands that is installed. The folders of system commands are searched even
// where an ordinary user's PATH leaves them out.
func Tool(names ...string) (string, error) {
	for _, name := range names {
		if name == "" {
			continue
		}
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
		for _, dir := range []string{"/usr/sbin", "/sbin"} {
			if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed (`make deps` installs it on Debian and Ubuntu)", names[len(names)-1])
}

// FixedAddresses reports why setarch cannot start a program without address randomization, or nil.
var FixedAddresses = sync.OnceValue(func() error {
	if out, err := exec.Command("setarch", "--addr-no-randomize", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot turn address randomization off: %s (%w)", bytes.TrimSpace(out), err)
	}
	return nil
})

// Lua51 returns the path of the interpreter of Lua 5.1, or skips the test.
func Lua51(t Test) string {
	t.Helper()
	path, err := exec.LookPath("lua5.1")
	if err != nil {
		Lack(t, "lua5.1", "not installed (`make deps` installs it on Debian and Ubuntu)")
	}
	return path
}
