-- gn.lua: a client's kernel works on what a server lends it: put, inline put, put with signal, get, signal, fetch_add; sends a message,
-- which the server's kernel receives and answers; last with a key that opens nothing.
local daqiri = require "daqiri"
local args = daqiri.args{ compile = false }
local function side(name, address, config)
  local function queue(q) return { { name = q, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "packets" } } } end
  return { name = name, address = address, socket_config = config, roce_config = { transport_mode = "RC" }, rx = { queues = queue(name .. "_rx") }, tx = { queues = queue(name .. "_tx") } }
end
local function region(name, n, bytes, access) return { name = name, kind = "host_pinned", affinity = 0, num_bufs = n, buf_size = bytes, access = access } end
local text = [[
#include "gn.h"
// reply: what each call gave, then what fetch_add found twice.
__global__ void ops(void *context, unsigned int mine, unsigned int theirs, unsigned long long *reply)
{
    gn_side side;
    gn_tx tx;
    gn_u64 was = 0, ticket;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    unsigned char *p = (unsigned char *)gn_pointer(&side, gn_place(mine, 0));
    for (int k = 0; k < 2000; k++) p[k] = (unsigned char)(k * 7 + 1);
    reply[0] = gn_put(&tx, GN_BY_THREAD, gn_place(theirs, 64), gn_place(mine, 0), 1000, GN_LIMIT, 0);
    reply[1] = gn_put_inline(&tx, GN_BY_THREAD, gn_place(theirs, 8), 0x4847464544434241ull, 8, GN_LIMIT, 0);
    reply[2] = gn_put_signal(&tx, GN_BY_THREAD, gn_place(theirs, 1064), gn_place(mine, 1000), 1000, gn_place(theirs, 0), 3, GN_LIMIT, 0);
    reply[3] = gn_signal(&tx, GN_BY_THREAD, gn_place(theirs, 0), 4, GN_LIMIT, 0);
    reply[4] = gn_fetch_add(&tx, gn_place(theirs, 0), 1ull << 63, gn_place(mine, 4096), GN_LIMIT, &was);
    reply[7] = was;
    reply[5] = gn_fetch_add(&tx, gn_place(theirs, 0), 1, gn_place(mine, 4104), GN_LIMIT, &was);
    reply[8] = was;
    reply[6] = gn_get(&tx, GN_BY_THREAD, gn_place(mine, 8192), gn_place(theirs, 64), 2000, GN_LIMIT, &ticket);
    if (reply[6] == GN_OK) reply[6] = gn_wait(&tx, ticket, GN_LIMIT);
    const unsigned char *back = (const unsigned char *)gn_pointer(&side, gn_place(mine, 8192));
    for (int k = 0; k < 2000; k++) reply[9] += back[k] != (unsigned char)(k * 7 + 1);
}
// Sends 10 messages of 100 bytes, and takes their answers.
__global__ void ask(void *context, unsigned int mine, unsigned long long *reply)
{
    gn_side side;
    gn_tx tx;
    gn_rx rx;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    for (int m = 0; m < 10; m++) {
        gn_u64 place = gn_place(mine, 4096ull * m), first;
        gn_u32 n = 0;
        unsigned char *p = (unsigned char *)gn_pointer(&side, place);
        for (int k = 0; k < 100; k++) p[k] = (unsigned char)(m + k);
        reply[0] += gn_send(&tx, GN_BY_THREAD, place, 100, 0, 0, GN_LIMIT, 0) != GN_OK;
        gn_packet in;
        if (gn_recv(&rx, GN_BY_THREAD, 1, GN_LIMIT, &first, &n, 0) != GN_OK || gn_rx_read(&rx, first, &in) != GN_OK) return;
        const unsigned char *q = (const unsigned char *)gn_pointer(&side, in.place);
        int wrong = in.bytes != 100;
        for (int k = 0; k < 100 && !wrong; k++) wrong = q[k] != (unsigned char)(m + k + 1);
        reply[1] += !wrong;
        gn_release(&rx, GN_BY_THREAD, first, n);
    }
}
// Answers each message: every byte one more.
__global__ void answer(void *context, unsigned int out)
{
    gn_side side;
    gn_tx tx;
    gn_rx rx;
    gn_u64 first, sent = 0;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    for (int reply; (reply = gn_recv(&rx, GN_BY_THREAD, 1, GN_LIMIT, &first, &n, 0)) != GN_ABORTED;) {
        gn_packet in;
        if (reply != GN_OK || gn_rx_read(&rx, first, &in) != GN_OK) continue;
        gn_u64 place = gn_place(out, 4096 * (sent++ % 16));
        const unsigned char *p = (const unsigned char *)gn_pointer(&side, in.place);
        unsigned char *q = (unsigned char *)gn_pointer(&side, place);
        for (unsigned int k = 0; k < in.bytes && k < 4096; k++) q[k] = (unsigned char)(p[k] + 1);
        gn_release(&rx, GN_BY_THREAD, first, n);
        gn_send(&tx, GN_BY_THREAD, place, in.bytes, 0, 0, GN_LIMIT, 0);
    }
}
__device__ static unsigned int value(int m) { return 0x01020304u + m * 0x01010101u; }
// 40 immediates, of puts and sends by turns, then one that the engine keeps for itself.
__global__ void notify(void *context, unsigned int mine, unsigned int theirs, unsigned long long *reply)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket = 0;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    for (int m = 0; m < 40; m++) {
        gn_u64 place = gn_place(mine, 8ull * m);
        *(unsigned long long *)gn_pointer(&side, place) = m + 1;
        int err = m % 2 ? gn_send_imm(&tx, GN_BY_THREAD, place, 8, value(m), 0, GN_LIMIT, &ticket)
                        : gn_put_imm(&tx, GN_BY_THREAD, gn_place(theirs, 2400 + 8ull * m), place, 8, value(m), GN_LIMIT, &ticket);
        reply[0] += err != GN_OK;
    }
    reply[0] += gn_wait(&tx, ticket, GN_LIMIT) != GN_OK;
    if (gn_put_imm(&tx, GN_BY_THREAD, gn_place(theirs, 2400), gn_place(mine, 0), 8, 0xffffffffu, GN_LIMIT, &ticket) == GN_OK)
        reply[1] = gn_wait(&tx, ticket, GN_LIMIT) == GN_FAILED;
}
// reply: right immediates with their bytes, wrong ones.
__global__ void notified(void *context, unsigned int theirs, unsigned long long *reply)
{
    gn_side side;
    gn_rx rx;
    gn_u64 first;
    gn_u32 n;
    if (gn_open(&side, context) != GN_OK || gn_rx_open(&rx, &side, 0) != GN_OK) return;
    for (int m = 0; m < 40; m++) {
        gn_packet in;
        if (gn_recv(&rx, GN_BY_THREAD, 1, GN_LIMIT, &first, &n, 0) != GN_OK || gn_rx_read(&rx, first, &in) != GN_OK) return;
        int put = m % 2 == 0;
        const void *p = gn_pointer(&side, put ? gn_place(theirs, 2400 + 8ull * m) : in.place);
        int right = in.imm == value(m) && in.imm_of == (put ? GN_IMM_PUT : GN_IMM_SEND) && in.bytes == (put ? 0 : 8) && in.flow == 0;
        reply[right && *(const unsigned long long *)p == m + 1 ? 0 : 1]++;
        gn_release(&rx, GN_BY_THREAD, first, n);
    }
}
__global__ void late(void *context, unsigned int mine, unsigned int theirs, unsigned long long *reply)
{
    gn_side side;
    gn_tx tx;
    gn_u64 ticket = 0;
    if (gn_open(&side, context) != GN_OK || gn_tx_open(&tx, &side, 0) != GN_OK) return;
    reply[0] = gn_put(&tx, GN_BY_THREAD, gn_place(theirs, 64), gn_place(mine, 0), 1000, GN_LIMIT, &ticket);
    reply[1] = gn_wait(&tx, ticket, GN_LIMIT);
}
]]
local function kernel(entry, ring_ops)
  return daqiri.kernel{ entry = entry, persistent = true, memory = "host", rings = { tx = 16, rx = 64, ops = ring_ops }, grid = 1, block = 1, src = text }
