package schema

// Values of stream_type.
const (
	StreamRaw    = "raw"    // every interface carries Ethernet frames
	StreamSocket = "socket" // every interface is a TCP, UDP or RoCE endpoint
	StreamMixed  = "mixed"  // each interface is either kind (an extension)
)

// Kinds of memory region.
const (
	KindHuge       = "huge"
	KindDevice     = "device"
	KindHostPinned = "host_pinned"
	KindHost       = "host"
	KindDark       = "dark" // for tests
)

// regionKinds has a row per kind: its description, and the processors that access it, in the terms of reorder_type.
var regionKinds = []struct {
	name, words string
	by          []string
}{
	{KindHost, "small pages", []string{"cpu"}},
	{KindHuge, "pages of 2 MiB while free ones last, otherwise small ones; the report states which", []string{"cpu"}},
	{KindHostPinned, "host memory that GPUs read and write in place, on pages of 2 MiB while free ones last", []string{"cpu", "gpu"}},
	{KindDevice, "the memory of the GPU that `affinity` numbers. Where its engine reaches no GPU, a queue uses pinned host memory instead. Where it does, the only region of the only queue takes packets whole, of which the host reads the first 128 bytes", []string{"gpu"}},
	{KindDark, "for tests: host memory that the CPU can't read where packets lie, for segments behind the first of engine loop", nil},
}

// Values of poll_mode.
const (
	PollIndirect = "indirect" // a pinned native worker serves the queue
	PollDirect   = "direct"   // the thread that requests a burst polls
)

// Names of engines.
const (
	EngineLoop    = "loop"
	EngineSocket  = "socket"
	EngineXDP     = "xdp"
	EngineDPDK    = "dpdk"
	EngineRDMA    = "rdma"
	EngineIBVerbs = "ibverbs"
	EnginePCAP    = "pcap"
	EnginePacket  = "packet"
)

// InterfaceEngines are the values of an interface's engine key, and of the option Engine.
var InterfaceEngines = []string{EngineLoop, EngineSocket, EngineXDP, EngineDPDK, EngineRDMA, EngineIBVerbs, EnginePCAP, EnginePacket}

// Types of flow action.
const (
	ActionQueue       = "queue"
	ActionVLANPush    = "vlan_push"
	ActionVLANPop     = "vlan_pop"
	ActionTunnelEncap = "tunnel_encap"
	ActionTunnelDecap = "tunnel_decap"
)

// Types of tunnel.
const (
	TunnelVXLAN = "vxlan"
	TunnelGRE   = "gre"
	TunnelNVGRE = "nvgre"
)

// Methods of reorder.
const (
	MethodSeqBatchNumber     = "seq_batch_number"
	MethodSeqPacketsPerBatch = "seq_packets_per_batch"
)

// Words that the keys of a replay accept beside numbers.
const (
	SpeedMax     = "max"     // of speed
	LoopsForever = "forever" // of loops
)

// DefaultTimeoutUS is how long a receive queue of frames gathers a burst if the configuration has no timeout: the reference then waits without a
// limit until the burst is full. An explicit 0 selects that behavior.
const DefaultTimeoutUS = 1000
