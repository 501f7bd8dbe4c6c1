package session

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/session/flow"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// virtualRate is the default rate of a wire on the virtual clock: without a limit an endless transmission would fit into one instant, and time would
// not advance.
const virtualRate = 100e9

// assemble creates the native session of the configuration, without opening it.
func (s *Session) assemble(plan preflight.CorePlan) error {
	lb := &s.cfg.Loopback
	conf := native.SessionConf{
		Virtual:       s.Virtual(),
		Seed:          lb.Seed,
		RxMetaBuffers: s.cfg.RxMetaBuffers,
		TxMetaBuffers: s.cfg.TxMetaBuffers,
		Wire: native.Wire{
			Loss: lb.Loss, Dup: lb.Dup, Reorder: lb.Reorder, Corrupt: lb.Corrupt,
			DelayNS: lb.DelayNS, RateBPS: uint64(lb.RateBPS),
		},
	}
	conf.StartNS, conf.MonoNS = s.env.Scheduler.Clock() // the tasks' clock, which the wall clock may have left behind or overtaken
	if conf.Virtual {
		conf.StartNS = s.env.Scheduler.VirtualStart()
		if conf.Wire.RateBPS == 0 {
			conf.Wire.RateBPS = virtualRate
			s.note("wire: %d Gbit/s, as no rate is given and packets must take time on the virtual clock", int(virtualRate/1e9))
		}
	}
	var err error
	if s.native, err = native.NewSession(conf); err != nil {
		s.native = &native.Session{}
		return s.cfg.Source.Wrap(err)
	}
	for _, r := range s.cfg.MemoryRegions {
		if err := s.addRegion(r); err != nil {
			return r.Source.Wrap(err)
		}
	}
	for _, i := range s.cfg.Interfaces {
		if err := s.addInterface(i, plan); err != nil {
			return err
		}
	}
	return nil
}

// build creates and opens the native session of the configuration.
func (s *Session) build(plan preflight.CorePlan) error {
	if err := s.assemble(plan); err != nil {
		return err
	}
	if err := s.native.Open(); err != nil {
		return fmt.Errorf("%s: %w", s.cfg.File, err)
	}
	s.noteClocks()
	for _, i := range s.ifaces {
		if err := i.addStatic(); err != nil {
			return err
		}
		if err := i.setTxFlows(); err != nil {
			return err
		}
		if err := i.answerConfigured(); err != nil {
			return err
		}
		if err := i.addPlans(); err != nil {
			return err
		}
	}
	return nil
}

var accessRights = map[string]native.Access{"local": native.AccessLocal, "rdma_read": native.AccessRead, "rdma_write": native.AccessWrite}

func access(rights []string) (a native.Access) {
	for _, r := range rights {
		a |= accessRights[r]
	}
	return a
}

func regionConf(r *spec.MemoryRegion) native.RegionConf {
	node, gpu := r.Affinity, 0
	if r.Kind == schema.KindDevice || r.Declared == schema.KindDevice {
		node, gpu = -1, r.Affinity
	}
	return native.RegionConf{
		Name:     r.Name,
		Kind:     native.RegionKindNamed(r.Kind),
		Affinity: node,
		GPU:      gpu,
		Access:   access(r.Access),
		NumBufs:  r.NumBufs,
		BufSize:  r.BufSize,
	}
}

func (s *Session) addRegion(r *spec.MemoryRegion) error {
	n, err := s.native.AddRegion(regionConf(r))
	b, bound := s.env.Bindings[r.Name]
	if r.Shared {
		b, bound = Binding{Bytes: -1, shared: true}, true
	}
	if bound && err == nil {
		err = b.bind(n, r.Name)
	}
	s.regions = append(s.regions, &Region{s: s, spec: r, native: n})
	return err
}

func (s *Session) addInterface(i *spec.Interface, plan preflight.CorePlan) error {
	conf := native.IfaceConf{
		Name: i.Name, Engine: i.EngineName(), Address: captureAddress(i, s.besides()),
		Socket: socketConf(i.SocketConfig),
	}
	if r := i.RoCEConfig; r != nil {
		conf.Socket.RoCE = native.RoCEConf{Transport: transports[r.TransportMode], GIDIndex: r.GIDIndex, TrafficClass: r.TrafficClass, MTU: r.MTU}
	}
	if r := i.Replay; r != nil {
		conf.Replay = native.ReplayConf{Speed: r.Speed, BPS: float64(r.RateBPS), PPS: r.PPS, Loops: uint64(r.Loops)}
	}
	if i.RX != nil {
		conf.FlowIsolation = i.RX.FlowIsolation
		conf.Outgoing = i.RX.Outgoing
		if k := slices.IndexFunc(s.regions, func(r *Region) bool { return r.Name() == i.RX.Joined }); k >= 0 && i.EngineName() == schema.EnginePacket {
			conf.Joined = s.regions[k].native
		}
		conf.HardwareTimestamps = i.RX.HardwareTimestamps
	}
	if i.TX != nil {
		conf.AccurateSend = i.TX.AccurateSend
	}
	n, err := s.native.AddIface(conf)
	if err != nil {
		return i.Source.Wrap(err)
	}
	f := s.newInterface(i, n)
	s.ifaces = append(s.ifaces, f)
	if why := i.EngineReason(); why != "" {
		s.note("interface %s: engine %s: %s", i.Name, i.EngineName(), why)
	}
	if i.RX != nil {
		if f.rx, err = f.addQueues(i.RX.Queues, true, plan); err != nil {
			return err
		}
	}
	if i.TX == nil {
		return nil
	}
	for _, q := range i.TX.Queues {
		if q.PacingMbps > 0 {
			s.note("interface %s: pace of queue %s: software: each packet waits for its time, in what the queue holds (no FCS or preamble)", i.Name, q.Name)
		}
	}
	f.tx, err = f.addQueues(i.TX.Queues, false, plan)
	return err
}

