package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// TestReorderPlans checks that two reorder configs of one queue take their flows' packets once, regardless of the number of pipes; the pipes get the
// aggregates and the packets of other flows.
func TestReorderPlans(t *testing.T) {
	const extra = `        flows:
        - {name: x, id: 1, match: {udp_dst: 1000}, action: {type: queue, id: 0}}
        - {name: y, id: 2, match: {udp_dst: 1001}, action: {type: queue, id: 0}}
        - {name: z, id: 3, match: {udp_dst: 1002}, action: {type: queue, id: 0}}
        reorder_configs:
        - {name: first, reorder_type: cpu, memory_region: batches, payload_byte_offset: 46, flow_ids: [1], method: {seq_packets_per_batch: {sequence_number: {bit_offset: 336, bit_width: 32}, packets_per_batch: 30}}}
        - {name: second, reorder_type: cpu, memory_region: batches, payload_byte_offset: 46, flow_ids: [2], missing_action: drop, method: {seq_batch_number: {sequence_number: {bit_offset: 336, bit_width: 32}, batch_number: {bit_offset: 336, bit_width: 28}}}}
`
	change := func(text string) string {
		return strings.Replace(text, "memory_regions:\n", "memory_regions:\n    - {name: batches, kind: host, affinity: 0, num_bufs: 256, buf_size: 65536}\n", 1)
	}
	virtualBench(t, extra, change, func(b *bench) error {
		for _, name := range []string{"one", "two"} {
			st, err := b.s.Count(name)
			if err != nil {
				return err
			}
			if _, err := b.s.Pipe([]*session.Queue{b.rx}, st); err != nil {
				return err
			}
		}
		first, err := b.s.Stage("first")
		if err != nil {
			return err
		}
		if _, err := b.s.Pipe([]*session.Queue{b.rx}, first); err == nil || !strings.Contains(err.Error(), "its sources are defined by the configuration") {
			t.Errorf("its sources again: %v", err)
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		dst, _ := session.FieldNamed("udp_dst")
		if err := b.transmit(100, 3000, session.Vary{Field: session.Field{Base: session.BasePayload, BitWidth: 32}, Step: 1, Max: 1<<32 - 1},
			session.Vary{Field: dst, Start: 1000, Step: 1, Max: 1002}); err != nil {
			return err
		}
		if _, err := b.me.Wait(b.me.Now() + int64(10*time.Millisecond)); err != nil {
			return err
		}
		b.s.Quiesce(time.Second)
		for name, want := range map[string]float64{
			"b.rx.out": 3000, "first.aggregates.out": 100, "first.out": 1000 + 2000, "first.missing": 2 * 999, // between the first and the last received packet
			"second.aggregates.out": 0, "second.out": 1000, "second.dropped_by.incomplete": 1000,
			"one.in": 1100, "two.in": 1100,
		} {
			if got := b.figure(name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if bad := b.s.Ledger().Balance(); bad != nil {
			t.Error(bad)
		}
		return nil
	})
}
