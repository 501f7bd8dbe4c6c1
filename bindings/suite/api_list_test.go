package suite

import (
	"github.com/daqiri/daqiri-run/bindings"
)

// The public interface of DAQIRI according to its documentation, and the expected entry of each function in the README of daqiri.api: "works", or
// the beginning of the reason why it is missing.

const works = "works"

var apiFunctions = map[string]string{
	// init and information
	"daqiri_init": works, "daqiri_init_from_yaml_string": works, "daqiri_init_from_yaml_file": works,
	"parse_network_config": works, "parse_network_config_from_yaml_string": works, "parse_network_config_from_yaml_file": works,
	"get_memory_region_requirements": works, "ExternalMemoryRegion": works,
	"get_engine_type": works, "shutdown": works, "print_stats": works, "version_string": works, "version_year": works,
	"stream_type_from_string": works, "stream_type_to_string": works, "socket_protocol_from_string": works,
	"socket_protocol_to_string": works, "engine_type_from_string": works, "engine_type_to_string": works,
	"config_engine_from_string": works, "config_engine_to_string": works, "queue_poll_mode_from_string": works,
	"queue_poll_mode_to_string": works, "flow_type_from_string": works, "flow_type_to_string": works,
	"tunnel_type_from_string": works, "tunnel_type_to_string": works, "reorder_data_type_from_string": works,
	"reorder_data_type_to_string": works, "reorder_endianness_from_string": works, "reorder_endianness_to_string": works,
	"log_level_from_string": works, "log_level_to_string": works,
	"set_log_level": works, "get_log_level": works, "version_month": works, "version_patch": works, "abi_version": works,
	// burst
	"create_tx_burst_params": works, "create_burst_params": works, "create_tx_burst": works, "RxBurst": works, "TxBurst": works, "get_managed_burst_stats": works, "set_header": works, "set_num_packets": works,
	"get_num_packets": works, "get_q_id": works, "get_burst_tot_byte": works, "get_connection_id": works,
	"set_connection_id": works, "synchronize_burst_event": works,
	// packet
	"get_packet_ptr": works, "get_segment_packet_ptr": works, "get_packet_length": works, "get_segment_packet_length": works,
	"get_packet_flow_id": works, "get_packet_rx_timestamp": works, "get_packet_bytes": works, "get_segment_packet_bytes": works,
	"copy_buffer_to_packet": works, "copy_buffer_to_segment_packet": works,
	// receive
	"get_rx_burst": works, "get_rx_burst_for_connection": works,
	// send
	"is_tx_burst_available": works, "get_tx_packet_burst": works, "send_tx_burst": works, "set_packet_lengths": works,
	"set_all_packet_lengths": works, "set_packet_tx_time": works, "set_eth_header": works, "set_ipv4_header": works,
	"set_udp_header": works, "set_udp_payload": works, "add_endpoint": works, "get_endpoint_id": works, "delete_endpoint": works,
	// free
	"free_packet": works, "free_packet_segment": works, "free_all_segment_packets": works,
	"free_segment_packets_and_burst": works, "free_all_packets_and_burst_rx": works, "free_all_packets_and_burst_tx": works,
	"free_rx_burst": works, "free_tx_burst": works, "free_rx_metadata": works, "free_tx_metadata": works,
	// flows
	"add_rx_flow_async": works, "add_rx_flows_async": works, "delete_flow_async": works, "poll_flow_op": works,
	// queues and regions
	"add_memory_region_async": works, "delete_memory_region_async": works, "add_rx_queue_async": works, "delete_rx_queue_async": works,
	"add_tx_queue_async": works, "delete_tx_queue_async": works, "poll_resource_op": works,
	// files
	"daqiri_write_raw_to_file": works, "daqiri_write_raw_to_file_async": works, "daqiri_write_pcap_to_file": works,
	"daqiri_write_pcap_to_file_async": works, "daqiri_file_write_poll": works, "daqiri_file_write_wait": works,
	"daqiri_file_write_destroy": works,
	// ports
	"get_mac_addr": works, "format_eth_addr": works, "get_port_id": works, "get_num_rx_queues": works,
	"resolve_ipv4_mac": works, "wait_for_tx_idle": works, "drop_all_traffic": works, "allow_all_traffic": works, "flush_port_queue": works,
	// sockets
	"socket_connect_to_server": works, "socket_get_port_queue": works, "socket_get_server_conn_id": works,
	"socket_setsockopt": works,
	// RDMA
	"rdma_connect_to_server": works, "rdma_get_port_queue": works, "rdma_get_server_conn_id": works,
	"rdma_set_header": works, "rdma_get_opcode": works,
	// reorder
	"set_reorder_cuda_stream": works, "get_reorder_burst_info": works, "get_reorder_missing_info": works,
	// S3
	"daqiri_s3_writer_create": works, "S3Writer": works, "daqiri_write_raw_to_s3_objects_async": works, "daqiri_s3_write_poll": works,
	"daqiri_s3_write_wait": works, "daqiri_s3_write_destroy": works, "daqiri_s3_writer_destroy": works,
}

// ourFunctions are functions that DAQIRI does not have.
var ourFunctions = map[string]string{"session": works, "selftest": works, "task": works}

