package spec

import (
	"net/netip"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Config is a checked configuration with all defaults set. It is immutable after parsing and safe for concurrent reading.
type Config struct {
	Source        `json:"-"`
	File          string // name of the source text
	Version       int
	StreamType    string // raw, socket or mixed
	Engine        string // engine key of the file; see Interface.EngineName for the effective engine
	MasterCore    int
	LogLevel      string
	DrainNS       int64 // maximum time to send pending packets at the end, ns
	Debug         bool
	Loopback      Loopback
	TxMetaBuffers int
	RxMetaBuffers int
	MemoryRegions []*MemoryRegion
	Interfaces    []*Interface

	// Extra holds the unknown top-level sections (bench_rx and so on) as map[string]any, []any, string, bool, int64, float64 or nil.
	Extra map[string]any

	written *node
	unused  []UnusedRegion
}

// UnusedRegion is a memory region that the configuration does not refer to. A script may.
type UnusedRegion struct {
	Name string
	Issue
}

// Unused returns the regions that the configuration does not refer to.
func (c *Config) Unused() []UnusedRegion { return c.unused }

// Written returns the configuration as written, with other sections and overrides, in the types of Extra.
func (c *Config) Written() any { return c.written.value() }

// Region returns the memory region of that name, or nil.
func (c *Config) Region(name string) *MemoryRegion {
	for _, r := range c.MemoryRegions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Interface returns the interface of that name, or nil.
func (c *Config) Interface(name string) *Interface {
	for _, i := range c.Interfaces {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// Loopback selects whether frames leave the process, and describes the wire of the loop engine. Loss, Dup and similar values are probabilities per
// frame.
type Loopback struct {
	Source  `json:"-"`
	Mode    string  `json:"mode"` // "", sw (the loop engine) or hw (inside the NIC)
	Seed    int64   `json:"seed"`
	Clock   string  `json:"clock"` // real or virtual
	Loss    float64 `json:"loss"`
	Dup     float64 `json:"dup"`
	Reorder float64 `json:"reorder"`
	Corrupt float64 `json:"corrupt"`
	DelayNS int64   `json:"delay_ns"`
	RateBPS int64   `json:"rate_bps"` // bits per second; 0: unlimited
}

// MemoryRegion is a fixed pool of equal buffers.
type MemoryRegion struct {
	Source   `json:"-"`
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`               // kind to allocate
	Declared string   `json:"declared,omitempty"` // the file's kind, if replaced by Options.Memory
	Affinity int      `json:"affinity"`           // NUMA node, or GPU for device memory
	Access   []string `json:"access"`             // local, rdma_read, rdma_write
	NumBufs  int      `json:"num_bufs"`
	BufSize  int      `json:"buf_size"` // bytes
	Owned    bool     `json:"owned"`
	Shared   bool     `json:"shared"` // in a file of its own, which other processes can map
}

// declaredKind returns the kind given by the file.
func (r *MemoryRegion) declaredKind() string {
	if r.Declared != "" {
		return r.Declared
	}
	return r.Kind
}

// Interface is a port with its queues and flows.
type Interface struct {
	Source       `json:"-"`
	Name         string
	Address      string
	Engine       string        // the interface's own engine key, usually empty
	SocketConfig *SocketConfig // nil on a raw interface
	RoCEConfig   *RoCEConfig   // nil unless the scheme is roce
	Replay       *Replay       // for engine pcap; nil if nothing is received
	Answers      []netip.Addr  // addresses answered by ARP and neighbor discovery (an extension)
	RX           *RX           // nil: does not receive
	TX           *TX           // nil: does not transmit

	engine string
	why    string // reason for the engine, where the file leaves the choice to the device
	verbs  bool   // the file leaves it to engine ibverbs, whatever the options say
}

// EngineName returns the engine of the interface: one of InterfaceEngines.
func (i *Interface) EngineName() string { return i.engine }

// EngineReason returns why the interface has its engine if the device decided; otherwise it returns an empty text.
func (i *Interface) EngineReason() string { return i.why }

// Queues returns the receive queues, then the transmit queues.
func (i *Interface) Queues() (queues []*Queue) {
	if i.RX != nil {
		queues = append(queues, i.RX.Queues...)
	}
	if i.TX != nil {
		queues = append(queues, i.TX.Queues...)
	}
	return queues
}

// Socket reports whether the interface is an endpoint (tcp, udp, roce) rather than a raw port.
func (i *Interface) Socket() bool { return i.SocketConfig != nil }

// RX is the receive side of an interface.
type RX struct {
	Source              `json:"-"`
	FlowIsolation       bool       `json:"flow_isolation"`
	Outgoing            bool       `json:"outgoing,omitempty"`
	Joined              string     `json:"joined,omitempty"` // region of long frames; empty: joined ones are dropped
	DynamicFlowCapacity int        `json:"dynamic_flow_capacity"`
	HardwareTimestamps  bool       `json:"hardware_timestamps"`
	Queues              []*Queue   `json:"queues"`
	Flows               []*Flow    `json:"flows,omitempty"`
	FlexItems           []FlexItem `json:"flex_items,omitempty"`
	ReorderConfigs      []*Reorder `json:"reorder_configs,omitempty"`
}

// TX is the transmit side of an interface.
type TX struct {
	Source       `json:"-"`
	AccurateSend bool     `json:"accurate_send"`
	Queues       []*Queue `json:"queues"`
	Flows        []*Flow  `json:"flows,omitempty"`
}

// Queue is a receive or transmit queue. A field holds the value of the key that has its JSON name, and is zero if queues of this direction lack the key.
type Queue struct {
	Source        `json:"-"`
	Name          string   `json:"name"`
	ID            int      `json:"id"`
	PollMode      string   `json:"poll_mode"`  // indirect or direct
	CPUCore       int      `json:"cpu_core"`   // -1: not pinned, or poll_mode direct
	BatchSize     int      `json:"batch_size"` // packets per burst; per poll if direct
	TimeoutUS     int64    `json:"timeout_us"` // 0: deliver full batches only; sockets: immediately
	MemoryRegions []string `json:"memory_regions"`
	Offloads      []string `json:"offloads,omitempty"`
	PacingMbps    int64    `json:"pacing_mbps,omitempty"` // 0: line rate
	InlineData    bool     `json:"inline_data,omitempty"`
	TxKernel      string   `json:"tx_kernel,omitempty"`

	section  *schema.Section
	regionAt []Source // positions of the entries of MemoryRegions

	// DefaultTimeout reports that TimeoutUS is not from the configuration.
	DefaultTimeout bool `json:"-"`
}

// Direct reports whether the thread that requests bursts polls the queue.
func (q *Queue) Direct() bool { return q.PollMode == schema.PollDirect }

// SocketConfig is the endpoint part of an interface.
type SocketConfig struct {
	Source             `json:"-"`
	Mode               string    `json:"mode"` // client or server
	Local              *Endpoint `json:"local_addr,omitempty"`
	Remote             *Endpoint `json:"remote_addr,omitempty"`
	MaxPayloadSize     int       `json:"max_payload_size"` // bytes; 0: limited by the buffers
	RetryConnectS      int       `json:"retry_connect_s"`
	MaxBurstIntervalMS int64     `json:"max_burst_interval_ms"` // ignored
	MinIPGNS           int64     `json:"min_ipg_ns"`            // ignored
	Framing            *Framing  `json:"framing,omitempty"`     // nil: chunks as they arrive
}

// Scheme returns tcp, udp or roce.
func (s *SocketConfig) Scheme() string {
	for _, e := range []*Endpoint{s.Local, s.Remote} {
		if e != nil {
			return e.Scheme
		}
	}
	return ""
}

// Framing splits a TCP stream into messages, either of fixed length or each preceded by its length.
type Framing struct {
	Source         `json:"-"`
	Fixed          int    `json:"fixed,omitempty"`         // length of every message in bytes
	LengthPrefix   int    `json:"length_prefix,omitempty"` // length of the prefix: 1, 2, 4 or 8 bytes
	Endianness     string `json:"endianness,omitempty"`    // network or host
	IncludesHeader bool   `json:"includes_header"`         // the length includes the prefix
}

// RoCEConfig holds the RDMA transport settings.
type RoCEConfig struct {
	Source        `json:"-"`
	TransportMode string `json:"transport_mode"` // RC, UC or UD
	GIDIndex      int    `json:"gid_index"`      // for manually connected queue pairs; -1: the address's own
	MTU           int    `json:"mtu"`            // maximum bytes of a packet on the wire; 0: the port's
	TrafficClass  int    `json:"traffic_class"`  // -1: system default
}
