package bench

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc/stat, the same on every Linux machine.
const ticksPerSecond = 100

// softirq is the time that all cores have spent in the kernel's soft interrupts since a moment. It belongs to no process: what
// the kernel does there for a packet is in no process's account, so that a side that has more of it done there looks cheap.
type softirq struct {
	ticks float64
	began time.Time
}

func startSoftirq() softirq { return softirq{softirqTicks("/proc/stat"), time.Now()} }

// cpus is how many cores were busy with them on average; other programs' packets are in it.
func (s softirq) cpus() float64 {
	return (softirqTicks("/proc/stat") - s.ticks) / ticksPerSecond / time.Since(s.began).Seconds()
}

// softirqTicks is the seventh figure of the line "cpu"; 0 without one.
func softirqTicks(file string) float64 {
	text, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	words := strings.Fields(line)
	if len(words) < 8 || words[0] != "cpu" {
		return 0
	}
	ticks, _ := strconv.ParseFloat(words[7], 64)
	return ticks
}

// withSoftirq adds softirq_cpus to the figures of a side that sends through the kernel.
func withSoftirq(s side) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		began := startSoftirq()
		got, err := s(ctx, d)
		if err == nil {
			if got.more == nil {
				got.more = figures{}
			}
			got.more["softirq_cpus"] = began.cpus()
		}
		return got, err
	}
}
