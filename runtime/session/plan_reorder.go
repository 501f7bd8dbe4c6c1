package session

import (
	"slices"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// addPlans creates the configured reorder stages, which take the packets of their flows before any pipe.
func (i *Interface) addPlans() error {
	if i.spec.RX == nil {
		return nil
	}
	for _, r := range i.spec.RX.ReorderConfigs {
		sources := i.queuesOf(r)
		opts := planOptions(r, sources)
		opts.ByGPU = r.ReorderType == "gpu" && i.s.onGPU(r.MemoryRegion)
		st, err := i.s.Reorder(r.Name, opts)
		if err != nil {
			return r.Source.Wrap(err)
		}
		st.out.home, st.out.leader = sources[0], sources[0]
		for _, q := range sources {
			q.plans = append(q.plans, st)
		}
		if r.ReorderType == "gpu" && !opts.ByGPU {
			i.s.note("reorder %s: on the CPU", r.Name)
		}
	}
	for _, q := range i.rx {
		if len(q.plans) == 0 {
			continue
		}
		stages := make([]native.Stage, len(q.plans))
		for k, st := range q.plans {
			stages[k] = st.native
		}
		if err := q.native.Claim(stages); err != nil {
			return q.named(err)
		}
	}
	return nil
}

// onGPU reports whether a region is as configured, and not replaced by host memory (Options.Memory).
func (s *Session) onGPU(region string) bool {
	r := s.cfg.Region(region)
	return r != nil && r.Declared == ""
}

// queuesOf returns the queues that the flows of a reorder config lead to.
func (i *Interface) queuesOf(r *spec.Reorder) (queues []*Queue) {
	for _, f := range i.spec.RX.Flows {
		if !slices.Contains(r.FlowIDs, f.ID) {
			continue
		}
		for _, q := range i.rx {
			if slices.Contains(f.QueueIDs(), q.ID()) && !slices.Contains(queues, q) {
				queues = append(queues, q)
			}
		}
	}
	return queues
}

// planOptions returns the options of a reorder config; a batch's timeout is the longest timeout_us of its queues.
func planOptions(r *spec.Reorder, sources []*Queue) ReorderOptions {
	place := func(f spec.BitField) *Field {
		return &Field{Base: BaseStart, BitOffset: uint32(f.BitOffset), BitWidth: uint16(f.BitWidth)}
	}
	o := ReorderOptions{
		MemoryRegion: r.MemoryRegion, Sequence: place(r.SequenceNumber), Slots: int(r.PacketsPerBatch),
		Segment: r.PayloadSegment, PayloadByteOffset: r.PayloadByteOffset, FlowIDs: r.FlowIDs, DropIncomplete: r.MissingAction == "drop",
	}
	if len(r.FlowIDs) > 1 {
		o.Source = "flow_id"
	}
	if r.BatchNumber != nil {
		o.BatchNumber = place(*r.BatchNumber)
	}
	if d := r.DataTypes; d != nil {
		o.Data = &DataTypes{Input: d.InputType, Output: d.OutputType, Network: d.Endianness == "network"}
	}
	for _, q := range sources {
		if !q.spec.DefaultTimeout {
			o.TimeoutNS = max(o.TimeoutNS, 1000*q.spec.TimeoutUS)
		}
	}
	return o
}