var transports = map[string]native.Transport{"RC": native.TransportRC, "UC": native.TransportUC, "UD": native.TransportUD}

// note adds a line to the session's report.
func (s *Session) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func socketConf(c *spec.SocketConfig) native.SocketConf {
	if c == nil {
		return native.SocketConf{}
	}
	out := native.SocketConf{
		Proto:         map[string]native.Proto{spec.SchemeUDP: native.ProtoUDP, spec.SchemeTCP: native.ProtoTCP, spec.SchemeRoCE: native.ProtoRoCE}[c.Scheme()],
		Server:        c.Mode == "server",
		MaxPayload:    c.MaxPayloadSize,
		RetryConnectS: c.RetryConnectS,
	}
	if c.Local != nil {
		out.LocalHost, out.LocalPort = c.Local.Host, c.Local.Port
	}
	if c.Remote != nil {
		out.RemoteHost, out.RemotePort = c.Remote.Host, c.Remote.Port
	}
	if f := c.Framing; f != nil {
		out.LittleEndian, out.IncludesPrefix = f.Endianness == "host" && littleEndian, f.IncludesHeader
		out.Framing, out.FramingBytes = native.FramingPrefix, f.LengthPrefix
		if f.Fixed > 0 {
			out.Framing, out.FramingBytes = native.FramingFixed, f.Fixed
		}
	}
	return out
}

// queueConf returns the queue's configuration without a core and regions.
func queueConf(q *spec.Queue, rx bool) native.QueueConf {
	return native.QueueConf{
		Name:    q.Name,
		Tx:      !rx,
		Direct:  q.Direct(),
		Core:    -1,
		Numbers: q.Numbers(),
	}
}

// addQueues adds the queues of one direction.
func (i *Interface) addQueues(queues []*spec.Queue, rx bool, plan preflight.CorePlan) ([]*Queue, error) {
	var out []*Queue
	for _, q := range queues {
		conf := queueConf(q, rx)
		if rx {
			conf.Numbers["timeout_us"] = i.hold(q)
		}
		var sizes []int
		if core, ok := plan.Core(q); ok {
			conf.Core = core
		}
		for _, name := range q.MemoryRegions {
			r, err := i.s.Region(name)
			if err != nil {
				return nil, q.Key("memory_regions").Wrap(err)
			}
			conf.Regions = append(conf.Regions, r.native)
			sizes = append(sizes, r.spec.BufSize)
		}
		if q.DefaultTimeout && q.TimeoutUS > 0 && q.BatchSize > 1 {
			i.s.note("interface %s: queue %s: a burst is delivered after %d us at most, as there is no timeout_us (0: only full bursts)",
				i.Name(), q.Name, q.TimeoutUS)
		}
		n, err := i.native.AddQueue(conf)
		if err != nil {
			return nil, q.Source.Wrap(err)
		}
		queue := &Queue{i: i, spec: q, rx: rx, native: n, sizes: sizes}
		i.s.queues.Store(n, queue)
		out = append(out, queue)
	}
	return out, nil
}

// addStatic passes the receive flows of the configuration to the engine.
func (i *Interface) addStatic() error {
	if i.spec.RX == nil || len(i.spec.RX.Flows) == 0 {
		return nil
	}
	var flows []flow.Flow
	for _, f := range i.spec.RX.Flows {
		flow := flow.Flow{Name: f.Name, ID: f.ID, Match: f.Match, Queues: f.QueueIDs(), Transforms: f.Transforms()}
		if err := i.prepareRx(&flow); err != nil {
			return f.Source.Wrap(err)
		}
		flows = append(flows, flow)
	}
	acts := func(f flow.Flow) bool { return len(f.Transforms) > 0 }
	if i.Engine() != schema.EngineDPDK && slices.ContainsFunc(flows, acts) { // the driver reports what the device does
		i.s.note("interface %s: transforms of receive flows: software", i.Name())
	}
	return i.spec.RX.Key("flows").Wrap(i.changeRx(i.rxFlows.table.Static(flows)))
}

// littleEndian reports the byte order of this host.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
