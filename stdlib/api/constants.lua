-- constants: the enums, flags and limits of daqiri.api.
--
-- A value of an enum is text: the word of the configuration if there is one ("raw", "vxlan"), so that it can be used in a table for
-- daqiri_init or add_rx_flow_async; otherwise its own name ("NULL_PTR"), as returned by the objects of daqiri.open. Values can be compared
-- with ==, printed and used as keys. Masks and limits are numbers.

local M = {}

-- enum returns a table that raises an error for unknown names.
local function enum(name, values)
  return setmetatable(values, { __index = function(_, key)
    error(("api.%s has no value '%s'"):format(name, tostring(key)), 2)
  end })
end

-- names returns an enum whose values are their own names.
local function names(name, list)
  local values = {}
  for value in list:gmatch("%S+") do values[value] = value end
  return enum(name, values)
end

M.Status = names("Status", [[SUCCESS NULL_PTR NO_FREE_BURST_BUFFERS NO_FREE_PACKET_BUFFERS NOT_READY INVALID_PARAMETER
  NO_SPACE_AVAILABLE NOT_SUPPORTED GENERIC_FAILURE CONNECT_FAILURE INTERNAL_ERROR RESOURCE_IN_USE ALREADY_EXISTS]])
M.ErrorGlobalStats = names("ErrorGlobalStats", "OUT_OF_RX_BUFFERS RX_QUEUE_FULL METADATA_BUF_DEPLETED SENTINEL")

M.StreamType = enum("StreamType", { RAW = "raw", SOCKET = "socket", INVALID = "invalid" })
M.SocketProtocol = enum("SocketProtocol", { TCP = "tcp", UDP = "udp", ROCE = "roce", INVALID = "invalid" })
M.SocketMode = enum("SocketMode", { CLIENT = "client", SERVER = "server", INVALID = "invalid" })
M.EngineType = enum("EngineType", { UNKNOWN = "unknown", DEFAULT = "default", DPDK = "dpdk", SOCKET = "socket", RDMA = "rdma",
  IBVERBS = "ibverbs", GPUNETIO = "gpunetio", LOOP = "loop", XDP = "xdp", PACKET = "packet", PCAP = "pcap" })
M.GpunetioTxKernel = enum("GpunetioTxKernel", { PERSISTENT = "persistent", PER_BURST = "per_burst", INVALID = "invalid" })
M.MemoryKind = enum("MemoryKind", { HOST = "host", HOST_PINNED = "host_pinned", HUGE = "huge", DEVICE = "device",
  INVALID = "invalid" })
M.MemoryAccess = enum("MemoryAccess", { MEM_ACCESS_LOCAL = 1, MEM_ACCESS_RDMA_WRITE = 2, MEM_ACCESS_RDMA_READ = 4 })
M.BufferLocation = names("BufferLocation", "CPU GPU CPU_GPU_SPLIT")
M.Direction = enum("Direction", { RX = "rx", TX = "tx", TX_RX = "tx/rx" })
M.LoopbackType = enum("LoopbackType", { DISABLED = "", LOOPBACK_TYPE_SW = "sw", LOOPBACK_TYPE_HW = "hw" })
M.QueuePollMode = enum("QueuePollMode", { INDIRECT = "indirect", DIRECT = "direct", INVALID = "invalid" })

-- levels returns the enum of log levels, which the reference has under two names.
local function levels(name)
  return enum(name, { TRACE = "trace", DEBUG = "debug", INFO = "info", WARN = "warn", ERROR = "error", CRITICAL = "critical",
    OFF = "off" })
end
M.LogLevel, M.LogSeverity = levels("LogLevel"), levels("LogSeverity")

M.FlowType = enum("FlowType", { QUEUE = "queue", VLAN_PUSH = "vlan_push", VLAN_POP = "vlan_pop", TUNNEL_ENCAP = "tunnel_encap",
  TUNNEL_DECAP = "tunnel_decap" })
