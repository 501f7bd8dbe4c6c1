-- stand.lua: for walk.lua and fuzz.lua: sessions with objects of every type, and arguments for every member.
local daqiri = require "daqiri"
local M = {}

M.payload = "mine:" .. ("m"):rep(95)
M.alien = "alien" .. ("a"):rep(95) -- in every buffer of another owner

local function queue(name, id, regions, batch)
  return { name = name, id = id, cpu_core = not M.direct and -1 or nil, poll_mode = M.direct and "direct" or nil, batch_size = batch or 16, memory_regions = regions }
end

local function rx_queue(name, id, regions)
  local q = queue(name, id, regions)
  q.timeout_us = not M.direct and 100 or nil
  return q
end

local regions = {
  { name = "packets", kind = "host", affinity = 0, num_bufs = 96, buf_size = 512 },
  { name = "blocks", kind = "host", affinity = 0, num_bufs = 8, buf_size = 2048, shared = true },
  { name = "others", kind = "host", affinity = 0, num_bufs = 64, buf_size = 512 },
}

local function raw(loopback)
  return { version = 1, stream_type = "raw", master_core = 0, loopback = loopback, memory_regions = regions, interfaces = {
    { name = "a", address = "loop0", tx = { queues = { queue("tx", 0, { "packets" }), queue("tx1", 1, { "packets" }) } } },
    { name = "b", address = "loop1", rx = { queues = { rx_queue("rx", 0, { "packets" }), rx_queue("rx1", 1, { "packets" }) } } } } }
end

local function sockets(kind)
  local function endpoint(name, conf)
    return { name = name, address = "127.0.0.1", socket_config = conf, rx = { queues = { rx_queue("rx", 0, { "packets" }) } },
      tx = { queues = { queue("tx", 0, { "packets" }) } } }
  end
  local at = kind .. "://127.0.0.1:" .. free_port()
  return { version = 1, stream_type = "socket", master_core = 0, memory_regions = regions, interfaces = {
    endpoint("b", { mode = "server", local_addr = at }), endpoint("a", { mode = "client", remote_addr = at, retry_connect_s = 1 }) } }
end

-- Worlds by name; payload: packets have no headers.
M.kinds = {
  loop = function() return raw "sw" end,
  direct = function() M.direct = true local c = raw "sw" M.direct = false return c end,
  virtual = function() return raw{ mode = "sw", clock = "virtual", seed = 1 } end,
  faulty = function() return raw{ mode = "sw", clock = "virtual", seed = 1, loss = 0.1, dup = 0.1, reorder = 0.1, corrupt = 0.1, delay = "5us" } end,
  udp = function() return sockets "udp" end,
  tcp = function() return sockets "tcp" end,
}

local World = {}
World.__index = World

-- world opens a session of a kind; nothing has moved.
function M.world(kind, prefix)
  local w = setmetatable({ kind = kind, prefix = prefix or "w", payload = kind == "udp" or kind == "tcp" }, World)
  for try = 1, 5 do -- another process may take a port that was free
    local ok, s = pcall(daqiri.open, M.kinds[kind]())
    if ok then w.session = s break end
    if try == 5 or not tostring(s):find "already in use" then error(s, 0) end
  end
  w.interface, w.rx_interface = w.session:interface "a", w.session:interface "b"
  w.tx, w.rx = w.session:tx_queue("a", 0), w.session:rx_queue("b", 0)
  w.template = w:tpl(M.payload)
  w.filter = w.session:filter{ where = "len > 0" }
  w.file = w.prefix .. "-" .. next_number()
  w.writer = w.session:write_pcap{ name = "disk", dir = work_dir, prefix = w.file, policy = "wait", manifest = false }
  if not w.payload then
    w.blocks = w.session:reorder{ name = "blocks", memory_region = "blocks", payload_byte_offset = 46, slot_bytes = 96,
      sequence_number = { bit_offset = 36 * 8, bit_width = 16 }, packets_per_batch = 4, extra = "len", timeout_us = 1000 }
    w.session:pipe(w.session:rx_queue("b", 1), w.blocks)
    w.session:interface("b"):add_flows("blocks", { { name = "blocks", match = { udp_src = 9 }, action = { type = "queue", id = 1 } } })
  end
  if kind == "tcp" then
    w.rx_interface:on_connection(function(c) w.served = c end)
    w.interface:on_connection(function(c) w.connection = c end)
  else
    w.connection = w.payload and w.interface:connection() or nil
  end
  return w
