package summary

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// ticksPerSecond is USER_HZ, the unit of times in /proc/PID/stat on every known Linux system.
const ticksPerSecond = 100

// thread is the CPU time of an engine thread.
type thread struct {
	name string
	cpuS float64
}

// engineThreads returns the threads named by the engine: "poll rx_q_0", "write disk". The time of Lua threads is in the handlers' durations.
func engineThreads() map[int]thread {
	all := map[int]thread{}
	dirs, _ := filepath.Glob("/proc/self/task/*") // the pattern is valid
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		first, last := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		if err != nil || first < 0 || last < first { // the thread has ended
			continue
		}
		name := text[first+1 : last]
		fields := bytes.Fields(text[last+1:]) // from field 3 of proc(5): state
		kind, _, named := bytes.Cut(name, []byte(" "))
		if !named || len(fields) < 13 || !engineKinds[string(kind)] {
			continue
		}
		user, _ := strconv.Atoi(string(fields[11]))
		system, _ := strconv.Atoi(string(fields[12]))
		id, _ := strconv.Atoi(filepath.Base(dir))
		all[id] = thread{string(bytes.TrimSpace(name)), float64(user+system) / ticksPerSecond}
	}
	return all
}

// engineKinds are the first words of the engine's thread names (native/core/thread.h).
var engineKinds = map[string]bool{"poll": true, "write": true, "disk": true}
