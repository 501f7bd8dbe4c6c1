-- shared_region.lua: a stage keeps copies of what comes in buffers of a transmit queue's own region, in which that queue's template is sent
-- all the time: what leaves is the template, not what the stage left there.
local daqiri = require "daqiri"
local args = daqiri.args{ at = "127.0.0.1:4096" }
local function queue(name, region) return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { region } } } } end
local function client(name, region)
  return { name = name, address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "udp://" .. args.at }, tx = queue(name .. "_tx", region) }
end
local function region(name, n) return { name = name, kind = "host", affinity = 0, num_bufs = n, buf_size = 256 } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { region("shared", 64), region("strange", 64), region("in", 1024) },
  interfaces = { client("sender", "shared"), client("stranger", "strange"),
    { name = "server", address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://" .. args.at }, rx = queue("rx", "in") } } } } }
local seen = { T = 0, X = 0 }
s:pipe(s:rx_queue "server", s:copy{ name = "kept", memory_region = "shared", policy = "drop" }, s:count{ name = "counted" })
s:rx_queue("server"):on_burst(function(b)
  for k = 1, b.n do
    local text = b:packet(k):bytes()
    assert(#text == 200 and text == text:sub(1, 1):rep(200), "a packet of both")
    seen[text:sub(1, 1)] = seen[text:sub(1, 1)] + 1
  end
end)
s:start()
local SENT, PACE = { T = 500, X = 2000 }, { T = 2000, X = 8000 } -- so that there are free buffers
for name, letter in pairs{ sender = "T", stranger = "X" } do
  local q = s:tx_queue(name)
  q:pace{ pps = PACE[letter] }
  q:transmit{ template = q:template{ payload = letter:rep(200) }, count = SENT[letter] }
end
local sent, kept = 0, 0
repeat
  local m = s:measure{ seconds = 0.1 }
  kept = kept + m.counted.packets
  sent = m.sender.tx.packets + m.stranger.tx.packets
until sent == 0
s:stop "done"
assert(kept > 0, "nothing was kept")
print(("%d T of 500, %d X of 2000: %s"):format(seen.T, seen.X, seen.T <= SENT.T and seen.X <= SENT.X and "as sent" or "not as sent"))
