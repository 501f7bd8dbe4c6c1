package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/daqiri/daqiri-run/native"
)

// share is the divisor of available memory that gives Lua's limit: growing a table temporarily needs a bit more than twice its size, and packets,
// files and other programs need memory too.
const share = 4

// rlimitAS is RLIMIT_AS.
const rlimitAS = syscall.RLIMIT_AS

// bound is an amount of memory and a description of its origin.
type bound struct {
	bytes uint64
	of    string
}

// Limit returns how many bytes Go, and so Lua, may use in this process, and a description of the limit's origin. The limit is a quarter of the
// smallest of the machine's memory, the control groups' limits and the address space that ulimit -v allows, or GOMEMLIMIT if that is set and smaller.
func Limit() (bytes uint64, why string) {
	b := limit()
	return b.bytes, b.of
}

var limit = sync.OnceValue(func() bound {
	least := bound{bytes: uint64(math.MaxInt64)}
	lower := func(n uint64, of string, args ...any) {
		if n < least.bytes {
			least = bound{n, fmt.Sprintf(of, args...)}
		}
	}
	if n, ok := sizeIn("/proc/meminfo", "MemTotal:"); ok {
		lower(n/share, "a quarter of this machine's memory")
	}
	if n, file := native.CgroupMemory(); file != "" {
		lower(n/share, "a quarter of what %s allows", file)
	}
	var addresses syscall.Rlimit
	if syscall.Getrlimit(rlimitAS, &addresses) == nil && addresses.Cur < math.MaxInt64 {
		used, _ := sizeIn("/proc/self/status", "VmSize:")
		lower((addresses.Cur-min(used, addresses.Cur))/share, "a quarter of what ulimit -v leaves")
	}
	if n := debug.SetMemoryLimit(-1); n < math.MaxInt64 {
		lower(uint64(n), "GOMEMLIMIT")
	}
	return least
})

// sizeIn returns the value of a line "NAME  N kB" of a file of /proc, in bytes.
func sizeIn(file, name string) (bytes uint64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	return size(text, name)
}

func size(text []byte, name string) (uint64, bool) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
