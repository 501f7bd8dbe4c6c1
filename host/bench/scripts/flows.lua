-- flows.lua: how many flows an interface takes, gives back and replaces in a second.
--   daqiri-run flows.lua --seconds 1
local daqiri = require "daqiri"
local args = daqiri.args{ seconds = 1, most = 10000 }
local s = daqiri.open()
local i = s:interface("loop0")
local n = 0

-- The flow number k: of ten, four on addresses and ports, two on a port, three on a prefix, one on a range of ports.
local function flow(k)
  local match
  if k % 10 < 4 then match = { ipv4_src = ("10.%d.%d.%d"):format(k / 65536, k / 256 % 256, k % 256), ipv4_dst = "192.0.2.1", udp_src = 4096, udp_dst = 7148 }
  elseif k % 10 < 6 then match = { udp_dst = 10000 + k % 40000 }
  elseif k % 10 < 9 then match = { ipv4_dst = ("11.%d.%d.0/24"):format(k / 256 % 256, k % 256) }
  else match = { udp_dst = ("%d-%d"):format(10000 + k % 40000, 10002 + k % 40000) } end
  return { match = match, action = { type = "queue", id = 0 } }
end

local function now() return (s:clock()) / 1e9 end

-- Calls fn, which changes so many flows, for a while; how many changed in a second.
local function rate(seconds, count, fn)
  local from, done = now(), 0
  repeat
    fn()
    done = done + count
  until now() - from > seconds
  return done / (now() - from)
end

local function room() if n > args.most then i:delete_flows("some"); n = 0 end end

local one = rate(args.seconds / 3, 1, function()
  room()
  n = n + 1
  assert(i:add_flows("some", { flow(n) }))
end)
local group = rate(args.seconds / 3, 100, function()
  room()
  local list = {}
  for k = 1, 100 do list[k] = flow(n + k) end
  n = n + 100
  assert(i:add_flows("some", list))
end)
room()
local gone = rate(args.seconds / 3, 2, function()
  n = n + 1
  local id = assert(i:add_flows("some", { flow(n) }))[1]
  assert(i:delete_flows(id))
end)
print(daqiri.json{ adds = one, adds_by_100 = group, changes = gone })
