-- loop.lua: the loop engine at full rate against itself; flows change and sessions come and go meanwhile.
local daqiri = require "daqiri"
local check, control = require "check", require "control"
local args = daqiri.args{ ctl = "ctl", result = "result" }

local s = control.open("raw", { num_bufs = 16384, buf_size = 2048 },
  { { name = "port", address = "loop0", rx = control.queue("rx"), tx = control.queue("tx") } })
local tx, rx, iface = s:tx_queue("port"), s:rx_queue("port"), s:interface("port")
local state, does = check.new(), {}
local trouble = control.troubles(s, does)
rx:on_burst(function(b)
  check.burst(state, b)
  trouble(b)
end)

-- Adds n flows one by one that no packet matches, and deletes them.
function does.flows(n)
  local ids = {}
  for i = 1, n do
    ids[i] = iface:add_flows("soak", { { name = "f" .. i, match = { udp_dst = 20000 + i % 30000, ipv4_src = "192.0.2." .. i % 250 },
      action = { type = "queue", id = rx.id } } })[1]
  end
  local had = #iface:flows()
  for i = 1, n do iface:delete_flows(ids[i]) end
  if had ~= n or #iface:flows() ~= 0 then error("the table of flows lost its way") end
  return had .. " flows, then " .. #iface:flows()
end

-- Opens, runs and closes sessions.
function does.cycles(n)
  for _ = 1, n do
    local other = daqiri.open()
    other:start()
    other:close()
  end
  return n .. " sessions"
end

tx:transmit{ template = tx:template{ payload_bytes = 64, udp_dst = 7148, vary = { check.numbers } } }
control.run(s, args.ctl, args.result, does, function() return { lives = check.lives{ state } } end)
