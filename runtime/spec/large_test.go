package spec

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// repeated returns n copies of text in which # is replaced by the index.
func repeated(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// cpuTime returns the CPU time of this thread, which does not depend on the load of the machine.
func cpuTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	_ = syscall.Getrusage(thread, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestLargeConfigurations checks that parsing takes linear time: eight times as many keys take about eight times the CPU time, not 64 times.
func TestLargeConfigurations(t *testing.T) {
	const head = "version: 1\nstream_type: raw\nmaster_core: 0\nloopback: sw\n"
	const region = "{name: m#, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}\n"
	const port = "interfaces:\n- name: a\n  address: x\n  rx:\n    queues:\n"
	const flow = "    - {name: f#, id: #, action: {type: queue, id: 0}, match: {udp_dst: 7}}\n"
	queue := func(regions string) string {
		return "    - {name: q#, id: #, poll_mode: direct, memory_regions: [" + regions + "]}\n"
	}
	for _, tt := range []struct {
		name   string
		text   func(n int) string
		faults func(n int) int // -1: at least one
	}{
		{"unknown keys", func(n int) string { return head + repeated(n, "key#: #\n") }, func(n int) int { return n + 1 }},
		{"merged", func(n int) string {
			return head + "x: &x {" + repeated(n/2, "k#: 1, ") + "}\ny:\n  <<: *x\n  z: 1\n"
		}, func(int) int { return 3 }},
		{"regions", func(n int) string {
			return head + "memory_regions:\n" + repeated(n/16, "- "+region) + port + repeated(n/16, queue("m#"))
		}, func(n int) int { return 0 }},
		{"misspelt regions", func(n int) string {
			return head + "memory_regions:\n" + repeated(n/16, "- "+region) + port + repeated(n/16, queue("n#"))
		}, func(n int) int { return n / 16 }},
		{"reorder", func(n int) string {
			return head + "memory_regions:\n- " + strings.Replace(region, "#", "", 1) + port + strings.ReplaceAll(queue("m"), "#", "0") + "    flows:\n" +
				repeated(n/10, flow) + "    reorder_configs:\n    - {name: r, reorder_type: cpu, memory_region: m, flow_ids: [0" + repeated(n/10, ", #") + "]}\n"
		}, func(int) int { return -1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took [2]time.Duration
			for i, n := range []int{20_000, 160_000} {
				text, began := tt.text(n), cpuTime()
				_, _, err := ParseText("x.yaml", text, Options{})
				took[i] = cpuTime() - began
				var faults *Errors
				found := 0
				if errors.As(err, &faults) {
					found = len(faults.Issues)
				}
				if want := tt.faults(n); want >= 0 && found != want {
					t.Errorf("%d keys: %d faults, want %d: %.300v", n, found, want, err)
				}
			}
			if took[1] > 30*took[0] {
				t.Errorf("20,000 keys take %v, eight times as many %v", took[0], took[1])
			}
			t.Log(took)
		})
	}
}
