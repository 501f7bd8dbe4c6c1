package session

import (
	"context"
	"fmt"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// KindKernel is the kind of a stage that launches a user kernel for each burst.
const KindKernel = "kernel"

// HostGPU selects the host instead of a GPU number.
const HostGPU = native.HostGPU

// KernelOptions configures a kernel stage.
type KernelOptions struct {
	Kernel *kernel.Kernel
	Grid   kernel.Grid
	Stream *kernel.Stream // nil: a separate one
	Args   []kernel.Arg   // special arguments refer to the received burst
	Policy Policy         // while the maximum number of launches is running
}

// Kernel creates a stage that launches a kernel for each burst and references the burst until the kernel has ended. Bursts are then output in order
// through the stage's own queue, Out, or freed if it has no reader.
func (s *Session) Kernel(name string, o KernelOptions) (*Stage, error) {
	var out native.Queue
	args := make([]native.KernelArg, len(o.Args))
	for i, a := range o.Args {
		args[i] = a.KernelArg
	}
	st, err := s.stage(name, KindKernel, "", func(n string) (native.Stage, error) {
		st, q, err := s.native.AddKernel(n, native.KernelConf{Kernel: o.Kernel.Native(), Grid: o.Grid, Stream: o.Stream.Native(), Args: args, Policy: o.Policy})
		out = q
		return st, err
	})
	if err != nil {
		return nil, err
	}
	st.uses = o
	s.devices.Store(true)
	s.ownQueue(st, out, &spec.Queue{Name: st.name, BatchSize: s.largestBatch()})
	return st, nil
}

// BurstArg returns a special argument that refers to the burst.
func (b *Burst) BurstArg(a kernel.Arg) (kernel.Arg, error) {
	a.Burst = b.native
	return a, b.Check()
}

// Launch starts a kernel, whose completion t polls whenever it waits. The objects of the arguments and the bursts are referenced until its end. On
// the host the kernel has ended when Launch returns; canceling the context ends it early.
func Launch(ctx context.Context, t *task.Task, l *kernel.Launcher, args []kernel.Arg, bursts []*Burst) (*Op, error) {
	for _, b := range bursts {
		b.s.launched(l)
	}
	n, err := l.Launch(ctx, args)
	if err != nil {
		return nil, err
	}
	op := newOp(l.Kernel.Title, n)
	op.unit = "launches"
	if l.Kernel.OnHost() {
		return op, nil
	}
	op.look = func() { l.Poll() }
	t.AddPoller(l)
	return op, nil
}

// launched records that launches may reference the session's bursts.
func (s *Session) launched(l *kernel.Launcher) {
	if s.enter() != nil {
		return
	}
	defer s.leave()
	if s.launchers == nil {
		s.launchers = map[*kernel.Launcher]bool{}
	}
	s.launchers[l] = true
}

// launchPatience is how long a session waits for launches that reference its bursts, the same as for stages.
const launchPatience = 5 * time.Second

// endLaunches waits for launches that reference the session's bursts, and returns errors of failed and unfinished kernels. The lock must be held.
func (s *Session) endLaunches() (errs []error) {
	until := time.Now().Add(launchPatience)
	for l := range s.launchers {
		for l.Poll(); l.Holds(s.native) > 0 && time.Now().Before(until); l.Poll() {
			time.Sleep(50 * time.Microsecond)
		}
		if l.Holds(s.native) > 0 {
			s.native.Linger()
			errs = append(errs, &DeviceError{Stage: l.Kernel.Title, Abandoned: true})
		} else if why := l.Failure(); why != "" {
			errs = append(errs, &DeviceError{Stage: l.Kernel.Title, Why: fmt.Sprintf("a launch with a burst: %s", why)})
		}
		l.Rest()
	}
	s.launchers = nil
	return errs
}
