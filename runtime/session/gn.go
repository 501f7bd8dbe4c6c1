package session

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel"
)

// KindRing is the kind of the stage of a kernel's receive ring.
const KindRing = "ring"

// GNState is the state of a persistent kernel's rings.
type GNState = native.GNState

// Rings describes the rings of a persistent kernel.
type Rings struct {
	TX, RX, Semaphores int      // number of slots of each
	Ops                []string // operations of transmit rings
}

// MaxKernelRings is the maximum number of rings of a kind of a kernel; the others limit its writers and regions.
const (
	MaxKernelRings   = native.MaxGNRings
	MaxKernelWriters = native.MaxGNWriters
	MaxKernelRegions = native.MaxGNRegions
)

// RingOps returns the operations available to transmit rings.
func RingOps() []string { return native.GNOps() }

// PersistentOptions configures a persistent kernel.
type PersistentOptions struct {
	Name            string
	Kernel          *kernel.Kernel
	Grid            kernel.Grid
	Rings           Rings
	TX, RX          []*Queue
	Regions, Remote []string
	Writers         []*Stage // file writers, indexed by the kernel
	Conn            *Conn    // selects the memory lent by its peer for Remote; nil: regions of the session
	Semaphores      int
	Args            []kernel.Arg
	RegionArgs      map[int]string // arguments that are region numbers, by position in Args
	ObjectArgs      map[int]KernelObject
	Policy          Policy        // for packets that find a receive ring full
	Limit           time.Duration // default timeout of the kernel's waits
	Timers          bool          // record histograms of operation latencies
	Timeout         time.Duration // kernel in a separate process: maximum time without progress
	Restarts        int           // maximum number of restarts after a crash
}

// KernelObject is an argument that is more than a number: a pointer to rings or buffers, an address, or the word that ends the kernel.
type KernelObject struct {
	Exit         bool   // the word that becomes 1 when the kernel's waits are ended
	TX           []int  // transmit rings, from 1; several: objects side by side
	RX           int    // receive ring, from 1; 0: none
	MLX5         bool   // the kernel writes entries of the transmit rings in mlx5's format
	Region       string // buffers in it, or an address in it
	Bytes, Count int    // of each buffer, 0: an address; and how many, 0: as many as there are
	Offset       uint64
	Ops          []string // operations of transmit rings that it needs
}

// MaxKernelObjects is the maximum number of objects of a kernel.
const MaxKernelObjects = native.MaxGNObjects

// objects returns the native objects of the arguments, and for each argument the number of its first one.
func (s *Session) objects(o PersistentOptions) (list []native.GNObject, first map[int]int, err error) {
	first = map[int]int{}
	for _, i := range slices.Sorted(maps.Keys(o.ObjectArgs)) {
		a := o.ObjectArgs[i]
		first[i] = len(list)
		switch {
		case a.Exit || a.Region != "" && a.Bytes == 0:
			continue
		case a.Region != "":
			b, err := s.buffers(o, a)
			if err != nil {
				return nil, nil, fmt.Errorf("kernel %s: argument %d: %w", o.Name, i+1, err)
			}
			list = append(list, b)
		case len(a.TX) == 0:
			list = append(list, native.GNObject{RX: a.RX})
		}
		for _, tx := range a.TX {
			list = append(list, native.GNObject{TX: tx, RX: a.RX, MLX5: a.MLX5})
		}
	}
	if len(list) > MaxKernelObjects {
		return nil, nil, invalid("kernel %s: %d queues and arrays of buffers as arguments, and there may be %d", o.Name, len(list), MaxKernelObjects)
	}
	return list, first, nil
}

// exits reports whether an argument is the kernel's exit flag.
func (o PersistentOptions) exits() bool {
	for _, a := range o.ObjectArgs {
		if a.Exit {
			return true
		}
	}
	return false
}

// buffers returns the object of an array of buffers.
func (s *Session) buffers(o PersistentOptions, a KernelObject) (b native.GNObject, err error) {
	b = native.GNObject{Offset: a.Offset, Bytes: a.Bytes, Count: a.Count}
	if k := slices.Index(o.Remote, a.Region); k >= 0 && o.Conn != nil && !slices.Contains(o.Regions, a.Region) {
		b.Peer = k
		return b, nil
	}
	r, err := s.Region(a.Region)
	if err != nil {
		return b, err
	}
	info, err := r.Info()
	if has, needs := uint64(info.NumBufs)*uint64(info.Stride), a.Offset+uint64(a.Bytes)*uint64(max(a.Count, 1)); err == nil && needs > has {
		err = invalid("buffers up to byte %d of memory region %s, which has %d", needs, a.Region, has)
	}
	b.Region = r.native
	return b, err
}

