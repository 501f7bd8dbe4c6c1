// Package machine reads what this machine is and how it is set up, as far as packets go: interfaces, cores, memory, the bus. All of
// it comes from files below /proc and /sys, as proc(5), sysfs(5) and the kernel's Documentation/ABI describe them, so that a test
// can lay out a machine of its own in a folder.
//
// It imports the standard library and x/sys alone. Nothing here changes anything, and nothing needs root; what only root may read is
// absent elsewhere.
package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Machine is a machine as its files show it.
type Machine struct {
	root string // "" or the folder that stands for /
}

// Here is this machine.
func Here() *Machine { return &Machine{} }

// At is the machine that a folder lays out.
func At(root string) *Machine { return &Machine{root: root} }

func (m *Machine) path(parts ...string) string {
	return filepath.Join(append([]string{m.root + "/"}, parts...)...)
}

// Text is the trimmed text of a file; ok says whether it could be read.
func (m *Machine) Text(parts ...string) (text string, ok bool) {
	data, err := os.ReadFile(m.path(parts...))
	return strings.TrimSpace(string(data)), err == nil
}

// text is Text, with "" for what can't be read.
func (m *Machine) text(parts ...string) string {
	text, _ := m.Text(parts...)
	return text
}

// Number is a decimal number in a file; ok says whether there is one.
func (m *Machine) Number(parts ...string) (n int, ok bool) {
	text, _ := m.Text(parts...)
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// names lists a folder, in order.
func (m *Machine) names(parts ...string) (names []string) {
	entries, _ := os.ReadDir(m.path(parts...)) // what can't be read is empty
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// link is the last part of what a symbolic link leads to; empty: there is none.
func (m *Machine) link(parts ...string) string {
	to, err := os.Readlink(m.path(parts...))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// there says whether a file or folder is there.
func (m *Machine) there(parts ...string) bool {
	_, err := os.Stat(m.path(parts...))
	return err == nil
}

// List reads a list of numbers as the kernel writes it: "0-3,8".
func List(text string) (list []int) {
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		if err != nil {
			continue
		}
		last := first
		if ranged {
			if last, err = strconv.Atoi(hi); err != nil {
				continue
			}
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	return slices.Compact(list)
}
