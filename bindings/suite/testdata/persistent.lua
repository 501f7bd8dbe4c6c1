-- Persistent kernels on the host: rings of queues, what is refused, and a run that is repeated; on the real clock.
local daqiri = require "daqiri"
local args = daqiri.args{ dir = "" }
local function try(fn, ...) local ok, err = pcall(fn, ...) assert(not ok) return tostring(err) end
local function has(text, part) assert(text:find(part, 1, true), text) end

local scale = daqiri.kernel{ memory = "host", grid = 1, block = 1, src = "__global__ void scale(float *a) {}" }
has(try(scale.start, scale, {}), "kernel scale: 'start' is for persistent kernels")
local echo = [[
#include "gn.h"
__global__ void echo(void *context)
{
    gn_side side;
    gn_rx rx;
    gn_tx tx;
    gn_sem told;
    gn_u64 first, ticket;
    gn_u32 n;
    if (gn_open(&side, context) || gn_rx_open(&rx, &side, 0) || gn_tx_open(&tx, &side, 0) || gn_sem_open(&told, &side, 0)) return;
    while (gn_recv(&rx, GN_BY_THREAD, 1, 60000000000ull, &first, &n, 0) == GN_OK) {
        gn_packet p;
        gn_rx_read(&rx, first, &p);
        if (gn_send(&tx, GN_BY_THREAD, p.place, p.bytes, 0, 0, GN_LIMIT, &ticket) == GN_OK) gn_wait(&tx, ticket, GN_LIMIT);
        gn_release(&rx, GN_BY_THREAD, first, n);
        gn_sem_push(&told, first, p.bytes, GN_LIMIT, 0);
    }
}
]]
local function persistent(o)
  local conf = { name = o.name or "echo", memory = "host", persistent = true, grid = o.grid or 1, block = 1, rings = o.rings, src = echo }
  return daqiri.kernel(conf)
end
has(try(daqiri.kernel, { memory = "gpu", grid = 1, block = 1, src = echo }), [[option 'memory': "gpu" is not one of host, host_pinned, device]])
has(try(persistent, { rings = { tx = "x" } }), "option 'rings': tx = ")
has(try(persistent, { rings = { ops = { "fly" } } }), 'there is no operation "fly": it is one of send, put, get, add, copy, file')
has(try(persistent{}.stop, persistent{}), "kernel echo: it was not started")

local function real(mode, kind, tx_kernel)
  local worker = mode == "worker"
  local function queue(name, timeout)
    return { name = name, id = 0, cpu_core = worker and -1 or nil, poll_mode = not worker and "direct" or nil, timeout_us = worker and timeout or nil,
      batch_size = 8, memory_regions = { "packets" } }
  end
  local taken = queue("tx")
  taken.gpunetio = { tx_kernel = tx_kernel }
  return daqiri.open({ version = 1, stream_type = "raw", engine = "gpunetio", master_core = 0, loopback = { mode = "sw", clock = kind or "real" },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 256 },
      { name = "more", kind = "host", affinity = 0, num_bufs = 8, buf_size = 128 } },
    interfaces = { { name = "here", address = "a", tx = { queues = { queue("tx") } }, rx = { queues = { queue("rx", 10) } } },
      { name = "there", address = "b", tx = { queues = { taken } }, rx = { queues = { queue("rx", 10) } } } } }, { memory = "host" })
end
do
  local v = real("direct", "virtual")
  local k = persistent{}
  has(try(k.start, k, { tx = v:tx_queue("here") }), "kernel echo: a persistent kernel runs in real time, and the session's clock is virtual")
  v:close()
end
-- A queue of kernels that run for each burst.
do
  local p = real("direct", "real", "per_burst")
  local k = persistent{}
  has(try(k.start, k, { tx = p:tx_queue("there") }), "kernel echo: queue tx is for kernels that run for each burst (gpunetio.tx_kernel: per_burst)")
  p:close()
