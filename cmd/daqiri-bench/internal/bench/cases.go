package bench

import (
	"context"
	"embed"
)

// scripts are ours: each pipeline is one, to read, run and copy.
//
//go:embed scripts/*.lua
var scripts embed.FS

// Case is one thing to measure.
type Case struct {
	// Name is what the command line takes, and About describes in a line what is measured.
	Name, About string

	unit    string
	lower   bool    // smaller is better
	seconds float64 // its length, unless the user gives one
	run     func(ctx context.Context, b *bench, r *Result) error
}

const (
	mppsPerCPU   = "million packets per CPU second"
	perCPUSecond = "GB per CPU second"
	threadSecond = "GB per CPU second of the queues' thread"
	gpuRate      = "GB/s of payload"
)

// Cases lists all, in the order in which they run.
var Cases = []Case{
	{"loop_1024", "64-byte frames in bursts of 1024 through a flow to a handler, by reference", mppsPerCPU, false, 10, runLoop(false)},
	{"loop_copy", "the same with a copy of every packet", mppsPerCPU, false, 10, runLoop(true)},
	{"loop_flows_2", "two flows to two queues on one thread, in bursts of 1024, by reference", mppsPerCPU, false, 10, runLoopFlows(2)},
	{"loop_flows_8", "the same with eight flows and queues", mppsPerCPU, false, 10, runLoopFlows(8)},
	{"loop_flows_64", "64 flows to 16 queues, another in each burst", mppsPerCPU, false, 10, runLoopFlows(64, "--turns")},
	{"loop_queues", "a task, a queue and a flow for each core, on one looped interface", "million packets per second and task", false, 10, runLoopQueues},
	{"loop_changes", "64-byte frames through a queue of one task, while 100 queues with a flow each come and go beside it", mppsPerCPU, false, 60, runLoopChanges},
	{"script_handler", "what an on_burst handler adds to a burst of 32 packets: CPU time and allocations", "µs per burst", true, 10, runHandler},
	{"script_modify", "a handler that rewrites every packet's IPv4 source and counts a UDP port", mppsPerCPU, false, 10, runModify},
	{"rewrite", "s:rewrite of every packet's IPv4 source, checksums with it, and the way there and back", mppsPerCPU, false, 10, runRewrite},
	{"gaps", "s:gaps of one stream, in order, behind an s:rewrite that numbers packets, and the way there and back", mppsPerCPU, false, 10, runGaps},
	{"column", "a column of three fields of a burst of 1024 packets", "µs", true, 5, runColumns("column")},
	{"place", "the same of one field behind three parts that a packet may have or lack (VITA 49)", "µs", true, 5, runColumns("place")},
	{"udp_1024", "datagrams of 1024 bytes over loopback, with UDP_SEGMENT and UDP_GRO", "Gbit/s", false, 10, runUDP(1024)},
	{"udp_8000", "the same with 8000 bytes", "Gbit/s", false, 10, runUDP(8000)},
	{"udp_65000", "the same with 65000 bytes", "Gbit/s", false, 10, runUDP(65000)},
	{"udp_pairs", "datagrams of 1024 bytes over loopback, a pair of sender and receiver for each two cores", "Gbit/s", false, 10, runPairs},
	{"udp_plain_1024", "datagrams of 1024 bytes of a plain sender over veth (needs root)", "Gbit/s", false, 10, runPlain(1024)},
	{"udp_plain_8000", "the same with 8000 bytes", "Gbit/s", false, 10, runPlain(8000)},
	{"tcp", "a TCP stream over loopback", "Gbit/s", false, 20, runTCP},
	{"rdma_send", "messages of 64 KiB between two RDMA devices (needs some, and `ulimit -l unlimited`)", "Gbit/s", false, 10, runRDMA("send", "ib_send_bw")},
	{"rdma_write", "the same by writes into the peer's memory", "Gbit/s", false, 10, runRDMA("write", "ib_write_bw")},
	{"rdma_read", "the same by reads", "Gbit/s", false, 10, runRDMA("read", "ib_read_bw")},
	{"rdma_latency", "a message of 64 bytes there and back between two RDMA devices, by pipes, half the time on average", "µs", true, 10, runRDMA("latency", "ib_send_lat")},
	{"write_pcap_1024", "frames of 1024 bytes from memory into a pcap file", "GB/s", false, 10, runWrite("pcap", 1024)},
	{"write_pcap_8000", "the same with 8000 bytes", "GB/s", false, 10, runWrite("pcap", 8000)},
	{"write_pcapng_1024", "the same into a pcapng file, of 1024 bytes", "GB/s", false, 10, runWrite("pcapng", 1024)},
	{"write_pcapng_8000", "and of 8000 bytes", "GB/s", false, 10, runWrite("pcapng", 8000)},
	{"write_raw_1024", "frames of 1024 bytes from memory into a raw file", "GB/s", false, 10, runWrite("raw", 1024)},
	{"write_raw_8000", "the same with 8000 bytes", "GB/s", false, 10, runWrite("raw", 8000)},
	{"write_blocks_1024", "frames of 1024 bytes put in order, 4 MiB a block, into a block file", "GB/s", false, 10, runWrite("blocks", 1024)},
	{"write_blocks_8000", "the same with 8000 bytes", "GB/s", false, 10, runWrite("blocks", 8000)},
	{"s3", "frames of 1024 bytes from memory as objects of 256 frames each to an S3 server of its own (needs versitygw)", "GB/s", false, 20, runS3},
	{"reorder_256", "payloads of 256 bytes put in order, into blocks of 4 MiB, on one thread", perCPUSecond, false, 5, runReorder(256)},
	{"reorder_1024", "the same with 1024 bytes", perCPUSecond, false, 5, runReorder(1024)},
	{"reorder_4096", "the same with 4096 bytes", perCPUSecond, false, 5, runReorder(4096)},
	{"reorder_8192", "the same with 8192 bytes", perCPUSecond, false, 5, runReorder(8192)},
	{"heaps_1024", "pieces of 1024 bytes put into heaps of 4 MiB, by id and byte offset, on one thread", perCPUSecond, false, 5, runHeaps(1024)},
	{"heaps_8192", "the same with 8192 bytes", perCPUSecond, false, 5, runHeaps(8192)},
	{"share", "payloads of 8192 bytes put in order, into blocks of 256 KiB that another process maps and releases", threadSecond, false, 20, runShare},
	{"convert", "int16 of the network's order to fp32, from memory to memory, in pieces of 8 KiB", perCPUSecond, false, 10, runConvert},
	{"convert_12", "packed 12-bit elements to fp32, from memory to memory, in pieces of 8 KiB", perCPUSecond, false, 10, runConvert12},
	{"gpu_reorder", "payloads put in order in a GPU's memory: 8192 bytes, 16384 packets a list; of 1024 and 4096, and 1024 a list, too", gpuRate, false, 5, gpuReorder.run},
	{"gpu_convert", "the same with int16 of the network's order to fp32, of 4096 bytes; int8 to fp32 and int4 to fp16, too", gpuRate, false, 5, gpuConvert.run},
	{"gpu_convert_12", "the same with packed 12-bit elements to fp32, of 4092 bytes; those of Mono12p to int16 and offset binary of 4 bits to fp16, too", gpuRate, false, 5, gpuConvert12.run},
	{"gpu_gather", "payloads from pinned memory into a GPU's by a reorder stage, on one thread, and by its kernel alone; and what a packet's plan takes", gpuRate, false, 10, gpuGather.run},
	{"gpu_write", "blocks of 4 MiB that a GPU put in order, from its memory into a file", "GB/s", false, 10, runGPUWrite},
	{"gpu_pipeline", "datagrams over loopback, put in order in a GPU's memory as fp32, then a kernel of the script (or --workload); and how soon its handler has a block (needs NVRTC)", "Gbit/s", false, 30, runGPUPipeline},
	{"gn_echo", "a kernel's descriptor to the proxy and back, median, on a GPU where there is one with NVRTC, else on the host (needs a compiler)", "ns", true, 10, runGNEcho},
	{"gn_rate", "descriptors of kernels through one ring, each of which adds to a signal; through four rings of two queues, and payload out of a GPU and into it", "million descriptors per second", false, 20, runGNRate},
	{"gn_send", "packets of 1024 bytes that a kernel sends over the loop engine, which copies each", "million packets per second", false, 20, runGNEngine("send")},
	{"gn_receive", "the same sent by the CPU and received by a kernel", "million packets per second", false, 20, runGNEngine("receive")},
	{"capture_pcap", "the highest rate of 8000-byte datagrams over veth at which nothing is lost (needs root)", "GB/s", false, 170, runCapture},
	{"dpdk_null", "what DPDK's net_null receives, sent on by a handler, in bursts of 512", mppsPerCPU, false, 10, runDPDK(false, true)},
	{"dpdk_null_native", "the same by a native stage", mppsPerCPU, false, 10, runDPDK(false, false)},
	{"dpdk_veth", "what DPDK's net_af_packet receives at either end of a veth pair, sent on by a handler (needs root)", mppsPerCPU, false, 10, runDPDK(true, true)},
	{"dpdk_veth_native", "the same by a native stage", mppsPerCPU, false, 10, runDPDK(true, false)},
	{"xdp", "frames of 64 bytes that go round through both ends of a veth pair by AF_XDP, on one thread (needs root)", mppsPerCPU, false, 30, runXDP},
	{"replay", "frames of 60 bytes from a capture, flat out, over and over, counted", "million packets per second", false, 10, runReplay},
	{"replay_veth", "the same onto a veth pair (needs root)", "million packets per second", false, 10, runReplayVeth},
	{"replay_gaps", "how far gaps are off that a capture has, sent onto a veth pair and captured by tcpdump, median (needs root)", "µs", true, 10, runReplayGaps},
	{"latency", "from the kernel's stamp of a datagram to the handler, median", "µs", true, 10, runLatency},
	{"pacing", "how far gaps between paced packets are off, at the receiver: 99 of 100, at 1 Mpps (and 100 and 10 kpps)", "ns", true, 15, runPacing},
	{"flows", "a packet's way through a table of 100 mixed rules; of 1, 64 and 10,000 too, and flows added in a second", "ns", true, 10, runFlows},
	{"start", "a script that receives one burst, from the start of its process to the end", "ms", true, 3, runStart},
}
