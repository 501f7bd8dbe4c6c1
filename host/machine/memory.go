package machine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// HugePages are the huge pages of one size on one NUMA node, or on node -1 of a machine without NUMA.
type HugePages struct {
	Node, SizeKB, Total, Free int
	Path                      string // of the file that sets their number
}

// HugePages lists the huge pages by node and size.
func (m *Machine) HugePages() (all []HugePages) {
	dirs := map[int]string{}
	for _, name := range m.names("sys/devices/system/node") {
		var node int
		if n, _ := fmt.Sscanf(name, "node%d", &node); n == 1 {
			dirs[node] = filepath.Join("sys/devices/system/node", name, "hugepages")
		}
	}
	if len(dirs) == 0 {
		dirs[-1] = "sys/kernel/mm/hugepages"
	}
	for node, dir := range dirs {
		for _, name := range m.names(dir) {
			p := HugePages{Node: node, Path: "/" + filepath.Join(dir, name, "nr_hugepages")}
			if n, _ := fmt.Sscanf(name, "hugepages-%dkB", &p.SizeKB); n != 1 {
				continue
			}
			p.Total, _ = m.Number(dir, name, "nr_hugepages")
			p.Free, _ = m.Number(dir, name, "free_hugepages")
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b HugePages) int {
		if a.Node != b.Node {
			return a.Node - b.Node
		}
		return a.SizeKB - b.SizeKB
	})
	return all
}

// MemInfo returns a line of /proc/meminfo in bytes, such as "MemAvailable".
func (m *Machine) MemInfo(name string) (bytes int, ok bool) {
	for line := range strings.Lines(m.text("proc/meminfo")) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return kb << 10, err == nil
		}
	}
	return 0, false
}

// Control returns a limit of this process's control group (version 2), or of the nearest ancestor with that file: its text and path. "max" means
// unlimited.
func (m *Machine) Control(file string) (text, path string, ok bool) {
	group := ""
	for line := range strings.Lines(m.text("proc/self/cgroup")) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			group = path
		}
	}
	for at := group; at != ""; at = filepath.Dir(at) {
		if now, there := m.Text("sys/fs/cgroup", at, file); there && (!ok || !strings.HasPrefix(now, "max")) {
			text, path, ok = now, filepath.Join("/sys/fs/cgroup", at, file), true
		}
		if ok && !strings.HasPrefix(text, "max") {
			break
		}
		if at == "/" || at == "." {
			break
		}
	}
	return text, path, ok
}
