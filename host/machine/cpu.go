package machine

import (
	"fmt"
	"strings"
)

// Cmdline is a parameter of the kernel's command line: its value, and whether it is there.
func (m *Machine) Cmdline(name string) (value string, there bool) {
	for _, word := range strings.Fields(m.text("proc/cmdline")) {
		if key, v, _ := strings.Cut(word, "="); key == name {
			value, there = v, true
		}
	}
	return value, there
}

// Online are the processors that run.
func (m *Machine) Online() []int { return List(m.text("sys/devices/system/cpu/online")) }

// Isolated are those that the kernel schedules nothing on by itself.
func (m *Machine) Isolated() []int { return List(m.text("sys/devices/system/cpu/isolated")) }

// Governor is the frequency governor of a processor; empty: there is none, as in a virtual machine.
func (m *Machine) Governor(cpu int) string {
	return m.text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu))
}

// CPUNode is the NUMA node of a processor, -1 where it is not known.
func (m *Machine) CPUNode(cpu int) int {
	for _, name := range m.names(fmt.Sprintf("sys/devices/system/cpu/cpu%d", cpu)) {
		var node int
		if n, _ := fmt.Sscanf(name, "node%d", &node); n == 1 {
			return node
		}
	}
	return -1
}

// Clock is the kernel's clock source, and those that it could have.
func (m *Machine) Clock() (current string, available []string) {
	const dir = "sys/devices/system/clocksource/clocksource0"
	return m.text(dir, "current_clocksource"), strings.Fields(m.text(dir, "available_clocksource"))
}

// Capability says whether this process has a capability, by its number in linux/capability.h, right now.
func (m *Machine) Capability(number int) bool {
	for line := range strings.Lines(m.text("proc/self/status")) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			var bits uint64
			_, _ = fmt.Sscanf(strings.TrimSpace(mask), "%x", &bits) // none then
			return bits>>number&1 == 1
		}
	}
	return false
}

// Nodes are the machine's NUMA nodes.
func (m *Machine) Nodes() []int { return List(m.text("sys/devices/system/node/online")) }

// NodeCPUs are the processors of a node.
func (m *Machine) NodeCPUs(node int) []int {
	return List(m.text(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", node)))
}

// Module says whether a kernel module is loaded, or built in with parameters.
func (m *Machine) Module(name string) bool { return m.there("sys/module", name) }
