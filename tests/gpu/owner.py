# owner.py: memory on a GPU that this process owns as a memory region of daqiri-run: by a CUDA IPC handle, and by the descriptor
# of an allocation. It needs a driver alone:
#   python3 tests/gpu/owner.py ./daqiri-run
import ctypes, json, os, struct, subprocess, sys, tempfile

BATCHES, SLOTS, SLOT_BYTES = 8, 4, 64
script = """
local daqiri = require "daqiri"
local args = daqiri.args{ handle = "", fd = -1, bytes = 0 }
local function queue(name, region) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { region } } end
local function region(name, kind, n, size) return { name = name, kind = kind, affinity = 0, num_bufs = n, buf_size = size } end
local config = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual" },
  memory_regions = { region("out", "host", 256, 256), region("in", "host_pinned", 256, 256), region("blocks", "device", 16, 256) },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "b", address = "b", rx = { queues = { queue("rx", "in") } } } } }
local need = assert(daqiri.memory_requirements(config)).blocks
if args.handle == "" and args.fd < 0 then return print(daqiri.json(need)) end
local handle = args.handle:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)
local s = daqiri.open(config, { bindings = { blocks = args.fd < 0 and { cuda_ipc = handle } or { fd = args.fd, bytes = args.bytes } } })
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


def run(program, file, *args, **how):
    return json.loads(subprocess.run([program, "--summary", "none", file, *args], check=True, stdout=subprocess.PIPE, **how).stdout)


class Allocation(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int),
                ("windows", ctypes.c_void_p), ("compression", ctypes.c_ubyte), ("gpudirect", ctypes.c_ubyte),
                ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 4)]


class Access(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = [("place", ctypes.c_int), ("device", ctypes.c_int), ("rights", ctypes.c_int)]


def by_handle(need):
    memory, handle = ctypes.c_uint64(), (ctypes.c_char * 64)()
    must("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(need["capacity"]))
    must("cuIpcGetMemHandle", handle, memory)
    return memory, ["--handle", bytes(handle).hex()], {}


def by_descriptor(need):
    # CU_MEM_ALLOCATION_TYPE_PINNED, exported as a descriptor, on device 0
    what, memory = Allocation(type=1, handle_types=1, place=1, device=0), ctypes.c_uint64()
    step, handle, fd = ctypes.c_size_t(), ctypes.c_uint64(), ctypes.c_int(-1)
    must("cuMemGetAllocationGranularity", ctypes.byref(step), ctypes.byref(what), 0)
    size = -(-need["capacity"] // step.value) * step.value
    must("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(what), ctypes.c_uint64(0))
    must("cuMemAddressReserve", ctypes.byref(memory), ctypes.c_size_t(size), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
    must("cuMemMap", memory, ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
    must("cuMemSetAccess", memory, ctypes.c_size_t(size), ctypes.byref(Access(place=1, device=0, rights=3)), ctypes.c_size_t(1))
    must("cuMemExportToShareableHandle", ctypes.byref(fd), handle, 1, ctypes.c_uint64(0))
    return memory, ["--fd", str(fd.value), "--bytes", str(size)], {"pass_fds": [fd.value]}


with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
    file.write(script)
    file.flush()
    need = run(sys.argv[1], file.name)
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    must("cuInit", 0)
    must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    must("cuCtxSetCurrent", context)
    must("cuStreamCreate", ctypes.byref(stream), 1)
    for own in by_handle, by_descriptor:
        memory, args, how = own(need)
        places = run(sys.argv[1], file.name, *args, **how)
        assert sorted(batch for batch, _ in places) == list(range(BATCHES)), (own.__name__, places)
        got = (ctypes.c_char * need["capacity"])()
        must("cuMemcpyDtoHAsync_v2", got, memory, ctypes.c_size_t(len(got)), stream)
        must("cuStreamSynchronize", stream)
        for batch, offset in places:
            want = b"".join(struct.pack(">I", batch * SLOTS + k).ljust(SLOT_BYTES, b"\0") for k in range(SLOTS))
            assert bytes(got)[offset : offset + len(want)] == want, (own.__name__, batch, offset)
print("right")
