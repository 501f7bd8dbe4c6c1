-- gn_mlx5.lua: runs the kernels of gn_mlx5.cu over the loop engine; prints what they found wrong.
local daqiri = require "daqiri"
local function region(name, bytes) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = 16, buf_size = bytes } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("frames", 4096), region("local", 4096), region("remote", 4096) },
  interfaces = { { name = "a", address = "a", tx = { queues = { { name = "ta", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "frames" } } } } } } },
  { memory = "host" })
local bad = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 2 }
s:start()
local function run(entry, block, refused, fault)
  bad:set(1, 0)
  local k = daqiri.kernel{ name = entry, entry = entry, persistent = true, rings = { tx = 16 }, grid = 1, block = block, file = "gn_mlx5.cu" }
  k:start{ tx = s:tx_queue("a"), regions = { "local" }, remote = { "remote" },
    args = { { mlx5 = 1 }, { address = "local" }, { key = "local" }, { address = "remote" }, { key = "remote" }, bad } }
  local ok, why = k:wait{ timeout = "60s" }
  local right = ok and k.refused == refused and k.fault == fault and bad:get(1) == 0
  print(entry, right and "ok" or ("%s, wrong: %d, refused: %d, %s"):format(why, bad:get(1), k.refused, k.fault))
  k:stop()
end
run("by_hand", 1, 0)
run("by_name", 64, 0)
run("invalid", 1, 3, "a region that may not be read, written, or added to so")
run("again", 1, 0)
print("runs", bad:get(2))
