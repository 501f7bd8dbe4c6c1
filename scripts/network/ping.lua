-- ping.lua: sends ICMP echo requests to another host and times the replies, or answers such requests for an address.
--   daqiri-run ping --device eth1 --from 10.0.0.1 --to 10.0.0.2 --count 5        needs root
--   daqiri-run ping --device eth1 --answer 10.0.0.9 --seconds 60                 for an address that no host has
-- Without a device it pings a responder of its own over a wire in memory, on a virtual clock.
local daqiri = require "daqiri"
local args = daqiri.args{
  device = { "", help = "a Linux interface" },
  from = { "10.0.0.1", help = "the address that asks" },
  to = { "10.0.0.9", help = "the address that is asked" },
  answer = { "", help = "answers for this address, and sends no requests" },
  count = { 5, help = "how many questions" },
  every = { 0.01, unit = "s", help = "from one to the next" },
  bytes = { 56, unit = "bytes", help = "behind the ICMP header" },
  seconds = { 0, unit = "s", help = "ends after so long; else when all is answered, or a second after the last question" },
}
local real = args.device ~= ""

local function port(name, address)
  local function queue(timeout) return { name = name, id = 0, cpu_core = -1, batch_size = 32, timeout_us = timeout, memory_regions = { "packets" } } end
  return { name = name, address = address, engine = real and "packet" or nil, tx = { queues = { queue() } }, rx = { queues = { queue(10) } } }
end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0, loopback = not real and { mode = "sw", clock = "virtual", delay = "25us" } or nil,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 } },
  interfaces = { port("asks", real and args.device or "loop0"), not real and port("answers", "loop1") or nil } }, { name = "ping" })
local ethernet, ipv4, icmp = daqiri.format "ethernet", daqiri.format "ipv4", daqiri.format "icmp"

-- Replies: the request with its addresses exchanged.
local function answer(name, address)
  local i, tx = s:interface(name), s:tx_queue(name)
  local asked = 0
  s:rx_queue(name):on_burst(function(b)
    local q = b:select("ip_proto == 1 and type == type.echo_request", icmp)
    if not q then return end
    local mac, src, dst = q:column "eth_src", q:column "ipv4_src", q:column "ipv4_dst"
    for k = 1, q.n do
      local a = dst:text(k) == address and tx:alloc(1)
      if a then
        local bytes = q:packet(k):bytes()
        a:set_lengths(#bytes)
        a:packet(1):set_bytes(0, bytes)
        a:set({ eth_dst = mac:text(k), eth_src = i.mac, ipv4_dst = src:text(k), ipv4_src = address, type = "echo_reply" }, icmp)
        asked = asked + 1
        assert(tx:send(a))
      end
    end
  end)
  return function() return asked end
end

if args.answer ~= "" then
  local asked = answer("asks", args.answer)
  s:start()
  s:log("info", "answering for " .. args.answer)
  s:run{ seconds = args.seconds > 0 and args.seconds or nil }
  print(("%d questions answered for %s"):format(asked(), args.answer))
  return
end

if not real then answer("answers", args.to) end
local i, tx = s:interface "asks", s:tx_queue "asks"
local sent, times = {}, {}                                  -- send times by sequence number; round trips in ns
s:rx_queue("asks"):on_burst(function(b)
  local r = b:select("ip_proto == 1 and type == type.echo_reply and echo_id == 0x6471", icmp)
  if not r then return end
  local number, src, ttl, came = r:column("echo_sequence", icmp), r:column "ipv4_src", r:column "ip_ttl", r:rx_timestamps()
  for k = 1, r.n do
    local at = sent[number[k]]
    if at and src:text(k) == args.to then
      sent[number[k]] = nil
      times[#times + 1] = came[k] - at
      print(("%d bytes from %s: icmp_seq=%d ttl=%d time=%.3f ms"):format(args.bytes + 8, args.to, number[k], ttl[k], times[#times] / 1e6))
      if #times == args.count then s:stop "all is answered" end
    end
  end
end)

-- Requests: one packet, numbered, with updated checksums.
s:start()
local mac = real and assert(i:resolve(args.to)) or s:interface("answers").mac
local body = icmp:encode{ type = "echo_request", echo_id = 0x6471, payload = ("."):rep(args.bytes) }
local question = tx:template{ bytes = ethernet:encode{ destination = mac, source = i.mac, type = "ipv4",
  payload = ipv4:encode{ time_to_live = 64, protocol = "icmp", source = args.from, destination = args.to, payload = body } } }
for n = 1, args.count do
  s:after((n - 1) * args.every, function()
    local b = assert(tx:alloc(1)):fill(question)
    b:set({ echo_sequence = n }, icmp)
    b:checksums()
    sent[n] = s:clock()
    assert(tx:send(b))
  end)
end
s:run{ seconds = args.seconds > 0 and args.seconds or args.count * args.every + 1 }
table.sort(times)
print(("%d packets transmitted, %d received, %g%% packet loss"):format(args.count, #times, 100 * (1 - #times / args.count)))
if #times > 0 then print(("rtt min/median/max = %.3f/%.3f/%.3f ms"):format(times[1] / 1e6, times[math.ceil(#times / 2)] / 1e6, times[#times] / 1e6)) end
os.exit(#times == args.count and 0 or 1)
