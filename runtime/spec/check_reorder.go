package spec

import (
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// checkReorder checks each reorder config against its flows, their queues and regions. Limits of the reference's implementation (power-of-two
// batches, batches within batch_size, no conversion on the CPU, one queue, no direct queues) do not apply.
func (p *parser) checkReorder(c *Config, i *Interface, used map[string]bool) {
	owner := map[uint32]*Reorder{}
	flows, queues := index(i.RX.Flows, func(f *Flow) uint32 { return f.ID }), byID(i.RX.Queues)
	for _, r := range i.RX.ReorderConfigs {
		out := p.reorderRegion(c, r, used)
		for n, id := range r.FlowIDs {
			at := r.flowAt[n]
			f := flows[id]
			switch prev := owner[id]; {
			case prev == r:
				p.errorf(at, "flow %d is listed twice", id)
			case prev != nil:
				p.errorf(at, "flow %d already belongs to reorder config %s", id, prev.Name)
			case f == nil:
				p.errorf(at, "no receive flow of this interface has id %d", id)
			default:
				owner[id] = r
				for _, q := range f.QueueIDs() {
					p.reorderSource(r, at, queues[q], out)
				}
			}
		}
	}
}

func (p *parser) reorderRegion(c *Config, r *Reorder, used map[string]bool) *MemoryRegion {
	if r.MemoryRegion == "" {
		return nil
	}
	out := p.regions[r.MemoryRegion]
	if out == nil {
		p.errorf(r.Key("memory_region"), "no memory region %q%s", r.MemoryRegion, p.didYouMeanRegion(c, r.MemoryRegion))
		return nil
	}
	used[r.MemoryRegion] = true
	p.reorderKind(r, r.Key("memory_region"), out)
	return out
}

func (p *parser) reorderKind(r *Reorder, at Source, m *MemoryRegion) {
	kinds := schema.KindsFor(r.ReorderType)
	if len(kinds) > 0 && slices.Contains(schema.RegionSection.Key("kind").Choices, m.declaredKind()) && !slices.Contains(kinds, m.declaredKind()) {
		p.errorf(at, "reorder_type %s cannot use region %q of kind %s (%s)", r.ReorderType, m.Name, m.declaredKind(), schema.JoinOr(kinds))
	}
}

// reorderSource checks one queue that feeds a reorder config.
func (p *parser) reorderSource(r *Reorder, at Source, q *Queue, out *MemoryRegion) {
	if q == nil || len(q.MemoryRegions) == 0 {
		return // already reported
	}
	switch n := len(q.MemoryRegions); {
	case r.PayloadSegment >= n:
		p.errorf(r.Key("payload_segment"), "%d: the packets of queue %s have segments 0 to %d, one for each of its memory_regions", r.PayloadSegment, q.Name, n-1)
		return
	case n > 1 && !r.Has("payload_segment"):
		p.errorf(at, "queue %s splits packets over %d regions: say which of them, from 0, has the payload (payload_segment)", q.Name, n)
		return
	}
	head, src := p.regions[q.MemoryRegions[0]], p.regions[q.MemoryRegions[r.PayloadSegment]]
	if head == nil || src == nil || head.BufSize == 0 || src.BufSize == 0 {
		return
	}
	p.reorderKind(r, at, head)
	if src != head {
		p.reorderKind(r, at, src)
	}
	if r.PayloadByteOffset >= src.BufSize {
		p.errorf(r.Key("payload_byte_offset"), "%d is not inside the source buffers of %d bytes (region %q)", r.PayloadByteOffset, src.BufSize, src.Name)
		return
	}
	p.fieldInside(r.SequenceNumber, head)
	if r.BatchNumber != nil {
		p.fieldInside(*r.BatchNumber, head)
	}
	slot := r.slotBytes(src.BufSize)
	if out == nil || out.BufSize == 0 || r.PacketsPerBatch == 0 || slot == 0 {
		return
	}
	if int64(out.BufSize)/slot < r.PacketsPerBatch {
		p.errorf(r.Key("memory_region"), "buffers of %d bytes are too small: a batch is %d packets of up to %d bytes%s", out.BufSize, r.PacketsPerBatch, slot, need(r.PacketsPerBatch, slot))
	}
}

// need returns the required buffer size, if it is a valid value.
func need(packets, slot int64) string {
	if slot > schema.MaxCount || packets*slot > schema.MaxCount {
		return ""
	}
	return fmt.Sprintf("; buf_size must be at least %d", packets*slot)
}

func (p *parser) fieldInside(f BitField, src *MemoryRegion) {
	if f.BitWidth > 0 && f.BitOffset+f.BitWidth > 8*src.BufSize {
		p.errorf(f.Source, "bits %d..%d lie behind the source buffers of %d bytes (region %q)", f.BitOffset, f.BitOffset+f.BitWidth-1, src.BufSize, src.Name)
	}
}
