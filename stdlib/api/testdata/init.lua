-- Opening from text, a table and a file; parsing; closing and reopening; errors before daqiri_init.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local args = daqiri.args{ dir = "." }
local Status = api.Status

-- before daqiri_init
fails("NOT_READY", "daqiri_init has not been called", api.get_rx_burst(0, 0))
fails("NOT_READY", "daqiri_init has not been called", api.send_tx_burst(nil))
fails("NOT_READY", "daqiri_init", api.get_mac_addr(0))
fails("NOT_READY", "daqiri_init", api.resolve_ipv4_mac(0, "10.0.0.1", 10))
fails("NOT_READY", "daqiri_init", api.wait_for_tx_idle(10))
fails("NOT_READY", "daqiri_init", api.send_tx_burst(1, 0, nil))
fails("NULL_PTR", "nil", api.set_packet_tx_time(nil, 0, 0))
t.equal(api.get_engine_type(), api.EngineType.UNKNOWN)
t.raises("daqiri_init has not been called", function() api.print_stats() end)
t.equal(api.shutdown(), nil)

-- configurations that cannot be opened
fails("NULL_PTR", "nil", api.daqiri_init(nil))
fails("INVALID_PARAMETER", "no such file", api.daqiri_init("nowhere.yaml"))
fails("INVALID_PARAMETER", 'did you mean "version"?', api.daqiri_init{ verson = 1, stream_type = "raw" })
fails("INVALID_PARAMETER", "stream_type", api.daqiri_init_from_yaml_string("daqiri: {cfg: {version: 1, master_core: 0, interfaces: []}}"))
fails("INVALID_PARAMETER", "no such file", api.daqiri_init_from_yaml_file("nowhere.yaml"))
t.raises("expects a string", api.daqiri_init_from_yaml_string, 7)

-- parsing only: the result is a table that can be changed
local yaml = [[
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    loopback: sw
    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 256, buf_size: 2048}
    interfaces:
    - name: port
      address: loop
      rx:
        queues:
        - {name: q, id: 0, poll_mode: direct, memory_regions: [m]}
bench_rx: {gpu: 1}
]]
local one_line = "{daqiri: {cfg: {version: 1, stream_type: raw, master_core: 0, loopback: sw, memory_regions: [{name: m, kind: host, "
  .. "affinity: 0, num_bufs: 256, buf_size: 2048}], interfaces: [{name: port, address: loop}]}}}"
t.equal(ok(api.parse_network_config(one_line)).daqiri.cfg.interfaces[1].name, "port")
t.equal(ok(api.parse_network_config(one_line:sub(2, -2))).daqiri.cfg.interfaces[1].name, "port")
fails("INVALID_PARAMETER", "no such file", api.parse_network_config("a: {b: c}.YML"))
local config = ok(api.parse_network_config(yaml))
t.equal(config.bench_rx.gpu, 1)
t.equal(api.get_engine_type(config), api.EngineType.LOOP)
t.equal(ok(api.parse_network_config_from_yaml_string(yaml)).daqiri.cfg.interfaces[1].name, "port")
local file = args.dir .. "/one.yaml"
local f = assert(io.open(file, "w"))
f:write(yaml)
f:close()
t.equal(ok(api.parse_network_config_from_yaml_file(file)).daqiri.cfg.version, 1)
fails("INVALID_PARAMETER", "not YAML", api.parse_network_config("a: ]\n"))

-- opened from each source, one at a time
for _, init in ipairs{ function() return api.daqiri_init(config) end, function() return api.daqiri_init(yaml) end,
  function() return api.daqiri_init(file) end, function() return api.daqiri_init_from_yaml_string(yaml) end,
  function() return api.daqiri_init(one_line) end,
  function() return api.daqiri_init_from_yaml_file(file) end } do
  t.equal(init(), Status.SUCCESS)
  fails("INTERNAL_ERROR", "shutdown comes first", init())
  t.equal(api.get_port_id("port"), 0)
  t.equal(api.session().name, api.session().name)
  api.shutdown()
  t.equal(api.get_port_id("port"), -1)
end
t.equal(api.daqiri_init(config), "SUCCESS")
t.equal(api.get_engine_type(), "loop")
api.shutdown()
fails("INTERNAL_ERROR", "dpdk", api.daqiri_init(rig.config("raw", { rig.port("a", "0000:03:00.0", 1, 1) })))

-- versions, names, enums
t.equal(api.version_string(), daqiri.version)
t.equal(("%d.%d.%d"):format(api.version_year(), api.version_month(), api.version_patch()), daqiri.version:match("^%d+%.%d+%.%d+"))
t.equal(api.abi_version(), 2)
t.equal("status: " .. Status.NULL_PTR, "status: NULL_PTR")
t.equal(api.MemoryKind.HUGE, "huge")
t.raises("api.Status has no value 'SUCESS'", function() return Status.SUCESS end)
t.raises("daqiri.api has no 'get_rx_brust'", function() return api.get_rx_brust end)

t.equal({ api.DAQIRI_VERSION, api.__version__ }, { daqiri.version, daqiri.version })
t.equal(("%d.%d.%d"):format(unpack(api.__version_info__)), daqiri.version)
t.equal({ api.DAQIRI_VERSION_YEAR, api.DAQIRI_VERSION_MONTH, api.DAQIRI_VERSION_PATCH },
  { api.version_year(), api.version_month(), api.version_patch() })
