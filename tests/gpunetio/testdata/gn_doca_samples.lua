-- gn_doca_samples.lua: kernels with the shapes of DOCA's samples, over the loop engine; each says whether its own criterion holds.
local daqiri = require "daqiri"
local N, SIZE, ROUNDS = 64, 32, 20
local function region(name, n, bytes) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = n, buf_size = bytes } end
local function queue(name, r) return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, timeout_us = 50, memory_regions = { r } } } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("frames", 16, 65536), region("in", 1024, 512), region("local", 1, 4096), region("prev", 1, 4096), region("remote", 1, 4096), region("flag", 1, 4096),
    region("there", 1, 4096) },
  interfaces = { { name = "a", address = "a", tx = queue("ta", "frames") }, { name = "b", address = "b", tx = queue("tb", "frames"), rx = queue("rb", "in") } } }, { memory = "host" })
local bad, packets = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }, daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local n = 0
local function kernel(entry, grid, block)
  n = n + 1
  return daqiri.kernel{ name = "k" .. n, entry = entry, persistent = true, rings = { tx = 256, rx = 512 }, grid = grid, block = block, file = "gn_doca_samples.cu" }
end
local function address(r) return { address = r } end
local function key(r) return { key = r } end
local function ended(what, k, posted)
  local ok, why = k:wait{ timeout = "60s" }
  print(what, ok == true and k.refused == 0 and bad:get(1) == 0 and k.posted == posted and k.completed == posted and "ok" or ("failed: " .. tostring(why) .. " " .. k.posted .. " " .. tostring(k.fault)))
  k:stop()
end

local V, E = "DOCA_GPUNETIO_VERBS_EXEC_SCOPE_", "DOCA_GPUNETIO_ETH_EXEC_SCOPE_"
s:start()
for how, name in ipairs{ "put_bw", "get_bw", "put_signal_bw", "put_counter_bw" } do
  for _, scope in ipairs{ "THREAD", "WARP" } do
    local k = kernel(("bandwidth<%s%s, %d>"):format(V, scope, how - 1), 2, N / 2)
    -- flags begin at 0: each kernel has its own
    local at = (how - 3) * 2048 + (scope == "WARP" and 1024 or 0)
    local flag = how < 3 and address "flag" or { address = "flag", offset = at }
    local prev = how < 3 and address "prev" or { address = "prev", offset = at }
    k:start{ tx = { s:tx_queue("a"), s:tx_queue("a") }, regions = { "local", "prev" }, remote = { "remote", "flag" },
      args = { { qp = 1 }, { qp = 2 }, ROUNDS, SIZE, address "local", key "local", prev, key "prev", address "remote", key "remote", flag, key "flag", bad } }
    ended(name .. " " .. scope, k, N * ROUNDS * ({ 1, 1, 2, 3 })[how])
  end
end
local k = kernel("write_bw", 1, N)
k:start{ tx = s:tx_queue("a"), regions = { "local" }, remote = { "remote" },
  args = { { qp = 1 }, ROUNDS, SIZE, address "local", key "local", address "remote", key "remote", bad } }
ended("write_bw", k, N * ROUNDS)

local client, server = kernel("write_lat<true>", 1, 1), kernel("write_lat<false>", 1, 1)
local far = { address = "there", offset = 128 }
server:start{ tx = s:tx_queue("b"), regions = { "remote", "prev" }, remote = { "local" }, args = { { qp = 1 }, 100, address "remote", address "prev", key "prev", address "local", key "local" } }
client:start{ tx = s:tx_queue("a"), regions = { "local", "flag" }, remote = { "remote" }, args = { { qp = 1 }, 100, address "local", address "flag", key "flag", address "remote", key "remote" } }
ended("write_lat client", client, 100)
ended("write_lat server", server, 100)

for _, scope in ipairs{ "THREAD", "WARP", "BLOCK" } do
  packets:set(1, 0)
  local tx, rx = kernel("send<" .. E .. scope .. ">", 1, 32), kernel("receive<" .. E .. (scope == "THREAD" and "BLOCK" or scope) .. ">", 1, 32)
  rx:start{ rx = s:rx_queue("b"), policy = "wait", args = { { rxq = 1 }, { exit = true }, packets } }
  tx:start{ tx = s:tx_queue("a"), args = { { txq = 1 }, address "frames", key "frames", 100, ROUNDS, bad } }
  ended("send " .. scope, tx, 32 * ROUNDS)
  for _ = 1, 5000 do
    if packets:get(1) == 32 * ROUNDS then break end
    daqiri.sleep(1e-3)
  end
  rx:stop() -- while it waits: that is no error for a kernel with an exit flag
  print("receive " .. scope, packets:get(1) == 32 * ROUNDS and "ok" or packets:get(1))
end
