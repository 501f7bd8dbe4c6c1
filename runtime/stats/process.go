package stats

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
	"syscall"
)

// ReadProcess reads the process's figures. start is the resident memory that growth is relative to; 0: no growth.
func ReadProcess(start uint64) Process {
	var p Process
	if fields := bytes.Fields(readFile("/proc/self/statm")); len(fields) > 1 {
		pages, _ := strconv.ParseUint(string(fields[1]), 10, 64)
		p.RSS = pages * uint64(os.Getpagesize())
	}
	if start > 0 {
		p.RSSGrowth = int64(p.RSS - start)
	}
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		p.CPUSeconds = seconds(use.Utime) + seconds(use.Stime)
	}
	p.Allocations = allocations()
	return p
}

// allocations returns the number of objects ever allocated on the heap, counting tiny objects individually.
func allocations() uint64 {
	counts := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(counts)
	sum := uint64(0)
	for _, c := range counts {
		if c.Value.Kind() == metrics.KindUint64 {
			sum += c.Value.Uint64()
		}
	}
	return sum
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// readFile returns the content of a file, or nil if it cannot be read, which yields a figure of 0.
func readFile(name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return b
}
