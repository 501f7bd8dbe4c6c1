package generate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// headerBytes is header_size of the reference's benchmark programs: what a frame has in front of payload_size.
const headerBytes = 64

// transforms are the header actions, with the bytes that each adds to a frame.
var transforms = map[string]int{"none": 0, "vlan": 4, schema.TunnelVXLAN: 50, schema.TunnelGRE: 38, schema.TunnelNVGRE: 42}

var (
	rawSides  = [2]string{"tx", "rx"}
	sending   = rule{"role", []string{roleLoopback, rawSides[0], roleBoth}}
	receiving = rule{"role", []string{roleLoopback, rawSides[1], roleBoth}}
	tunnelled = rule{"transform", []string{schema.TunnelVXLAN, schema.TunnelGRE, schema.TunnelNVGRE}}
)

// rawEngines are the engines of ports that can both send and receive.
var rawEngines = append([]string{"default"}, slices.DeleteFunc(slices.Clone(schema.InterfaceEngines), func(engine string) bool {
	return slices.Contains([]string{schema.EngineSocket, schema.EngineRDMA, schema.EnginePCAP}, engine)
})...)

var rawPair = &Pair{
	Name:  "raw-pair",
	Short: "generate the configuration of a raw port that sends and one that receives",
	Long: `raw-pair makes the configuration of tx_port, which sends UDP packets, and rx_port, which receives them. Each core of
--tx-queue-cores and --rx-queue-cores makes a queue with its own memory region; each receive queue has a flow, from UDP port --udp-port on.
The sections bench_tx and bench_rx have an entry for each queue.

  daqiri-run config generate raw-pair --engine loop
  daqiri-run config generate raw-pair --tx-address 0000:3b:00.0 --rx-address 0000:3b:00.1 --eth-dst-addr 02:00:00:00:00:02 \
    --tx-queue-cores 4-7 --rx-queue-cores 8-11 --output pair.yaml`,
	sides:     rawSides,
	addresses: [2]string{"tx-address", "rx-address"},
	options: withLists([]option{
		roles(rawSides),
		{"tx-address", device, "", sending, "`ADDRESS` of the interface that sends (default with --engine loop: loop0)"},
		{"rx-address", device, "", receiving, "`ADDRESS` of the interface that receives (default with --engine loop: loop1)"},
		{"engine", choice(rawEngines...), "default", rule{},
			"`ENGINE` of the interfaces: default (the address selects it), " + strings.Join(rawEngines[1:], ", ")},
		{"master-core", number(0, maxCore), "3", rule{}, "`CORE` that is kept free of packets"},
		{"tx-queue-cores", cores, "11", sending, "`CORES` of the transmit queues, one queue for each, such as 4,6-9"},
		{"rx-queue-cores", cores, "9", receiving, "`CORES` of the receive queues, one queue for each"},
		{"tx-worker-cores", cores, "", sending, "`CORES` of the entries of bench_tx (default: those of the queues)"},
		{"rx-worker-cores", cores, "", receiving, "`CORES` of the entries of bench_rx (default: those of the queues)"},
		{"eth-dst-addr", mac, "", rule{}, "Ethernet address `MAC` of the receiver (with --engine loop optional)"},
		{"eth-src-addr", mac, "", tunnelled, "Ethernet address `MAC` of the sender, for the outer header"},
		{"ip-src-addr", ipv4, "198.51.100.1", sending, "source `IP` of the first queue's packets; those of the others follow"},
		{"ip-dst-addr", ipv4, "198.51.100.129", sending, "destination `IP` of the first queue's packets; those of the others follow"},
		{"udp-port", number(1, 65535), "4096", rule{}, "UDP `PORT`, source and destination, of the first queue; those of the others follow"},
		{"memory-kind", memoryKind, "", rule{},
			"`KIND` of the memory regions: host, host_pinned, huge, device (default: device; with --engine loop, xdp\nand packet host)"},
		{"affinity", number(0, 65535), "0", rule{}, "`NUMBER` of the memory's NUMA node; of device memory the GPU"},
		{"num-bufs", number(1, 1<<24), "51200", rule{}, "`NUMBER` of buffers of each memory region"},
		{"buffer-size", number(headerBytes+1, 65535), "8064", rule{}, "`BYTES` of a buffer"},
		{"payload-size", number(1, 65535), "", sending, "`BYTES` behind the header of 64 (default: what fits the buffer)"},
		{"batch-size", number(1, 65535), "10240", rule{}, "`NUMBER` of packets of a burst"},
		{"transform", choice("none", "vlan", schema.TunnelVXLAN, schema.TunnelGRE, schema.TunnelNVGRE), "none", rule{},
			"headers that tx_port adds and rx_port removes: `WORD` none, vlan, vxlan, gre or nvgre; with one queue on each\nside and --engine"},
		{"outer-ip-src-addr", ipv4, "192.0.2.1", tunnelled, "source `IP` of the outer header"},
		{"outer-ip-dst-addr", ipv4, "192.0.2.2", tunnelled, "destination `IP` of the outer header"},
		{"daqiri-only", boolean, "false", rule{}, "leave out the sections of the benchmark programs"},
	}),
	prepare: prepareRaw,
}

