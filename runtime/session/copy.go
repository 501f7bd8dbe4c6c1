package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// KindCopy is the kind of a stage that moves bursts into another region.
const KindCopy = "copy"

// CopyOptions say where a copy stage puts packets, and what it makes of their payloads.
type CopyOptions struct {
	MemoryRegion      string
	Data              *DataTypes // of payloads; nil: packets stay as they are
	PayloadByteOffset int        // where the payload begins that is converted, as in ConvertOptions
	AtPayload         bool
	Policy            Policy // when no buffer is free
}

// Copy makes a stage that moves bursts into another region, of the host or of a GPU. They come from the stage's own queue,
// Out, in order; where a GPU's memory is among source and region, the GPU moves them.
func (s *Session) Copy(name string, o CopyOptions) (*Stage, error) {
	region, err := s.Region(o.MemoryRegion)
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", name, err)
	}
	var out native.Queue
	st, err := s.stage(name, KindCopy, "", func(n string) (native.Stage, error) {
		st, q, err := s.native.AddCopy(n, native.CopyConf{Region: region.native, Types: o.Data.native(), PayloadOffset: o.PayloadByteOffset,
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

// adopt says that what the stage hands out is what this source holds, as all its sources have to.
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

// ownQueue gives the stage its queue.
func (s *Session) ownQueue(st *Stage, q native.Queue, as *spec.Queue) {
	st.out = &Queue{rx: true, native: q, stage: st, i: s.newInterface(&spec.Interface{Name: st.name}, native.Iface{}), spec: as}
	s.queues.Store(q, st.out)
}

// largestBatch is the most packets that a burst of the session has.
func (s *Session) largestBatch() int {
	most := 1
	for _, i := range s.cfg.Interfaces {
		for _, q := range i.Queues() {
			most = max(most, q.BatchSize)
		}
	}
	return most
}