end
-- Put over datagrams, memory that the kernel was not given, and a GPU's driver that isn't there.
do
  local out = { name = "q", id = 0, cpu_core = -1, batch_size = 8, memory_regions = { "out" } }
  local s = daqiri.open({ version = 1, stream_type = "socket", master_core = 0,
    memory_regions = { { name = "out", kind = "host", affinity = 0, num_bufs = 8, buf_size = 256 }, { name = "more", kind = "host", affinity = 0, num_bufs = 8, buf_size = 128 } },
    interfaces = { { name = "net", address = "127.0.0.1", socket_config = { mode = "client", remote_addr = "udp://127.0.0.1:9" }, tx = { queues = { out } } } } }, { memory = "host" })
  local function numbered(ops)
    return daqiri.kernel{ name = "putter", memory = "host", persistent = true, grid = 1, block = 1, rings = { ops = ops }, src = "__global__ void putter(void *context, unsigned region) {}" }
  end
  local tx = s:tx_queue("net")
  local put, send = numbered{ "put" }, numbered{ "send" }
  has(try(put.start, put, { tx = tx, args = { "context", "out" }, session = s }), "kernel putter: transmit ring 1: queue q carries datagrams or streams (engine socket), and put, get and add need")
  has(try(send.start, send, { tx = tx, args = { "context", "more" }, session = s }), "argument 2: memory region more was not given to it")
  assert(send:start{ tx = tx, regions = { "more" }, args = { "context", "more" }, session = s }.restarted == 0)
  assert(send:wait{ timeout = 60 } and send:stop{ timeout = 60 })
  s:close()
end
-- A kernel that was compiled against another version of the header says so.
do
  local r = real("worker")
  local k = daqiri.kernel{ name = "old", memory = "host", persistent = true, grid = 1, block = 1, src = [[
#include "gn.h"
__global__ void old(void *context)
{
    gn_side side;
    gn_open(&side, context);
    side.kernel->abi = 1;
}
]] }
  r:start()
  k:start{ tx = r:tx_queue("here"), session = r }
  has(try(k.wait, k, { timeout = 20 }), "kernel old: it was compiled against another version of gn.h")
  has(try(k.stop, k), "another version of gn.h")
  r:close()
end

-- A kernel of three blocks, each of which takes part in as many turns as its argument says: the kernel runs until the last block has
-- returned, whichever returns first.
do
  local r, turns = real("worker"), { 40, 1, 20 }
  local k = daqiri.kernel{ name = "blocks", memory = "host", persistent = true, grid = 3, block = 1, src = [[
#include <time.h>
__global__ void blocks(void *context, volatile unsigned long long *turn, const unsigned long long *turns)
{
    const struct timespec nap = { 0, 100000 };
    unsigned long long now = 0;
    while (now < turns[blockIdx.x]) {
        now = turn[0];
        turn[1 + blockIdx.x] = now;
        nanosleep(&nap, 0);
    }
}
]] }
  local function array(n) return daqiri.array{ kind = "host_pinned", memory = "host", type = "uint64", shape = n } end
  local turn, most = array(4), array(3)
  for block, n in ipairs(turns) do most:set(block, n) end
  r:start()
  k:start{ tx = r:tx_queue("here"), session = r, timeout = "60s", args = { "context", turn, most } }
  for n = 1, 40 do
    turn:set(1, n)
    for block, last in ipairs(turns) do
      for _ = 1, 3000 do
        if n > last or turn:get(1 + block) == n then break end
        daqiri.sleep(0.01)
      end
      assert(turn:get(1 + block) == math.min(n, last), "block " .. block .. " takes no part in turn " .. n)
    end
  end
  assert(k:wait{ timeout = 60 } and k:stop{ timeout = 60 } and k.restarted == 0)
  r:close()
end