end

function World:tpl(payload, more)
  local o = { payload = payload }
  if not self.payload then o.eth_dst, o.udp_dst, o.ipv4_dst = "02:00:00:00:00:02", 7000, "10.0.0.2" end
  for k, v in pairs(more or {}) do o[k] = v end
  return self.tx:template(o)
end

-- start starts it and gets the objects that only a running session has.
function World:start()
  self.session:start()
  self.started = true
  if self.kind == "tcp" then
    local t = daqiri.now() + 5
    while not (self.served and self.connection) and daqiri.now() < t do daqiri.sleep(0.001) end
    assert(self.connection, "no connection")
  end
end

-- burst makes one to send.
function World:burst(n)
  local b = assert(self.tx:alloc(n or 4))
  return b:fill(self.template)
end

-- received sends some packets and takes them.
function World:received()
  assert(self.started)
  self.rx:get_burst{ timeout_us = 0 }
  for _ = 1, 10 do -- a wire may lose them
    assert(self.tx:send(self:burst(8)))
    local b = self.rx:get_burst{ timeout_us = 200000 }
    if b then return b end
  end
  error "nothing came"
end

function World:aggregate()
  assert(self.started)
  self.blocks:get_burst{ timeout_us = 0 }
  for _ = 1, 10 do
    local b = assert(self.tx:alloc(4))
    b:fill(self:tpl(M.payload, { udp_src = 9, vary = { udp_dst = 1 } }))
    assert(self.tx:send(b))
    local a = self.blocks:get_burst{ timeout_us = 200000 }
    if a then return a end
  end
  error "no aggregate came"
end