M.TunnelType = enum("TunnelType", { NONE = "none", VXLAN = "vxlan", GRE = "gre", NVGRE = "nvgre" })
M.FlowMatchType = names("FlowMatchType", "IPV4_UDP FLEX_ITEM ECPRI ETHERNET")
M.FlowOpType = names("FlowOpType", "ADD_RX ADD_RX_BATCH DELETE")
M.ResourceOpType = names("ResourceOpType", [[ADD_MEMORY_REGION DELETE_MEMORY_REGION ADD_RX_QUEUE DELETE_RX_QUEUE ADD_TX_QUEUE
  DELETE_TX_QUEUE]])
M.ResourceState = names("ResourceState", "CREATING ACTIVE DRAINING REMOVED FAILED")

M.ReorderMethod = enum("ReorderMethod", { SEQ_BATCH_NUMBER = "seq_batch_number",
  SEQ_PACKETS_PER_BATCH = "seq_packets_per_batch", INVALID = "invalid" })
M.ReorderDataType = enum("ReorderDataType", { SAME = "same", INT4 = "int4", INT8 = "int8", INT16 = "int16", INT32 = "int32",
  FP16 = "fp16", BF16 = "bf16", FP32 = "fp32", FP64 = "fp64", INVALID = "invalid" })
M.ReorderMissingAction = enum("ReorderMissingAction", { DROP = "drop", PASSTHROUGH = "passthrough", INVALID = "invalid" })
M.ReorderEndianness = enum("ReorderEndianness", { HOST = "host", NETWORK = "network", INVALID = "invalid" })

M.RDMAOpCode = names("RDMAOpCode", "CONNECT SEND RECEIVE RDMA_WRITE RDMA_WRITE_IMM RDMA_READ RDMA_READ_IMM INVALID")
M.RDMACompletionType = names("RDMACompletionType", "RX TX INVALID")
M.RDMAMode = enum("RDMAMode", { CLIENT = "client", SERVER = "server", INVALID = "invalid" })
M.RDMATransportMode = names("RDMATransportMode", "RC UC UD INVALID")

M.DAQIRI_BURST_FLAG_REORDERED = 2 ^ 28
M.DAQIRI_BURST_FLAG_REORDER_TIMEOUT = 2 ^ 29
M.DAQIRI_BURST_FLAG_DIRECT_PLACED = 2 ^ 30
M.MEM_ACCESS_LOCAL, M.MEM_ACCESS_RDMA_WRITE, M.MEM_ACCESS_RDMA_READ = 1, 2, 4

M.ADV_NETWORK_HEADER_SIZE_BYTES = 256
M.MAX_NUM_RX_QUEUES = 32
M.MAX_NUM_TX_QUEUES = 32
M.MAX_INTERFACES = 4
M.MAX_NUM_SEGS = 4
M.MAX_RX_Q_PER_CORE = 16
M.DEFAULT_DYNAMIC_FLOW_CAPACITY = 0
M.DEFAULT_TX_META_BUFFERS = 256
M.DEFAULT_RX_META_BUFFERS = 256
M.IPPROTO_UDP = 17

M.DAQIRI_STREAM_TYPE_STR__RAW = "raw"
M.DAQIRI_STREAM_TYPE_STR__SOCKET = "socket"
M.DAQIRI_SOCKET_PROTOCOL_STR__TCP = "tcp"
M.DAQIRI_SOCKET_PROTOCOL_STR__UDP = "udp"
M.DAQIRI_SOCKET_PROTOCOL_STR__ROCE = "roce"
M.DAQIRI_ENGINE_STR__DEFAULT = "default"
M.DAQIRI_ENGINE_STR__DPDK = "dpdk"
M.DAQIRI_ENGINE_STR__SOCKET = "socket"
M.DAQIRI_ENGINE_STR__RDMA = "rdma"
M.DAQIRI_ENGINE_STR__IBVERBS = "ibverbs"

return M
