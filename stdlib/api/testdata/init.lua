-- Opening from text, a table and a file; parsing; closing and opening again; what is said before.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local args = daqiri.args{ dir = "." }
local Status = api.Status

-- before daqiri_init
fails("NOT_READY", "daqiri_init has not been called", api.get_rx_burst(0, 0))
fails("NOT_READY", "daqiri_init has not been called", api.send_tx_burst(nil))
fails("NOT_READY", "daqiri_init", api.get_mac_addr(0))
t.equal(api.get_engine_type(), api.EngineType.UNKNOWN)
t.raises("daqiri_init has not been called", function() api.print_stats() end)
t.equal(api.shutdown(), nil)

-- what can't be opened
fails("NULL_PTR", "nil", api.daqiri_init(nil))
fails("INVALID_PARAMETER", "no such file", api.daqiri_init("nowhere.yaml"))
fails("INVALID_PARAMETER", 'did you mean "version"?', api.daqiri_init{ verson = 1, stream_type = "raw" })
fails("INVALID_PARAMETER", "stream_type", api.daqiri_init_from_yaml_string("daqiri: {cfg: {version: 1, master_core: 0, interfaces: []}}"))
fails("INVALID_PARAMETER", "no such file", api.daqiri_init_from_yaml_file("nowhere.yaml"))
t.raises("expects a string", api.daqiri_init_from_yaml_string, 7)

-- parsed only: a table that can be changed
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

-- opened from each, one at a time
for _, init in ipairs{ function() return api.daqiri_init(config) end, function() return api.daqiri_init(yaml) end,
  function() return api.daqiri_init(file) end, function() return api.daqiri_init_from_yaml_string(yaml) end,
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
t.equal(api.abi_version(), 1)
t.equal("status: " .. Status.NULL_PTR, "status: NULL_PTR")
t.equal(api.MemoryKind.HUGE, "huge")
t.raises("api.Status has no value 'SUCESS'", function() return Status.SUCESS end)
t.raises("daqiri.api has no 'get_rx_brust'", function() return api.get_rx_brust end)

api.set_log_level(api.LogLevel.CRITICAL)
t.equal(api.get_log_level(), api.LogLevel.ERROR)
t.raises("no level off", function() api.set_log_level(api.LogLevel.OFF) end)
api.set_log_level("info")

-- engines that are not here say so
fails("NOT_SUPPORTED", "RDMA", api.rdma_connect_to_server("127.0.0.1", 4791))
fails("NOT_SUPPORTED", "GPU", api.set_reorder_cuda_stream("a", "r", nil))