t.equal({ api.DAQIRI_ABI_VERSION, api.__abi_version__ }, { 2, 2 })

-- words of enums, and unknown words; through converts words to values and back
local function through(from, to, words)
  return (words:gsub("%S+", function(word) return to(from(word)) end))
end
t.equal(through(api.stream_type_from_string, api.stream_type_to_string, "raw socket"), "raw socket")
t.equal(through(api.socket_protocol_from_string, api.socket_protocol_to_string, "tcp udp roce"), "tcp udp roce")
t.equal(through(api.queue_poll_mode_from_string, api.queue_poll_mode_to_string, "indirect direct"), "indirect direct")
t.equal(through(api.reorder_data_type_from_string, api.reorder_data_type_to_string, "int4 int8 int16 int32 fp16 bf16 fp32 fp64"),
  "int4 int8 int16 int32 fp16 bf16 fp32 fp64")
t.equal(through(api.reorder_endianness_from_string, api.reorder_endianness_to_string, "host network"), "host network")
t.equal(through(api.flow_type_from_string, api.flow_type_to_string, "queue vlan_push vlan_pop tunnel_encap tunnel_decap"),
  "queue vlan_push vlan_pop tunnel_encap tunnel_decap")
t.equal(through(api.tunnel_type_from_string, api.tunnel_type_to_string, "vxlan gre nvgre"), "vxlan gre nvgre")
t.equal(through(api.engine_type_from_string, api.engine_type_to_string, "default dpdk socket rdma"), "default dpdk socket rdma")
t.equal(through(api.config_engine_from_string, api.config_engine_to_string, "default dpdk socket ibverbs"), "default dpdk socket ibverbs")
t.equal(through(api.log_level_from_string, api.log_level_to_string, "trace debug info WARN error critical off"),
  "trace debug info warn error critical off")
for _, name in ipairs{ "stream_type", "socket_protocol", "queue_poll_mode", "reorder_data_type", "reorder_endianness" } do
  t.equal({ api[name .. "_from_string"]("nonsense"), api[name .. "_to_string"]("nonsense") }, { "invalid", "invalid" })
end
for _, name in ipairs{ "flow_type", "tunnel_type", "engine_type", "config_engine", "log_level" } do
  t.raises("there is no 'nonsense'", api[name .. "_from_string"], "nonsense")
  t.equal(api[name .. "_to_string"]("nonsense"), name == "log_level" and "warn" or "unknown")
end
t.equal({ api.reorder_data_type_from_string("same"), api.reorder_data_type_to_string(api.ReorderDataType.SAME) }, { "invalid", "same" })
t.raises("there is no 'none'", api.tunnel_type_from_string, "none")
t.equal({ api.tunnel_type_to_string(api.TunnelType.NONE), api.log_level_from_string("WARN") }, { "none", api.LogLevel.WARN })
t.equal({ api.engine_type_from_string("ibverbs"), api.config_engine_from_string("ibverbs", api.StreamType.RAW),
  api.config_engine_from_string("ibverbs", api.StreamType.SOCKET) }, { api.EngineType.RDMA, api.EngineType.IBVERBS, api.EngineType.RDMA })
t.raises("a configuration has no 'rdma'", api.config_engine_from_string, "rdma")
t.equal({ api.QueuePollMode.DIRECT, api.LogSeverity.CRITICAL }, { "direct", "critical" })

-- log levels of the program and of a configuration
api.set_log_level(api.LogLevel.CRITICAL)
t.equal(api.get_log_level(), api.LogLevel.ERROR)
api.set_log_level(api.LogSeverity.OFF)
t.equal(api.get_log_level(), api.LogLevel.OFF)
t.raises("no level loud", function() api.set_log_level("loud") end)
for level, is in pairs{ WARN = "warn", trace = "debug", Critical = "error", OFF = "off" } do
  ok(api.daqiri_init(rig.config("raw", { rig.port("port", "loop0", 1, 1) }, { loopback = "sw", log_level = level })))
  t.equal(api.get_log_level(), is)
  api.shutdown()
end
api.set_log_level("info")

-- a burst's ids
local burst = api.create_tx_burst_params()
t.equal({ burst.connection_id, burst.rdma_wr_id }, { 0, 0 })
burst.connection_id, burst.rdma_wr_id = 7, 9
t.equal({ api.get_connection_id(burst), burst.connection_id, burst.rdma_wr_id, burst.transport_hdr.wr_id }, { 7, 7, 9, 9 })
t.raises("not a connection id", function() burst.connection_id = -1 end)
t.raises("not a work request's id", function() burst.rdma_wr_id = "a" end)
t.raises("is for reading", function() burst.hdr = 1 end)

-- connecting requires a session
fails("NOT_READY", "daqiri_init", api.rdma_connect_to_server("127.0.0.1", 4791))
fails("NOT_READY", "daqiri_init", api.rdma_get_server_conn_id("127.0.0.1", 4791))
fails("NOT_READY", "daqiri_init", api.rdma_set_header(burst, "SEND", 1, true, 1, 1, "packets"))
