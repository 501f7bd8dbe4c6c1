# owner.py: memory on a GPU that this process owns as a memory region of daqiri-run, by a CUDA handle. It needs a driver alone:
#   python3 tests/gpu/owner.py ./daqiri-run
import ctypes, json, os, struct, subprocess, sys, tempfile

BATCHES, SLOTS, SLOT_BYTES = 8, 4, 64
script = """
local daqiri = require "daqiri"
local args = daqiri.args{ handle = "" }
local function queue(name, region) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { region } } end
local function region(name, kind, n, size) return { name = name, kind = kind, affinity = 0, num_bufs = n, buf_size = size } end
local config = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual" },
  memory_regions = { region("out", "host", 256, 256), region("in", "host_pinned", 256, 256), region("blocks", "device", 16, 256) },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "b", address = "b", rx = { queues = { queue("rx", "in") } } } } }
local need = assert(daqiri.memory_requirements(config)).blocks
if args.handle == "" then return print(daqiri.json(need)) end
local handle = args.handle:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)
local s = daqiri.open(config, { bindings = { blocks = { cuda_ipc = handle } } })
local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = 4, slot_bytes = 64, payload_byte_offset = 42,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 } }
s:pipe(s:rx_queue("b"), blocks)
local kept, places = {}, {}
blocks:on_burst(function(b)
  kept[#kept + 1] = b:keep()
  places[#places + 1] = { b.batch_id, b:offsets()[1] }
end)
local tx = s:tx_queue("a")
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = 64, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } }, count = 32 }
s:run{ seconds = 1 }
print(daqiri.json(places))
"""

cuda = ctypes.CDLL(os.environ.get("DAQIRI_CUDA") or "libcuda.so.1")


def must(call, *args):
    err = getattr(cuda, call)(*args)
    if err: sys.exit("%s: CUDA error %d" % (call, err))


def run(program, file, *args):
    return json.loads(subprocess.run([program, "--summary", "none", file, *args], check=True, stdout=subprocess.PIPE).stdout)


with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
    file.write(script)
    file.flush()
    need = run(sys.argv[1], file.name)
    context, memory, stream, handle = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p(), (ctypes.c_char * 64)()
    must("cuInit", 0)
    must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    must("cuCtxSetCurrent", context)
    must("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(need["capacity"]))
    must("cuIpcGetMemHandle", handle, memory)
    places = run(sys.argv[1], file.name, "--handle", bytes(handle).hex())

assert sorted(batch for batch, _ in places) == list(range(BATCHES)), places
got = (ctypes.c_char * need["capacity"])()
must("cuStreamCreate", ctypes.byref(stream), 1)
must("cuMemcpyDtoHAsync_v2", got, memory, ctypes.c_size_t(len(got)), stream)
must("cuStreamSynchronize", stream)
for batch, offset in places:
    want = b"".join(struct.pack(">I", batch * SLOTS + k).ljust(SLOT_BYTES, b"\0") for k in range(SLOTS))
    assert bytes(got)[offset : offset + len(want)] == want, (batch, offset)
must("cuMemFree_v2", memory)
print("right")
