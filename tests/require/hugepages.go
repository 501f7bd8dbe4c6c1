package require

import (
	"fmt"
	"os"
	"path/filepath"
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
	var slots []*os.File
	for k := range max(1, pages/slotPages) {
		f, err := os.OpenFile(filepath.Join("/tmp", fmt.Sprintf("daqiri-run-hugepages-%d.lock", k)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return // another user's: the tests go on without
		}
		slots = append(slots, f)
	}
	for {
		for _, f := range slots {
			if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				held = f
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
})

// held is the slot of this process, open until it ends.
var held *os.File
