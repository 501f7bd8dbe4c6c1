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

// KindKernel is the kind of a stage that launches a kernel of the user for each burst.
const KindKernel = "kernel"

// HostGPU stands for the host where a GPU's number is asked for.
const HostGPU = native.HostGPU

// KernelOptions say what a kernel stage launches.
type KernelOptions struct {
	Kernel *kernel.Kernel
	Grid   kernel.Grid
	Stream *kernel.Stream // nil: one of its own
	Args   []kernel.Arg   // those of bursts are of the burst that came
	Policy Policy         // while as many launches are under way as can be
}

// Kernel makes a stage that launches a kernel for each burst and holds the burst until the kernel has ended. Then it comes
// from the stage's own queue, Out, in order; where nobody reads that, it ends there.
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

// BurstArg makes an argument of what is known of a burst.
func (b *Burst) BurstArg(a kernel.Arg) (kernel.Arg, error) {
	a.Burst = b.native
	return a, b.Check()
}

// Launch begins a run of a kernel, of which t hears whenever it waits. It holds what the arguments refer to, of these
// bursts, until its end. On the host the kernel has ended by then, or was ended by the context's end.
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

// launched notes that launches may hold the session's bursts.
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

// launchPatience is how long a session waits for launches that hold its bursts, as it does for stages.
const launchPatience = 5 * time.Second

// endLaunches waits for what holds the session's bursts, and says which kernels did not end, or failed. With the lock.
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
