-- source: sessions that receive from a capture, a Linux interface or a UDP port, and the UDP payloads of their bursts.
--
--   local source = require "daqiri.source"
--   local src = source.open("camera.pcapng", { name = "camera", where = "udp_dst == 20202" })  -- or "eth1", ":20202", "udp://239.2.0.64:20202"
--   src:each(function(payload, ns) print(#payload, ns) end)    -- the payload as a string, its receive time in ns
--   src.session:run{ seconds = 10 }
--   print(src.selected, src.other)                             -- packets with a payload, and packets without one
--
-- Times are those of b:rx_timestamps(); src:time(ns) returns them as a daqiri.time. A capture ends the run, and waits for the script. Live
-- sources drop bursts while the script is too slow, which the ledger counts.

local M = {}
local daqiri = require "daqiri"

-- mtu_of returns the MTU of a Linux interface; nil if no interface has that name.
local function mtu_of(name)
  for line in io.lines("/proc/net/dev") do
    if line:match("^%s*([^:%s]+):") == name then
      local f = io.open("/sys/class/net/" .. name .. "/mtu")
      local mtu = f and f:read("*n") or 9198
      if f then f:close() end
      return mtu
    end
  end
end

-- port returns the interface for a source, as a part of the configuration, and the length of its longest packet in bytes; or nil and a text.
function M.port(text)
  local mtu = mtu_of(text)
  if mtu then return { address = text, engine = "packet" }, mtu + 18 end
  if text:match("^%x+:%x+:%x+%.%x$") then return { address = text }, 9216 end -- a card used by DPDK
  if text == "-" or io.open(text) then return { address = "pcap:" .. text, replay = { speed = "max" } }, 65536 end
  local host, port = text:gsub("^udp://", ""):match("^(.-):(%d+)$")
  if not port then
    return nil, text .. ": neither a Linux interface (daqiri-run interfaces lists them), a file, [HOST]:PORT nor udp://HOST:PORT"
  end
  if host == "" then host = "0.0.0.0" end
  return { address = host, socket_config = { mode = "server", local_addr = "udp://" .. host .. ":" .. port } }, 9216
end

local Source = {}
Source.__index = Source

-- new returns a source of a queue.
local function new(session, queue, options, replay)
  return setmetatable({ session = session, queue = queue, where = options.where, selected = 0, other = 0, policy = replay and "wait" or "drop" }, Source)
end

-- open opens a session on a source. options: name, of the session; where, a condition for the packets to take (default all). Raises if the source
-- is not valid or can't be opened.
function M.open(text, options)
  local port, longest = M.port(text)
  if not port then error("cannot open " .. longest, 0) end
  port.name = "input"
  port.rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 1000, memory_regions = { "packets" } } } }
  local s = daqiri.open({ daqiri = { cfg = { version = 1, master_core = 0, stream_type = port.socket_config and "socket" or "raw", interfaces = { port },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, buf_size = math.max(longest, 2030), num_bufs = longest > 9216 and 2048 or 16384 } },
  } } }, { name = options.name })
  s:threshold("input.rx.dropped == 0")
  if not port.socket_config then s:threshold("input.wire.dropped == 0") end
  if not port.replay then s:threshold((port.socket_config and "input.rx" or "input.wire") .. ".kernel_dropped == 0") end
  return new(s, s:rx_queue("input"), options, port.replay ~= nil)
end

-- memory opens a session in memory, on a virtual clock, and sends the UDP payloads in a list, 10 us apart, when it runs. options as of open; port is
-- the destination port (4096).
function M.memory(payloads, options)
  local s = daqiri.open(nil, { name = options.name, set = { loopback = { mode = "sw", clock = "virtual" } } })
  local tx, sent = s:tx_queue("loop0"), 0
  tx:pace{ pps = 1e5 }
  s:every("10us", function()
    if sent == #payloads then return end
    sent = sent + 1
    assert(tx:send(tx:alloc(1):fill(tx:template{ payload = payloads[sent], udp_dst = options.port or 4096 })))
    if sent == #payloads then s:after("1ms", function() s:stop("all packets are sent") end) end
  end)
  return new(s, s:rx_queue("loop0"), options, true)
end

-- u16 returns the big-endian number of 2 bytes at an offset.
local function u16(s, at)
  local high, low = s:byte(at + 1, at + 2)
  return 256 * high + low
end

-- udp returns where the UDP payload of an Ethernet frame begins, and its length, in bytes; nil without a whole datagram.
local function udp(p)
  local n = p.length
  local s, at = p:bytes(0, math.min(n, 96)), 12 -- one call of the packet for all headers
  while n >= at + 6 and (u16(s, at) == 0x8100 or u16(s, at) == 0x88a8) and at < 20 do at = at + 4 end
  local ethertype = n >= at + 22 and u16(s, at)
  at = at + 2
  if ethertype == 0x0800 and s:byte(at + 10) == 17 and u16(s, at + 6) % 0x4000 == 0 then
    at = at + s:byte(at + 1) % 16 * 4
  elseif ethertype == 0x86dd and s:byte(at + 7) == 17 then
    at = at + 40
  else
    return nil
  end
  local length = n >= at + 8 and u16(s, at + 4) or 0
  if length < 8 or at + length > n then return nil end
  return at + 8, length - 8
end

-- each has fn called with the UDP payload of each selected packet, as a string, and its receive time in ns (0 without times). Packets without a
-- whole, unfragmented datagram are counted in other, and not passed.
function Source:each(fn)
  self.queue:on_burst(function(b)
    local part, frame = self.where and assert(b:select(self.where)) or b, self.queue.layer == "frame"
    self.other = self.other + b.n - part.n
    local times = part:rx_timestamps()
    for i = 1, part.n do
      local p, ns, at, length = part:packet(i), times[i] or 0, 0, nil
      if not self.epoch then self:set_epoch(part, i) end
      if frame then at, length = udp(p) end
      if at then
        self.selected = self.selected + 1
        fn(p:bytes(at, length), ns)
      else
        self.other = self.other + 1
      end
    end
  end, { policy = self.policy })
  self.session:threshold("on_burst1.dropped == 0") -- the line of this handler
end

-- set_epoch notes the absolute time of ns 0 from packet i of a burst, if that has a time.
function Source:set_epoch(b, i)
  local at, ns = b:rx_timestamps("epoch")[i], b:rx_timestamps()[i]
  if at then self.epoch = at - ns / 1e9 end
end

-- time returns a receive time in ns as a daqiri.time; nil if the source has no times.
function Source:time(ns) return self.epoch and self.epoch + ns / 1e9 end

-- ---- self-test ------------------------------------------------------------------------------------------------

function M.selftest()
  local src, got = M.memory({ "one", "two", "three" }, { name = "selftest", where = "payload_len ~= 5" }), {}
  src:each(function(payload, ns) got[#got + 1] = payload .. (ns > 0 and "" or " without a time") end)
  src.session:run{ seconds = 1 }
  assert(table.concat(got, ",") == "one,two" and src.selected == 2 and src.other == 1 and src:time(0))
  src.session:close()
  local port, longest = M.port(":7148")
  assert(port.socket_config.local_addr == "udp://0.0.0.0:7148" and longest == 9216)
  assert(M.port("udp://239.2.0.64:5").address == "239.2.0.64" and M.port("0000:8a:00.0").address == "0000:8a:00.0")
  local none, why = M.port("no/such.pcap")
  assert(not none and why:match("^no/such.pcap: neither a Linux interface"))
end

return M