-- hog takes all free buffers and fills them with what a script must not see elsewhere.
function World:hog()
  self.hogged, self.aliens = {}, self:tpl(M.alien)
  while true do
    local b = self.tx:alloc(8)
    if not b then break end
    self.hogged[#self.hogged + 1] = b:fill(self.aliens)
  end
end

-- intact raises where a packet of those buffers has changed.
function World:intact(what)
  for _, b in ipairs(self.hogged or {}) do
    for i = 1, b.n do
      local p = b:packet(i)
      if p:bytes(#p - #M.alien) ~= M.alien or #p ~= self.aliens.length then error(what .. " changed packets of another burst", 0) end
    end
  end
end

local source = "__global__ void touch(unsigned char *a, int n) { if ((int)threadIdx.x < n) a[threadIdx.x] += 1; }"
-- A kernel with rings, which hands the script an item and ends.
function M.persistent()
  return daqiri.kernel{ memory = "host", persistent = true, rings = { tx = 8, rx = 8, semaphores = 8 }, grid = 1, block = 1, src = [[
#include "gn.h"
__global__ void handed(void *context)
{
    gn_side side;
    gn_sem sem;
    if (gn_open(&side, context) == GN_OK && gn_sem_open(&sem, &side, 0) == GN_OK) gn_sem_push(&sem, 7, 1, GN_LIMIT, 0);
}
]] }
end

local function kernel(more) -- touches four bytes
  local o = { memory = "host", grid = 1, block = 4, src = source }
  for k, v in pairs(more or {}) do o[k] = v end
  return daqiri.kernel(o)
end
local function array() return daqiri.array{ kind = "host", type = "uint8", shape = { 2, 2 } } end

-- Objects of each type, by variant. An object that needs a running session says so by an assertion.
M.objects = {
  session = { open = function(w) return w.session end },
  interface = { tx = function(w) return w.interface end, rx = function(w) return w.rx_interface end },
  connection = { client = function(w) return assert(w.connection) end },
  lease = { none = function(w) return assert(w.connection:lend "others") end }, -- no engine of these worlds lends
  queue = { tx = function(w) return w.tx end, rx = function(w) return w.rx end },
  stage = { filter = function(w) return w.filter end, writer = function(w) return w.writer end, blocks = function(w) return assert(w.blocks) end },
  burst = {
    made = function(w) return w:burst() end,
    selected = function(w) w.parent = w:burst() return w.parent:select "len > 0" end,
    parent = function(w) local b = w:burst() w.child = b:select "len > 0" return b end,
    received = function(w) return w:received() end,
    aggregate = function(w) return w:aggregate() end,
  },
  packet = {
    made = function(w) w.parent = w:burst() return w.parent:packet(1) end,
    selected = function(w) w.parent = w:burst() w.child = w.parent:select "len > 0" return w.child:packet(1) end,
    data = function(w) w.parent = w:aggregate() return w.parent.data end,
  },
  column = { made = function(w) w.parent = w:burst() return w.parent:column "len" end, extra = function(w) w.parent = w:aggregate() return w.parent.extra end },
  samples = { made = function(w) w.parent = w:burst() return w.parent:samples(nil, { type = "ci8" }) end,
    slots = function(w) w.parent = w:aggregate() return w.parent.data:samples(nil, { type = "i8" }) end },
  template = { plain = function(w) return w.template end, varied = function(w) return w:tpl(M.payload, { vary = { { at = "payload", bit_offset = 0, bit_width = 32 } } }) end },
  timer = { after = function(w) return w.session:after(1e-4, function() end) end, every = function(w) return w.session:every(1e-4, function() end) end },
  control = { tcp = function() return daqiri.control{ tcp = "127.0.0.1:0", token = "open sesame" } end },
  task = { own = function() return daqiri.task(function() end) end },
  time = { now = function() return daqiri.time "now" end },
  u64 = { one = function() return daqiri.u64(1) end },
  op = { burst = function(w) w.parent = w:burst() return (assert(w.writer:write(w.parent))) end },
  presence = { block = function(w) w.parent = w:aggregate() return w.parent.present end },
  kernel = { host = function() return kernel() end, inStream = function() return kernel{ stream = daqiri.stream{ memory = "host" } } end,
    persistent = function() return M.persistent() end },
  semaphore = { first = function(w)
    local k = M.persistent()
    if not pcall(k.start, k, { tx = w.tx, semaphores = 1, session = w.session }) then return nil end -- on a virtual clock
    return k.semaphores[1]
  end },
  array = { host = function() return array() end, floats = function() return daqiri.array{ kind = "device", memory = "host", type = "fp16", shape = 3 } end },
  stream = { host = function() return daqiri.stream{ memory = "host" } end },
  format = { known = function() return daqiri.format "chips" end, own = function() return daqiri.format{ seq = { bit_offset = 0, bit_width = 16 } } end },
}

local function nothing() end
local none = function() return { {} } end
local flow = { { name = "f", match = { udp_dst = 7777 }, action = { type = "queue", id = 0 } } }
local tx_flow = { { name = "f", match = { udp_dst = 7777 }, action = { type = "vlan_push", vlan_id = 5 } } }
local tap = function() return { { nothing }, { nothing, { policy = "drop", sample = 2 } } } end
local wait_burst = function() return { { { timeout_us = 0 } }, { { timeout_us = 300 } } } end
local alloc = function() return { {}, { 1 }, { 16 }, { 17 } } end
local at = function() return { { 0 }, { 8 }, { -1 }, { 1e9 }, { 0.5 } } end
local set_at = function() return { { 0, 1 }, { 46, 99 }, { 1e9, 1 } } end

-- Arguments of methods, lists of lists, from the objects of a world: maybe another one than the object's. A wait is short.
M.args = {
  session = {
    add_region = function() return { { { name = "later", kind = "host", affinity = 0, num_bufs = 8, buf_size = 256 } } } end,
    delete_region = function() return { { "none" }, { "packets" } } end,
    after = function() return { { 1e-4, nothing } } end, at = function() return { { daqiri.time "now + 1ms", nothing } } end, clock = none, close = none,
    copy = function() return { { { memory_region = "others" } } } end,
    rewrite = function() return { { { udp_dst = 7, eth_dst = { 1, 1 } } }, { { ipv4_dst = { ["10.0.0.0/8"] = "11.0.0.0/8" }, checksums = "compute" } } } end,
    convert = function() return { { { memory_region = "others", at = "payload", data_types = { input_type = "int8", output_type = "fp32" } } } } end,
    gaps = function() return { { { counter = "udp_dst" } }, { { format = "simple", by = "udp_src", window = 8, jump = 9 } } } end,
    count = none, every = function() return { { 1e-4, nothing } } end, filter = function() return { { { where = "len > 10" } }, { { match = { udp_dst = 1 } } } } end,
    interface = function() return { { "a" }, { "absent" } } end, interfaces = none, log = function() return { { "debug", "text", 1 } } end,
    measure = function() return { { { seconds = 1e-4 } } } end, metric = function() return { { "height", 5 } } end,
    pipe = function(x) return { { x.rx, x.filter }, { { x.rx }, x.tx }, { x.rx, x.writer }, { x.rx, x.blocks } } end,
    region = function() return { { "packets" }, { "none" } } end,
    heaps = function() return { { { memory_region = "blocks", id = "len", offset = "0", heap_bytes = 16 } } } end,
    reorder = function() return { { { memory_region = "blocks", sequence_number = { bit_offset = 0, bit_width = 16 }, packets_per_batch = 2, payload_byte_offset = 10 } } } end,
    report = none, run = function() return { { { seconds = 1e-4 } } } end, rx_queue = function() return { { "b" }, { "b", 1 }, { "c" } } end,
    rx_queues = function() return { { "b" } } end, sample = function() return { { { every = 2 } } } end, stage = function() return { { "disk" }, { "none" } } end,
    share = function() return { { { path = work_dir .. "/" .. next_number() .. ".share" } } } end,
    start = none, stats = none, stop = function() return { { "enough" } } end, threshold = function() return { { "b.rx.packets >= 0" } } end,
    tx_queue = function() return { { "a" } } end, tx_queues = function() return { { "a" } } end,
    write_blocks = function() return { { { dir = work_dir, prefix = next_number(), manifest = false } } } end,
    write_pcap = function() return { { { dir = work_dir, prefix = next_number(), format = "pcapng" } } } end,
    write_raw = function() return { { { dir = work_dir, prefix = next_number(), per = "file" } }, { { dir = work_dir, prefix = next_number() } } } end,
    write_sigmf = function() return { { { dir = work_dir, prefix = next_number(), manifest = false, samples = { type = "ci8", rate = 1e6 } } } } end,
    write_dada = function() return { { { dir = work_dir, prefix = next_number(), manifest = false, samples = { type = "i8" } } } } end,
    write_guppi = function() return { { { dir = work_dir, prefix = next_number(), manifest = false, samples = { type = "ci8" } } } } end,
    write_zarr = function() return { { { dir = work_dir, prefix = next_number(), manifest = false } } } end,
    write_s3 = function() return { { { bucket = "b", endpoint = "http://127.0.0.1:1", access_key = "a", secret_key = "b", attempts = 1 } } } end,
  },
  interface = {
    add_rx_queue = function() return { { { name = "later", id = 7, cpu_core = -1, batch_size = 8, memory_regions = { "packets" } } } } end,
    add_tx_queue = function() return { { { name = "later", id = 7, cpu_core = -1, batch_size = 8, memory_regions = { "packets" } } } } end,
    add_flows = function() return { { "g", flow } } end, add_tx_flows = function() return { { "g", tx_flow } } end, allow_all_traffic = none,
    answer = function() return { { { addresses = "10.0.0.5" } }, { { addresses = {} } } } end, connect = function() return { { { address = "127.0.0.1:1" } }, { { qp = {} } } } end,
    connection = function() return { {}, { 1 }, { 99 } } end, delete_flows = function() return { { "g" }, { 1 } } end, delete_tx_flows = function() return { { "g" }, { 1 } } end,
    drop_all_traffic = none, flows = none, progress = none, join_multicast = function() return { { { groups = "239.2.0.64+1:7148" } } } end,
    leave_multicast = function() return { { { groups = "239.2.0.64+1:7148" } } } end, on_connection = function() return { { nothing } } end,
    replace_flows = function() return { { "g", flow } } end, replace_tx_flows = function() return { { "g", tx_flow } } end,
    resolve = function(x) return { { x.kind == "virtual" and "10.0.0.1" or "nowhere" } } end, tx_flows = none,
  },
  connection = { alloc = alloc, close = none, get_burst = wait_burst, on_burst = tap, on_disconnect = function() return { { nothing } } end,
    send = function(x) return { { x:burst() }, { x.rx } } end, setsockopt = function() return { { "SOL_SOCKET", "SO_KEEPALIVE", 1 } } end,
    compare_swap = function() return { { "ring", 0, 0, 1 } } end, fetch_add = function() return { { "ring", 8, 1 } } end, lend = function() return { { "others" }, { "packets", { name = "x" } } } end,
    join = function() return { { { qpn = 1, psn = 2, lid = 3 } } } end, message = function(x) return { { x:burst() }, { x:burst(), { imm = 1 } } } end, on_completion = function() return { { nothing } } end,
    read = function(x) return { { "ring", 0, 8 }, { "ring", 0, x:burst() } } end, receive = function(x) return { { x:burst() } } end,
    tell = function() return { { "ring", { addr = 8, rkey = 1, bytes = 8 } } } end, write = function(x) return { { x:burst(), "ring", 0 }, { x:burst(), "ring", 0, { imm = 1 } } } end },
  lease = { get = function() return { { 0, 8 } } end, put = function() return { { 0, "x" } } end, revoke = none },
  queue = { alloc = alloc, delete = none, drain = function() return { { { timeout = 1e-3 } } } end, flush = none, get_burst = wait_burst, on_burst = tap, pace = function() return { { { pps = 1e6 } }, { { follow = "rx_timestamp" } }, { {} } } end,
    send = function(x) return { { x:burst() } } end, template = function() return { { { payload_bytes = 60 } } } end,
    transmit = function(x) return { { { template = x.template, count = 3 } }, { { template = x.template } }, { { template = false } } } end },
  stage = { close = none, get_burst = wait_burst, on_burst = tap, write = function(x) return { { x:burst() } } end },
  burst = {
    checksums = function() return { {}, { 1 } } end, column = function() return { { "len" }, { { bit_offset = 0, bit_width = 64 } }, { "len // 8" } } end,
    count = function() return { { "len > 0" } } end, fill = function(x) return { { x.template } } end, prepend = function(x) return { { x.template } } end, flow_ids = none,
    free = function() return { { { packet = 1 } }, { { segment = 1 } }, { { packet = 2, segment = 1 } }, {} } end, keep = none, lengths = function() return { {}, { 1 } } end, offsets = function() return { {}, { 1 } } end,
    packet = function() return { { 1 }, { 4 } } end, peer = function() return { {}, { 1 } } end, rx_timestamps = function() return { {}, { "epoch" }, { "session" } } end, select = function() return { { "len >= 0" }, { "len > 1e6" } } end,
    plot = function() return { { { type = "ci8", kind = "time" } }, { { type = "u8", kind = "waterfall", points = 16 } }, { { format = "chips" } }, {} } end,
    samples = function() return { { nil, { type = "u8" } }, { "chips" }, { "gvsp", { packet = 1, type = "u12.lsb" } }, { "simple" }, {} } end,
    set = function() return { { { { at = "start", bit_offset = 128, bit_width = 32, value = 7 } } } } end,
    set_lengths = function() return { { 50 }, { 512 }, { 513 }, { 0 } } end,
    show = function() return { {}, { { fields = { "len" }, n = 2, csv = true } }, { { format = "chips" } } } end, truncate = function() return { { 2 }, { 0 } } end,
    tx_times = function() return { { 0 }, { 1000, 10 }, { daqiri.time "now" } } end,
  },
  packet = {
    samples = function() return { {}, { 1, { type = "i8" } }, { 2, { format = "chips" } }, { 99 } } end,
    bytes = function() return { {}, { 0, 8 }, { 50 } } end, hex = function() return { {}, { 0, 8 } } end, set_bytes = function() return { { 0, "hacked!!" }, { 50, "hacked!!" } } end,
    set_u8 = set_at, set_u16 = set_at, set_u16_le = set_at, set_u32 = set_at, set_u32_le = set_at, set_u64 = set_at, set_u64_le = set_at,
    u8 = at, u16 = at, u16_le = at, u32 = at, u32_le = at, u64 = at, u64_le = at,
  },
  column = { histogram = function() return { {}, { { bins = 4, min = 0, max = 10 } } } end, max = none, mean = none, min = none, sum = none,
    text = function() return { { 1 }, { 99 } } end, u64 = function() return { { 1 }, { 99 } } end, unique = none },
  samples = { get = function() return { { 1 }, { 9e9 } } end, histogram = none, mean = none, power = none,
    spectrum = function() return { { { points = 16, window = "none", step = 2 } }, { { points = 3 } }, {} } end },
  template = {}, timer = { cancel = none }, control = { close = none, on = function() return { { "verb", nothing }, { "verb" } } end }, task = { on_message = function() return { { nothing } } end, send = function() return { { 1 }, { { 1, 2 } } } end, stop = none },
  time = {}, u64 = { eq = function() return { { 1 }, { daqiri.u64(1) } } end, le = function() return { { 1 } } end, lt = function() return { { 1 } } end, key = none, number = none },
  op = { poll = none, on_done = function() return { { nothing } } end, wait = function() return { { { timeout = 1e-3 } } } end }, presence = { missing = none },
  kernel = { launch = function(x) return { { array(), 4 }, { x.kept, 4 }, { 1 } } end,
    start = function(x) return { { { tx = x.tx, rx = x.rx, semaphores = 1 } }, { { tx = x.rx } }, { {} } } end, stop = none, wait = function() return { { { timeout = 1e-3 } } } end,
    stage = function() return { { { args = { array(), 4 } } }, { { args = { "data", "packets" } } }, { { args = { "nothing", 1 } } } } end },
  array = { fill = function() return { { 1 }, { 0.5 }, { 1e9 } } end, get = function() return { {}, { 1, 2 }, { 3 }, { 9 } } end, histogram = function() return { {}, { { bins = 4, min = -1, max = 10 } } } end,
    max = none, min = none, set = function() return { { 1, 2, 7 }, { 2, 0.5 }, { { 1, 2, 3, 4 } }, { "abcd" } } end, snapshot = none, sum = none,
    write = function() return { { work_dir .. "/" .. next_number() .. ".npy" }, { work_dir .. "/" .. next_number() }, { "/nowhere/x" } } end },
  stream = { synchronize = none }, semaphore = { on_ready = function() return { { nothing } } end },
  format = { decode = function(w) return { { ("x"):rep(60) }, { "" }, { w.kept and w.kept:packet(1) } } end, encode = function() return { { {} }, { { seq = 7, payload = "x" } }, { { nothing = 1 } } } end,
    dissector = none, page = none, vectors = function() return { {}, { { n = 2, seed = 7 } } } end },
}

return M
