package require

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slotPages is how many huge pages of 2 MiB a process with the dpdk engine may use.
const slotPages = 64

// HugePages waits until this process may use slotPages huge pages, which it keeps until it ends: several tests at once would take each
// other's pages, also from other clones. Where the machine has none, DPDK goes without and nothing is waited for.
var HugePages = sync.OnceFunc(func() {
	text, err := os.ReadFile("/proc/sys/vm/nr_hugepages")
	if err != nil {
		return
	}
	pages, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pages == 0 {
		return
	}
	var slots []int // descriptors, open until the process ends
	for k := range max(1, pages/slotPages) {
		fd, err := syscall.Open(fmt.Sprintf("/tmp/daqiri-run-hugepages-%d.lock", k), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o666)
		if err != nil {
			return // another user's: the tests continue without
		}
		slots = append(slots, fd)
	}
	for {
		for _, fd := range slots {
			if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
})
