package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Limits of integers.
const (
	MaxCount = math.MaxInt32 // buffers of a region, bytes of a buffer
	maxU16   = math.MaxUint16
	maxU32   = math.MaxUint32
)

// DocumentSection is a whole file, which may have unknown sections next to daqiri; DaqiriSection is what daqiri contains.
var (
	DocumentSection = section("document", "", nil, Key{Name: "daqiri", Type: TypeMap, Map: DaqiriSection, Required: true})
	DaqiriSection   = section("daqiri", "", nil, Key{Name: "cfg", Type: TypeMap, Map: ConfigSection, Required: true})
)

// ConfigSection has the keys of cfg.
var ConfigSection = section("cfg", "The configuration of a session, below `daqiri: cfg:` or as the whole file.", []string{`
version: 1
stream_type: raw
engine: xdp
master_core: 0
log_level: info
drain: 500ms
tx_meta_buffers: 256
rx_meta_buffers: 1024
memory_regions:
- {name: packets, kind: huge, affinity: 0, num_bufs: 16384, buf_size: 2048}
interfaces:
- name: port
  address: eth1
  rx:
    queues:
    - {name: q, id: 0, cpu_core: 2, batch_size: 64, memory_regions: [packets]}
`},
	Key{Name: "version", Type: TypeInteger, Lo: 1, Hi: 1, Required: true, Words: "The version of this schema."},
	Key{Name: "stream_type", Type: TypeChoice, Choices: []string{StreamRaw, StreamSocket, StreamMixed}, Required: true,
		Words: "What interfaces are: `raw`, ports of Ethernet frames; `socket`, endpoints, each with a `socket_config`; `mixed`, both kinds."},
	Key{Name: "engine", Type: TypeChoice, Choices: []string{"default", "dpdk", "ibverbs", "socket", "gpunetio", "loop", "xdp", "packet"}, Default: "default",
		Words: "The engine of raw interfaces that name none; with `default` the address of each chooses it. Endpoints take " +
			"the engine of their scheme. `gpunetio` is as `default`: kernels work on queues of any engine."},
	Key{Name: "master_core", Type: TypeInteger, Lo: -1, Hi: maxU16, Required: true,
		Words: "A core to be kept free of packets: a queue with this `cpu_core` is warned of. Nothing runs there. -1: none."},
	Key{Name: "log_level", Type: TypeChoice, Choices: []string{"trace", "debug", "info", "warn", "error", "critical", "off"}, AnyCase: true, Default: "warn",
		Words: "The level from which on the program logs, from the open on. Where the key is absent, or the command line has `--log-level`, the level stays as it is."},
	Key{Name: "drain", Type: TypeDuration, Unit: "ns", Default: "2s",
		Words: "How long the end of a session continues to send what is queued, at most; what is left then counts as `stopped`. `--drain` overrides it."},
	Key{Name: "debug", Type: TypeBoolean, Default: false, NoEffect: "has no effect; use log_level"},
	Key{Name: "loopback", Type: TypeMap, Map: loopbackSection, Choices: []string{"", "sw", "hw"},
		Words: "`sw` serves raw interfaces by engine loop, in memory, and the map describes its wire. `hw` is loopback inside the network card, " +
			"which can't be opened in this version."},
	Key{Name: "tx_meta_buffers", Type: TypeInteger, Lo: 1, Hi: 1 << 20, Default: 256, Unit: "bursts",
		Words: "Bursts of each transmit queue that are filled or wait to be sent at a time."},
	Key{Name: "rx_meta_buffers", Type: TypeInteger, Lo: 1, Hi: 1 << 20, Default: 256, Unit: "bursts",
		Words: "Bursts of each receive queue that may be held at a time; 16 times as many of a socket without `timeout_us`, whose bursts are small. " +
			"Packets without one are dropped as `no_burst_buffer`."},
	Key{Name: "memory_regions", Type: TypeList, Items: TypeMap, Map: RegionSection, Words: "The pools of packet buffers that queues and reorder configs name."},
	Key{Name: "interfaces", Type: TypeList, Items: TypeMap, Map: interfaceSection, Required: true, Words: "The ports and endpoints, at least one."},
)

