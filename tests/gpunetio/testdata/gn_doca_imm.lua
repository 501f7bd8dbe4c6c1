-- gn_doca_imm.lua: runs the kernels of gn_doca_imm.cu over the loop engine, where a kernel or the script receives, and over a socket; prints what they found wrong.
local daqiri = require "daqiri"
local N = 280
local function region(name, n, bytes) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = n, buf_size = bytes } end
local function queue(name, r, timeout) return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, timeout_us = timeout, memory_regions = { r } } } } end
local regions = { region("frames", 64, 4096), region("in", 1024, 512), region("local", 1, 4096), region("place", 1, 4096), region("remote", 1, 4096) }
local function array() return daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 } end
local bad, count = array(), array()
local n = 0
local function kernel(entry, ops)
  n = n + 1
  return daqiri.kernel{ name = "k" .. n, entry = entry, persistent = true, rings = { tx = 64, rx = 512, ops = ops }, grid = 1, block = 1, file = "gn_doca_imm.cu" }
end
local function place(r) return { address = r }, { key = r } end
local function result(what, k, refused)
  local ok, why = k:wait{ timeout = "60s" }
  print(what, ok and k.refused == refused and bad:get(1) == 0 and "ok" or ("%s, wrong: %d, refused: %d, %s"):format(why, bad:get(1), k.refused, k.fault))
end

local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" }, memory_regions = regions,
  interfaces = { { name = "a", address = "a", tx = queue("ta", "frames") }, { name = "b", address = "b", tx = queue("tb", "frames"), rx = queue("rb", "in", 50) } } },
  { memory = "host" })
s:start()
local function sender()
  local k = kernel "sender"
  local from, lkey = place "local"
  local to, rkey = place "remote"
  k:start{ tx = s:tx_queue("a"), regions = { "local" }, remote = { "remote" }, args = { { qp = 1 }, { rdma = 1 }, N, from, lkey, to, rkey, bad } }
  return k
end
for _, entry in ipairs{ "by_completion", "by_waiting" } do
  local object = entry == "by_completion" and "qp" or "rdma"
  bad:set(1, 0)
  count:set(1, 0)
  local rx = kernel(entry)
  local at, key = place "place"
  rx:start{ tx = s:tx_queue("b"), rx = s:rx_queue("b"), policy = "wait", regions = { "remote", "place" },
    args = { { [object] = 1, rx = 1 }, N, { address = "remote" }, at, key, bad, count } }
  local tx = sender()
  result(entry .. " sender", tx, 0)
  result(entry, rx, 0)
  print(entry .. " received", count:get(1))
  tx:stop()
  rx:stop()
end

-- The script receives: values in the host's order.
local got, wrong, without
s:rx_queue("b"):on_burst(function(b)
  for i = 1, b.n do
    local imm = b.imm and b.imm[i]
    if imm then
      wrong = wrong + (imm ~= (0x01020304 + got * 0x01010101) % 2^32 and 1 or 0)
      got = got + 1
    else
      without = without + 1
    end
  end
end)
local function to_script(what, start)
  bad:set(1, 0)
  got, wrong, without = 0, 0, 0
  local tx = start()
  for _ = 1, 60000 do
    if without == 1 then break end
    daqiri.sleep(1e-3)
  end
  result(what .. " sender", tx, 0)
  print(what, got, wrong, without)
  tx:stop()
end
to_script("script", sender)
to_script("formatted", function()
  local k = kernel "formatted"
  local from, lkey = place "local"
  local to, rkey = place "remote"
  k:start{ tx = s:tx_queue("a"), regions = { "local" }, remote = { "remote" }, args = { { mlx5 = 1 }, N, from, lkey, to, rkey, bad } }
  return k
end)

-- A socket carries none.
local u = daqiri.open({ version = 1, stream_type = "socket", master_core = 0, memory_regions = regions,
  interfaces = { { name = "u", address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "udp://127.0.0.1:9" }, tx = queue("tu", "frames") } } }, { memory = "host" })
u:start()
local k = kernel("refused", { "send" })
k:start{ tx = u:tx_queue("u"), regions = { "local" }, args = { "context", "local", bad } }
result("socket", k, 1)
print(k.fault)
k:stop()
