-- control.lua: a paced sender with a control channel: clients change its rate, pause it, read its figures, and stop it.
--   daqiri-run control --unix /tmp/tx.sock             (or --tcp 127.0.0.1:7150 --token TOKEN)
--   echo 'rate 200Mbit/s' | nc -UN /tmp/tx.sock             {"ok":true,"reply":{"rate":"200Mbit/s"}}
--   echo '{"verb":"status","id":7}' | nc -UN /tmp/tx.sock
-- A line is a verb with words, or JSON; 'help' lists the verbs. Each line is logged.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "loopback.yaml", help = "has tx_port" },
  unix = { "", help = "path of a unix socket to listen at" },
  tcp = { "127.0.0.1:7150", help = "IP:PORT to listen at, without --unix; with --token" },
  token = { "", help = "what the first line of each connection has to be: token TOKEN" },
  rate = { "100Mbit/s", help = "at first" },
  try = { "", help = "lines with ; between them that the script sends itself, over TCP, to show what comes back" },
}

local s = daqiri.open(args.config)
local tx, rate = s:tx_queue("tx_port"), args.rate
local packet = tx:template{ udp_dst = 7148, payload_bytes = 1000 }
s:pipe(s:rx_queue("rx_port"), s:count{ name = "seen" })
local function pace(text)
  tx:pace{ rate = text }                                    -- raises an error for an invalid rate; the client receives it
  rate = text
end
pace(rate)
tx:transmit{ template = packet }

local where = args.unix ~= "" and { unix = args.unix } or { tcp = args.tcp }
where.token = args.token ~= "" and args.token or nil
local ctl = daqiri.control(where)
ctl:on("rate", function(m) pace(m.rate or m.text) return { rate = rate } end)
ctl:on("pause", function() tx:transmit{ template = false } end)
ctl:on("resume", function() tx:transmit{ template = packet } end)
ctl:on("status", function() return { rate = rate, moved = s:stats().seen.packets > 0, dropped = s:stats().tx_port.tx.dropped } end)
ctl:on("stop", function(m) s:stop(m.text ~= "" and m.text or "asked to") end)
s:log("info", "listening", { address = ctl.address })

-- Sends lines to the control channel, as another program would, and prints the answers.
local function try(lines)
  local queue = { name = "q", id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "lines" } }
  local peer = daqiri.open({ version = 1, stream_type = "socket", master_core = 0,
    memory_regions = { { name = "lines", kind = "host", affinity = 0, num_bufs = 64, buf_size = 4096 } },
    interfaces = { { name = "peer", address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "tcp://" .. ctl.address, retry_connect_s = 1 },
      rx = { queues = { queue } }, tx = { queues = { queue } } } } }, { name = "peer" })
  local text, connection = "", nil
  peer:rx_queue("peer"):on_burst(function(b) for i = 1, b.n do text = text .. b:packet(i):bytes() end end)
  peer:interface("peer"):on_connection(function(c) connection = c end)
  peer:start()
  while not connection do daqiri.sleep(0.001) end
  for line in lines:gmatch("[^;]+") do
    text = ""
    assert(peer:tx_queue("peer"):send(peer:tx_queue("peer"):alloc(1):fill(peer:tx_queue("peer"):template{ payload = line .. "\n" })))
    while not text:find("\n") do daqiri.sleep(0.001) end
    print(line .. " -> " .. text:gsub("\n$", ""))
  end
  peer:close()
end

s:start()
while s:stats().seen.packets == 0 do daqiri.sleep(0.001) end
if args.try ~= "" then try(args.try) end
print("ended: " .. s:run{}.reason)
