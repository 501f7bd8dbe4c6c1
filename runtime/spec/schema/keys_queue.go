package schema

import "slices"

const (
	maxBatch    = 1 << 20
	MaxSegments = 4
	directBatch = 256 // packets per poll of a direct queue
)

// queueKeys returns the keys common to receive and transmit queues.
func queueKeys(more ...Key) []Key {
	return append([]Key{
		{Name: "name", Type: TypeFilled, Required: true, Words: "What scripts and the ledger call it: one queue of the side each."},
		{Name: "id", Type: TypeInteger, Lo: 0, Hi: maxU16, Required: true, Engine: true, Words: "Its number in its direction."},
		{Name: "poll_mode", Type: TypeChoice, Choices: []string{PollIndirect, PollDirect}, Default: PollIndirect,
			Words: "Who serves the queue: `indirect`, a native thread; `direct`, the task that asks for bursts or sends."},
		{Name: "cpu_core", Type: TypeInteger, Lo: -1, Hi: maxU16, Required: true, When: "with `poll_mode: indirect`",
			Words: "The core that the queue's thread is pinned to; queues with one core share a thread. -1: a thread of its own, pinned nowhere. " +
				"`--cores` maps them to this machine's. A direct queue has none."},
		{Name: "batch_size", Type: TypeInteger, Lo: 1, Hi: maxBatch, Required: true, When: "with `poll_mode: indirect`", Default: directBatch, Unit: "packets",
			Engine: true, Words: "How many packets a burst has at most."},
		{Name: "memory_regions", Type: TypeList, Items: TypeText, Required: true, When: "except on `roce://` endpoints",
			Words: "The regions of its packets' buffers, at most 4. Of several each packet has a segment in each, filled in turn up to the region's " +
				"`buf_size`: headers and payload apart. A queue of a `roce://` endpoint may have none: operations name their region then."},
	}, more...)
}

var rxQueueSection = section("rx.queues[]", "A receive queue: a burst is delivered when it has `batch_size` packets or its time is up.", []string{`
queues:
- name: worker
  id: 0
  poll_mode: indirect
  cpu_core: 2
  batch_size: 256
  timeout_us: 200
  memory_regions: [headers, payload]
- name: polled
  id: 1
  poll_mode: direct
  memory_regions: [packets]
`}, queueKeys(
	Key{Name: "timeout_us", Type: TypeInteger, Lo: 0, Hi: maxU32, Default: DefaultTimeoutUS, Unit: "us", Engine: true,
		Words: "A burst is delivered this long after its first packet at the latest. 0: raw, only when it is full; roce, tcp and udp, at once, which is " +
			"the default there. Batches of a reorder config have this time, but no default; their queue delivers after a quarter of it. A direct queue has none."},
)...)

var txQueueSection = section("tx.queues[]", "A transmit queue.", []string{`
queues:
- name: worker
  id: 0
  cpu_core: 3
  batch_size: 64
  pacing_mbps: 8000
  offloads: [tx_eth_src]
  memory_regions: [packets]
- name: polled
  id: 1
  poll_mode: direct
  batch_size: 32
  memory_regions: [packets]
`, `
queues:
- name: gpu
  id: 0
  cpu_core: 3
  batch_size: 64
  memory_regions: [packets]
  inline_data: true
  gpunetio: {tx_kernel: per_burst}
`}, queueKeys(
	Key{Name: "timeout_us", Type: TypeInteger, Lo: 0, Hi: maxU32, Default: 0, Unit: "us", NoEffect: "has no effect on a transmit queue"},
	Key{Name: "offloads", Type: TypeList, Items: TypeChoice, Choices: []string{"tx_eth_src"}, Where: "raw", Engine: true,
		Words:     "`tx_eth_src`: the interface's Ethernet address becomes the source of each frame.",
		NotSocket: "a socket sends no Ethernet header that could be filled in",
		LeaveOut:  "leave out the offload tx_eth_src, which sets the source address of frames"},
	Key{Name: "pacing_mbps", Type: TypeInteger, Lo: 0, Hi: 100_000_000, Default: 0, Unit: "Mbit/s", Engine: true,
		Words: "The queue's rate, of what it holds, without FCS and preamble. Software keeps it, packet by packet. 0: as fast as it goes."},
	Key{Name: "inline_data", Type: TypeBoolean, Default: false,
		NoEffect: "has no effect: the engines decide what they copy"},
	Key{Name: "gpunetio", Type: TypeMap, Map: gpunetioSection, Words: "Which kernels send through the queue; absent: all may."},
)...)

// TxQueueKeys returns the keys that only transmit queues have.
func TxQueueKeys() []string {
	return slices.DeleteFunc(txQueueSection.Names(), func(name string) bool { return rxQueueSection.Find(name) != nil })
}

// TxLeaveOut returns the keys of transmit queues that config generate lists words of.
func TxLeaveOut() (keys []Key) {
	for _, k := range txQueueSection.Keys {
		if k.LeaveOut != "" {
			keys = append(keys, k)
		}
	}
	return keys
}

var gpunetioSection = section("gpunetio", "Which kernels send through the queue, of any engine.", []string{`
gpunetio:
  tx_kernel: per_burst
`},
	Key{Name: "tx_kernel", Type: TypeChoice, Choices: []string{"persistent", "per_burst"}, Default: "persistent",
		Words: "`persistent`: a kernel that stays posts into a ring of the queue (`k:start{ tx = q }`). `per_burst`: a kernel runs for each burst of a pipe " +
			"to the queue (`k:stage`), and a persistent one is refused."},
)
