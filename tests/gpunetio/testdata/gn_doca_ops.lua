-- gn_doca_ops.lua: runs the kernels of gn_doca_ops.cu over the loop engine; prints what they found wrong.
local daqiri = require "daqiri"
local function region(name, bytes) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 16, buf_size = bytes } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("frames", 4096), region("local", 4096), region("remote", 4096) },
  interfaces = { { name = "a", address = "a", tx = { queues = { { name = "ta", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "frames" } } } } } } },
  { memory = "host" })
local bad = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
s:start()
local function run(entry, refused, args)
  bad:set(1, 0)
  local k = daqiri.kernel{ name = entry, entry = entry, persistent = true, rings = { tx = 64 }, grid = 1, block = 1, file = "gn_doca_ops.cu" }
  k:start{ tx = { s:tx_queue("a"), s:tx_queue("a") }, regions = { "local" }, remote = { "remote" }, args = args }
  local ok, why = k:wait{ timeout = "60s" }
  print(entry, ok and k.refused == refused and bad:get(1) == 0 and "ok" or ("%s, wrong: %d, refused: %d, %s"):format(why, bad:get(1), k.refused, k.fault))
  k:stop()
end
local memory = { { address = "local" }, { key = "local" }, { address = "remote" }, { key = "remote" }, bad }
run("operations", 0, { { qp = 1 }, { qp = 2 }, { rdma = 1 }, unpack(memory) })
run("failing", 3, { { qp = 1 }, { qp = 2 }, unpack(memory) })