for _, mode in ipairs{ "worker", "direct" } do
  local r = real(mode)
  local here, there = r:rx_queue("here"), r:rx_queue("there")
  local function refused(o, start, part)
    local k = persistent(o)
    has(try(k.start, k, start), part)
  end
  local tx = r:tx_queue("there")
  refused({ rings = { tx = 12 } }, { tx = tx }, "kernel echo: transmit ring 1 has 12 slots")
  refused({ rings = { rx = 3 } }, { rx = there }, "kernel echo: receive ring 1 has 3 slots")
  refused({ rings = { semaphores = 5 } }, { tx = tx, semaphores = 1 }, "kernel echo: semaphore 1 has 5 slots")
  refused({}, { tx = there }, "kernel echo: transmit ring 1: queue rx is not a transmit queue")
  refused({}, { rx = tx }, "kernel echo: receive ring 1: queue tx is not a receive queue")
  refused({}, { tx = tx, regions = { "nowhere" } }, 'kernel echo: memory region "nowhere"')
  refused({}, { tx = tx, args = { 1 } }, "kernel echo: argument 1 (void *context)")
  refused({}, { tx = 5 }, "option 'tx': a queue, or a list of them, expected, got the number 5")
  refused({}, { tx = { tx, "tx" } }, "option 'tx': a queue, or a list of them, expected, got the string \"tx\"")
  local many = {}
  for i = 1, 33 do many[i] = tx end
  refused({}, { tx = many }, "option 'tx': 33 queues, and a kernel has 16 at most")
  refused({}, { tx = tx, regions = "more" }, "option 'regions': a list of names expected")
  refused({}, { tx = tx, regions = many }, "option 'regions': 33 names, and a kernel has 32 at most")
  refused({}, { tx = tx, writers = 1 }, "option 'writers': a list of writers expected")
  refused({ grid = 65 }, { tx = tx }, "kernel echo: 65 blocks of 1 threads, and the host runs 64 of them at once")
  local raw, sums = r:write_raw{ name = "raw", dir = args.dir, per = "file", prefix = mode }, r:write_blocks{ name = "sums", dir = args.dir }
  refused({ rings = { ops = { "file" } } }, { tx = tx }, "kernel echo: its rings take file writes, and it has no writer; hint: writers = { w }")
  refused({}, { tx = tx, writers = { raw } }, "kernel echo: it has writers, and its rings take no file writes")
  refused({ rings = { ops = { "file" } } }, { tx = tx, writers = { sums } }, "kernel echo: writer sums takes reordered data alone")
  refused({ rings = { ops = { "file" } } }, { tx = tx, writers = { tx } }, "option 'writers': a writer expected")
  refused({ name = "here" }, { tx = tx }, "kernel here: the name is that of an interface or a stage")

  -- An echo, twice: what comes to `there` goes back to `here` by the kernel.
  local k = persistent{ rings = { tx = 8, rx = 8, semaphores = 4 } }
  local back, told = 0, 0
  here:on_burst(function(b)
    for i = 1, b.n do assert(b:packet(i):bytes():find("number", 1, true)) end
    back = back + b.n
  end)
  for round = 1, 2 do
    if round == 1 then r:start() end
    assert(k:start{ tx = tx, rx = there, semaphores = 1, policy = "wait", timers = round == 1 } == k and k.running)
    has(try(k.start, k, { tx = tx }), "kernel echo: it was started, and is stopped by k:stop() first")
    k.semaphores[1]:on_ready(function(first, count)
      assert(count == 42 + 7, count)
      told = told + 1
    end)
    local from = r:tx_queue("here")
    for n = 1, 100 do
      local b = from:alloc(1)
      b:fill(from:template{ udp_dst = 7148, payload = "number" .. n % 10 })
      assert(from:send(b))
    end
    for _ = 1, 2000 do
      if told == 100 * round and back == 100 * round then break end
      daqiri.sleep(0.005)
    end
    assert(told == 100 * round and back == 100 * round, told .. " " .. back)
    assert(k:stop{ timeout = 20 } and not k.running and k.posted == 100 and k.completed == 100 and k.refused == 0 and k.received == 100 and not k.fault)
  end
  local l = r:stats()
  assert(l.echo.tx["in"] == 100 and l.echo.rx["in"] == 100 and l.echo.rx.held == 0, tostring(l))
  local took = l.echo.tx.send_time
  assert(took.p50 > 0 and took.max < 60e9, tostring(l))
  has(try(function() return l.echo[2].tx.send_time end), "unknown figure 'send_time' of echo.2.tx") -- started without timers
  local port = r:interface("here")
  if mode == "worker" then
    has(try(port.progress, port), "is polled by a worker, beside which the script can't")
  else
    assert(port:progress() >= 0)
  end
  r:close()
end
-- What a kernel sent lies before a queue that nothing reads: a wait without a timeout raises and names it, and goes on with a reader.
for _, mode in ipairs{ "direct", "worker" } do
  local r = real(mode)
  local k = daqiri.kernel{ name = "sender", memory = "host", persistent = true, grid = 1, block = 1, src = [[
#include "gn.h"
__global__ void sender(void *context)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket;
    if (gn_open(&side, context) || gn_tx_open(&tx, &side, 0)) return;
    for (int k = 0; k < 3; k++) gn_send(&tx, GN_BY_THREAD, gn_place(0, 256 * k), 64, 0, 0, GN_LIMIT, &ticket);
}
]] }
  r:start()
  k:start{ tx = r:tx_queue("here") }
  local unread = "and what it sent lies before interface there: queue rx, which nothing reads: hint: on_burst, get_burst or a pipe there, or k:stop()"
  has(try(k.wait, k), "kernel sender: it has ended, " .. unread)
  local ok, code, text = k:wait{ timeout = 0.01 }
  assert(ok == nil and code == "NOT_READY" and text:find(unread, 1, true), text)
  local got = 0
  r:rx_queue("there"):on_burst(function(b) got = got + b.n end)
  assert(k:wait() and k.completed == 3)
  assert(k:stop())
  while got < 3 do daqiri.sleep(0.005) end
  r:close()
end
