package harness

// LoopHead and LoopTail are a configuration of one loop port, without a NIC, before and behind what else its receiving side has: more
// queues, and flows.
const (
	LoopHead = `
daqiri:
  cfg:
    version: 1
    stream_type: "raw"
    master_core: 0
    loopback: "sw"
    memory_regions:
    - { name: "buffers", kind: "host", affinity: 0, num_bufs: 4096, buf_size: 2048 }
    interfaces:
    - name: "port"
      address: "loop0"
      rx:
        queues:
        - { name: "a", id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: ["buffers"] }
`
	LoopTail = `      tx:
        queues:
        - { name: "out", id: 0, cpu_core: -1, batch_size: 64, memory_regions: ["buffers"] }
`
)