// Persistent is a kernel that runs next to the proxy of its rings. It must be used by one goroutine.
type Persistent struct {
	s           *Session
	name        string
	native      native.GN
	op          *Op
	pipes       []*Pipe
	regions     []string
	uses        []kernel.Arg
	kernel      *kernel.Kernel
	firstObject map[int]int // number of an argument's object
	stopped     bool
}

// ContextArg is the argument that is replaced by the address of a persistent kernel's context.
var ContextArg = kernel.Arg{KernelArg: native.GNPort}

// StartPersistent starts a kernel with rings of queues of the session. The caller must poll Running.
func (s *Session) StartPersistent(o PersistentOptions) (*Persistent, error) {
	for _, q := range o.TX {
		if q.spec.TxKernel == "per_burst" {
			return nil, invalid("kernel %s: queue %s is for kernels that run for each burst (gpunetio.tx_kernel: per_burst): hint: k:stage in a pipe "+
				"to it, or tx_kernel: persistent", o.Name, q.spec.Name)
		}
	}
	if err := o.Kernel.Native().CheckGrid("kernel "+o.Name, o.Grid); err != nil {
		return nil, err
	}
	p, rings, err := s.openPersistent(o)
	if err != nil {
		return nil, err
	}
	for i, q := range o.RX {
		pipe, err := s.Pipe([]*Queue{q}, rings[i])
		if err != nil {
			p.end()
			return nil, fmt.Errorf("kernel %s: %w", p.name, err)
		}
		p.pipes = append(p.pipes, pipe)
	}
	args := make([]native.KernelArg, len(o.Args))
	for i, a := range o.Args {
		args[i] = a.KernelArg
	}
	if err := p.setArgs(o, args); err != nil {
		p.end()
		return nil, err
	}
	op, err := p.native.Start(o.Kernel.Native(), o.Grid, args)
	if err != nil {
		p.end()
		return nil, err
	}
	p.op = newOp("kernel "+p.name, op)
	p.op.unit = "runs"
	p.op.look = func() { p.native.Ended() }
	return p, nil
}

// setArgs sets the arguments that are regions and objects.
func (p *Persistent) setArgs(o PersistentOptions, args []native.KernelArg) (err error) {
	for i, name := range o.RegionArgs {
		if args[i], err = p.numberOf(o, i, name); err != nil {
			return err
		}
	}
	for i, a := range o.ObjectArgs {
		switch {
		case a.Exit:
			args[i] = p.native.ExitArg()
		case a.Region != "" && a.Bytes == 0:
			number, err := p.numberOf(o, i, a.Region)
			if err != nil {
				return err
			}
			args[i] = p.native.AddressArg(number, a.Offset)
		default:
			args[i] = p.native.ObjectArg(p.firstObject[i])
		}
	}
	return nil
}

// numberOf returns the number of a region for argument i.
func (p *Persistent) numberOf(o PersistentOptions, i int, name string) (native.KernelArg, error) {
	if k := slices.Index(o.Remote, name); k >= 0 && o.Conn != nil && !slices.Contains(o.Regions, name) {
		return p.native.PeerArg(k), nil
	}
	r, err := p.s.Region(name)
	if err != nil {
		return native.KernelArg{}, fmt.Errorf("kernel %s: argument %d: %w", p.name, i+1, err)
	}
	a, given := p.native.RegionArg(r.native)
	if !given {
		return a, invalid("kernel %s: argument %d: memory region %s was not given to it: hint: regions = { %q }", p.name, i+1, name, name)
	}
	return a, nil
}

