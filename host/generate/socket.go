package generate

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Limits of a message: the length of a datagram over IPv4, and of max_payload_size.
const (
	maxDatagram = 65507
	maxPayload  = 65535
)

var (
	socketSides = [2]string{"server", "client"}
	ofServer    = rule{"role", []string{roleLoopback, socketSides[0], roleBoth}}
	ofClient    = rule{"role", []string{roleLoopback, socketSides[1], roleBoth}}
	ofKernel    = rule{"transport", []string{spec.SchemeTCP, spec.SchemeUDP}}
	ofRoCE      = rule{"transport", []string{spec.SchemeRoCE}}
)

var socketPair = &Pair{
	Name:  "socket-pair",
	Short: "generate the configuration of a server and its client over udp, tcp or roce",
	Long: `socket-pair makes the configuration of the endpoints udp_server and udp_client (tcp_, roce_ with the other transports), each
with a queue in each direction, and the sections that the benchmark programs read.

  daqiri-run config generate socket-pair --transport udp
  daqiri-run config generate socket-pair --transport tcp --server-address 10.0.0.1 --client-address 10.0.0.2 --role both --output-dir .`,
	sides:     socketSides,
	addresses: [2]string{"server-address", "client-address"},
	options: []option{
		{"transport", choice(spec.SchemeUDP, spec.SchemeTCP, spec.SchemeRoCE), spec.SchemeUDP, rule{}, "`WORD` udp, tcp or roce"},
		roles(socketSides),
		{"server-address", ip, "127.0.0.1", rule{}, "`IP` address of the server"},
		{"client-address", ip, "127.0.0.1", rule{}, "`IP` address of the client"},
		{"server-port", number(1, 65535), "5001", rule{}, "`PORT` of the server"},
		{"client-port", number(1, 65535), "5002", ofKernel, "`PORT` of the client, of udp and tcp"},
		{"master-core", number(0, maxCore), "3", rule{}, "`CORE` that is kept free of packets"},
		{"server-queue-core", core, "8", ofServer, "`CORE` of the server's queues; -1 is not pinned"},
		{"client-queue-core", core, "7", ofClient, "`CORE` of the client's queues"},
		{"server-worker-core", core, "9", ofServer, "`CORE` of the server's benchmark thread"},
		{"client-worker-core", core, "10", ofClient, "`CORE` of the client's benchmark thread"},
		{"message-size", number(1, 1<<30), "1024", rule{}, "`BYTES` of a message"},
		{"num-bufs", number(1, 1<<24), "", rule{}, "`NUMBER` of buffers of each memory region (default: 4096, of roce 20)"},
		{"memory-kind", memoryKind, schema.KindHost, rule{},
			"`KIND` of the memory regions: host, host_pinned, huge, device"},
		{"affinity", number(0, 65535), "0", rule{}, "`NUMBER` of the memory's NUMA node; of device memory the GPU"},
		{"rx-batch-size", number(1, 32), "1", ofKernel, "`NUMBER` of packets of a received burst, of udp and tcp"},
		{"iterations", number(1, 1<<30), "1000", ofKernel, "`NUMBER` of messages of the benchmark, of udp and tcp"},
		{"tx-depth", number(1, 1024), "128", ofRoCE, "`NUMBER` of sends in flight of the benchmark, of roce"},
		{"rx-depth", number(1, 1024), "512", ofRoCE, "`NUMBER` of posted receives of the benchmark, of roce"},
		{"roce-transport-mode", choice("RC", "UC", "UD"), "RC", ofRoCE, "`MODE` of the connection, of roce: RC, UC or UD"},
		{"daqiri-only", boolean, "false", rule{}, "leave out the sections of the benchmark programs"},
	},
	prepare: prepareSocket,
}

// socketSide is an endpoint of the template.
type socketSide struct {
	Name, Title, Mode, Region string
	Address                   netip.Addr
	Local, Remote             string // URIs; "" for none
	Core, Worker              int
}

func prepareSocket(_ *Pair, v map[string]any, sides []bool) error {
	transport, message := v["transport"].(string), v["message_size"].(int)
	server, client := v["server_address"].(netip.Addr), v["client_address"].(netip.Addr)
	if server.Is4() != client.Is4() {
		return fmt.Errorf("--client-address: %s and %s of --server-address are not of one IP version", client, server)
	}
	if transport == spec.SchemeUDP && message > maxDatagram {
		return fmt.Errorf("--message-size: %d bytes are more than the %d of a datagram", message, maxDatagram)
	}
	v["max_payload_size"] = min(message, maxPayload)
	if v["num_bufs"] == nil {
		v["num_bufs"] = 4096
		if transport == spec.SchemeRoCE {
			v["num_bufs"] = 20
		}
	}
	uri := func(side string) string {
		return transport + "://" + net.JoinHostPort(fmt.Sprint(v[side+"_address"]), strconv.Itoa(v[side+"_port"].(int)))
	}
	both := []socketSide{
		{Mode: "server", Title: "Server", Region: "SERVER", Address: server, Local: uri("server")},
		{Mode: "client", Title: "Client", Region: "CLIENT", Address: client, Local: uri("client"), Remote: uri("server")},
	}
	if transport == spec.SchemeRoCE { // the program connects the client
		both[1].Local, both[1].Remote = transport+"://"+bracketed(client), ""
	} else if v["server_port"] == v["client_port"] && server == client {
		return fmt.Errorf("--client-port: %d is the server's port on the same address", v["client_port"])
	}
	var made []socketSide
	for k, s := range both {
		if sides[k] {
			s.Name, s.Core, s.Worker = transport+"_"+s.Mode, v[s.Mode+"_queue_core"].(int), v[s.Mode+"_worker_core"].(int)
			made = append(made, s)
		}
	}
	v["endpoints"] = made
	return nil
}

// bracketed returns an address as URIs have it.
func bracketed(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}
