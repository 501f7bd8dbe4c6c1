package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// wide reports whether tests of RDMA are to take the time that all of their rows need.
func wide() bool { return cmp.Or(os.Getenv("DAQIRI_VM_WIDE"), "0") != "0" }

// matrixRun has an operation done so often on each of so many connections.
type matrixRun struct {
	op                     string
	bytes, conns, messages int
}

func (r matrixRun) String() string {
	return fmt.Sprintf("%s:%d:%d:%d", r.op, r.bytes, r.conns, r.messages)
}

// matrixPart is what one program does: packets of so many segments, the last of at most so many bytes.
type matrixPart struct {
	segments, last int
	runs           []matrixRun
}

// matrixRuns makes runs of one operation out of {bytes, connections, messages}.
func matrixRuns(op string, list ...[3]int) (runs []matrixRun) {
	for _, r := range list {
		runs = append(runs, matrixRun{op, r[0], r[1], r[2]})
	}
	return runs
}

// matrixUsual is continuous integration's part of the matrix, matrixWide all of it, by DAQIRI_VM_WIDE=1: half an hour. A page is the
// MTU; the segments have 1001, 3001, 60001 and the rest of the bytes.
var (
	matrixUsual = []matrixPart{
		{1, 65536, slices.Concat(
			matrixRuns("send", [3]int{1, 1, 500}, [3]int{64, 1, 4000}, [3]int{64, 64, 20}, [3]int{4095, 4, 40}, [3]int{4096, 1, 200}, [3]int{4097, 4, 40}, [3]int{65536, 4, 20}),
			matrixRuns("write", [3]int{1, 1, 100}, [3]int{64, 16, 20}, [3]int{4095, 2, 30}, [3]int{4096, 2, 30}, [3]int{4097, 2, 30}, [3]int{65536, 2, 10}),
			matrixRuns("imm", [3]int{1, 1, 100}, [3]int{64, 64, 20}, [3]int{4095, 1, 30}, [3]int{4096, 1, 30}, [3]int{4097, 1, 30}, [3]int{65536, 1, 20}),
			matrixRuns("read", [3]int{1, 1, 50}, [3]int{64, 16, 20}, [3]int{4095, 1, 30}, [3]int{4096, 1, 30}, [3]int{4097, 1, 30}, [3]int{65536, 1, 20}),
			matrixRuns("add", [3]int{8, 4, 20}), matrixRuns("swap", [3]int{8, 2, 20}))},
		{4, 65536, slices.Concat(
			matrixRuns("send", [3]int{1, 1, 50}, [3]int{1001, 1, 50}, [3]int{1002, 2, 50}, [3]int{4095, 4, 25}, [3]int{4097, 1, 50}, [3]int{65536, 4, 20}),
			matrixRuns("write", [3]int{1002, 2, 30}, [3]int{65536, 2, 10}), matrixRuns("imm", [3]int{4097, 2, 30}), matrixRuns("read", [3]int{4097, 1, 30}))},
		{4, 8388608, slices.Concat(
			matrixRuns("send", [3]int{1 << 20, 4, 1}, [3]int{8 << 20, 1, 1}), matrixRuns("write", [3]int{1 << 20, 1, 3}), matrixRuns("imm", [3]int{8 << 20, 1, 1}),
			matrixRuns("read", [3]int{1 << 20, 1, 2}))},
	}
	matrixWide = wideMatrix()
)

func wideMatrix() (parts []matrixPart) {
	var small, big []matrixRun
	for _, op := range []string{"send", "write", "imm", "read"} {
		for _, bytes := range []int{1, 64, 1001, 1002, 4002, 4003, 4095, 4096, 4097, 65536, 1 << 20, 8 << 20} {
			for _, conns := range []int{1, 4, 16, 64} {
				run := matrixRun{op, bytes, conns, max(1, min(1000, 16<<20/bytes)/conns)}
				if bytes <= 65536 {
					small = append(small, run)
				} else if bytes*conns <= 32<<20 {
					big = append(big, run)
				}
			}
		}
	}
	atomics := []matrixRun{{"add", 8, 1, 200}, {"add", 8, 64, 5}, {"swap", 8, 1, 200}, {"swap", 8, 64, 5}}
	many := []matrixRun{{"send", 64, 1, 100000}, {"write", 64, 1, 100000}, {"imm", 64, 4, 25000}, {"read", 64, 4, 25000}, {"add", 8, 1, 100000}, {"swap", 8, 1, 100000}}
	return []matrixPart{{1, 65536, slices.Concat(many, small, atomics)}, {4, 65536, small}, {1, 8 << 20, big}, {4, 8 << 20, big}}
}

// TestRDMAMatrix does every operation on a program on librdmacm, which compares what comes of each: 1 byte to 8 MiB, around the MTU, in
// one segment and in up to four whose lengths are odd, at places that are odd, over 1 to 64 connections.
func TestRDMAMatrix(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	peer := filepath.Join(t.TempDir(), "matrix")
	if out, err := exec.Command("gcc", "-O2", "-Wall", "-o", peer, "rdma/matrix.c", "-lrdmacm", "-libverbs").CombinedOutput(); err != nil {
		require.Lack(t, "rdma", err.Error()+": "+string(out))
	}
	d := build(t, "./cmd/daqiri-run")
	parts := matrixUsual
	if wide() {
		parts = matrixWide
	}
	script, want := "", []string{}
	for _, p := range parts {
		runs := strings.Trim(fmt.Sprint(p.runs), "[]")
		script += `
			` + peer + ` 10.9.0.1 4795 ` + runs + ` >/dev/shm/matrix 2>&1 &
			peer=$!
			until grep -q ready /dev/shm/matrix; do kill -0 $peer && sleep 0.1 || { cat /dev/shm/matrix; exit 1; }; done
			timeout ` + fmt.Sprint(int(scriptLimit().Seconds()*0.9)) + ` ` + d + ` tests/vm/rdma/matrix.lua --runs "` + runs + `" ` + fmt.Sprintf("--last %d --segments %d", p.last, p.segments) + ` 2>&1 || { cat /dev/shm/matrix; exit 1; }
			wait
			cat /dev/shm/matrix`
		want = append(want, "every packet is accounted for")
		for _, r := range p.runs {
			want = append(want, fmt.Sprintf("%s, %d bytes, %d connections: %d messages, 0 wrong\n", r.op, r.bytes, r.conns, r.conns*r.messages))
		}
	}
	wantText(t, rdmaMust(t, k, root(t), nil, script), want...)
}
