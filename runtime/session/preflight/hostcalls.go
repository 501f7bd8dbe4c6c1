package preflight

// HostCalls is a group of functions of DOCA that a program's host part calls, and what a script has instead.
type HostCalls struct {
	Names []string // functions; * for a common prefix
	Does  string
	Lua   string
}

// GPUNetIOHostCalls returns the groups of host functions of programs with kernels.
func GPUNetIOHostCalls() []HostCalls {
	return []HostCalls{
		{[]string{"doca_gpu_create", "doca_gpu_destroy"}, "open a GPU by its PCI address", "`daqiri.open`; the `affinity` of a region of kind `device`, and `gpu` of `daqiri.kernel`, name the GPU"},
		{[]string{"doca_gpu_mem_alloc", "doca_gpu_mem_free"}, "allocate memory that GPU and CPU reach", "memory regions of kind `device`, `host_pinned` or `host`, and `daqiri.array`; there is " +
			"no GPU memory that the CPU maps, `host_pinned` has its place"},
		{[]string{"doca_gpu_dmabuf_fd"}, "register memory with a NIC", "regions do it themselves"},
		{[]string{"doca_eth_txq_*", "doca_eth_rxq_*", "doca_ctx_*"}, "make queues, give them buffers, start and stop them", "`interfaces[].tx.queues` and `rx.queues` with `memory_regions`; " +
			"`daqiri.kernel{ rings = … }`, `k:start{ tx = q, rx = q }`, `k:stop`"},
		{[]string{"doca_eth_txq_get_gpu_handle", "doca_eth_rxq_get_gpu_handle"}, "return what the kernel gets", "arguments `{ txq = 1 }`, `{ rxq = 1 }` of `k:start`"},
		{[]string{"doca_eth_txq_gpu_set_uar_on_cpu", "doca_eth_txq_gpu_cpu_proxy_progress"}, "let the CPU ring", "always so: the queue's poller, or `i:progress()`"},
		{[]string{"doca_eth_txq_gpu_set_completion_on_gpu", "doca_eth_rxq_gpu_enable_mcst_qp", "doca_eth_txq_cap_*", "doca_eth_rxq_cap_*"}, "choose and ask for abilities of a NIC",
			"nothing to do; `daqiri-run doctor` and `inspect` print the available ones"},
		{[]string{"doca_eth_txq_set_l3_chksum_offload", "doca_eth_txq_set_l4_chksum_offload"}, "set checksums", "`offloads` of the queue"},
		{[]string{"doca_eth_txq_set_wait_on_time_offload", "doca_eth_txq_calculate_timestamp"}, "send at a time", "`tx.accurate_send`; `at.nic`, as in `daqiri.time(\"now + 50ms\").nic`"},
		{[]string{"doca_gpu_semaphore_*"}, "make semaphores, read and write their items", "`{ semaphore = daqiri.array{ kind = \"host_pinned\", type = \"uint64\", shape = { items + 1, words } } }`: " +
			"an item is a row of status, packets, first packet and the program's own words, for `array:get` and `array:set`. Ordered ones: `k.semaphores`, `sem:on_ready`"},
		{[]string{"doca_buf_arr_*", "doca_mmap_*"}, "give memory to kernels in buffers, and to peers", "`{ buffers = \"region\", bytes = 256 }`; `c:lend` in place of `doca_mmap_export_rdma`"},
		{[]string{"doca_dma_*", "doca_pe_*"}, "make a copy queue, see the end of copies", "`{ dma = 1 }`; `k.completed`, `k:wait`, `i:progress()`"},
		{[]string{"doca_rdma_*"}, "connect, return what the kernel gets", "`i:connect`, `c:join`, `k:start{ conn = c, args = { { rdma = 1 } } }`"},
		{[]string{"doca_verbs_qp_*", "doca_verbs_cq_*", "doca_verbs_ah_attr_*"}, "make a queue pair and bring it to its states", "`i:connect`, also with values of its own (`qp`), and `c:join`"},
		{[]string{"doca_verbs_srq_*"}, "share receives among queue pairs", "missing"},
		{[]string{"doca_verbs_umem_*", "doca_verbs_uar_*", "doca_verbs_pd_*", "doca_verbs_context_*", "doca_verbs_device_attr_*"}, "place rings and doorbells", "nothing to do: `{ mlx5 = 1 }` has them"},
		{[]string{"doca_gpu_verbs_export_qp", "doca_gpu_verbs_get_qp_dev", "doca_gpu_verbs_export_multi_qps_dev"}, "return queue pairs for kernels", "`{ qp = 1, rx = 1 }`, and side by side " +
			"`{ qps = { 1, 2, 3 } }`; `{ mlx5 = 1 }` for kernels that write entries by hand"},
		{[]string{"doca_gpu_verbs_create_qp_hl", "doca_gpu_verbs_create_qp_group_hl", "doca_gpu_verbs_qp_flat_list_create_hl"}, "do all of it at once, also with a companion", "`i:connect`; the companion is " +
			"a second ring: `k:start{ tx = { q, q } }`"},
		{[]string{"doca_gpu_verbs_can_gpu_register_uar", "doca_gpu_verbs_export_uar"}, "let the GPU ring a NIC", "missing: the proxy reads the doorbell record (`{ mlx5 = 1 }`)"},
		{[]string{"doca_gpu_verbs_create_service", "doca_gpu_verbs_service_monitor_qp", "doca_gpu_verbs_cpu_proxy_progress"}, "run the proxy", "the queue's poller, or `i:progress()`"},
		{[]string{"doca_gpu_verbs_query_last_error", "doca_gpu_verbs_reset_tracking_and_memory"}, "read an error, begin again", "`k.fault`, the lines of ring and connection; `k:stop` and `k:start`"},
		{[]string{"doca_gpu_verbs_get_library_version", "doca_gpu_verbs_check_device_code_compatibility"}, "compare versions", "`k:start` does it"},
		{[]string{"doca_flow_*"}, "steer packets to queues", "`flows` of the configuration, `i:add_flows`"},
		{[]string{"doca_argp_*", "doca_log_*", "doca_error_get_descr"}, "arguments, log, errors", "`daqiri.args`, `daqiri.log`; errors are texts"},
		{[]string{"doca_devinfo_*"}, "find a device", "`daqiri-run interfaces`; its address stands in the configuration"},
		{[]string{"cudaLaunchKernel", "cudaStream*", "cudaEvent*"}, "run kernels and time them", "`k:start`, `k:wait`, `daqiri.stream`; `timers = true` of `k:start`"},
	}
}