// leaves returns the name of the option that leaves out a word of a list.
func leaves(word string) string { return "no-" + strings.ReplaceAll(word, "_", "-") }

// withLists inserts the options that leave out words of transmit queues' lists before the last option.
func withLists(options []option) []option {
	for _, k := range schema.TxLeaveOut() {
		for _, word := range k.Choices {
			options = slices.Insert(options, len(options)-1, option{leaves(word), boolean, "false", sending, k.LeaveOut})
		}
	}
	return options
}

// A list is a key of the template's transmit queues with its words.
type list struct {
	Key   string
	Words []string
}

// txLists returns the lists of transmit queues that have words.
func txLists(v map[string]any) (lists []list) {
	for _, k := range schema.TxLeaveOut() {
		words := slices.DeleteFunc(slices.Clone(k.Choices), func(word string) bool { return v[key(leaves(word))] == true })
		if len(words) > 0 {
			lists = append(lists, list{k.Name, words})
		}
	}
	return lists
}

// rawQueue is a queue of the template, with its benchmark worker.
type rawQueue struct {
	ID, Core, Worker, Port int
	Src, Dst               netip.Addr
}

func prepareRaw(p *Pair, v map[string]any, sides []bool) error {
	tx, err := rawQueues(v, "tx")
	if err != nil {
		return err
	}
	rx, err := rawQueues(v, "rx")
	if err != nil {
		return err
	}
	first, ports := v["udp_port"].(int), len(tx)
	if v["role"] != rawSides[0] {
		ports = len(rx) // every packet belongs to a flow
	}
	if max(ports, len(rx))+first-1 > 65535 {
		return fmt.Errorf("--udp-port: %d leaves no port for each of %d queues", first, max(ports, len(rx)))
	}
	src, dst := v["ip_src_addr"].(netip.Addr), v["ip_dst_addr"].(netip.Addr)
	for k := range tx {
		tx[k].Port, tx[k].Src, tx[k].Dst = first+k%ports, src, dst
		src, dst = src.Next(), dst.Next()
	}
	for k := range rx {
		rx[k].Port = first + k
	}
	v["tx_queues"], v["rx_queues"], v["tx_lists"] = tx, rx, txLists(v)
	if err := rawDefaults(p, v, sides); err != nil {
		return err
	}
	return rawSizes(v, len(tx) > 1 || len(rx) > 1)
}

// rawQueues returns the queues of a side.
func rawQueues(v map[string]any, side string) ([]rawQueue, error) {
	list := v[side+"_queue_cores"].([]int)
	workers := list
	if given, ok := v[side+"_worker_cores"].([]int); ok {
		workers = given
	}
	if len(workers) != len(list) {
		return nil, fmt.Errorf("--%s-worker-cores: expected one core for each of %d queues, not %d", side, len(list), len(workers))
	}
	var queues []rawQueue
	for k, c := range list {
		queues = append(queues, rawQueue{ID: k, Core: c, Worker: workers[k]})
	}
	return queues, nil
}

// rawDefaults sets what depends on the engine, and refuses what is missing.
func rawDefaults(p *Pair, v map[string]any, sides []bool) error {
	loop := v["engine"] == schema.EngineLoop
	defaults := []struct {
		name, loop string
		needed     bool
	}{
		{"tx-address", "loop0", sides[0]},
		{"rx-address", "loop1", sides[1]},
		{"eth-dst-addr", "00:00:00:00:00:00", sides[0] && v["daqiri_only"] == false || tunnel(v)},
		{"eth-src-addr", "02:00:00:00:00:01", tunnel(v)},
	}
	for _, d := range defaults {
		if k := key(d.name); v[k] == nil && loop {
			v[k] = d.loop
		} else if v[k] == nil && d.needed {
			return p.missing(d.name)
		}
	}
	if v["memory_kind"] == nil {
		v["memory_kind"] = schema.KindDevice
		if loop || v["engine"] == schema.EngineXDP || v["engine"] == schema.EnginePacket {
			v["memory_kind"] = schema.KindHost
		}
	}
	return nil
}

func tunnel(v map[string]any) bool { return v["transform"] != "none" && v["transform"] != "vlan" }

// rawSizes checks the sizes of packets and the conditions of --transform.
func rawSizes(v map[string]any, several bool) error {
	transform := v["transform"].(string)
	switch {
	case transform == "none":
	case several:
		return fmt.Errorf("--transform %s: only with one queue on each side", transform)
	case v["engine"] == "default":
		return fmt.Errorf("--transform %s: --engine is missing: expected an engine that adds headers", transform)
	}
	most := v["buffer_size"].(int) - headerBytes - transforms[transform]
	if v["payload_size"] == nil {
		v["payload_size"] = most
	}
	if n := v["payload_size"].(int); n > most || most < 1 {
		return fmt.Errorf("--payload-size: %d bytes and %d of headers do not fit the %d of --buffer-size", n, headerBytes+transforms[transform], v["buffer_size"])
	}
	if v["num_bufs"].(int) < v["batch_size"].(int) {
		return fmt.Errorf("--num-bufs: %d buffers are less than the %d packets of --batch-size", v["num_bufs"], v["batch_size"])
	}
	return nil
}
