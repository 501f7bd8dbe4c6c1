-- rig.lua: functions shared by the test scripts of daqiri.api.
local api, t = require "daqiri.api", require "check"
local M = {}

-- ok returns the results after SUCCESS, or raises an error.
function M.ok(status, ...)
  if status ~= api.Status.SUCCESS then error(tostring(status) .. ": " .. tostring(select(-1, nil, ...)), 2) end
  return ...
end

-- fails checks for a status and a message that contains words.
function M.fails(want, words, status, ...)
  t.equal(status, want)
  local text = select(-1, nil, ...)
  if not tostring(text):find(words, 1, true) then error(("got text: %s\nwant: %s"):format(tostring(text), words), 2) end
end

-- port returns the configuration of an interface with rx and tx queues.
function M.port(name, address, rx, tx, more)
  local function queues(n)
    local list = {}
    for id = 0, n - 1 do list[id + 1] = { name = "q" .. id, id = id, cpu_core = -1, batch_size = 16, memory_regions = { "m" } } end
    return list
  end
  local i = { name = name, address = address, rx = { queues = queues(rx) }, tx = { queues = queues(tx) } }
  for _, q in ipairs(i.rx.queues) do q.timeout_us = 100 end
  for key, value in pairs(more or {}) do
    if key == "rx" then
      for k, v in pairs(value) do i.rx[k] = v end
    else
      i[key] = value
    end
  end
  return i
end

-- config returns a configuration of interfaces, with one region "m".
function M.config(stream_type, interfaces, more)
  local c = { version = 1, stream_type = stream_type, master_core = 0,
    memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } }, interfaces = interfaces }
  for key, value in pairs(more or {}) do c[key] = value end
  return c
end

-- alloc returns a burst of n packets for a queue.
function M.alloc(port, q, n, segs)
  local burst = api.create_tx_burst_params()
  api.set_header(burst, port, q, n, segs or 1)
  M.ok(api.get_tx_packet_burst(burst))
  return burst
end

-- send sends n UDP packets with 20 bytes of payload to a port.
function M.send(port, q, n, udp_dst)
  local burst = M.alloc(port, q, n)
  for i = 0, n - 1 do
    M.ok(api.set_eth_header(burst, i, api.format_eth_addr("02:00:00:00:00:09")))
    M.ok(api.set_ipv4_header(burst, i, 28, api.IPPROTO_UDP, "10.0.0.1", "10.0.0.2"))
    M.ok(api.set_udp_header(burst, i, 20, 4096, udp_dst))
    M.ok(api.set_udp_payload(burst, i, ("p"):rep(20), 20))
  end
  M.ok(api.set_all_packet_lengths(burst, { 62 }))
  M.ok(api.send_tx_burst(burst))
end

-- poll polls until a burst arrives.
function M.poll(...)
  local until_ = require("daqiri").now() + 5
  repeat
    local status, burst, text = api.get_rx_burst(...)
    if burst then return burst, status end
    if status ~= "NULL_PTR" then error(status .. ": " .. text, 2) end
  until require("daqiri").now() > until_
  error("nothing came", 2)
end

return M
