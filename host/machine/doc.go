// Package machine reads the hardware and setup of the machine relevant to packet I/O: interfaces, cores, memory, PCI. Everything is read from
// files below /proc and /sys, as described by proc(5), sysfs(5) and the kernel's Documentation/ABI, so that tests can simulate a machine in a
// folder.
//
// It imports only the standard library and x/sys. It changes nothing and needs no root; files readable only by root are treated as absent
// otherwise.
package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Machine gives access to the files of a machine.
type Machine struct {
	root string // "" or the folder that replaces /
}

// Here returns this machine.
func Here() *Machine { return &Machine{} }

// At returns the machine simulated in a folder.
func At(root string) *Machine { return &Machine{root: root} }

func (m *Machine) path(parts ...string) string {
	return filepath.Join(append([]string{m.root + "/"}, parts...)...)
}

// Text returns the trimmed text of a file; ok reports whether it was readable.
func (m *Machine) Text(parts ...string) (text string, ok bool) {
	data, err := os.ReadFile(m.path(parts...))
	return strings.TrimSpace(string(data)), err == nil
}

// text is Text, with "" for an unreadable file.
func (m *Machine) text(parts ...string) string {
	text, _ := m.Text(parts...)
	return text
}

// Number returns the decimal number in a file; ok reports whether there is one.
func (m *Machine) Number(parts ...string) (n int, ok bool) {
	text, _ := m.Text(parts...)
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// names lists a folder, sorted.
func (m *Machine) names(parts ...string) (names []string) {
	entries, _ := os.ReadDir(m.path(parts...)) // empty if unreadable
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// link returns the last path element of a symbolic link's target, or "".
func (m *Machine) link(parts ...string) string {
	to, err := os.Readlink(m.path(parts...))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// there reports whether a file or folder exists.
func (m *Machine) there(parts ...string) bool {
	_, err := os.Stat(m.path(parts...))
	return err == nil
}

// List parses the kernel's notation of number lists: "0-3,8".
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