var apiConstants = map[string]any{
	"DAQIRI_BURST_FLAG_REORDERED": 1 << 28, "DAQIRI_BURST_FLAG_REORDER_TIMEOUT": 1 << 29, "DAQIRI_BURST_FLAG_DIRECT_PLACED": 1 << 30,
	"DAQIRI_VERSION": bindings.Version, "DAQIRI_VERSION_YEAR": 0, "DAQIRI_VERSION_MONTH": 1, "DAQIRI_VERSION_PATCH": 0,
	"DAQIRI_ABI_VERSION": 2, "__version__": bindings.Version, "__abi_version__": 2,
	"MEM_ACCESS_LOCAL": 1, "MEM_ACCESS_RDMA_WRITE": 2, "MEM_ACCESS_RDMA_READ": 4,
	"ADV_NETWORK_HEADER_SIZE_BYTES": 256, "MAX_NUM_RX_QUEUES": 32, "MAX_NUM_TX_QUEUES": 32, "MAX_INTERFACES": 4,
	"INVALID_ENDPOINT_ID": 0, "MAX_NUM_SEGS": 4, "MAX_RX_Q_PER_CORE": 16, "DEFAULT_DYNAMIC_FLOW_CAPACITY": 0, "DEFAULT_TX_META_BUFFERS": 256,
	"DEFAULT_RX_META_BUFFERS": 256, "IPPROTO_UDP": 17,
	"DAQIRI_STREAM_TYPE_STR__RAW": "raw", "DAQIRI_STREAM_TYPE_STR__SOCKET": "socket",
	"DAQIRI_SOCKET_PROTOCOL_STR__TCP": "tcp", "DAQIRI_SOCKET_PROTOCOL_STR__UDP": "udp", "DAQIRI_SOCKET_PROTOCOL_STR__ROCE": "roce",
	"DAQIRI_ENGINE_STR__DEFAULT": "default", "DAQIRI_ENGINE_STR__DPDK": "dpdk", "DAQIRI_ENGINE_STR__SOCKET": "socket",
	"DAQIRI_ENGINE_STR__RDMA": "rdma", "DAQIRI_ENGINE_STR__IBVERBS": "ibverbs",
}

var apiEnums = map[string]string{
	"Status": "SUCCESS NULL_PTR NO_FREE_BURST_BUFFERS NO_FREE_PACKET_BUFFERS NOT_READY INVALID_PARAMETER NO_SPACE_AVAILABLE " +
		"NOT_SUPPORTED GENERIC_FAILURE CONNECT_FAILURE INTERNAL_ERROR RESOURCE_IN_USE ALREADY_EXISTS",
	"ErrorGlobalStats":     "OUT_OF_RX_BUFFERS RX_QUEUE_FULL METADATA_BUF_DEPLETED SENTINEL",
	"StreamType":           "RAW SOCKET INVALID",
	"SocketProtocol":       "TCP UDP ROCE INVALID",
	"SocketMode":           "CLIENT SERVER INVALID",
	"EngineType":           "UNKNOWN DEFAULT DPDK SOCKET RDMA IBVERBS GPUNETIO LOOP XDP PACKET PCAP", // LOOP and the following exist only here
	"GpunetioTxKernel":     "PERSISTENT PER_BURST INVALID",
	"MemoryKind":           "HOST HOST_PINNED HUGE DEVICE INVALID",
	"MemoryAccess":         "MEM_ACCESS_LOCAL MEM_ACCESS_RDMA_WRITE MEM_ACCESS_RDMA_READ",
	"BufferLocation":       "CPU GPU CPU_GPU_SPLIT",
	"Direction":            "RX TX TX_RX",
	"LoopbackType":         "DISABLED LOOPBACK_TYPE_SW LOOPBACK_TYPE_HW",
	"LogLevel":             "TRACE DEBUG INFO WARN ERROR CRITICAL OFF",
	"LogSeverity":          "TRACE DEBUG INFO WARN ERROR CRITICAL OFF",
	"QueuePollMode":        "INDIRECT DIRECT INVALID",
	"__version_info__":     "1 2 3", // not an enum: year, month and patch
	"FlowType":             "QUEUE VLAN_PUSH VLAN_POP TUNNEL_ENCAP TUNNEL_DECAP",
	"TunnelType":           "NONE VXLAN GRE NVGRE",
	"FlowMatchType":        "IPV4_UDP FLEX_ITEM ECPRI ETHERNET",
	"FlowOpType":           "ADD_RX ADD_RX_BATCH DELETE",
	"ResourceOpType":       "ADD_MEMORY_REGION DELETE_MEMORY_REGION ADD_RX_QUEUE DELETE_RX_QUEUE ADD_TX_QUEUE DELETE_TX_QUEUE",
	"ResourceState":        "CREATING ACTIVE DRAINING REMOVED FAILED",
	"ReorderMethod":        "INVALID SEQ_BATCH_NUMBER SEQ_PACKETS_PER_BATCH",
	"ReorderDataType":      "SAME INT4 INT8 INT16 INT32 FP16 BF16 FP32 FP64 INVALID",
	"ReorderMissingAction": "DROP PASSTHROUGH INVALID",
	"ReorderEndianness":    "HOST NETWORK INVALID",
	"RDMAOpCode":           "CONNECT SEND RECEIVE RDMA_WRITE RDMA_WRITE_IMM RDMA_READ RDMA_READ_IMM INVALID",
	"RDMACompletionType":   "RX TX INVALID",
	"RDMAMode":             "CLIENT SERVER INVALID",
	"RDMATransportMode":    "RC UC UD INVALID",
}

const (
	burstFields  = "burst: hdr transport_hdr pkts pkt_lens connection_id rdma_wr_id event pkt_extra_info custom_pkt_data"
	headerFields = "burst.hdr.hdr: num_pkts port_id q_id num_segs nbytes first_pkt_addr max_pkt max_pkt_size gpu_pkt0_idx " +
		"gpu_pkt0_addr burst_flags"
	transportFields = "burst.transport_hdr: version opcode status port_id q_id server tx num_pkts num_segs wr_id conn_id " +
		"local_mr_name remote_mr_name raddr dst_key imm server_addr server_port"
)
