package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// TestReorderBits checks that a stage accepts numbers that distinguish four batches and rejects shorter ones, like the check of a configuration.
func TestReorderBits(t *testing.T) {
	if spec.LeastBatches != native.LeastBatches {
		t.Fatalf("a configuration needs %d batches, a stage %d", spec.LeastBatches, native.LeastBatches)
	}
	reorder := func(b *bench, bits, per int) error {
		_, err := b.s.Reorder(fmt.Sprintf("blocks%d.%d", bits, per), session.ReorderOptions{MemoryRegion: "in", Slots: per, Window: 1,
			Sequence: &session.Field{Base: session.BaseStart, BitWidth: uint16(bits)}})
		return err
	}
	virtualBench(t, "", func(text string) string { return text }, func(b *bench) error {
		for _, bits := range []int{1, 2, 3, 4, 8, 10, 12} {
			most := 1 << bits / 4
			if most > 0 {
				if err := reorder(b, bits, most); err != nil {
					t.Errorf("%d bits, %d packets a batch: %v", bits, most, err)
				}
			}
			for _, per := range []int{most + 1, 1<<bits + 1, 1<<bits + 2, 1 << 30} {
				err := reorder(b, bits, per)
				if per < 1<<11 && (err == nil || !strings.Contains(err.Error(), "at least 4 batches apart")) || err == nil {
					t.Errorf("%d bits, %d packets a batch: %v", bits, per, err)
				}
			}
		}
		return reorder(b, 64, 1000)
	})
}
