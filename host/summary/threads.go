package summary

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// ticksPerSecond is USER_HZ, the unit of times in /proc/PID/stat on every Linux that we know.
const ticksPerSecond = 100

// thread is how long a thread of the engine has worked.
type thread struct {
	name string
	cpuS float64
}

// engineThreads reads the threads that the engine named: "poll rx_q_0", "write disk". Lua's own are in handlers' times.
func engineThreads() map[int]thread {
	all := map[int]thread{}
	dirs, _ := filepath.Glob("/proc/self/task/*") // the pattern is right
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		first, last := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		if err != nil || first < 0 || last < first { // it has ended
			continue
		}
		name := text[first+1 : last]
		fields := bytes.Fields(text[last+1:]) // from the third field of proc(5) on: state
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

// engineKinds begin the names of the engine's threads (native/core/thread.h).
var engineKinds = map[string]bool{"poll": true, "write": true, "disk": true}
