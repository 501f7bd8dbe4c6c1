package preflight

import (
	"slices"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Feature is a feature of DOCA GPUNetIO and its state in this version.
type Feature struct {
	Name  string `json:"name"`
	State string `json:"state"` // Here, OverRDMA, NothingToDo, NICOnly, Missing
	Words string `json:"words"`
}

// States of features.
const (
	Here        = "here"
	OverRDMA    = "over rdma"
	NothingToDo = "nothing to do"
	NICOnly     = "NIC only"
	Missing     = "missing"
)

// GPUNetIO returns the features of DOCA GPUNetIO.
func GPUNetIO() []Feature {
	return []Feature{
		{"Ethernet send and receive queues", Here, "of any engine: tests run `loop`, `udp`, AF_XDP, AF_PACKET and `dpdk`"},
		{"handle of a queue for kernels", Here, "arguments of `k:start`: `{ txq = 1 }`, `{ rxq = 1 }`, `{ qp = 1 }`"},
		{"low- and high-level API; thread, warp and block scope", Here, "`gn.h`, and under the names of DOCA the headers of DOCA (`doca_gpunetio_dev_*.cuh`), or `doca_gpu.h`, which has all of them"},
		{"weak and strong mode", Here, "the kernel names the slot (`gn_room`, `gn_commit`, `gn_publish`), or takes the next one"},
		{"shared send queue, cooperative receive", Here, "any threads of a kernel share a ring"},
		{"semaphores; several queues and semaphores a kernel", Here, "between blocks, and to the script: 16 rings of a kind, 64 semaphores"},
		{"CPU proxy with a progress call", Here, "the queue's poller, or `i:progress()`"},
		{"steering", Here, "flows choose the queue, as for every receiver"},
		{"send at a time", Here, "in the descriptor, kept by the queue's engine"},
		{"timers of each operation", Here, "`k:start{ timers = true }`: histograms of the ring's line, in metrics and reports"},
		{"DMA copies", Here, "`gn_copy` on any queue's ring, between memory that the CPU reaches"},
		{"file writes from a kernel", Here, "`gn_file` adds to the files of a script's writers, from the host's and a GPU's memory"},
		{"dispatch to a second kernel", Here, "`sem:on_ready` launches it with the values of the first one's item"},
		{"put, inline put, get, put with signal, signal, atomics, compare-and-swap", OverRDMA, "to what the peer of a connection lends: tests run soft-RoCE; over `loop` between regions of the session"},
		{"two-sided send and receive", OverRDMA, "as over every engine"},
		{"immediate values of puts and sends", OverRDMA, "`gn_put_imm`, `gn_send_imm`, `gn_fill_imm`; `gn_packet` and `b.imm` have them at the receiver; also over `loop`; elsewhere the operation fails"},
		{"shared queue pair, counters", OverRDMA, "the ring's operations share the connection's queue pair, signals are atomics; a ring waits for tickets of another one (`gn_fill_wait`)"},
		{"regions and protection domain of ordinary verbs", OverRDMA, "memory regions and `c:lend`, as without kernels"},
		{"a process of its own for kernels", Here, "on the host, and on a GPU where the program has nothing else to do. It is killed when it hangs or fails, and started again. Beside other kernels and stages of the GPU it runs in the program's process"},
		{"`engine: gpunetio` of configurations", Here, "as `default`: the address chooses the engine, and kernels work on any"},
		{"`tx.queues[].gpunetio.tx_kernel`", Here, "`per_burst`: the queue is for kernels of pipes (`k:stage`), and refuses persistent ones"},
		{"work queue entries, doorbell records and completion entries by hand", Here, "`{ mlx5 = 1 }` in `args` of `k:start` is a queue pair in the format of an mlx5 NIC, which the proxy interprets over any engine. " +
			"It takes RDMA write and send (each also with an immediate value), read, fetch-and-add, compare-and-swap, nop and dump. An entry has 64 bytes, of which up to 28 are inline data. Every address and key is checked. An entry in error gets its syndrome and stops the queue"},
		{"multicast table (MCST)", NothingToDo, "rings lie where both sides see them in order"},
		{"rings moved between CPU and GPU memory", Missing, "rings lie in pinned memory; what a kernel keeps for itself lies in the GPU's"},
		{"doorbell registers, BlueFlame, queues in GPU memory", NICOnly, "they need a NIC and its library; not planned"},
	}
}

// GPUNetIOName is a name in DOCA's documents, and its equivalent here.
type GPUNetIOName struct {
	Name string // function, header without suffix, or sample; * for a common prefix
	Same bool   // the headers have a function of that name
	Here string
}

// GPUNetIONames returns the functions, headers and samples named in DOCA's documents.
func GPUNetIONames() []GPUNetIOName {
	return []GPUNetIOName{
		{"doca_gpu_create", false, "`daqiri.open`: memory regions of kind `device` and `daqiri.kernel` name their GPU"},
		{"doca_gpunetio_dev_eth_rxq", true, "`doca_gpu_dev_eth_rxq_recv` and others"},
		{"doca_gpunetio_dev_eth_txq", true, "`doca_gpu_dev_eth_txq_send`, `doca_gpu_dev_eth_txq_wait_send`, `doca_gpu_dev_eth_txq_reserve_wq_slots`, `doca_gpu_dev_eth_txq_get_wqe_ptr`, `doca_gpu_dev_eth_txq_wqe_prepare_send`, " +
			"`doca_gpu_dev_eth_txq_mark_wqes_ready`, `doca_gpu_dev_eth_txq_submit`, `doca_gpu_dev_eth_txq_poll_completion`"},
		{"doca_gpunetio_dev_verbs_onesided", true, "`doca_gpu_dev_verbs_put`, `doca_gpu_dev_verbs_p`, `doca_gpu_dev_verbs_get`, `doca_gpu_dev_verbs_put_signal`, `doca_gpu_dev_verbs_signal`, `doca_gpu_dev_verbs_wait`"},
		{"doca_gpu_dev_verbs_put", true, "`doca_gpu_dev_verbs_put`"},
		{"doca_gpunetio_dev_verbs_counter", true, "`doca_gpu_dev_verbs_put_counter` and others"},
		{"doca_gpunetio_dev_verbs_qp", true, "`doca_gpu_dev_verbs_submit` and others"},
		{"doca_gpunetio_dev_verbs_cq", true, "`doca_gpu_dev_verbs_poll_cq_at` and others"},
		{"doca_gpu_dev_verbs_wqe_prepare_*", true, "`doca_gpu_dev_verbs_wqe_prepare_write` and others"},
		{"doca_gpu_dev_verbs_submit", true, "`doca_gpu_dev_verbs_submit`"},
		{"doca_gpu_dev_verbs_poll_cq_*", true, "`doca_gpu_dev_verbs_poll_cq_at`, `doca_gpu_dev_verbs_poll_one_cq_at`"},
		{"doca_gpunetio_dev_rdma", true, "`doca_gpu_dev_rdma_write_strong` and others"},
		{"doca_gpu_dev_rdma_*", true, "`doca_gpu_dev_rdma_write_strong` and others"},
		{"doca_gpu_rdma_get_info", false, "`gn_next`: the place; the ring's size stands in `gn_tx`"},
		{"doca_gpunetio_dev_dma", true, "`doca_gpu_dev_dma_memcpy`, `doca_gpu_dev_dma_commit`"},
		{"doca_gpu_verbs_create_qp_hl", false, "`i:connect`"},
		{"doca_verbs_qp_modify", false, "`i:connect{ qp = … }`, `c:join`"},
		{"doca_gpu_verbs_export_qp", false, "`k:start{ tx = q, conn = c, args = { { qp = 1 } } }`"},
		{"doca_gpu_verbs_export_cq", false, "the ring's words `completed` and `error`, which `gn_poll` reads"},
		{"doca_gpu_verbs_cpu_proxy_progress", false, "`i:progress()`, or the queue's poller without a call"},
		{"doca_gpunetio_simple_send", false, "`gn_simple_send.lua`"},
		{"doca_gpunetio_simple_receive", false, "`gn_simple_receive.lua`"},
		{"doca_gpunetio_send_wait_time", false, "`gn_send_wait_time.lua`"},
		{"doca_gpu_packet_processing", false, "`gn_receive_udp.lua`, `gn_receive_tcp.lua`, `gn_receive_icmp.lua`, `gn_http_server.lua`"},
		{"doca_gpunetio_dma_memcpy", false, "`gn_dma_memcpy.lua`"},
		{"doca_gpunetio_rdma_client_server_write", false, "`gn_rdma_client_server_write.lua`"},
		{"doca_gpunetio_verbs_*", false, "`gn_verbs_put_bw.lua`, `gn_verbs_get_bw.lua`, `gn_verbs_put_signal_bw.lua`, `gn_verbs_put_signal_lat.lua`, `gn_verbs_put_counter_bw.lua`, " +
			"`gn_verbs_put_counter_lat.lua`, `gn_verbs_write_bw.lua`, `gn_verbs_write_lat.lua`, `gn_verbs_twosided_bw.lua`"},
	}
}

// usesGPUNetIO reports whether a configuration uses GPUNetIO.
func usesGPUNetIO(cfg *spec.Config) bool {
	return cfg.Engine == "gpunetio" || slices.ContainsFunc(cfg.Interfaces, func(i *spec.Interface) bool {
		return i.Engine == "gpunetio" || slices.ContainsFunc(i.Queues(), func(q *spec.Queue) bool { return q.TxKernel != "" })
	})
}
