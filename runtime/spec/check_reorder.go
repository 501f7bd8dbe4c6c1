package spec

import (
	"fmt"
	"math/bits"
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
		if r.ReorderEngine == "hw" {
			p.checkPlaced(c, i, r, out)
		}
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
	if out == nil || out.BufSize == 0 || r.PacketsPerBatch == 0 || slot == 0 || r.ReorderEngine == "hw" {
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

// ---- reordering by a network card ---------------------------------------------------------------------------------

// Limits of reordering by a network card.
const (
	maxPlaced   = 1<<24 - 1 // slots of all output buffers
	manyPlaced  = 16384     // more of them are accepted with a warning
	smallPlaced = 4000      // bytes of a payload; shorter ones are accepted with a warning
)

// checkPlaced checks a reorder config with reorder_engine: hw, whose payloads a network card places in a ring of output buffers. Its conditions are
// those of the reference, which also hold where software emulates the card.
func (p *parser) checkPlaced(c *Config, i *Interface, r *Reorder, out *MemoryRegion) {
	if !i.verbs {
		p.errorf(r.Key("reorder_engine"), "hw needs engine ibverbs, which does not serve interface %s", i.Name)
	}
	if r.DataTypes != nil {
		p.errorf(r.Key("data_types"), "the network card does not convert elements (reorder_engine: hw)")
	}
	if len(r.FlowIDs) > 1 {
		p.errorf(r.Key("flow_ids"), "reorder_engine: hw takes one flow, not %d", len(r.FlowIDs))
	}
	p.placedSide(i, r)
	for _, f := range i.RX.Flows {
		if slices.Contains(r.FlowIDs, f.ID) {
			p.placedFlow(f)
		}
	}
	if len(i.RX.Queues) > 0 && len(i.RX.Queues[0].MemoryRegions) > 0 && r.PacketSize > 0 {
		if src := p.regions[i.RX.Queues[0].MemoryRegions[0]]; src != nil && src.BufSize > 0 && r.PayloadByteOffset+r.PacketSize > src.BufSize {
			p.errorf(r.Key("packet_size"), "%d bytes from byte %d on do not fit the source buffers of %d bytes (region %q)",
				r.PacketSize, r.PayloadByteOffset, src.BufSize, src.Name)
		}
	}
	if r.PacketSize > 0 && r.PacketSize < smallPlaced {
		p.warnf(r.Key("packet_size"), "a network card places payloads of less than %d bytes slowly", smallPlaced)
	}
	if out != nil {
		p.placedRing(c, r, out)
	}
	if b := r.BatchNumber; b != nil && b.BitWidth > 0 && r.SequenceNumber.BitWidth > 0 &&
		b.BitOffset < r.SequenceNumber.BitOffset+r.SequenceNumber.BitWidth && r.SequenceNumber.BitOffset < b.BitOffset+b.BitWidth {
		p.errorf(b.Source, "overlaps sequence_number, which reorder_engine: hw does not allow")
	}
}

// placedSide checks that the receive side has nothing besides the flow of the config.
func (p *parser) placedSide(i *Interface, r *Reorder) {
	for _, one := range []struct {
		key string
		n   int
	}{{"reorder_configs", len(i.RX.ReorderConfigs)}, {"queues", len(i.RX.Queues)}, {"flows", len(i.RX.Flows)}} {
		if one.n > 1 {
			p.errorf(i.RX.Key(one.key), "%d: reorder_engine: hw (%s) needs exactly one", one.n, r.Name)
		}
	}
	if !i.RX.FlowIsolation {
		p.errorf(i.RX.Key("flow_isolation"), "must be true with reorder_engine: hw (%s)", r.Name)
	}
	if i.RX.Has("dynamic_flow_capacity") && i.RX.DynamicFlowCapacity > 0 {
		p.errorf(i.RX.Key("dynamic_flow_capacity"), "no flow can be added with reorder_engine: hw (%s): leave the key out", r.Name)
	}
	if len(i.RX.FlexItems) > 0 {
		p.errorf(i.RX.Key("flex_items"), "reorder_engine: hw (%s) uses the parser of the network card itself: leave the key out", r.Name)
	}
}

// placedFlow checks that a flow matches a UDP port only and leads to one queue only.
func (p *parser) placedFlow(f *Flow) {
	rest := f.Match
	rest.Source, rest.UDPDst = Source{}, nil
	if port := f.Match.UDPDst; port == nil || port.First != port.Last || rest.criteria() {
		p.errorf(f.Key("match"), "must be one udp_dst only with reorder_engine: hw")
	}
	if len(f.Transforms()) > 0 || len(f.QueueIDs()) > 1 {
		at := f.Key("action")
		if f.Has("actions") {
			at = f.Key("actions")
		}
		p.errorf(at, "must be one queue only with reorder_engine: hw")
	}
}

// criteria reports whether a match has any criterion.
func (m *Match) criteria() bool {
	return m.ipPorts() || m.VLANID != nil || m.EtherType != nil || m.Ethernet != nil || m.Flex != nil || m.ECPRI != nil
}

// placedRing checks the ring of output buffers, which the sequence number counts exactly.
func (p *parser) placedRing(c *Config, r *Reorder, out *MemoryRegion) {
	for _, i := range c.Interfaces {
		for _, q := range i.Queues() {
			if slices.Contains(q.MemoryRegions, out.Name) {
				p.errorf(r.Key("memory_region"), "region %q must have no other user with reorder_engine: hw, and queue %s uses it", out.Name, q.Name)
			}
		}
		for _, other := range i.reorders() {
			if other != r && other.MemoryRegion == out.Name {
				p.errorf(r.Key("memory_region"), "region %q must have no other user with reorder_engine: hw, and %s uses it", out.Name, other.Name)
			}
		}
	}
	packets, bufs := r.PacketsPerBatch, int64(out.NumBufs)
	if packets == 0 || bufs == 0 {
		return // already reported
	}
	if bits.OnesCount64(uint64(packets)) != 1 {
		p.errorf(r.Key("method"), "reorder_engine: hw needs a power of two of packets_per_batch, not %d", packets)
	}
	if bits.OnesCount64(uint64(bufs)) != 1 || bufs < LeastBatches {
		p.errorf(out.Key("num_bufs"), "%d: reorder_engine: hw (%s) needs a power of two, at least %d", bufs, r.Name, LeastBatches)
	}
	if r.PacketSize > 0 && out.BufSize > 0 && int64(out.BufSize) != packets*int64(r.PacketSize) {
		p.errorf(out.Key("buf_size"), "%d is not packet_size times packets_per_batch, which reorder_engine: hw (%s) needs%s", out.BufSize, r.Name,
			need(packets, int64(r.PacketSize)))
	}
	p.placedNumbers(r, packets, bufs)
}

// placedNumbers checks that the numbers of packets reach every slot of the ring.
func (p *parser) placedNumbers(r *Reorder, packets, bufs int64) {
	field, least := r.SequenceNumber, packets*bufs
	if r.BatchNumber != nil {
		field, least = *r.BatchNumber, bufs
	}
	if w := field.BitWidth; w > 0 && w < 63 && int64(1)<<w < least {
		p.errorf(field.Source, "%d bits do not count to %d, the ring of output buffers (reorder_engine: hw)", w, least)
	}
	switch slots := packets * bufs; {
	case packets > maxPlaced || slots > maxPlaced:
		p.errorf(r.Key("memory_region"), "its buffers have more than %d slots, which reorder_engine: hw does not allow", maxPlaced)
	case slots > manyPlaced:
		p.warnf(r.Key("memory_region"), "its buffers have %d slots: more than %d take long to set up on a network card", slots, manyPlaced)
	}
}

// reorders returns the reorder configs of an interface.
func (i *Interface) reorders() []*Reorder {
	if i.RX == nil {
		return nil
	}
	return i.RX.ReorderConfigs
}