// openPersistent creates the context and the stages of its receive rings.
func (s *Session) openPersistent(o PersistentOptions) (*Persistent, []*Stage, error) {
	regions, err := s.regionsNamed(o.Name, o.Regions)
	if err != nil {
		return nil, nil, err
	}
	remote, peers, err := s.remoteNamed(o)
	if err != nil {
		return nil, nil, err
	}
	writers, err := s.writersOf(o)
	if err != nil {
		return nil, nil, err
	}
	objects, first, err := s.objects(o)
	if err != nil {
		return nil, nil, err
	}
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	if s.nameTaken(o.Name) {
		return nil, nil, invalid("kernel %s: the name is that of an interface or a stage, and its rings need one of their own", o.Name)
	}
	conf := native.GNConf{Name: o.Name, Kernel: o.Kernel.Native(), GPU: o.Kernel.GPU, TX: natives(o.TX), RX: natives(o.RX), TXSlots: o.Rings.TX, RXSlots: o.Rings.RX,
		SemSlots: o.Rings.Semaphores, Ops: o.Rings.Ops, Regions: regions, Remote: remote, Peers: peers, Writers: writers, Objects: objects, Sems: o.Semaphores, Policy: o.Policy, LimitNS: int64(o.Limit), Timers: o.Timers, Exits: o.exits(),
		SilenceNS: int64(o.Timeout), Restarts: o.Restarts}
	if o.Conn != nil {
		conf.Conn = o.Conn.id
	}
	for k := 2; s.ringsTaken(conf.Name); k++ { // restarted
		conf.Name = fmt.Sprintf("%s.%d", o.Name, k)
	}
	for _, q := range slices.Concat(o.TX, o.RX) {
		q.hold()
		defer q.release()
	}
	n, rings, err := s.native.OpenGN(conf)
	if err != nil {
		return nil, nil, err
	}
	p := &Persistent{s: s, name: conf.Name, native: n, kernel: o.Kernel, uses: o.Args, firstObject: first, regions: slices.Concat(o.Regions, o.Remote)}
	runtime.AddCleanup(p, native.GN.Release, n) // its state is available after the session's end
	s.persistents = append(s.persistents, p)
	s.devices.Store(true)
	var stages []*Stage
	for i, r := range rings {
		st := &Stage{s: s, name: ringName(conf.Name, "rx", i, len(rings)), kind: KindRing, native: r}
		stages = append(stages, st)
		s.stages = append(s.stages, st)
	}
	return p, stages, nil
}

// ringName returns the name of a ring's stage, as the engine forms it.
func ringName(kernel, kind string, i, n int) string {
	if n == 1 {
		return kernel + "." + kind
	}
	return fmt.Sprintf("%s.%s%d", kernel, kind, i+1)
}

func (s *Session) ringsTaken(name string) bool {
	return slices.ContainsFunc(s.persistents, func(p *Persistent) bool { return p.name == name })
}

func (s *Session) regionsNamed(kernel string, names []string) ([]native.Region, error) {
	var list []native.Region
	for _, name := range names {
		r, err := s.Region(name)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", kernel, err)
		}
		list = append(list, r.native)
	}
	return list, nil
}

// remoteNamed returns the memory for put, get and add: what the peer of a connection lends, or regions.
func (s *Session) remoteNamed(o PersistentOptions) (regions []native.Region, peers []native.Remote, err error) {
	if o.Conn == nil {
		regions, err = s.regionsNamed(o.Name, o.Remote)
		return regions, nil, err
	}
	if o.Conn.i.s != s {
		return nil, nil, invalid("kernel %s: conn is a connection of another session", o.Name)
	}
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	for _, name := range o.Remote {
		r, err := o.Conn.i.native.LentNamed(o.Conn.id, name)
		if err != nil {
			return nil, nil, fmt.Errorf("kernel %s: %w", o.Name, err)
		}
		peers = append(peers, r)
	}
	return nil, peers, nil
}

// writersOf returns the native writers of the kernel.
func (s *Session) writersOf(o PersistentOptions) (list []native.Stage, err error) {
	for _, w := range o.Writers {
		switch {
		case w.s != s:
			return nil, invalid("kernel %s: writer %s belongs to another session", o.Name, w.name)
		case !w.writes():
			return nil, invalid("kernel %s: %s %s writes no files", o.Name, w.kind, w.name)
		case w.writer.Format.Aggregates:
			return nil, invalid("kernel %s: writer %s takes reordered data alone: hint: s:write_raw", o.Name, w.name)
		}
		list = append(list, w.native)
	}
	return list, nil
}

func natives(queues []*Queue) []native.Queue {
	list := make([]native.Queue, len(queues))
	for i, q := range queues {
		list[i] = q.native
	}
	return list
}

// Name returns the kernel's name, which is part of the names of its rings.
func (p *Persistent) Name() string { return p.name }

// Running reports whether the kernel runs.
func (p *Persistent) Running() bool {
	defer runtime.KeepAlive(p)
	return !p.native.Ended()
}

// State returns the state of its rings.
func (p *Persistent) State() GNState {
	defer runtime.KeepAlive(p)
	return p.native.State()
}

