package session

import (
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// StorageError says that a writer's files can't be begun: a name that is taken, a folder that can't be written to.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }

// Unwrap gives the error below.
func (e *StorageError) Unwrap() error { return e.Err }

// DeviceError says that a stage, a queue, or a persistent kernel could not do its work because of a device, or of itself.
type DeviceError struct {
	Stage     string // empty: it is a queue,
	Queue     string // or a kernel
	Kernel    string
	Why       string // what its driver said; empty where Abandoned
	Abandoned bool   // it did not end: its packets count as stopped, its memory and thread stay for as long as the process
}

func (e *DeviceError) Error() string {
	if e.Abandoned {
		return fmt.Sprintf("stage %s did not end: for 5 s its device took nothing of what it held, which is lost; "+
			"hint: look at the disk, the GPU, or the network that it hangs on", e.Stage)
	}
	if e.Kernel != "" {
		return fmt.Sprintf("kernel %s: %s", e.Kernel, e.Why)
	}
	if e.Stage == "" {
		return fmt.Sprintf("queue %s: %s", e.Queue, e.Why)
	}
	return fmt.Sprintf("stage %s: %s", e.Stage, e.Why)
}

// DeviceErrors lists those that err joins.
func DeviceErrors(err error) (found []*DeviceError) {
	if e, ok := err.(*DeviceError); ok {
		return []*DeviceError{e}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			found = append(found, DeviceErrors(e)...)
		}
	}
	return found
}

// deviceError is what a device did to the stage, or nil.
func (st *Stage) deviceError() error {
	if st.native.Abandoned() {
		return &DeviceError{Stage: st.name, Abandoned: true}
	}
	if why := st.native.Failure(); why != "" {
		return &DeviceError{Stage: st.name, Why: why}
	}
	return nil
}

// queueError is what a device did to one of the session's queues, or nil. With the lock.
func (s *Session) queueError() error {
	if queue, why := s.native.Failure(); queue != "" {
		return &DeviceError{Queue: queue, Why: why}
	}
	return nil
}

// UsesDevices reports whether a GPU reaches memory of the session, or a kernel works on it, so that DeviceError may become
// an error. Any goroutine.
func (s *Session) UsesDevices() bool { return s.devices.Load() }

// usesGPU reports whether GPUs have memory of the session, or reach its own.
func usesGPU(cfg *spec.Config) bool { return slices.ContainsFunc(cfg.MemoryRegions, isForGPU) }

func isForGPU(r *spec.MemoryRegion) bool {
	return r.Kind == spec.KindDevice || r.Kind == spec.KindHostPinned
}

// DeviceError is the first thing that a device did to a stage, queue or kernel of a running session, or nil. Owner's thread.
func (s *Session) DeviceError() error {
	if s.enter() != nil {
		return nil
	}
	defer s.leave()
	for _, st := range s.stages {
		if err := st.deviceError(); err != nil {
			return err
		}
	}
	for _, p := range s.persistents {
		if err := p.deviceError(); err != nil && !p.stopped {
			return err
		}
	}
	return s.queueError()
}
