package session

import (
	"maps"
	"os"
	"runtime"
	"slices"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// Binding is memory of the application for a region, or, with shared, a file of the session that contains only the region. One of Array, Path and Handle is set, or else FD is used.
type Binding struct {
	Array  *kernel.Array
	Path   string // file with memory
	Handle string // of cuIpcGetMemHandle, IPCBytes long
	FD     int    // descriptor of a file with memory, or of an allocation on a GPU
	Offset int64  // in the source, bytes
	Bytes  int64  // negative: to the end of the source
	shared bool
}

// IPCBytes is the size of a CUDA IPC handle.
const IPCBytes = native.IPCBytes

// hugePage is the size of the pages of regions of kind huge.
const hugePage = 2 << 20

// native returns the native form, in which the caller keeps b.Array alive.
func (b *Binding) native() native.Binding {
	n := native.Binding{Own: b.shared, Path: b.Path, Handle: b.Handle, FD: b.FD, Offset: uint64(b.Offset), Bytes: native.BindingRest}
	if b.Bytes >= 0 {
		n.Bytes = uint64(b.Bytes)
	}
	if b.Array != nil {
		array := b.Array.Native()
		n.Array = &array
	}
	return n
}

// bind passes the binding to a region of an unopened session, which keeps the array until it is closed.
func (b *Binding) bind(r native.Region, name string) error {
	defer runtime.KeepAlive(b.Array)
	return r.Bind(name, b.native())
}

// checkBindings returns ErrInvalid for a binding without a region, and for a region that needs a binding and has none.
func checkBindings(cfg *spec.Config, bindings map[string]Binding) error {
	var names []string
	for _, r := range cfg.MemoryRegions {
		names = append(names, r.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		if !slices.Contains(names, name) {
			hint := ""
			if near := suggest.Nearest(name, names); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return invalid("cannot bind memory region %s: the configuration has no region of that name%s", name, hint)
		}
	}
	for _, r := range cfg.MemoryRegions {
		_, bound := bindings[r.Name]
		if bound && r.Shared {
			return r.Key("shared").Wrap(invalid("cannot bind memory region %s: shared is true, and its memory is the session's: remove the binding or the key", r.Name))
		}
		if !r.Owned && !bound {
			return r.Key("owned").Wrap(invalid("cannot open memory region %s: owned is false, and there is no binding for it", r.Name))
		}
	}
	return nil
}

// Requirement is what memory must have to be bound to a region.
type Requirement struct {
	Name, Kind string // kind: where an open places the region
	SlotSize   int    // bytes between the starts of adjacent buffers
	Headroom   int    // bytes before each packet in its buffer
	NumBufs    int
	Capacity   int64 // minimum size in bytes, in whole pages
	Alignment  int64 // of the memory's offset in its source, bytes
}

// Requirements returns the requirements of the regions, in order, without allocating memory. If env.Bindings is not nil, it checks these as Open does.
func Requirements(cfg *spec.Config, env Env) ([]Requirement, error) {
	if faults := preflight.Check(cfg); len(faults) > 0 {
		return nil, cfg.Source.Wrap(invalid("%v", &preflight.OpenError{Errors: spec.Errors{Issues: faults}}))
	}
	if env.Bindings != nil {
		if err := checkBindings(cfg, env.Bindings); err != nil {
			return nil, err
		}
	}
	s := newSession(cfg, env)
	err := s.assemble(preflight.CorePlan{})
	defer s.native.Close()
	if err == nil {
		err = s.native.Measure()
	}
	if err != nil {
		return nil, err
	}
	var list []Requirement
	for _, r := range s.regions {
		info := r.native.Info()
		need := Requirement{Name: r.Name(), Kind: r.Kind(), SlotSize: info.Stride, Headroom: info.Headroom, NumBufs: info.NumBufs,
			Alignment: int64(os.Getpagesize())}
		switch {
		case need.Kind == schema.KindHuge:
			need.Alignment = hugePage
		case need.Kind == schema.KindDevice && info.CPU:
			need.Kind = schema.KindHostPinned
		}
		need.Capacity = (int64(info.Bytes) + need.Alignment - 1) / need.Alignment * need.Alignment
		list = append(list, need)
	}
	return list, nil
}
