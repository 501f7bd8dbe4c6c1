package contract

import (
	"strings"
	"testing"
)

// TestClocks checks that every engine reports the origin of its receive times for queues and in the report, and the result of a request for hardware
// timestamps.
func TestClocks(t *testing.T) {
	kinds := map[string]string{"loop": "software", "loop-copy": "software", "loop-virtual": "virtual", "xdp": "software", "xdp-packet": "kernel", "packet": "kernel", "dpdk": "software", "cards": "software",
		"udp": "kernel", "udp6": "kernel",
		"tcp": "software", "ibverbs": "software"}
	texts := map[string]string{
		"software": "software: the session's clock, when a packet is taken in",
		"kernel":   "kernel: when it got the packet from its driver",
		"virtual":  "virtual: the simulated wire's",
	}
	for _, extra := range []string{"", "        hardware_timestamps: true\n"} {
		withBench(t, extra, func(t *testing.T, b *bench) error {
			name, _, _ := strings.Cut(b.name, "/")
			of, err := b.rx.Timestamps()
			none, _ := b.tx.Timestamps()
			if of != kinds[name] || none != "" || err != nil {
				t.Errorf("receive times are %q, of a transmit queue %q: %v", of, none, err)
			}
			report := strings.Join(b.s.Report(), "\n")
			asked := extra != ""
			for text, want := range map[string]bool{
				"interface b: receive timestamps: " + texts[kinds[name]]: true,
				" engine has no hardware timestamps here":                asked,
				"PTP clock": asked && !b.virtual || b.driver != "" && !b.verbs, // a driver reports its interface's clock
			} {
				if strings.Contains(report, text) != want {
					t.Errorf("%q in the report: %v, want %v\n%s", text, !want, want, report)
				}
			}
			return nil
		})
	}
}