var loopbackSection = section("loopback", "The wire of engine loop. Its losses and other changes depend on `seed` alone: the same packets are lost in every run.", []string{`
loopback:
  mode: sw
  clock: virtual
  seed: 42
  loss: 0.001
  dup: 0.0001
  reorder: 0.0001
  corrupt: 0.00001
  delay: 5us
  rate: 10Gbit/s
`},
	Key{Name: "mode", Type: TypeChoice, Choices: []string{"sw"}, Required: true, Words: "Raw interfaces are served by engine loop."},
	Key{Name: "seed", Type: TypeInteger, Lo: 0, Hi: math.MaxInt64, Default: 0, Words: "The seed of the wire's random numbers."},
	Key{Name: "clock", Type: TypeChoice, Choices: []string{"real", "virtual"}, Default: "real",
		Words: "`virtual`: time moves when all tasks wait, so that a run takes as long as it computes and is the same each time. Engines loop and pcap have it."},
	Key{Name: "loss", Type: TypeProbability, Words: "The probability that a packet is lost (`wire_loss`)."},
	Key{Name: "dup", Type: TypeProbability, Words: "The probability that a packet arrives twice."},
	Key{Name: "reorder", Type: TypeProbability, Words: "The probability that a packet is kept back, behind the next 1 to 8 packets and for 1 ms at most."},
	Key{Name: "corrupt", Type: TypeProbability, Words: "The probability that a bit of a packet flips."},
	Key{Name: "delay", Type: TypeDuration, Unit: "ns", Words: "How long a packet is on its way."},
	Key{Name: "rate", Type: TypeRate, Unit: "bit/s",
		Words: "The wire's rate, of frames without FCS and preamble; a rate of 0 is refused. Where it is absent packets take no time; on the virtual clock they go at 100 Gbit/s."},
)

// RegionSection has the keys of memory_regions[].
var RegionSection = section("memory_regions[]", "A pool of packet buffers of one size.", []string{`
memory_regions:
- name: frames
  kind: huge
  affinity: 0
  shared: true
  num_bufs: 16384
  buf_size: 9000
- name: remote
  kind: host
  affinity: 0
  access: [local, rdma_write]
  owned: true
  num_bufs: 64
  buf_size: 1048576
`},
	Key{Name: "name", Type: TypeFilled, Required: true, Words: "What queues, reorder configs and scripts call it: one region each."},
	Key{Name: "kind", Type: TypeChoice, Choices: KindsFor(""), Required: true,
		Words: kindWords() + ". `--memory host` puts what can't be opened on small pages."},
	Key{Name: "affinity", Type: TypeInteger, Lo: 0, Hi: maxU16, Required: true, Words: "The NUMA node of the memory; of `device` the GPU."},
	Key{Name: "num_bufs", Type: TypeInteger, Lo: 1, Hi: MaxCount, Required: true, Unit: "buffers",
		Words: "How many buffers it has. A receive queue without a free one drops packets as `no_packet_buffer`."},
	Key{Name: "buf_size", Type: TypeInteger, Lo: 1, Hi: MaxCount, Required: true, Unit: "bytes",
		Words: "How long a packet, or its segment in this region, can be. Longer ones are dropped as `too_long`."},
	Key{Name: "access", Type: TypeList, Items: TypeChoice, Choices: []string{"local", "rdma_read", "rdma_write"}, Default: []string{"local"}, Where: "roce",
		Words: "What peers may do with the memory. `rdma_read` and `rdma_write` are warned of where no interface is a `roce://` endpoint."},
	Key{Name: "owned", Type: TypeBoolean, Default: true, Words: "Whether the session may allocate the memory. With `false` the open needs a binding to memory of the application."},
	Key{Name: "shared", Type: TypeBoolean, Default: false, Words: "Whether other programs can read the memory without a copy, through `s:share`. Not for `kind: device`."},
)

// KindsFor returns the kinds of memory that a processor, cpu or gpu, can access; all for "".
func KindsFor(who string) (names []string) {
	for _, k := range regionKinds {
		if who == "" || slices.Contains(k.by, who) {
			names = append(names, k.name)
		}
	}
	return names
}

func kindWords() string {
	var words []string
	for _, k := range regionKinds {
		words = append(words, fmt.Sprintf("`%s`: %s", k.name, k.words))
	}
	return strings.Join(words, ". ")
}
