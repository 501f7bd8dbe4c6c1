package session

import "fmt"

// StorageError reports that a writer's files cannot be created: a name in use, or a folder that is not writable.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *StorageError) Unwrap() error { return e.Err }

// DeviceError reports the failure of a stage, a queue, or a persistent kernel, caused by a device or by itself, or the loss of memory that a region is
// bound to.
type DeviceError struct {
	Region    string // empty: one of the others
	Stage     string // empty: a queue,
	Queue     string // or a kernel
	Kernel    string
	Why       string // the driver's message; empty if Abandoned
	Abandoned bool   // did not end: its packets count as stopped, and its memory and thread exist until the process ends
}

func (e *DeviceError) Error() string {
	if e.Abandoned {
		return fmt.Sprintf("stage %s did not end: for 5 s its device took nothing of what it held, which is lost; "+
			"hint: check the disk, the GPU, or the network that it waits for", e.Stage)
	}
	if e.Region != "" {
		return fmt.Sprintf("memory region %s: %s", e.Region, e.Why)
	}
	if e.Kernel != "" {
		return fmt.Sprintf("kernel %s: %s", e.Kernel, e.Why)
	}
	if e.Stage == "" {
		return fmt.Sprintf("queue %s: %s", e.Queue, e.Why)
	}
	return fmt.Sprintf("stage %s: %s", e.Stage, e.Why)
}

// DeviceErrors returns the device errors that are joined in err.
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

// deviceError returns the stage's device error, or nil.
func (st *Stage) deviceError() error {
	if st.native.Abandoned() {
		return &DeviceError{Stage: st.name, Abandoned: true}
	}
	if why := st.native.Failure(); why != "" {
		return &DeviceError{Stage: st.name, Why: why}
	}
	return nil
}

// queueError returns the first device error of the session's memory and queues, or nil. The lock must be held.
func (s *Session) queueError() error {
	for _, r := range s.regions {
		if why := r.native.Lost(); why != "" {
			return &DeviceError{Region: r.Name(), Why: why}
		}
	}
	if queue, why := s.native.Failure(); queue != "" {
		return &DeviceError{Queue: queue, Why: why}
	}
	return nil
}

// UsesDevices reports whether a GPU accesses memory of the session, a kernel uses it or another process owns a part of it, so that DeviceError may return an error. It may be called
// from any goroutine.
func (s *Session) UsesDevices() bool { return s.devices.Load() }

// DeviceError returns the first device error of a stage, queue or kernel of a running session, or nil. It must be called on the owner's thread.
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
