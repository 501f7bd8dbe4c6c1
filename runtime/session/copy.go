package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// KindCopy is the kind of a stage that moves bursts to another region.
const KindCopy = "copy"

// CopyOptions describes the destination of a copy stage and the conversion of payloads.
type CopyOptions struct {
	MemoryRegion      string
	Data              *DataTypes // conversion of payloads; nil: none
	PayloadByteOffset int        // start of the payload to convert, as in ConvertOptions
	AtPayload         bool
	Policy            Policy // if no buffer is free
}

// Copy creates a stage that moves bursts to another region, on the host or on a GPU. They are output in order through the stage's own queue, Out. If
// source or destination is in GPU memory, the GPU copies.
func (s *Session) Copy(name string, o CopyOptions) (*Stage, error) {
	region, err := s.Region(o.MemoryRegion)
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", name, err)
	}
	types, err := o.Data.native()
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", name, err)
	}
	var out native.Queue
	st, err := s.stage(name, KindCopy, "", func(n string) (native.Stage, error) {
		st, q, err := s.native.AddCopy(n, native.CopyConf{Region: region.native, Types: types, PayloadOffset: o.PayloadByteOffset,
			AtPayload: o.AtPayload, Policy: o.Policy})
		out = q
		return st, err
	})
	if err != nil {
		return nil, err
	}
	st.region = o.MemoryRegion
	s.ownQueue(st, out, &spec.Queue{Name: st.name, BatchSize: s.largestBatch(), MemoryRegions: []string{o.MemoryRegion}})
	return st, nil
}

// adopt sets the layer of the stage's output to that of its source, which must be the same for all sources.
func (st *Stage) adopt(source *Queue) {
	if st.kind == KindCopy && st.layer == "" {
		st.layer = source.Layer()
		st.out.frames = st.layer == LayerFrame
		st.out.native.Holds(!st.out.frames)
	}
	if st.kind == KindKernel && st.layer == "" {
		st.layer = source.Layer()
		st.out.frames = st.layer == LayerFrame
		st.out.spec.MemoryRegions = source.spec.MemoryRegions
		st.out.native.Like(source.native)
	}
}

// ownQueue sets the stage's output queue.
func (s *Session) ownQueue(st *Stage, q native.Queue, as *spec.Queue) {
	st.out = &Queue{rx: true, native: q, stage: st, i: s.newInterface(&spec.Interface{Name: st.name}, native.Iface{}), spec: as}
	s.queues.Store(q, st.out)
}

// largestBatch returns the maximum number of packets of a burst in the session.
func (s *Session) largestBatch() int {
	most := 1
	for _, i := range s.cfg.Interfaces {
		for _, q := range i.Queues() {
			most = max(most, q.BatchSize)
		}
	}
	return most
}