// Error returns the reason of a failure of the kernel, or nil.
func (p *Persistent) Error() error {
	if p.State().ABIDiffers {
		return invalid("kernel %s: it was compiled against another version of gn.h than this program has: hint: compile it again", p.name)
	}
	return p.deviceError()
}

// deviceError returns the error of the kernel's operation, or nil.
func (p *Persistent) deviceError() error {
	if p.op == nil {
		return nil
	}
	if words := p.op.native.Error(); words != "" {
		return &DeviceError{Kernel: p.name, Why: words}
	}
	return nil
}

// Drained reports whether all operations posted by the kernel are complete.
func (p *Persistent) Drained() bool {
	defer runtime.KeepAlive(p)
	return p.native.Idle()
}

// WaitsFor describes what is incomplete: the kernel or its operations. unread is true for packets sent to a queue without a reader, which only a
// reader can complete.
func (p *Persistent) WaitsFor() (text string, unread bool) {
	defer runtime.KeepAlive(p)
	if p.s.enter() != nil {
		return "its session has ended", false
	}
	defer p.s.leave()
	is := "it runs"
	if !p.Running() {
		is = "it has ended"
	}
	if n, held := p.native.Unread(); held {
		for _, i := range p.s.ifaces {
			for _, q := range i.rx {
				if q.native == n {
					return fmt.Sprintf("%s, and what it sent lies before %s, which nothing reads: hint: on_burst, get_burst or a pipe there, or k:stop()", is,
						q.title()), true
				}
			}
		}
	}
	if st := p.State(); st.Completed < st.Posted {
		is += fmt.Sprintf(", and %d of %d descriptors that it posted are not done", st.Posted-st.Completed, st.Posted)
	}
	return is, false
}

// Abort ends the kernel's waits, so that it ends.
func (p *Persistent) Abort() { p.native.Abort() }

// TakeItem returns the next item that the kernel put into a semaphore; sem counts from 0.
func (p *Persistent) TakeItem(sem int) (first, count uint64, ok bool) {
	return p.native.TakeItem(sem)
}

// ReleaseItem returns the oldest taken item to the kernel.
func (p *Persistent) ReleaseItem(sem int) { p.native.ReleaseItem(sem) }

// Close closes the rings of a kernel that has ended. Calling it again has no effect.
func (p *Persistent) Close() {
	for _, pipe := range p.pipes {
		pipe.Remove()
	}
	if p.s.enter() != nil {
		return
	}
	defer p.s.leave()
	p.end()
}

func (p *Persistent) end() {
	if !p.stopped {
		p.stopped = true
		p.native.Detach()
	}
}

// persistentPatience is how long a session waits for a kernel to end after Abort.
const persistentPatience = 5 * time.Second

// endPersistents ends the kernels, and returns an error for each that does not end. The lock must be held.
func (s *Session) endPersistents() (errs []error) {
	for _, p := range s.persistents {
		if p.stopped {
			continue
		}
		p.native.Abort()
		if !p.endsIn(persistentPatience) && p.native.Kill() {
			p.endsIn(persistentPatience)
		}
		if err := p.deviceError(); err != nil {
			errs = append(errs, err)
		} else if st := p.native.State(); st.Broken > 0 {
			errs = append(errs, &DeviceError{Kernel: p.name, Why: fmt.Sprintf("%d of its transmit rings broke: %s", st.Broken, st.Fault)})
		}
		if p.native.Ended() {
			p.end()
			continue
		}
		p.stopped = true
		s.native.Linger()
		errs = append(errs, &DeviceError{Kernel: p.name, Why: fmt.Sprintf("it did not end in %v: its GPU, and the memory of its session stay for as long as "+
			"the process; hint: it ends where gn_recv, gn_send or gn_wait say GN_ABORTED", persistentPatience)})
	}
	return errs
}

// endsIn waits for the kernel's end. It returns false on timeout.
func (p *Persistent) endsIn(patience time.Duration) bool {
	for until := time.Now().Add(patience); !p.native.Ended(); {
		if time.Now().After(until) {
			return false
		}
		time.Sleep(50 * time.Microsecond)
	}
	return true
}

// Progress polls the interface's queues once, with the stages of their pipes and rings, and returns the amount of work done. It must be called by the
// task that owns the queues.
func (i *Interface) Progress() (int, error) {
	if err := i.s.enter(); err != nil {
		return 0, err
	}
	defer i.s.leave()
	return i.native.Progress()
}
