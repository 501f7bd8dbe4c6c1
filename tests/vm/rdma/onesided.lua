-- onesided.lua: every operation on the memory of peer.c, a stranger.  onesided.lua --port N
local daqiri = require "daqiri"
local args = daqiri.args{ port = 4791 }
local function queues(name) return { { name = name, id = 0, poll_mode = "direct", batch_size = 32, memory_regions = { "packets" } } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = 65536 } },
  interfaces = { { name = "me", address = "10.9.0.2", socket_config = { mode = "client", local_addr = "roce://10.9.0.2" },
    roce_config = { transport_mode = "RC" }, tx = { queues = queues "tx" }, rx = { queues = queues "rx" } } } } } }
local i = s:interface "me"
local c = assert(i:connect{ address = "10.9.0.1:" .. args.port, private_data = "a key" })
local addr, key, bytes
s:rx_queue("me", 0):on_burst(function(b)
  addr, key, bytes = b:packet(1):bytes():match "^(%d+) (%d+) (%d+)$"
  print("told", b.imm)
end)
local why_it_ended
c:on_disconnect(function(why) why_it_ended = why end)
s:threshold("errors >= 0") -- connections are broken on purpose
s:start()
while not addr do daqiri.sleep(0.01) end
assert(c.private_data == "an answer" .. ("\0"):rep(187), c.private_data) -- filled up by the connection manager
-- What the peer lends is passed by hand, as it is not daqiri-run.
local ended = {}
c:on_completion(function(w) for k = 1, w.n do ended[#ended + 1] = ("%s %s %d"):format(w[k].wr_id, w[k].status, w[k].bytes) end end)
assert(c:tell("ring", { addr = addr, rkey = key, bytes = bytes }))

local function sum(text)
  local v = 0
  for k = 1, #text do v = (v * 31 + text:byte(k)) % 2^32 end
  return ("%d"):format(v)
end
local function burst(n, len, seed)
  local b = assert(c:alloc(n))
  b:set_lengths(len)
  local text = {}
  for k = 1, n do
    local t = {}
    for at = 1, len do t[at] = string.char((seed + at * 7 + k) % 256) end
    text[k] = table.concat(t)
    b:packet(k):set_bytes(0, text[k])
  end
  return b, table.concat(text)
end

local all = "" -- what the peer's memory has to be
local at = 0
for _, len in ipairs{ 1, 64, 1023, 1024, 1025, 4095, 4096, 4097 } do
  local b, text = burst(3, len, len)
  local op = assert(c:write(b, "ring", at, { wr_id = "write" .. len }))
  assert(op:wait{ timeout = 20 } and not op.error, op.error)
  local back = assert(c:read("ring", at, #text, { wr_id = "read" .. len }))
  assert(back:wait{ timeout = 20 } and not back.error, back.error)
  local got, r = {}, back.burst
  for k = 1, r.n do got[k] = r:packet(k):bytes() end
  assert(table.concat(got) == text, "read back something else")
  r:free()
  all, at = all .. text, at + #text
end
local b, text = burst(1, 100, 5)
assert(assert(c:write(b, "ring", at, { imm = 4711 })):wait{ timeout = 20 })
all = all .. text
print("written", sum(all .. ("\0"):rep(bytes - #all)))
local m, reply = burst(1, 77, 9)
assert(assert(c:message(m, { imm = 0xfffffffe })):wait{ timeout = 20 })
print("message", sum(reply))
local plain, words = burst(1, 4000, 3)
assert(c:send(plain))
print("plain", sum(words))
-- Atomics, on 8 bytes of zeros.
local far = bytes - 64
for _, step in ipairs{ { "fetch_add", 5 }, { "fetch_add", daqiri.u64 "0xfffffffffffffffb" }, { "compare_swap", 0, 12345 }, { "compare_swap", 1, 9 } } do
  local op = assert(c[step[1]](c, "ring", far, step[2], step[3]))
  assert(op:wait{ timeout = 20 } and not op.error, op.error)
  print(step[1], tostring(op.value))
  op.burst:free()
end
local zeros = far - #all
print("final", sum(all .. ("\0"):rep(zeros) .. string.char(0x39, 0x30) .. ("\0"):rep(62))) -- 12345, little endian
-- What is refused before anything is posted.
local function refused(...) local ok, status, text = ... print("refused", ok, status, text) end
refused(c:read("rings", 0, 8))
refused(c:read("ring", bytes - 4, 8))
refused(c:read("ring", 0, 2^30))
refused(c:fetch_add("ring", 4, 1))
refused(c:lend("packets", { name = "mine" }))
assert(ended[1] == "write1 SUCCESS 3" and ended[2] == "read1 SUCCESS 3", ended[1])
-- A wrong key: an error completion, an event, a closed ledger.
assert(c:tell("ring", { addr = addr, rkey = tonumber(key) + 256, bytes = bytes }))
local bad = assert(c:write(burst(1, 8, 1), "ring", 0))
assert(bad:wait{ timeout = 20 })
print("wrong key", bad.error)
while not why_it_ended do daqiri.sleep(0.01) end
print("disconnected", why_it_ended)
s:stop "done"
