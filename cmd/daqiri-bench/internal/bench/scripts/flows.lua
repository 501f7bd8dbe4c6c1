-- flows.lua: how many flows an interface adds and deletes in a second. With a Linux device: how many changes its
-- kernel program takes, with tables of three sizes.
--   daqiri-run flows.lua --seconds 1 [--device eth1]
local daqiri = require "daqiri"
local args = daqiri.args{ seconds = 1, most = 10000, device = "" }

-- What no flow wants is left to the kernel: its program has to know the flows.
local function isolated(device)
  local queue = { name = "q", id = 0, cpu_core = 0, batch_size = 64, memory_regions = { "m" } }
  return { daqiri = { cfg = { version = 1, master_core = 0, stream_type = "raw",
    memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 1792 } },
    interfaces = { { name = "port", address = device, rx = { flow_isolation = true, queues = { queue } } } } } } }
end

local s = args.device == "" and daqiri.open() or daqiri.open(isolated(args.device))
local i = s:interface(args.device == "" and "loop0" or "port")
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

-- One flow comes and goes, behind `size` others.
local function changes(size, seconds)
  while n < size do
    local list = {}
    for k = 1, math.min(100, size - n) do list[k] = flow(n + k) end
    assert(i:add_flows("some", list))
    n = n + #list
  end
  return rate(seconds, 2, function()
    local id = assert(i:add_flows("other", { flow(n) }))[1]
    assert(i:delete_flows(id))
  end)
end

if args.device ~= "" then
  -- Ranges of ports are few in a kernel's program: a port each.
  local any = flow
  flow = function(k) return any(k % 10 == 9 and k - 1 or k) end
  local out = {}
  for _, size in ipairs{ 1, 100, args.most } do out["xdp_changes_" .. size] = changes(size, args.seconds / 3) end
  print(daqiri.json(out))
  os.exit(0)
end

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