end
local ops, ask, answer, late = kernel("ops", { "put", "get", "add" }), kernel("ask"), kernel("answer"), kernel("late", { "put" })
local notify, notified = kernel("notify", { "put", "send" }), kernel("notified")
if args.compile then return end -- for the cache: a compiler takes long where the processor is emulated

local s = daqiri.open({ version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { region("packets", 256, 4096), region("mine", 16, 4096), region("theirs", 1, 4096, { "local", "rdma_write", "rdma_read" }) },
  interfaces = { side("server", "10.9.0.1", { mode = "server", local_addr = "roce://10.9.0.1:4794" }),
    side("client", "10.9.0.2", { mode = "client", local_addr = "roce://10.9.0.2", remote_addr = "roce://10.9.0.1:4794" }) } }, { memory = "host" })
local function numbers(n) return daqiri.array{ kind = "host_pinned", type = "uint64", shape = n } end
local function list(a, from, to)
  local t = {}
  for k = from, to do t[#t + 1] = tostring(a:get(k)) end
  return table.concat(t, " ")
end
local there, here, gone
s:interface("server"):on_connection(function(c) there = c end)
s:interface("client"):on_connection(function(c)
  here = here or c
  c:on_disconnect(function(why) gone = why end)
end)
s:threshold("errors >= 0") -- connections are broken on purpose
s:start()
while not (there and here) do daqiri.sleep(0.01) end
local lease = assert(there:lend("theirs", { access = "rdma_read_write" }))
while not here.remotes.theirs do daqiri.sleep(0.01) end
print("refused", pcall(function()
  late:start{ tx = s:tx_queue("client"), regions = { "mine" }, remote = { "theirs" }, args = { "context", "mine", "theirs", numbers(2) } }
end))
print("refused", pcall(function()
  late:start{ tx = s:tx_queue("client"), conn = here, regions = { "mine" }, remote = { "other" }, args = { "context", "mine", "other", numbers(2) } }
end))

local reply = numbers(10)
ops:start{ tx = s:tx_queue("client"), conn = here, regions = { "mine" }, remote = { "theirs" }, limit = "20s", timers = true, args = { "context", "mine", "theirs", reply } }
assert(ops:wait{ timeout = 60 })
print("ops", list(reply, 1, 7), "fetched", list(reply, 8, 9), "wrong", list(reply, 10, 10), ops.fault)
local got, wrong = lease:get(0, 2064), 0
for n = 0, 1999 do
  if got:byte(65 + n) ~= (n * 7 + 1) % 256 then wrong = wrong + 1 end
end
print("there", got:sub(9, 16), wrong, got:byte(1), got:byte(8))
local ring = s:stats().ops.tx
print("one-sided", ring.one_sided, ring.one_sided_bytes, "timed", ring.put_time.max > 0, ring.get_time.max > 0, ring.add_time.max > 0)
ops:stop()

local asked = numbers(2)
answer:start{ tx = s:tx_queue("server"), rx = s:rx_queue("server"), regions = { "mine" }, args = { "context", "mine" } }
ask:start{ tx = s:tx_queue("client"), rx = s:rx_queue("client"), regions = { "mine" }, limit = "20s", args = { "context", "mine", asked } }
assert(ask:wait{ timeout = 60 })
print("messages", list(asked, 1, 2))
answer:stop()
ask:stop()

local sent, received = numbers(2), numbers(2)
notified:start{ tx = s:tx_queue("server"), rx = s:rx_queue("server"), policy = "wait", regions = { "theirs" }, limit = "20s", args = { "context", "theirs", received } }
notify:start{ tx = s:tx_queue("client"), conn = here, regions = { "mine" }, remote = { "theirs" }, limit = "20s", args = { "context", "mine", "theirs", sent } }
assert(notify:wait{ timeout = 60 } and notified:wait{ timeout = 60 })
print("immediates", list(received, 1, 2), list(sent, 1, 2), notify.fault)
notified:stop()
notify:stop()

assert(here:tell("bad", { addr = here.remotes.theirs.addr, rkey = here.remotes.theirs.rkey + 1, bytes = 4096 }))
local last = numbers(2)
late:start{ tx = s:tx_queue("client"), conn = here, regions = { "mine" }, remote = { "bad" }, limit = "20s", args = { "context", "mine", "bad", last } }
assert(late:wait{ timeout = 60 })
while not gone do daqiri.sleep(0.01) end
print("wrong key", list(last, 1, 2), late.fault, gone, s:stats().late.tx.dropped)
late:stop()
s:stop "done"
