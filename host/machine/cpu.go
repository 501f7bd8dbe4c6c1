package machine

import (
	"fmt"
	"strings"
)

// Cmdline returns the value of a kernel command line parameter, and whether it is present.
func (m *Machine) Cmdline(name string) (value string, there bool) {
	for _, word := range strings.Fields(m.text("proc/cmdline")) {
		if key, v, _ := strings.Cut(word, "="); key == name {
			value, there = v, true
		}
	}
	return value, there
}

// Online lists the online processors.
func (m *Machine) Online() []int { return List(m.text("sys/devices/system/cpu/online")) }

// Isolated lists the processors excluded from general scheduling.
func (m *Machine) Isolated() []int { return List(m.text("sys/devices/system/cpu/isolated")) }

// Governor returns the frequency governor of a processor; "" if there is none, as in a virtual machine.
func (m *Machine) Governor(cpu int) string {
	return m.text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu))
}

// CPUNode returns the NUMA node of a processor, or -1 if unknown.
func (m *Machine) CPUNode(cpu int) int {
	for _, name := range m.names(fmt.Sprintf("sys/devices/system/cpu/cpu%d", cpu)) {
		var node int
		if n, _ := fmt.Sscanf(name, "node%d", &node); n == 1 {
			return node
		}
	}
	return -1
}

// Clock returns the kernel's clock source and the available ones.
func (m *Machine) Clock() (current string, available []string) {
	const dir = "sys/devices/system/clocksource/clocksource0"
	return m.text(dir, "current_clocksource"), strings.Fields(m.text(dir, "available_clocksource"))
}

// Capability reports whether this process has an effective capability, numbered as in linux/capability.h.
func (m *Machine) Capability(number int) bool {
	for line := range strings.Lines(m.text("proc/self/status")) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			var bits uint64
			_, _ = fmt.Sscanf(strings.TrimSpace(mask), "%x", &bits) // on error: none
			return bits>>number&1 == 1
		}
	}
	return false
}

// Nodes lists the NUMA nodes of the machine.
func (m *Machine) Nodes() []int { return List(m.text("sys/devices/system/node/online")) }

// NodeCPUs lists the processors of a node.
func (m *Machine) NodeCPUs(node int) []int {
	return List(m.text(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", node)))
}

// Module reports whether a kernel module is loaded, or built in with parameters.
func (m *Machine) Module(name string) bool { return m.there("sys/module", name) }
