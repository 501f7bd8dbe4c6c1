-- timed_send.lua: sends packets at absolute times, on a grid of the session's clock, and records when they arrive.
--   daqiri-run timed_send --config loopback.yaml --count 20000
-- A packet waits in the transmit queue, whose thread sleeps until shortly before its time and then polls the clock.
-- Packets leave in the order in which they were sent. A packet whose time has passed leaves at once, and counts as late.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has tx_port and rx_port on the loop engine" },
  count = { 1000, unit = "packets", help = "to send" },
  step = { 50, unit = "us", help = "from one to the next" },
  ahead = { 2, unit = "ms", help = "that packets are handed over before their time, at least" },
  dir = { "captures", help = "folder for the pcap" },
}

local s = daqiri.open(args.config, { set = { ["interfaces.tx_port.tx.accurate_send"] = true } })
local rx, tx = s:rx_queue("rx_port"), s:tx_queue("tx_port")
s:pipe(rx, s:write_pcap{ name = "disk", dir = args.dir, prefix = "timed" })

local step, sent, last = args.step * 1000, 0, 0             -- times are in ns since the session's start
local pulse = tx:template{ payload_bytes = 32, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } }
local function send()                                       -- keeps the next packets in the queue
  while sent < args.count and last < s:clock() + 2e6 * args.ahead do
    local b = tx:alloc(math.min(16, args.count - sent))
    if not b then return end
    b:fill(pulse)
    local first = math.max(last + step, math.ceil((s:clock() + 1e6 * args.ahead) / step) * step)
    b:tx_times(first, step)
    last, sent = first + (b.n - 1) * step, sent + b.n
    assert(tx:send(b))
  end
end

s:start()
send()
s:every(args.ahead / 2000, send)
s:threshold("tx_port.tx.late == 0")
local sum = s:run{ packets = args.count, seconds = 10 + args.count * args.step / 1e6 }
local t = sum.tx_port.tx
print(("%d packets, %d with a time, %d late; off by at most %d ns"):format(t.packets, t.timed, t.late, t.time_error.max))
