package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Host describes where the figures were taken: they compare with others of the same host only.
type Host struct {
	CPUs        int    `json:"cpus"`
	Model       string `json:"model"`
	Kernel      string `json:"kernel"`
	MemoryBytes uint64 `json:"memory_bytes"`
	Platform    string `json:"platform"`
	Version     string `json:"version"` // of daqiri-run
}

func readHost(version string) Host {
	memory, _, _ := strings.Cut(procLine("/proc/meminfo", "MemTotal"), " ")
	kib, _ := strconv.ParseUint(memory, 10, 64)
	model := procLine("/proc/cpuinfo", "model name")
	if model == "" {
		model = runtime.GOARCH
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return Host{CPUs: runtime.NumCPU(), Model: model, Kernel: "Linux " + strings.TrimSpace(string(release)), MemoryBytes: kib << 10,
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Version: version}
}

// procLine is the value of the first "key : value" line of a file; "" without one.
func procLine(file, key string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
