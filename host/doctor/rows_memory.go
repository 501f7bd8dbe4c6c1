package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// leastHuge is the minimum of huge pages, in bytes, without a configuration; DAQIRI's own check requires the same.
const leastHuge = 500 << 20

var memoryRows = []row{
	{name: "memory", why: "packet memory is taken at the open, and what does not fit ends the process", look: func(x *exam) {
		if x.cfg == nil {
			x.none("no configuration was named")
			return
		}
		need := regionBytes(x.cfg, nil)
		if have, ok := x.m.MemInfo("MemAvailable"); ok && need > have {
			x.fail("", fmt.Sprintf("regions need %s, %s is available", size(need), size(have)), "lower num_bufs or buf_size of the memory regions")
		} else {
			x.pass("", fmt.Sprintf("regions need %s, %s is available", size(need), size(have)))
		}
		text, _, ok := x.m.Control("memory.max")
		if most, err := strconv.Atoi(text); ok && err == nil {
			if need > most {
				x.fail("control group", fmt.Sprintf("regions need %s, the group may have %s", size(need), size(most)), "raise memory.max of the group, or lower num_bufs")
			} else {
				x.pass("control group", "may have "+size(most))
			}
		}
	}},
	{name: "huge pages", why: "small pages cost look-ups of addresses at full rate, and DPDK's cards can't do without huge ones", look: hugePages},
	{name: "locked memory", why: "devices write into memory that must not move: AF_XDP and RDMA pin it", engines: []string{schema.EngineXDP, schema.EngineRDMA, schema.EngineIBVerbs},
		look: func(x *exam) {
			var lim unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil {
				x.none(err.Error())
				return
			}
			need := uint64(64 << 20)
			if x.cfg != nil {
				need = uint64(regionBytes(x.cfg, nil))
			}
			switch {
			case x.m.Capability(unix.CAP_IPC_LOCK):
				x.pass("", "no limit, as this process has CAP_IPC_LOCK")
			case lim.Cur == unix.RLIM_INFINITY || lim.Cur >= need:
				x.pass("", "limit "+limitText(lim.Cur))
			default:
				x.fail("", "limit "+limitText(lim.Cur)+", and "+size(int(need))+" are to be pinned", "ulimit -l unlimited (a hard limit is set in /etc/security/limits.conf: * - memlock unlimited)")
			}
		}},
}

func limitText(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "none"
	}
	return size(int(n))
}

// hugePages compares free huge pages with the configuration's regions of kind huge, or their total with leastHuge.
func hugePages(x *exam) {
	all := x.m.HugePages()
	if len(all) == 0 {
		x.none("the kernel has no huge pages")
		return
	}
	total, free, first := 0, 0, ""
	for _, p := range all {
		total += p.Total * p.SizeKB << 10
		free += p.Free * p.SizeKB << 10
		if p.SizeKB == 2048 && first == "" {
			first = p.Path
		}
	}
	var parts []string
	for _, p := range all {
		if p.Total > 0 {
			parts = append(parts, fmt.Sprintf("%s%d of %s, %d free", nodeName(p.Node), p.Total, size(p.SizeKB<<10), p.Free))
		}
	}
	found := or(strings.Join(parts, "; "), "none are set aside")
	if x.cfg == nil {
		if total < leastHuge {
			x.fail("", found, hugeCommand(first, leastHuge))
		} else {
			x.pass("", found)
		}
		return
	}
	need := regionBytes(x.cfg, func(r *spec.MemoryRegion) bool { return r.Kind == schema.KindHuge })
	switch {
	case need == 0:
		x.none("no region of the configuration is of kind huge")
	case need > free:
		x.fail("", fmt.Sprintf("%s; regions need %s in %s pages", found, size(need), "free"), hugeCommand(first, total-free+need))
	default:
		x.pass("", fmt.Sprintf("%s; regions need %s", found, size(need)))
	}
}

func nodeName(node int) string {
	if node < 0 {
		return ""
	}
	return fmt.Sprintf("node %d: ", node)
}

// hugeCommand returns the command that reserves bytes in 2 MiB pages.
func hugeCommand(path string, bytes int) string {
	return fmt.Sprintf("echo %d | sudo tee %s", (bytes+2<<20-1)/(2<<20), or(path, "/proc/sys/vm/nr_hugepages"))
}

// regionBytes returns the total size of the chosen regions (nil: all in host memory).
func regionBytes(cfg *spec.Config, chosen func(*spec.MemoryRegion) bool) (sum int) {
	for k, r := range preflight.Plan(cfg).MemoryRegions {
		region := cfg.MemoryRegions[k]
		if region.Kind == schema.KindDevice || chosen != nil && !chosen(region) {
			continue
		}
		sum += region.NumBufs * max(r.StrideBytes, region.BufSize)
	}
	return sum
}
