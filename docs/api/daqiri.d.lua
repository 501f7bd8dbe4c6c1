---@meta daqiri
-- daqiri-run's Lua API for editors, written by `make docs` from the program's tables. docs/api/README.md describes how to use it.

---Seconds, or text with a unit: ns, us, ms, s, min or h. A number as text has no unit and is refused.
---
---@alias daqiri.duration number|string

---Bytes, or text with a unit: B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
---
---@alias daqiri.size integer|string

---Bits per second, or text with a unit: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s.
---
---@alias daqiri.rate number|string

---An absolute time, a u64 (ns since the epoch), or text that daqiri.time reads.
---
---@alias daqiri.instant daqiri.time|daqiri.u64|string

---A condition over the fields of a packet: daqiri-run help conditions.
---
---@alias daqiri.condition string

---An integer expression over the fields of a packet, in the grammar of conditions. The name of a field is an expression.
---
---@alias daqiri.expression string

---A condition over figures, by their names in the ledger, and metrics, in the grammar of conditions.
---
---@alias daqiri.threshold string

---A field that every packet may have (daqiri-run help conditions), or one of the format.
---
---@alias daqiri.field_name string

---A format of the library, or one that the script declared.
---
---@alias daqiri.format_name string

---The name of an interface in the configuration.
---
---@alias daqiri.interface_name string

---The name of a queue in the configuration.
---
---@alias daqiri.queue_name string

---The name of a memory region in the configuration.
---
---@alias daqiri.region_name string

---The name of a stage: the option name of the call that made it, or that in the configuration.
---
---@alias daqiri.stage_name string

---A selection of packets, as a flow's match in a configuration: all given keys must match.
---
---@alias daqiri.match table

---A figure that the script sets.
---
---@alias daqiri.metric_name string

---What happens while a consumer is too slow: packets are dropped and counted, or the queue waits.
---
---@alias daqiri.policy "drop"|"wait"

---Figures by name, as daqiri-run help ledger lists them: l.rx_port.rx.dropped, l.disk.written, l.seconds. A misspelt name
---raises. If a name is a figure and also a prefix of figures, these are under NAME_by.
---
---@alias daqiri.ledger table

---The place of a field without a name.
---
---@class daqiri.place
---@field at? "start"|"payload" from where bits count: the start of what the queue holds, or the innermost payload (default: "start")
---@field bit_offset integer bits: from the most significant one of the first byte; for little endian from the least significant one
---@field bit_width integer bits: 1 to 64
---@field endianness? "big"|"little" little also for bits of a little-endian word (default: "big")

---The types of payload elements before and after a conversion. daqiri-run doc samples describes the names.
---
---@class daqiri.data_types
---@field input_type? string|table by default what the option format of the call declares, with its scale, offset and levels; a type of samples, such as "u12.lsb", "ci16be" or "o4", or int4, int8, int16 or int32. Of s:convert also { of = FIELD, [NUMBER] = TYPE, … }, where a number of the packet chooses the type
---@field output_type "fp16"|"bf16"|"fp32"|"fp64"|"int32"|"int16"|"int8"|string or a short name, such as "f32", "cf32" or "ci16"; rounded to the nearest; fp16 ends in infinities, integers at their least and greatest values
---@field endianness? "host"|"network" byte order of the input, unless input_type names it (default: "host")
---@field scale? number|string the value is (v + offset) * scale; "full" is 2^-(bits-1), of unsigned types 2^-bits. Of s:convert also a number over the packet's fields: "gain / 4096", "2 ^ -shift" (default: 1)
---@field offset? number is added to the element's number, before the scale (default: 0)
---@field levels? number[]|"vlbi" the number of each code, from code 0, for types of up to 8 bits; "vlbi" has those of 2-bit VLBI data

---A flow: which packets go to which queues, with which actions.
---
---@class daqiri.flow
---@field name? string in lists and in the ledger
---@field match daqiri.match all given keys must match
---@field action? table as in a configuration: {type = "queue", id = 0}
---@field actions? table[] more than one, in order

---@class (exact) daqiri.daqiri.array.options
---@field kind "host"|"host_pinned"|"device" in the host's memory, there and in reach of the GPU, or in the GPU's; where kernels run on the host all three are the host's
---@field type "int8"|"uint8"|"int16"|"uint16"|"fp16"|"bf16"|"int32"|"uint32"|"fp32"|"int64"|"uint64"|"fp64" of the elements
---@field shape integer|integer[] how many elements, or how many in each of up to 8 dimensions
---@field gpu? integer|string the GPU's number, or its PCI address, "8A:00.0", as inspect prints it (default: 0)
---@field memory? string "host": kernels run on the host; by default as the session that was opened last, and --memory, say

---@class (exact) daqiri.daqiri.control.options
---@field unix? string path of a unix socket, which the script makes
---@field tcp? string IP:PORT to listen at, with a token
---@field mode? string of the unix socket's file (default: "0600")
---@field token? string which the first message of a connection has to have

---@class (exact) daqiri.daqiri.find_limit.options
---@field low daqiri.rate where the search begins; a trial there should pass
---@field high daqiri.rate where it ends
---@field precision? daqiri.rate how near the limit has to be; by default a hundredth of the range
---@field trial function called with a rate in bits/s; it returns whether that rate passed, or "invalid" where the sender itself fell short, which counts as not passed

---@class (exact) daqiri.daqiri.format.options
---@field items? table<string, integer> of a format with a list of items: names for more of them, by their key

---@class (exact) daqiri.daqiri.kernel.options
---@field src? string CUDA source
---@field file? string a file with CUDA source, or with PTX where its name ends in .ptx; looked for here, then beside the script
---@field ptx? string PTX, which needs no compiler
---@field library? "gemm"|"fft" a product of matrices by cuBLAS, or Fourier transforms by cuFFT, on a GPU
---@field shape? integer[] of library: of "gemm" rows, columns and inner: out = a b, of rows x inner and inner x columns numbers, row by row. Of "fft" points of a transform, and how many lie one behind the other: forward, of complex numbers (real, imaginary), not scaled
---@field entry? string the kernel's name in it, a __global__ function; by default the only one
---@field name? string in errors and of its stages; by default the entry
---@field grid? integer|integer[] blocks, or a list of up to 3: x, y, z; needed, but with library
---@field block? integer|integer[] threads of a block, or a list of up to 3; needed, but with library
---@field stream? daqiri.stream in which it runs; by default one of its own
---@field gpu? integer|string the GPU's number, or its PCI address, "8A:00.0", as inspect prints it (default: 0)
---@field memory? string "host": the host runs it; by default as the session that was opened last, and --memory, say
---@field include? string[] folders of the headers that file includes with quotes, behind its own folder and the one above
---@field persistent? boolean it has rings and runs for long (k:start)
---@field rings? table of a persistent kernel: tx, rx, semaphores: slots of each (256, 256, 64), powers of two; ops: what transmit rings take, of "send" (the default), "put", "get", "add", "cas", "copy", "file", "wait"

---@class (exact) daqiri.daqiri.memory_requirements.options
---@field set? table<string, any> as of daqiri.open, like the options that follow
---@field engine? string which engine serves every interface
---@field memory? string which kind of memory regions have
---@field bindings? table<string, any> memory that is checked as daqiri.open checks it

---@class (exact) daqiri.daqiri.open.options
---@field set? table<string, any> values for keys of the configuration, by their paths ("interfaces.0.address")
---@field engine? string which engine serves every interface, in place of those in the configuration: "loop"
---@field cores? string "auto", or cores instead of those in the file: "2,4-7"
---@field memory? string which kind of memory regions have: "host"
---@field name? string what summary and log call the session: by default the file's name
---@field bindings? table<string, any> memory of the application for memory regions, by their names: an array, or a table with one of array, fd, file, shm and cuda_ipc, and with offset and bytes. See memory

---@class (exact) daqiri.daqiri.receive.options
---@field timeout? daqiri.duration how long it waits; by default without limit

---@class (exact) daqiri.daqiri.stream.options
---@field gpu? integer|string the GPU's number, or its PCI address, "8A:00.0", as inspect prints it (default: 0)
---@field memory? string as of daqiri.kernel

---What require "daqiri" returns: sessions, tasks, arguments, times, the log. Reading a name that it lacks raises.
---
---@class daqiri
---@field version string The program's version. (as daqiri-run --version has it)
local daqiri = {}

---Declares the script's arguments, reads them from the words behind the script (--name value, --name=value, name=value; -n
---value for a name of one letter) and from -e, and returns them. The type is that of the default, or given as type:
---string, number, boolean or list (texts with commas between them). The value of a declaration may also be its first
---element. --help behind the script prints them and ends the program.
---
---```lua
---local args = daqiri.args{ seconds = { 10, unit = "s", help = "how long" }, dir = "captures" }
---print(args.seconds, args.dir)
---```
---@param declared table<string, any> by name, a default value, or {value, type, unit, help, choices, required}
---@return table<string, any> # the arguments by name; another name raises
function daqiri.args(declared) end

---Makes an array of zeros, for kernels and the script.
---
---```lua
---local out = daqiri.array{ kind = "device", memory = "host", type = "fp32", shape = { 4, 2 } }
---out:set(4, 2, 0.5)
---print(out:sum())
---```
---@param options daqiri.daqiri.array.options
---@return daqiri.array
function daqiri.array(options) end

---Opens a control channel: a socket on which other programs send commands to the script, a line of JSON each (see
---control). One of unix and tcp is needed. It ends with the script.
---
---```lua
---local ctl = daqiri.control{ tcp = "127.0.0.1:0", token = "open sesame" }
---ctl:on("status", function(m) return { packets = s:stats().b.rx.packets } end)
---```
---@param options? daqiri.daqiri.control.options
---@return daqiri.control
function daqiri.control(options) end

---Searches the highest rate that passes by halving: the highest first, the lowest, then what lies between.
---
---```lua
---local limit, trials = daqiri.find_limit{ low = "1Mbit/s", high = "1Gbit/s", precision = "1Mbit/s",
---  trial = function(rate) return rate < 3e8 end }
---print(limit, #trials)
---```
---@param options daqiri.daqiri.find_limit.options
---@return number|nil # bit/s: the highest rate that passed; nil, where none did
---@return table[] # the trials in order: {rate, verdict}
function daqiri.find_limit(options) end

---Names for the fields of an application's packets, for conditions, columns and templates: see format. An error in the
---table raises with its field and line. Where the table has a name, the format is known by it from then on.
---
---```lua
---local f = daqiri.format{ name = "mine", sequence = "seq",
---  { "seq", 32 }, { "chan", 12 }, { "gain", 4 },
---  { "temperature", "i16", scale = 0.01 } }
---local heaps = daqiri.format("spead-64-48", { items = { timestamp = 0x1600 } })
---local text = daqiri.format{ struct = ">IHbx", "seq", "chan", "level" }
---local seq = { at = "payload", bit_offset = 0, bit_width = 32 }
---local place = daqiri.format{ seq = seq }
---```
---@param name daqiri.format_name|table the name of a format that the script declared or that is in the library; or a table that declares one, as formats say; or fields with their places
---@param options? daqiri.daqiri.format.options
---@return daqiri.format
function daqiri.format(name, options) end

---The value of a JSON text. A whole number above 2^53 becomes a u64, null becomes nil; text that is not JSON gives nil,
---"INVALID_PARAMETER", text.
---
---```lua
---local t = daqiri.from_json('{"channels": [1, 2, 3]}')
---print(#t.channels)
---```
---@param text string JSON, one value
---@return any|nil
---@return string|nil status
---@return string|nil text
function daqiri.from_json(text) end

---The bytes of a string as hexadecimal digits.
---
---```lua
---print(daqiri.hex("\1\255"))    -- 01ff
---```
---@param text string bytes
---@return string # two digits a byte
function daqiri.hex(text) end

---A value as JSON on one line, with sorted keys. A table with the keys 1 to n is a list, an empty one is {}.
---
---```lua
---print(daqiri.json{ name = "a", list = { 1, 2 } })
---```
---@param value any nil, a boolean, number, string, u64, time, column or part of the configuration, or a table of these
---@return string
function daqiri.json(value) end

---Makes a kernel: NVRTC compiles source for a GPU, the C++ or C compiler for the host, and what they made is kept in the
---user's cache folder. One of src, file, ptx and library is needed. A source that doesn't compile raises with the lines of
---the script. What kernels get, and what the host can run, is described in kernels.
---
---```lua
---local twice = daqiri.kernel{ memory = "host", grid = 1, block = 4, src = [[
---  __global__ void twice(float *a) { a[threadIdx.x] *= 2; }
---]] }
---twice:launch(array):wait()
---```
---@param options? daqiri.daqiri.kernel.options
---@return daqiri.kernel
function daqiri.kernel(options) end

---Writes a line to the log.
---
---```lua
---daqiri.log("warn", "odd packets", { n = 5 })
---```
---@param level "debug"|"info"|"warn"|"error" how much it matters
---@param text any what happened
---@param value? any shown behind the text; of a table its keys are fields
function daqiri.log(level, text, value) end

---Sets from which level on lines are logged. A configuration's log_level does the same when its session opens, unless the
---command line has --log-level.
---
---```lua
---local was = daqiri.log_level("error")
---daqiri.log_level(was)
---```
---@param level? "debug"|"info"|"warn"|"error"|"off" from which on lines are logged; without it nothing changes
---@return string # what it was
function daqiri.log_level(level) end

---Computes what memory a region can be bound to must have. It opens nothing and allocates no memory; nil, status, text
---where a binding does not fit.
---
---```lua
---local need = daqiri.memory_requirements().packets
---print(need.capacity, need.slot_size * need.num_bufs)
---```
---@param configuration? string|table as of daqiri.open
---@param options? daqiri.daqiri.memory_requirements.options
---@return table<string, table>|nil # by region: kind, slot_size, headroom (bytes before each packet), num_bufs, capacity, alignment, in bytes
---@return string|nil status
---@return string|nil text
function daqiri.memory_requirements(configuration, options) end

---The time on the clock of the tasks: the system's, or the virtual one.
---
---```lua
---local began = daqiri.now()
---print(daqiri.now() - began)    -- seconds
---```
---@return daqiri.time
function daqiri.now() end

---In a task: has a function called with what the task above sends. A task with a handler continues when its function has
---returned.
---
---```lua
---local t = daqiri.task(function()
---  local daqiri = require "daqiri"
---  daqiri.on_message(function(v) daqiri.send(v * 2) end)
---end)
---t:on_message(print)
---t:send(21)
---```
---@param fn fun(v: any) called with each message
function daqiri.on_message(fn) end

---Opens a session: nothing moves before it starts. A file is looked for here, then beside the script. Options of the
---command line come before those of the call. A configuration with errors raises, with each error's line.
---
---```lua
---local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = "virtual" } } })
---print(s.name)    -- default
---```
---@param configuration? string|table a file's name, YAML with more than one line, or a table like the file; without it one looped interface
---@param options? daqiri.daqiri.open.options
---@return daqiri.session
function daqiri.open(configuration, options) end

---Reads and checks a configuration without opening anything.
---
---```lua
---local written, resolved = daqiri.parse()
---print(written.daqiri.cfg.interfaces[1].name, resolved.interfaces[1].name)
---```
---@param configuration? string|table as of daqiri.open
---@return table # the configuration as it is written, as daqiri.open takes it
---@return table # the same resolved, as s.config
function daqiri.parse(configuration) end

---Reads a hardware clock (PTP) and the system's clock together, by the most precise method of the clock's driver. Raises
---where there is none.
---
---```lua
---local found, clock = pcall(daqiri.ptp_clock, 0)
---if found then print(clock.name, clock.offset, clock.uncertainty) end
---```
---@param index integer of the device /dev/ptpINDEX
---@return table # name, as its driver reports it; offset, ns: its time minus that of the system's clock; uncertainty, ns: the bound of the offset's error
function daqiri.ptp_clock(index) end

---Gives the thread of the main chunk, or of the task, the scheduling policy SCHED_FIFO with that priority, and locks all
---memory of the process. Raises where the process may not do that. Threads that this one starts later have the policy too:
---call it after s:start().
---
---```lua
---local function prepare() daqiri.realtime(50) end    -- before what is measured
---```
---@param priority integer from 1 to 99
function daqiri.realtime(priority) end

---In a task: waits for the next message from the task above; nil, "NOT_READY", text at the timeout.
---
---```lua
---local t = daqiri.task(function()
---  local daqiri = require "daqiri"
---  local v = daqiri.receive{ timeout = "1s" }
---  if v then daqiri.send("got " .. v) end
---end)
---t:send("it")
---```
---@param options? daqiri.daqiri.receive.options
---@return any|nil
---@return string|nil status
---@return string|nil text
function daqiri.receive(options) end

---In a task: sends a copy of a value to the task above; nil, status, text when its inbox is full or it is over.
---
---```lua
---local t = daqiri.task(function() require("daqiri").send("ready") end)
---t:on_message(print)
---```
---@param v any what t:send takes
---@return true|nil
---@return string|nil status
---@return string|nil text
function daqiri.send(v) end

---Waits. Handlers are called meanwhile, when it is the main chunk that sleeps.
---
---```lua
---daqiri.sleep("5ms")
---```
---@param seconds daqiri.duration how long
function daqiri.sleep(seconds) end

---Makes a stream: kernels that have it run one behind the other.
---
---```lua
---local stream = daqiri.stream{ memory = "host" }
---```
---@param options? daqiri.daqiri.stream.options
---@return daqiri.stream
function daqiri.stream(options) end

---Starts a task: a Lua state with a thread of its own. The call returns when the task waits for the first time, at the
---latest after a second. A task whose function has returned continues as long as it has handlers. A module's chunk gets
---the arguments as ....
---
---```lua
---local t = daqiri.task(function(q)
---  q:on_burst(function(b) return b.n end)
---end, q)
---```
---@param work function|string a Lua function that uses no local from outside, or the name of a module
---@param ... any its arguments: what t:send takes, queues, which it then owns, and functions that use no local from outside
---@return daqiri.task
function daqiri.task(work, ...) end

---An absolute time. A text is a date with or without a time of day, in UTC unless it has a zone
---("2026-11-20T10:00:00.5Z"), "now", "now + 5s", or seconds since the epoch ("@1795168800.5"). Times go from 1970 to 2262.
---
---```lua
---local start = daqiri.time "now + 100ms"
---```
---@param when daqiri.instant a text, a u64, or a time, which is returned unchanged
---@return daqiri.time
function daqiri.time(when) end

---A 64-bit unsigned integer, for what a number can't hold.
---
---```lua
---local big = daqiri.u64 "0xffffffffffffffff"
---print(big)    -- 18446744073709551615
---```
---@param v integer|string|daqiri.u64 from 0 on; a text may be decimal or begin with 0x, 0o or 0b
---@return daqiri.u64
function daqiri.u64(v) end

---32 bits with signed results, as in LuaJIT; 64 bits where an operand is a u64. It is a global, too.
---
---@class bit
bit = {}

---Shifts right and keeps the sign.
---
---```lua
---print(bit.arshift(-8, 1))    -- -4
---```
---@param v integer|daqiri.u64 what is shifted
---@param n integer bits: modulo the width
---@return integer|daqiri.u64
function bit.arshift(v, n) end

---And, of all operands.
---
---```lua
---print(bit.band(0xff, 0x0f))    -- 15
---```
---@param v integer|daqiri.u64 the first operand
---@param ... integer|daqiri.u64 further ones
---@return integer|daqiri.u64
function bit.band(v, ...) end

---Not.
---
---```lua
---print(bit.bnot(0))    -- -1
---```
---@param v integer|daqiri.u64 what is inverted
---@return integer|daqiri.u64
function bit.bnot(v) end

---Or, of all operands.
---
---```lua
---print(bit.bor(1, 2, 4))    -- 7
---```
---@param v integer|daqiri.u64 the first operand
---@param ... integer|daqiri.u64 further ones
---@return integer|daqiri.u64
function bit.bor(v, ...) end

---Reverses the bytes.
---
---```lua
---print(bit.tohex(bit.bswap(0x12345678)))    -- 78563412
---```
---@param v integer|daqiri.u64 four bytes, of a u64 eight
---@return integer|daqiri.u64
function bit.bswap(v) end

---Exclusive or, of all operands.
---
---```lua
---print(bit.bxor(5, 1))    -- 4
---```
---@param v integer|daqiri.u64 the first operand
---@param ... integer|daqiri.u64 further ones
---@return integer|daqiri.u64
function bit.bxor(v, ...) end

---Shifts left.
---
---```lua
---print(bit.lshift(1, 4))    -- 16
---```
---@param v integer|daqiri.u64 what is shifted
---@param n integer bits: modulo the width
---@return integer|daqiri.u64
function bit.lshift(v, n) end

---Rotates left.
---
---```lua
---print(bit.tohex(bit.rol(0x12345678, 8)))    -- 34567812
---```
---@param v integer|daqiri.u64 what is rotated
---@param n integer bits: modulo the width
---@return integer|daqiri.u64
function bit.rol(v, n) end

---Rotates right.
---
---```lua
---print(bit.tohex(bit.ror(0x12345678, 8)))    -- 78123456
---```
---@param v integer|daqiri.u64 what is rotated
---@param n integer bits: modulo the width
---@return integer|daqiri.u64
function bit.ror(v, n) end

---Shifts right and fills with zeros.
---
---```lua
---print(bit.rshift(-1, 28))    -- 15
---```
---@param v integer|daqiri.u64 what is shifted
---@param n integer bits: modulo the width
---@return integer|daqiri.u64
function bit.rshift(v, n) end

---The number modulo 2^32, with a sign; a u64 stays as it is.
---
---```lua
---print(bit.tobit(0xffffffff))    -- -1
---```
---@param v integer|daqiri.u64 any whole number
---@return integer|daqiri.u64
function bit.tobit(v) end

---Hexadecimal digits.
---
---```lua
---print(bit.tohex(255))    -- 000000ff
---```
---@param v integer|daqiri.u64 what is shown
---@return string # 8 digits, of a u64 16
function bit.tohex(v) end

---@class (exact) daqiri.session.convert.options
---@field name? string of its line in the ledger
---@field memory_region daqiri.region_name from which the new packets' buffers are taken
---@field data_types daqiri.data_types what elements are and become
---@field at? "start"|"payload" from where payload_byte_offset counts: the packet's start, or behind the innermost headers (default: "start")
---@field payload_byte_offset? integer bytes: where the payload begins (default: 0)
---@field format? daqiri.format|daqiri.format_name the payload begins behind its header, unless at or payload_byte_offset say otherwise
---@field policy? daqiri.policy while no buffer is free; with "wait" the region is the stage's alone (default: "drop")

---@class (exact) daqiri.session.copy.options
---@field name? string of its line in the ledger
---@field memory_region daqiri.region_name from which the copies' buffers are taken, in the host's memory or a GPU's
---@field data_types? daqiri.data_types what elements of payloads are and become; of sockets' queues and of aggregates
---@field at? "start"|"payload" from where payload_byte_offset counts: the packet's start, or behind the innermost headers (default: "start")
---@field payload_byte_offset? integer bytes: where the payload begins that is converted (default: 0)
---@field format? daqiri.format|daqiri.format_name the payload begins behind its header, unless at or payload_byte_offset say otherwise
---@field policy? daqiri.policy while no buffer is free; with "wait" the region is the stage's alone (default: "drop")

---@class (exact) daqiri.session.count.options
---@field name? string of its line in the ledger

---@class (exact) daqiri.session.filter.options
---@field name? string of its line in the ledger
---@field where? daqiri.condition which packets pass
---@field format? daqiri.format|daqiri.format_name names for further fields in where
---@field match? daqiri.match all that is given has to hold
---@field pcap? string in libpcap's language

---@class (exact) daqiri.session.gaps.options
---@field name? string of its line in the ledger
---@field format? daqiri.format|daqiri.format_name names for further fields
---@field counter? daqiri.field_name|daqiri.place a field that counts the packets of a stream, of 4 to 64 bits; by default the format's sequence number
---@field by? daqiri.expression the stream of a packet, each with an account of its own; by default that of the format's sequence number, else all are one stream
---@field window? integer packets: how far behind the highest number a packet may come; at most 65536 and a quarter of what the counter counts (default: 1024)
---@field jump? integer packets: how many packets in a row may be missing; what is further ahead is a restart; at most a quarter of what the counter counts (default: 16777216)

---@class (exact) daqiri.session.heaps.options
---@field name? string of its line in the ledger
---@field memory_region daqiri.region_name each heap is in one buffer of it, which is as long as a heap may be
---@field format? daqiri.format|daqiri.format_name names for further fields; the payload is behind its header, and items of its list are kept (b.items)
---@field fields? table<string, daqiri.place> further names for the texts
---@field id? daqiri.expression which heap; by default heap_cnt of the format
---@field size? daqiri.expression bytes: length of the heap; by default heap_len of the format
---@field heap_bytes? daqiri.size length of every heap, instead of size
---@field offset? daqiri.expression bytes: where in the heap the payload belongs; by default payload_offset of the format
---@field at? "start"|"payload" from where payload_byte_offset counts (default: "start")
---@field payload_byte_offset? integer bytes: where the payload begins (default: 0)
---@field segment? integer of split packets, the one with the payload, from 1 (default: 1)
---@field window? integer heaps: that are open at a time, 1 to 64; by default up to 4
---@field timeout_us? integer us: time after its first packet at which a heap is handed over; 0: never (default: 0)
---@field fill? "zero"|"keep"|integer content of gaps: zeros, the earlier content of the buffer, or a byte. Where the format declares offset-binary samples, such as "o4", zeros are the code of 0, 0x88, unless samples are converted (default: "zero")
---@field missing_action? "passthrough"|"drop" handling of incomplete heaps (default: "passthrough")
---@field policy? daqiri.policy while no buffer is free (default: "drop")

---@class (exact) daqiri.session.measure.options
---@field seconds daqiri.duration how long

---@class (exact) daqiri.session.reorder.options
---@field name? string of its line in the ledger
---@field memory_region daqiri.region_name each aggregate is one buffer of it
---@field sequence_number? daqiri.field_name|daqiri.place a field that counts packets; by default the format's own, beside packets_per_batch, where it numbers the whole stream
---@field batch_number? daqiri.field_name|daqiri.place a field that counts batches
---@field packets_per_batch? integer packets: slots of a batch, beside sequence_number
---@field batch? daqiri.expression which batch
---@field slot? daqiri.expression which slot
---@field slots? integer of a batch, beside batch and slot
---@field wrap? integer the number at which batch continues at 0, from 4 on
---@field fields? table<string, daqiri.place> further names for the texts
---@field format? daqiri.format|daqiri.format_name names for further fields; the payload is behind its header
---@field offset? daqiri.expression bytes: within the slot: a multiple of packet_bytes
---@field packet_bytes? daqiri.size parts of a slot, beside offset
---@field extra? daqiri.expression kept for each slot (b.extra)
---@field source? daqiri.expression|"peer" the source for which a packet is counted
---@field at? "start"|"payload" from where payload_byte_offset counts (default: "start")
---@field payload_byte_offset? integer bytes: where the payload begins (default: 0)
---@field segment? integer of split packets, the one with the payload, from 1 (payload_segment of a configuration counts from 0) (default: 1)
---@field slot_bytes? daqiri.size by default the longest payload so far
---@field data_types? daqiri.data_types what elements are and become
---@field flow_ids? integer[] only packets of these flows; others continue in the pipe
---@field window? integer batches: that are open at a time, 1 to 64; by default up to 4
---@field timeout_us? integer us: time after its first packet at which a batch is handed over; 0: never (default: 0)
---@field hand_over? "eager"|"wait" with "wait" queues that are ahead wait for the others, at most timeout_us (default: "eager")
---@field fill? "zero"|"keep"|integer content of gaps: zeros, the earlier content of the buffer, or a byte. Where the format declares offset-binary samples, such as "o4", zeros are the code of 0, 0x88, unless samples are converted (default: "zero")
---@field missing_action? "passthrough"|"drop" handling of incomplete batches (default: "passthrough")
---@field policy? daqiri.policy while no buffer is free (default: "drop")

---@class (exact) daqiri.session.rewrite.options
---@field name? string of its line in the ledger
---@field format? daqiri.format|daqiri.format_name names for further fields
---@field per_loop? table<daqiri.field_name, integer> by field, how much is added to it in each further loop of a capture that is replayed; it wraps at the field's width
---@field tx_queue? daqiri.queue the transmit queue that sends on, for eth_src = "auto" and eth_dst = "auto" beside an address (as in b:set)
---@field checksums? boolean|"compute" those of IPv4, UDP, TCP and ICMP follow by the difference (RFC 1624), so that wrong ones stay wrong; false leaves them; "compute" computes all of them (default: true)
---@field [string] any a field, of the format or one that every packet has, with what it becomes, see below

---@class (exact) daqiri.session.run.options
---@field seconds? daqiri.duration how long
---@field packets? integer packets: received, of a session without receive queues sent
---@field bytes? daqiri.size received, of a session without receive queues sent
---@field from? daqiri.instant when it starts; by default at once
---@field to? daqiri.instant when it ends

---@class (exact) daqiri.session.sample.options
---@field every integer bursts: one of so many passes
---@field name? string of its line in the ledger

---@class (exact) daqiri.session.share.options
---@field name? string of the stream, which readers attach to, and of its line in the ledger
---@field path? string of the socket; by default NAME in the folder daqiri-run of XDG_RUNTIME_DIR
---@field mode? string permissions of the socket, octal; others than the program's user attach only if it permits them (default: "0600")
---@field lend? integer blocks: that a reader may have at a time, 1 to 64 (default: 4)
---@field readers? integer attached at a time, 1 to 32 (default: 4)
---@field policy? daqiri.policy for a reader that has as many blocks as it may: it misses the next one, or the queue waits for it (default: "drop")
---@field timeout? daqiri.duration of each wait, and at the end of the run of all waits together; a reader that releases nothing in this time is not waited for until it does (default: 1)
---@field header? string|table for readers; a table is written as JSON

---@class (exact) daqiri.session.threshold.options
---@field after? daqiri.duration from the start, before which a running session is not judged (default: 0)
---@field abort? boolean a run that does not meet it ends at once (default: false)

---@class (exact) daqiri.session.write_blocks.options
---@field name? string of its line in the ledger
---@field dir? string the folder (default: ".")
---@field dirs? string[] up to 16 folders instead: each has its own file and thread
---@field prefix? string of the files' names; by default the name, or the kind, such as pcap or raw
---@field rotate? daqiri.size|table the limit of one file: a size, or {size, seconds, packets}, whichever is reached first
---@field quota? daqiri.size of all files of this run
---@field when_full? "drop"|"delete_oldest"|"stop" at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or the run ends in order. Then the packets after the last one that fits are counted as enough (default: "drop")
---@field manifest? boolean PREFIX.manifest.json describes the files (default: true)
---@field policy? daqiri.policy while the disk is too slow (default: "drop")
---@field header? string|table for each file, at most 3071 bytes; a table is written as JSON
---@field present? "packet"|"slot" what the bitmap has a bit for (default: "packet")

---@class (exact) daqiri.session.write_dada.options
---@field name? string of its line in the ledger
---@field dir? string the folder (default: ".")
---@field dirs? string[] up to 16 folders instead: each has its own file and thread
---@field prefix? string of the files' names; by default the name, or the kind, such as pcap or raw
---@field rotate? daqiri.size|table the limit of one file: a size, or {size, seconds, packets}, whichever is reached first
---@field quota? daqiri.size of all files of this run
---@field when_full? "drop"|"delete_oldest"|"stop" at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or the run ends in order. Then the packets after the last one that fits are counted as enough (default: "drop")
---@field manifest? boolean PREFIX.manifest.json describes the files (default: true)
---@field policy? daqiri.policy while the disk is too slow (default: "drop")
---@field samples? table {type?, rate?, frequency?}: the type of the samples, samples/s, and the center frequency in Hz
---@field format? daqiri.format|daqiri.format_name its constants are the defaults of samples
---@field header? table further keys, such as NCHAN, NPOL, BW, TELESCOPE and SOURCE

---@class (exact) daqiri.session.write_guppi.options
---@field name? string of its line in the ledger
---@field dir? string the folder (default: ".")
---@field dirs? string[] up to 16 folders instead: each has its own file and thread
---@field prefix? string of the files' names; by default the name, or the kind, such as pcap or raw
---@field rotate? daqiri.size|table the limit of one file: a size, or {size, seconds, packets}, whichever is reached first
---@field quota? daqiri.size of all files of this run
---@field when_full? "drop"|"delete_oldest"|"stop" at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or the run ends in order. Then the packets after the last one that fits are counted as enough (default: "drop")
---@field manifest? boolean PREFIX.manifest.json describes the files (default: true)
---@field policy? daqiri.policy while the disk is too slow (default: "drop")
---@field samples? table {type?, rate?, frequency?}: the type of the samples, samples/s, and the center frequency in Hz
---@field format? daqiri.format|daqiri.format_name its constants are the defaults of samples
---@field header? table further keys, such as OBSNCHAN, NPOL, OBSBW, TELESCOP and SRC_NAME

---@class (exact) daqiri.session.write_pcap.options
---@field name? string of its line in the ledger
---@field dir? string the folder (default: ".")
---@field dirs? string[] up to 16 folders instead: each has its own file and thread
---@field prefix? string of the files' names; by default the name, or the kind, such as pcap or raw
---@field rotate? daqiri.size|table the limit of one file: a size, or {size, seconds, packets}, whichever is reached first
---@field quota? daqiri.size of all files of this run
---@field when_full? "drop"|"delete_oldest"|"stop" at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or the run ends in order. Then the packets after the last one that fits are counted as enough (default: "drop")
---@field manifest? boolean PREFIX.manifest.json describes the files (default: true)
---@field policy? daqiri.policy while the disk is too slow (default: "drop")
---@field format? "pcap"|"pcapng" a pcapng also has interfaces, queues, flow ids (as comments) and, at each file's end, what the interfaces received and dropped (default: "pcap")
---@field precision? "ns"|"us" of its times (default: "ns")
---@field snaplen? integer bytes: kept of each packet; 0 is all (default: 0)
---@field append? boolean continues behind what the file has, if its header is the same; a last record that is cut off goes (default: false)
---@field overwrite? boolean replaces a file that is there; else it stays, and this run's is PREFIX_INDEX (default: false)
---@field comment? string of a pcapng, at most 3071 bytes

---@class (exact) daqiri.session.write_raw.options
---@field name? string of its line in the ledger
---@field dir? string the folder (default: ".")
---@field dirs? string[] up to 16 folders instead: each has its own file and thread
---@field prefix? string of the files' names; by default the name, or the kind, such as pcap or raw
---@field rotate? daqiri.size|table the limit of one file: a size, or {size, seconds, packets}, whichever is reached first
---@field quota? daqiri.size of all files of this run
---@field when_full? "drop"|"delete_oldest"|"stop" at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or the run ends in order. Then the packets after the last one that fits are counted as enough (default: "drop")
---@field manifest? boolean PREFIX.manifest.json describes the files (default: true)
---@field policy? daqiri.policy while the disk is too slow (default: "drop")
---@field per? "file"|"packet"|"burst" all packets back to back in PREFIX.raw, as fast as the disk, or a file PREFIX_INDEX for each (default: "file")
---@field packet_data_offset? integer bytes: left out at the front of each packet (default: 0)
---@field overwrite? boolean replaces files that are there, from PREFIX_0 on; else they stay, and indexes continue behind them (default: false)

---@class (exact) daqiri.session.write_s3.options
---@field bucket string which has to be there
---@field name? string of its line in the ledger
---@field prefix? string objects are PREFIX_INDEX; by default the name, or s3
---@field packets_per_object? integer packets: after which an object ends; 1 where neither limit is given
---@field bytes_per_object? daqiri.size an object ends before it is larger
---@field packet_data_offset? integer bytes: left out at the front of each packet (default: 0)
---@field header? string|table in objects of blocks; a table is written as JSON
---@field endpoint? string a URL; by default AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or Amazon's
---@field region? string by default AWS_REGION, AWS_DEFAULT_REGION, or us-east-1
---@field path_style? boolean the bucket never becomes part of the host's name (default: false)
---@field access_key? string with secret_key; by default from the environment, the profile, or the machine's role
---@field secret_key? string printed nowhere
---@field session_token? string beside these two
---@field profile? string of ~/.aws/credentials
---@field checksum? "crc32c"|"md5" of each request; "md5" is for stores that don't know the other (default: "crc32c")
---@field overwrite? boolean objects of these names may be there already, and are replaced (default: false)
---@field staging? daqiri.size memory for packets that are on their way; at least 16 MiB (default: "256MiB")
---@field uploads? integer requests at a time, 1 to 256 (default: 8)
---@field attempts? integer of each request, 1 to 1000 (default: 10)
---@field object_timeout? daqiri.duration of each request with all its attempts (default: 300)
---@field end_timeout? daqiri.duration how long the end of the run waits for uploads (default: 30)
---@field policy? daqiri.policy when staging memory is full (default: "drop")

---@class (exact) daqiri.session.write_sigmf.options
---@field name? string of its line in the ledger
---@field dir? string the folder (default: ".")
---@field dirs? string[] up to 16 folders instead: each has its own file and thread
---@field prefix? string of the files' names; by default the name, or the kind, such as pcap or raw
---@field rotate? daqiri.size|table the limit of one file: a size, or {size, seconds, packets}, whichever is reached first
---@field quota? daqiri.size of all files of this run
---@field when_full? "drop"|"delete_oldest"|"stop" at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or the run ends in order. Then the packets after the last one that fits are counted as enough (default: "drop")
---@field manifest? boolean PREFIX.manifest.json describes the files (default: true)
---@field policy? daqiri.policy while the disk is too slow (default: "drop")
---@field samples? table {type?, rate?, frequency?}: the type of the samples in the packets, samples/s, and the center frequency in Hz
---@field format? daqiri.format|daqiri.format_name its constants are the defaults of samples
---@field packet_data_offset? integer bytes: left out at the front of each packet; of reordered bursts all is written (default: 0)
---@field header? table further keys of the global object, such as core:description
---@field overwrite? boolean replaces a recording that is there; else it stays, and this run's is PREFIX_INDEX (default: false)

---@class (exact) daqiri.session.write_zarr.options
---@field name? string of its line in the ledger
---@field dir? string the folder (default: ".")
---@field dirs? string[] up to 16 folders instead: each has its own file and thread
---@field prefix? string of the files' names; by default the name, or the kind, such as pcap or raw
---@field rotate? daqiri.size|table the limit of one file: a size, or {size, seconds, packets}, whichever is reached first
---@field quota? daqiri.size of all files of this run
---@field when_full? "drop"|"delete_oldest"|"stop" at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or the run ends in order. Then the packets after the last one that fits are counted as enough (default: "drop")
---@field manifest? boolean PREFIX.manifest.json describes the files (default: true)
---@field policy? daqiri.policy while the disk is too slow (default: "drop")
---@field samples? table {type?, rate?, frequency?}: the type of the samples, samples/s, and the center frequency in Hz; by default the elements are those of the data
---@field format? daqiri.format|daqiri.format_name its constants are the defaults of samples
---@field header? string|table for each file and the array's attributes, at most 3071 bytes; a table is written as JSON
---@field present? "packet"|"slot" what the bitmap has a bit for (default: "packet")

---Regions, interfaces, stages and workers that start, stop and are accounted for together: what daqiri.open returns.
---
---@class daqiri.session
---@field config table The resolved configuration, read-only, under the names of the YAML. Lists are walked by for i, q in list() do, and print shows JSON. The file's other sections are tables.
---@field name string The session's name in logs and in the summary. (its configuration's file name, or default, text or table)
local session = {}

---Adds a memory region of kind host or huge to an open session, for queues that are added. Its memory is there when the
---call returns. Not in sessions with AF_XDP or engine rdma, which register their memory as a whole.
---
---```lua
---local region = { name = "spare", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
---assert(s:add_region(region))
---```
---@param region table with the keys of memory_regions[] in a configuration
---@param memory? daqiri.array|table memory of the application, as a value of bindings of daqiri.open
---@return true|nil
---@return string|nil status
---@return string|nil text
function session:add_region(region, memory) end

---Makes a timer that fires once.
---
---```lua
---s:after("5ms", function() print("5 ms are over") end)
---```
---@param seconds daqiri.duration from now on
---@param fn fun() called once
---@return daqiri.timer
function session:after(seconds, fn) end

---Makes a timer for an absolute time.
---
---```lua
---s:at("now + 5ms", function() s:stop "it is time" end)
---```
---@param when daqiri.instant at which it fires; one that has passed is now
---@param fn fun() called once
---@return daqiri.timer
function session:at(when, fn) end

---The session's clock.
---
---```lua
---local ns, clock = s:clock()
---```
---@return integer # ns: since the session's start
---@return string # realtime or virtual
function session:clock() end

---Ends the session in order and frees its memory. It belongs to the main chunk of the task that opened it.
---
---```lua
---s:close()
---```
function session:close() end

---Makes a stage that makes packets of the region whose payloads have elements of another type. What is in front of the
---payload stays; lengths and checksums of IP and UDP follow, those in an application's header don't. What came isn't
---touched. Packets are dropped without payload (bad_place), with a payload that is not a whole number of elements
---(bad_payload) or doesn't fit the region's buffers (too_long). Packets whose type or scale is not known pass unchanged
---and count as raw.
---
---```lua
---local to_float = s:convert{ memory_region = "others", at = "payload",
---  data_types = { input_type = "int16", output_type = "fp32" } }
---s:pipe(q, to_float, w)
---```
---@param options daqiri.session.convert.options
---@return daqiri.stage
function session:convert(options) end

---Makes a stage that moves bursts into buffers of another region: into a GPU's memory, out of it, or within the host's.
---From one GPU's memory into another's they go where the driver gives it access. Where a GPU's memory takes part the GPU
---moves them, and what came is held until it has. Segments of a packet become one, and what is known of an aggregate goes
---with it. The copies come in order: stages behind it in a pipe, on_burst and get_burst of the stage take them.
---
---```lua
---local to_host = s:copy{ memory_region = "others" }
---s:pipe(q, to_host, w)
---```
---@param options daqiri.session.copy.options
---@return daqiri.stage
function session:copy(options) end

---Makes a stage that counts.
---
---```lua
---s:pipe(q, s:count{ name = "seen" }, w)
---```
---@param options? daqiri.session.count.options
---@return daqiri.stage
function session:count(options) end

---Deletes a memory region. The operation ends once all of its buffers are free, and gives the memory back.
---
---```lua
---local region = { name = "short_lived", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
---assert(s:add_region(region))
---assert(s:delete_region("short_lived"):wait{ timeout = 5 })
---```
---@param name daqiri.region_name of a region that no queue and no stage uses, else nil, "RESOURCE_IN_USE", text
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function session:delete_region(name) end

---Makes a timer that fires again and again; when it is late, once for all times missed.
---
---```lua
---s:every(1, function() print(s:stats().b.rx.packets) end)
---```
---@param seconds daqiri.duration its period, at least 1 µs
---@param fn fun() called each time
---@return daqiri.timer
function session:every(seconds, fn) end

---Makes a stage that passes what matches. One of where, match and pcap is needed.
---
---```lua
---s:pipe(q, s:filter{ where = "udp_dst == 7148" }, w)
---```
---@param options? daqiri.session.filter.options
---@return daqiri.stage
function session:filter(options) end

---Makes a stage that counts the packets that are missing in what passes it. The ledger has expected, unique and missing
---numbers, and packets that are reordered, duplicate or late; for the first 256 streams as source.NAME.missing, too. A
---number counts as missing once it is window numbers behind, or at the end. More is in the cookbook.
---
---```lua
---s:pipe(q, s:gaps{ name = "radar", counter = "seq", format = "simple" }, w)
---s:threshold("radar.missing == 0")
---```
---@param options? daqiri.session.gaps.options
---@return daqiri.stage
function session:gaps(options) end

---Makes a stage that puts payloads of any length together to heaps: each goes to its byte offset in the heap of its id, in
---a buffer of the region. With the formats spead-64-48 and spead-64-40 id, size and offset are SPEAD's own, and no other
---option is needed. Heaps come out as a reorder stage's batches do (on_burst, get_burst, pipes); b.batch_id is the id, and
---what is counted, b.missing and b.expected, are bytes. A heap is handed over when it is complete, when its time is up, or
---when a new one needs its place. More is in reordering.
---
---```lua
---local heaps = s:heaps{ name = "heaps", format = "spead-64-40",
---  memory_region = "blocks", window = 2, timeout_us = 1000 }
---s:pipe(q, heaps)
---heaps:on_burst(function(h) print(h.batch_id, #h.data, h.missing) end)
---```
---@param options daqiri.session.heaps.options
---@return daqiri.stage
function session:heaps(options) end

---An interface.
---
---```lua
---print(s:interface("a").mac)
---```
---@param name daqiri.interface_name as in the configuration
---@return daqiri.interface
function session:interface(name) end

---All interfaces.
---
---```lua
---for _, i in ipairs(s:interfaces()) do print(i.name) end
---```
---@return daqiri.interface[]
function session:interfaces() end

---Writes to the log, as daqiri.log does, with the session's name.
---
---```lua
---s:log("info", "lock lost", { antenna = 3 })
---```
---@param level "debug"|"info"|"warn"|"error" how much it matters
---@param text any what happened
---@param value? any shown behind the text; of a table its keys are fields
function session:log(level, text, value) end

---Serves handlers for that time. The session has to run.
---
---```lua
---s:start()
---print(s:measure{ seconds = "10ms" }.b.rx.packets)
---```
---@param options daqiri.session.measure.options
---@return daqiri.ledger # what happened meanwhile, with its seconds
function session:measure(options) end

---Sets a figure for thresholds and the summary.
---
---```lua
---s:metric("temperature", 21.5)
---```
---@param name daqiri.metric_name one that the ledger does not use
---@param value number any number
function session:metric(name, value) end

---Sends every burst of the sources through the stages. A second pipe on a source is a tee. A transmit queue at the end
---holds the source while its ring is full.
---
---```lua
---s:pipe(q, s:filter{ where = "len > 100" }, w)
---```
---@param source daqiri.queue|daqiri.stage|table a receive queue, a reorder stage, or a list of these
---@param ... daqiri.stage|daqiri.queue stages in order; a writer or a transmit queue may be the last
function session:pipe(source, ...) end

---What became of a memory region.
---
---```lua
---print(s:region("packets").free_bufs)
---```
---@param name daqiri.region_name as in the configuration
---@return table # name, kind, num_bufs, buf_size (bytes), free_bufs, stride (bytes), huge, group (buffers of a super-buffer; 1: there are none)
function session:region(name) end

---Makes a stage that puts the payloads of packets together to aggregates, in order: batches of slots, each batch in one
---buffer of the region. It has on_burst and get_burst, stands in pipes (s:pipe(qs, blocks, writer): the writer gets the
---aggregates), and may begin one. Where packets belong is given by sequence_number and packets_per_batch; by
---sequence_number and batch_number, with the slot in the sequence number's low bits; or by the texts batch, slot and the
---number slots. A batch is handed over when it is complete, when its time is up, or when a packet comes that is window
---batches later. More is in reordering.
---
---```lua
---local blocks = s:reorder{ name = "heaps", memory_region = "blocks",
---  packets_per_batch = 4, timeout_us = 1000,
---  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 },
---  at = "payload", payload_byte_offset = 8, slot_bytes = 92 }
---s:pipe(q, blocks)
---blocks:on_burst(function(a) print(a.batch_id, a.missing) end)
---```
---@param options daqiri.session.reorder.options
---@return daqiri.stage
function session:reorder(options) end

---What is hardware, software or copy, and why.
---
---```lua
---print(s:report())
---```
---@return string[] # lines, which print shows
function session:report() end

---Makes a stage that rewrites fields of every packet on its way. A field becomes a value, or { start, step }, which counts
---the packets that pass (of ipv6_src and ipv6_dst the lower 64 bits), or a table by old values, as text. Addresses may be
---prefixes: { ["10.1.0.0/16"] = "239.9.0.0/16" } keeps the last 16 bits, and leaves other addresses alone. In the list
---part fields are given by place, { at = "payload", bit_offset = 0, bit_width = 32, value = 7 }. A packet that lacks a
---field keeps the other changes; the ledger's rewritten counts those that had all.
---
---Packets are changed where they lie, so its pipe is the only one of its queue, and no writer or handler stands before it;
---after s:copy it changes the copies. What others have is dropped as shared.
---
---```lua
---local edit = s:rewrite{ format = "simple", udp_dst = 7149, seq = { 0, 1 },
---  ipv4_dst = { ["10.1.0.0/16"] = "239.9.0.0/16" } }
---s:pipe(q, s:copy{ memory_region = "others" }, edit, w)
---```
---@param options? daqiri.session.rewrite.options
---@return daqiri.stage
function session:rewrite(options) end

---Starts the session, serves handlers and ends it in order. It ends at a limit, a stop, the end of all replayed captures
---and counted transmissions ("source exhausted"), or (virtual clock) when nothing more can happen.
---
---```lua
---local summary = s:run{ seconds = "10ms" }
---print(summary.reason)
---```
---@param options? daqiri.session.run.options
---@return daqiri.ledger # the summary: with reason, seconds, files, failed and error, too
function session:run(options) end

---A receive queue.
---
---```lua
---local q = s:rx_queue("b", 0)
---```
---@param interface? daqiri.interface|daqiri.interface_name or its name; by default the only one
---@param queue? integer|daqiri.queue_name its id or name; by default the only one
---@return daqiri.queue
function session:rx_queue(interface, queue) end

---All receive queues of an interface.
---
---```lua
---print(#s:rx_queues("b"))
---```
---@param interface? daqiri.interface|daqiri.interface_name or its name; by default the only one
---@return daqiri.queue[]
function session:rx_queues(interface) end

---Makes a stage that passes one burst of so many.
---
---```lua
---s:pipe(q, s:sample{ every = 10 }, w)
---```
---@param options daqiri.session.sample.options
---@return daqiri.stage
function session:sample(options) end

---Makes a stage that lends aggregates to other programs without a copy, and passes them on. Python reads them with
---daqiri_run.attach. Their memory region has shared: true. See live data.
---
---```lua
---s:pipe(blocks, s:share{ name = "live" })
---```
---@param options? daqiri.session.share.options
---@return daqiri.stage
function session:share(options) end

---A stage that was made before.
---
---```lua
---print(s:stage("disk").kind)
---```
---@param name daqiri.stage_name of its line in the ledger
---@return daqiri.stage
function session:stage(name) end

---Starts the session: packets move from now on. It belongs to the main chunk of the task that opened it.
---
---```lua
---s:start()
---```
function session:start() end

---The ledger so far: l.rx_port.rx.dropped, l.rx_port.rx.dropped_by.no_flow, l.rx_port.rx[0].packets, l.disk.written,
---l.seconds. print shows it line by line; of a table below it print and the prompt leave out figures of 0.
---
---```lua
---print(s:stats())
---```
---@return daqiri.ledger
function session:stats() end

---In the main chunk ends the session in order; in a handler asks s:run to. What is queued is sent first, for 2 s at most,
---at its pace; then receiving ends, at one moment. What came before is delivered, what comes later is in no account, so
---rx_port.rx.dropped == 0 can hold for a stream that continues; what could not be sent is tx_port.tx.dropped, which the
---summary shows.
---
---```lua
---s:after("5ms", function() s:stop "enough" end)
---s:run()
---```
---@param reason? string for the summary
---@return daqiri.ledger|nil # the summary, in the main chunk
function session:stop(reason) end

---Adds a condition that the run has to meet; if it does not, its exit code is that of a violated threshold. A figure that
---an interface or stage does not have is refused. At the start so is one of an object that is not there, if another is
---like it. Other names may get their values later (s:metric). errors is how often the system refused or took away
---something, each a line of the summary: errors == 0 has to hold unless a threshold of the script's own names it.
---
---```lua
---s:threshold("b.rx.dropped == 0", { after = 1, abort = true })
---```
---@param condition daqiri.threshold over figures with the names of s:stats(): "rx_port.rx.dropped == 0"
---@param options? daqiri.session.threshold.options
function session:threshold(condition, options) end

---A transmit queue.
---
---```lua
---local tx = s:tx_queue("a", 0)
---```
---@param interface? daqiri.interface|daqiri.interface_name or its name; by default the only one
---@param queue? integer|daqiri.queue_name its id or name; by default the only one
---@return daqiri.queue
function session:tx_queue(interface, queue) end

---All transmit queues of an interface.
---
---```lua
---print(#s:tx_queues("a"))
---```
---@param interface? daqiri.interface|daqiri.interface_name or its name; by default the only one
---@return daqiri.queue[]
function session:tx_queues(interface) end

---Makes a writer of reordered bursts, into files PREFIX_INDEX.dqb, which a program maps as an array: the format. Other
---bursts count as write_error. See writers.
---
---```lua
---s:pipe(blocks, s:write_blocks{ name = "heaps", dir = "captures", header = { antenna = 3 } })
---```
---@param options? daqiri.session.write_blocks.options
---@return daqiri.stage
function session:write_blocks(options) end

---Makes a writer of PSRDADA files PREFIX_INDEX.dada: a header of 4096 bytes and the data of reordered bursts. A missing
---burst starts another file, whose OBS_OFFSET has its position. See writers.
---
---```lua
---s:pipe(blocks, s:write_dada{ name = "psr", samples = { type = "ci8", rate = 1e6 },
---  header = { NCHAN = 1, NPOL = 2, BW = 1, TELESCOPE = "test" } })
---```
---@param options? daqiri.session.write_dada.options
---@return daqiri.stage
function session:write_dada(options) end

---Makes a writer of GUPPI RAW files PREFIX_INDEX.raw: each reordered burst is a block, behind a header of 4096 bytes. See
---writers.
---
---```lua
---s:pipe(blocks, s:write_guppi{ name = "seti", samples = { type = "ci8", rate = 1e6 },
---  header = { OBSNCHAN = 64, NPOL = 4, OBSBW = 64 } })
---```
---@param options? daqiri.session.write_guppi.options
---@return daqiri.stage
function session:write_guppi(options) end

---Makes a writer of captures. The file is PREFIX.pcap. See writers.
---
---```lua
---s:pipe(q, s:write_pcap{ name = "capture", dir = "captures", rotate = "1MB" })
---```
---@param options? daqiri.session.write_pcap.options
---@return daqiri.stage
function session:write_pcap(options) end

---Makes a writer of the packets' bytes and nothing else. See writers.
---
---```lua
---s:pipe(q, s:write_raw{ name = "bytes", dirs = { "captures" }, packet_data_offset = 42 })
---```
---@param options? daqiri.session.write_raw.options
---@return daqiri.stage
function session:write_raw(options) end

---Makes a writer of the packets' bytes as objects of an S3 store, one each or, back to back, as many as the limits say.
---See objects.
---
---```lua
---local up = s:write_s3{ name = "up", bucket = "data", prefix = "night1",
---  endpoint = "http://127.0.0.1:9000", bytes_per_object = "64MiB" }
---```
---@param options daqiri.session.write_s3.options
---@return daqiri.stage
function session:write_s3(options) end

---Makes a writer of SigMF recordings: PREFIX.sigmf-data has the samples, PREFIX.sigmf-meta the type, times and gaps. See
---writers.
---
---```lua
---s:pipe(q, s:write_sigmf{ name = "radio", packet_data_offset = 42,
---  samples = { type = "ci16le", rate = 250e6, frequency = 1.4e9 } })
---```
---@param options? daqiri.session.write_sigmf.options
---@return daqiri.stage
function session:write_sigmf(options) end

---Makes a writer of a Zarr array (version 3) of reordered bursts: the folder PREFIX_INDEX.zarr, whose shards are the block
---files PREFIX_INDEX.dqb. See writers.
---
---```lua
---s:pipe(blocks, s:write_zarr{ name = "heaps", dir = "captures", rotate = "1GB" })
---```
---@param options? daqiri.session.write_zarr.options
---@return daqiri.stage
function session:write_zarr(options) end

---@class (exact) daqiri.interface.answer.options
---@field addresses string|string[] IPv4 and IPv6 addresses; an empty list ends it

---@class (exact) daqiri.interface.connect.options
---@field address? string ADDRESS:PORT; required without qp
---@field private_data? string at most 48 bytes that a roce:// peer gets with the request: its c.private_data
---@field qp? table of a roce:// peer without connection manager, what c:join takes: the connection is open at once. {}: c:join sets it later. c.qp is our end
---@field remote? table of a roce:// peer that does not run daqiri-run, what it lends: {ring = {addr = …, rkey = …, bytes = …}}
---@field src_addr? string from which address here

---@class (exact) daqiri.interface.join_multicast.options
---@field groups string|table "239.2.0.64+3:7148" (four groups, one port), or a list of texts or of {ip, port}
---@field source? string only packets from this address
---@field queues? daqiri.queue[] all receive queues of the interface, which is also the default

---@class (exact) daqiri.interface.leave_multicast.options
---@field groups string|table "239.2.0.64+3:7148" (four groups, one port), or a list of texts or of {ip, port}
---@field source? string only packets from this address
---@field queues? daqiri.queue[] all receive queues of the interface, which is also the default

---@class (exact) daqiri.interface.resolve.options
---@field vlan_id? integer of the tag with which it is asked for; 0 is none (default: 0)
---@field timeout? daqiri.duration how long it waits for an answer (default: 3)

---A port that an engine serves (s:interface).
---
---@class daqiri.interface
---@field address string Its address, or its endpoint's URI.
---@field engine string The engine that serves it. (loop, socket, xdp, dpdk or pcap)
---@field mac string|nil Its Ethernet address; nil where it has none.
---@field name string Its name.
local interface = {}

---Adds receive flows. Actions before the queue take headers off, vlan_pop and tunnel_decap, as in a configuration: the
---flow is for frames that have these, whole, and match is asked of the frame inside.
---
---```lua
---local rx = s:interface("b")
---local dns = { name = "dns", match = { udp_dst = 53 }, action = { type = "queue", id = 1 } }
---local ids = rx:add_flows("dns", { dns })
---```
---@param group string whatever the script calls them together
---@param flows daqiri.flow[] all are added, or none
---@return integer[]|nil # their ids
---@return string|nil status
---@return string|nil text
function interface:add_flows(group, flows) end

---Adds a receive queue to an open session, on engines loop, packet, xdp, ibverbs and dpdk, on an interface that has one
---already. It gets packets once a flow names it. Its batch_size is at most the largest of the configuration's, its id 0 to
---31. --cores maps its cpu_core as the others. The counts of a deleted queue with the same id and name continue: the
---ledger has one line for both.
---
---```lua
---local region = { name = "later", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
---assert(s:add_region(region))
---local q = assert(s:interface("b"):add_rx_queue{ name = "more", id = 7, cpu_core = -1, batch_size = 8,
---  memory_regions = { "later" } })
---```
---@param queue table with the keys of rx.queues[] in a configuration
---@return daqiri.queue|nil
---@return string|nil status
---@return string|nil text
function interface:add_rx_queue(queue) end

---Adds transmit flows, while the session runs: vlan_push and tunnel_encap of the first flow that a frame matches, in the
---configuration's order and then in the groups'. Transmit flows have groups and ids of their own. A tunnel's outer_eth_src
---and outer_eth_dst may be "auto": the interface's own address, and that of the owner of the outer destination
---(i:resolve).
---
---```lua
---local tag = { name = "tag", match = { udp_dst = 53 }, action = { type = "vlan_push", vlan_id = 5 } }
---i:add_tx_flows("tags", { tag })
---```
---@param group string whatever the script calls them together
---@param flows daqiri.flow[] all are added, or none
---@return integer[]|nil # their ids
---@return string|nil status
---@return string|nil text
function interface:add_tx_flows(group, flows) end

---Adds a transmit queue, as i:add_rx_queue adds a receive queue; engine socket can, too.
---
---```lua
---local region = { name = "later_tx", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
---assert(s:add_region(region))
---local q = assert(i:add_tx_queue{ name = "more_tx", id = 7, cpu_core = -1, batch_size = 8,
---  memory_regions = { "later_tx" } })
---```
---@param queue table with the keys of tx.queues[] in a configuration
---@return daqiri.queue|nil
---@return string|nil status
---@return string|nil text
function interface:add_tx_queue(queue) end

---Ends what i:drop_all_traffic began.
---
---```lua
---i:allow_all_traffic()
---```
---@return true|nil
---@return string|nil status
---@return string|nil text
function interface:allow_all_traffic() end

---Answers ARP requests and IPv6 neighbour solicitations for these addresses from now on, instead of those of the call
---before. So hosts and routers find the interface though no kernel has its addresses. Answers leave through its first
---transmit queue, which counts them as answered. It is for raw interfaces; an address that the kernel has, too, needs
---none. The configuration's key answers does the same from the open on.
---
---```lua
---i:answer{ addresses = { "10.0.0.5", "2001:db8::5" } }
---```
---@param options daqiri.interface.answer.options
---@return integer|nil # how many addresses
---@return string|nil status
---@return string|nil text
function interface:answer(options) end

---Of a socket interface: makes a connection, which is on its way when the call returns; i:on_connection reports when it is
---open.
---
---```lua
---local c, status, why = i:connect{ address = "127.0.0.1:7148" }
---```
---@param options? daqiri.interface.connect.options
---@return daqiri.connection|nil
---@return string|nil status
---@return string|nil text
function interface:connect(options) end

---The connection with that id. Without one its peer is the default one, and its options are those of all connections of
---the interface.
---
---```lua
---local all = i:connection()
---```
---@param id? integer c.id; without it the interface itself
---@return daqiri.connection|nil
---@return string|nil status
---@return string|nil text
function interface:connection(id) end

---Deletes receive flows.
---
---```lua
---s:interface("b"):delete_flows("dns")
---```
---@param what string|integer a group, or a flow's id
---@return integer|nil # how many there were
---@return string|nil status
---@return string|nil text
function interface:delete_flows(what) end

---Deletes transmit flows.
---
---```lua
---i:delete_tx_flows("tags")
---```
---@param what string|integer a group, or a flow's id
---@return integer|nil # how many there were
---@return string|nil status
---@return string|nil text
function interface:delete_tx_flows(what) end

---Discards everything that arrives, until i:allow_all_traffic.
---
---```lua
---i:drop_all_traffic()
---```
---@return true|nil
---@return string|nil status
---@return string|nil text
function interface:drop_all_traffic() end

---The receive flows in the order in which they are asked, but that those that take headers off come first. match and
---actions are as i:add_flows takes them. packets and bytes are what came of the flow so far, before its actions (nil for
---the id 0, and beyond 16384 flows of a queue). The summary and the ledger have those of deleted flows, too.
---
---```lua
---for _, flow in ipairs(s:interface("b"):flows()) do print(flow.id, flow.name, flow.packets) end
---```
---@return table[] # with id, group, name, match, actions, queues, packets and bytes
function interface:flows() end

---Joins multicast groups. On a raw interface flows select the port. Groups are reported by the kernel, or without one
---(dpdk, loop) through the first transmit queue, which counts the reports as answered.
---
---```lua
---i:join_multicast{ groups = "239.2.0.64+3:7148" }
---```
---@param options daqiri.interface.join_multicast.options
---@return integer|nil # how many groups
---@return string|nil status
---@return string|nil text
function interface:join_multicast(options) end

---Leaves multicast groups.
---
---```lua
---i:join_multicast{ groups = "239.2.0.64+3" }
---i:leave_multicast{ groups = { "239.2.0.64", { ip = "239.2.0.65" } } }
---```
---@param options daqiri.interface.leave_multicast.options
---@return integer|nil # how many groups
---@return string|nil status
---@return string|nil text
function interface:leave_multicast(options) end

---Of a socket interface: has a function called with connections: those of peers, those of i:connect, and a TCP client's
---own. That is one for each of its queues, made again when it is lost. A server that can't be reached is logged once for
---each cause and tried again after retry_connect_s (1 s), then after pauses that double up to 30 s. What is sent meanwhile
---waits.
---
---```lua
---i:on_connection(function(c) print(c.peer) end)
---```
---@param fn fun(c: daqiri.connection) called with each
function interface:on_connection(fn) end

---Polls the interface's queues once, with their pipes and kernels' rings: for queues with poll_mode: direct, which else
---move while the task waits. Beside a worker it raises.
---
---```lua
---local ok, why = pcall(i.progress, i)    -- an error if a worker polls it
---```
---@return integer # how much was done; 0: nothing
function interface:progress() end

---Replaces a group's receive flows at once.
---
---```lua
---s:interface("b"):replace_flows("dns", {})
---```
---@param group string as of i:add_flows
---@param flows daqiri.flow[] instead of the group's
---@return integer[]|nil # their ids
---@return string|nil status
---@return string|nil text
function interface:replace_flows(group, flows) end

---Replaces a group's transmit flows at once.
---
---```lua
---i:replace_tx_flows("tags", {})
---```
---@param group string as of i:add_tx_flows
---@param flows daqiri.flow[] instead of the group's
---@return integer[]|nil # their ids
---@return string|nil status
---@return string|nil text
function interface:replace_tx_flows(group, flows) end

---Finds the Ethernet address of the host that frames to an IP address have to go to; on a Linux interface that of the
---router, where there is one. What the kernel knows is taken; else it is asked for each second, by ARP or neighbour
---discovery. The question comes from the first address that the interface answers for, from the kernel's, or from none (a
---probe). Answers are known for a minute. It waits, so not in on_burst. It needs a session that runs, a transmit queue and
---a receive queue that is read.
---
---```lua
---local mac = i:resolve("10.0.0.2") or "02:00:00:00:00:02"
---```
---@param address string an IP address
---@param options? daqiri.interface.resolve.options
---@return string|nil # an Ethernet address
---@return string|nil status
---@return string|nil text
function interface:resolve(address, options) end

---The transmit flows, as i:flows lists the receive flows.
---
---```lua
---for _, flow in ipairs(i:tx_flows()) do print(flow.name) end
---```
---@return table[] # with id, group, name, match and actions
function interface:tx_flows() end

---@class (exact) daqiri.connection.compare_swap.options
---@field wr_id? any w[i].wr_id of on_completion

---@class (exact) daqiri.connection.fetch_add.options
---@field wr_id? any w[i].wr_id of on_completion

---@class (exact) daqiri.connection.get_burst.options
---@field timeout_us? integer us: how long it waits; by default without limit

---@class (exact) daqiri.connection.join.options
---@field qpn integer the number of its queue pair
---@field psn integer that of the first packet that it sends
---@field addr? string its address, of which its GID is made
---@field gid? string the same as ::ffff:10.9.0.2
---@field lid? integer where it is in an InfiniBand subnet; needs no gid there (default: 0)
---@field mtu? integer bytes: of a packet on the wire, at most, where it has less than our port
---@field qkey? integer of datagrams (UD) (default: 0x01234567)

---@class (exact) daqiri.connection.lend.options
---@field name? string that the peer finds it by, at most 47 bytes; by default the region's
---@field access? "rdma_read"|"rdma_write"|"rdma_read_write" what the peer may do (default: "rdma_write")
---@field slots? integer how many slots it is divided into; the peer receives the number
---@field slot_bytes? integer bytes: of each slot

---@class (exact) daqiri.connection.message.options
---@field imm? integer 32 bits that go beside its last packet; 0xffffffff is the engine's own
---@field wr_id? any w[i].wr_id of on_completion

---@class (exact) daqiri.connection.on_burst.options
---@field name? string of the handler, for a call that replaces its function or removes it
---@field sample? integer bursts: one of this many is passed to the function (default: 1)
---@field policy? daqiri.policy while the script is too slow (default: "wait")

---@class (exact) daqiri.connection.read.options
---@field wr_id? any w[i].wr_id of on_completion

---@class (exact) daqiri.connection.receive.options
---@field wr_id? any w[i].wr_id of on_completion

---@class (exact) daqiri.connection.tell.options
---@field addr daqiri.u64|integer|string where it is there
---@field rkey daqiri.u64|integer|string its key
---@field bytes daqiri.u64|integer|string how long it is

---@class (exact) daqiri.connection.write.options
---@field imm? integer 32 bits that the peer receives after it: b.imm[1] of a message without bytes
---@field wr_id? any w[i].wr_id of on_completion

---A TCP connection or a UDP peer of a socket interface, from i:on_connection, i:connect, i:connection or b.connection.
---
---@class daqiri.connection
---@field id integer Its number, unique in its interface.
---@field local_addr string Address and port here. (ADDRESS:PORT)
---@field open boolean Whether it is open.
---@field peer string Address and port there. (ADDRESS:PORT)
---@field private_data string What its peer gave when it asked for the connection (i:connect{ private_data }) or took it. A peer that does not run daqiri-run has zeros up to the connection manager's 56, 180 or 196 bytes. Only connections of roce:// have some.
---@field qp table|nil Our end of a connection that i:connect{ qp } makes, as its peer has to know it, and as another's c:join takes it: qpn, psn, gid, lid, qkey and mtu, in bytes.
---@field queue integer The id of its receive queue, or where there is none of its transmit queue.
---@field remotes table What its peer lends, by name: addr, rkey, bytes, readable, writable, slots, slot_bytes. Only connections of roce:// have some.
local connection = {}

---A burst to send, as q:alloc makes it.
---
---```lua
---local b = assert(c:alloc(1))
---```
---@param n? integer packets: at most batch_size (default: batch_size)
---@param region? daqiri.region_name takes their buffers there, for operations of this connection alone (c:message, c:receive, c:write, c:read)
---@return daqiri.burst|nil
---@return string|nil status
---@return string|nil text
function connection:alloc(n, region) end

---Closes it, when what was sent on it has gone, or its peer has taken nothing for 5 s.
---
---```lua
---c:close()
---```
---@return true|nil
---@return string|nil status
---@return string|nil text
function connection:close() end

---Changes 8 bytes of the peer's memory, in its order of bytes, if they are what is expected; op.value is what was there.
---Of roce:// connections.
---
---```lua
---local op, status, why = c:compare_swap("ring", 0, 0, 1)
---```
---@param name string that its peer lends memory under
---@param offset integer bytes: a multiple of 8
---@param was daqiri.u64|integer what has to be there
---@param value daqiri.u64|integer what is put there then
---@param options? daqiri.connection.compare_swap.options
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function connection:compare_swap(name, offset, was, value, options) end

---Adds to 8 bytes of the peer's memory, in its order of bytes; op.value is what was there. Of roce:// connections.
---
---```lua
---local op, status, why = c:fetch_add("ring", 0, 1)
---```
---@param name string that its peer lends memory under
---@param offset integer bytes: a multiple of 8
---@param value daqiri.u64|integer modulo 2^64
---@param options? daqiri.connection.fetch_add.options
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function connection:fetch_add(name, offset, value, options) end

---Waits for the next burst of this connection; nil, "NOT_READY", text at the timeout.
---
---```lua
---local b = c:get_burst{ timeout_us = 1000 }
---```
---@param options? daqiri.connection.get_burst.options
---@return daqiri.burst|nil
---@return string|nil status
---@return string|nil text
function connection:get_burst(options) end

---Sets the peer of a queue pair that i:connect{ qp = {} } has made: the connection is open then. Of roce:// connections.
---
---```lua
---local ok, status, why = c:join{ qpn = 17, psn = 4711, addr = "10.9.0.2" }
---```
---@param options daqiri.connection.join.options
---@return true|nil
---@return string|nil status
---@return string|nil text
function connection:join(options) end

---Lends a region to the peer. If the peer is a daqiri-run with a receive queue, its c.remotes lists the region. Of roce://
---connections.
---
---```lua
---local lease, status, why = c:lend("others", { name = "ring" })
---```
---@param region daqiri.region_name in which no queue has its packets, and whose access allows it
---@param options? daqiri.connection.lend.options
---@return daqiri.lease|nil
---@return string|nil status
---@return string|nil text
function connection:lend(region, options) end

---Sends each packet as a message, and reports the completion, unlike c:send; an immediate value is b.imm[i] there. Of
---roce:// connections.
---
---```lua
---local op, status, why = c:message(c:alloc(1):fill(tpl), { imm = 7 })
---```
---@param b daqiri.burst which ends with the call, unless it fails
---@param options? daqiri.connection.message.options
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function connection:message(b, options) end

---Has a function called with each burst of this connection, as q:on_burst does of a queue, from then on. What came before
---went to the queue's own pipes.
---
---```lua
---c:on_burst(function(b) print(b.n) end)
---```
---@param fn fun(b: daqiri.burst)|false called with each burst; false removes the handler of that name, or all
---@param options? daqiri.connection.on_burst.options
---@return daqiri.connection # itself
function connection:on_burst(fn, options) end

---Has a function called with the operations of this connection, begun from then on, that have ended: w.n of them, w.status
---("SUCCESS", or the first failure) and of each w[i].op, .status, .bytes and .wr_id.
---
---```lua
---c:on_completion(function(w) print(w.n, w.status) end)
---```
---@param fn fun(w: table) called with operations that have ended
function connection:on_completion(fn) end

---Has a function called when the connection ends, or could not be made. A peer that ends its stream ("closed by the peer")
---may still read. It still gets what was sent to it by the end of this handler, or without one of the last on_burst
---handler.
---
---```lua
---c:on_disconnect(function(why) print(why) end)
---```
---@param fn fun(why: string) called once
function connection:on_disconnect(fn) end

---Reads the peer's memory; op.burst has it at the end. Of roce:// connections.
---
---```lua
---local op, status, why = c:read("ring", 0, 64)
---```
---@param name string that its peer lends memory under
---@param offset integer bytes: from where on
---@param bytes integer|daqiri.burst how many, at most what a burst of its transmit queue holds; or what they are read into
---@param options? daqiri.connection.read.options
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function connection:read(name, offset, bytes, options) end

---Receives where the receive queue has no regions of its own: op.burst is the burst, with the messages' lengths. Of
---roce:// connections.
---
---```lua
---local op, status, why = c:receive(c:alloc(1):fill(tpl))
---```
---@param b daqiri.burst whose packets, as long as they are, take the peer's next messages in turn; it ends with the call, unless it fails
---@param options? daqiri.connection.receive.options
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function connection:receive(b, options) end

---Sends a burst on this connection, as q:send does. nil, "NO_SPACE_AVAILABLE", text also while its peer doesn't read and
---it has had its share of the queue (figure refused); other connections continue.
---
---```lua
---assert(c:send(c:alloc(1):fill(tpl)))
---```
---@param b daqiri.burst which ends with the call, unless it fails
---@return true|nil
---@return string|nil status
---@return string|nil text
function connection:send(b) end

---Sets an option of its socket, as setsockopt(2).
---
---```lua
---c:setsockopt("SOL_SOCKET", "SO_KEEPALIVE", true)
---```
---@param level string|integer "SOL_SOCKET", "IPPROTO_TCP", …
---@param option string|integer "SO_RCVBUF", "TCP_NODELAY", …
---@param value integer|boolean|string a C int, or bytes
---@return true|nil
---@return string|nil status
---@return string|nil text
function connection:setsockopt(level, option, value) end

---Sets what a peer lends that does not run daqiri-run and can't announce it. Of roce:// connections.
---
---```lua
---local ok, status, why = c:tell("ring", { addr = 4096, rkey = 17, bytes = 64 })
---```
---@param name string by which c:write and c:read find it
---@param options daqiri.connection.tell.options
---@return true|nil
---@return string|nil status
---@return string|nil text
function connection:tell(name, options) end

---Writes into the peer's memory; without imm the peer is not notified. Of roce:// connections.
---
---```lua
---local op, status, why = c:write(c:alloc(1):fill(tpl), "ring", 0)
---```
---@param b daqiri.burst which ends with the call, unless it fails
---@param name string that its peer lends memory under
---@param offset integer bytes: from where on its packets go there, without gaps
---@param options? daqiri.connection.write.options
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function connection:write(b, name, offset, options) end

---@class (exact) daqiri.queue.drain.options
---@field timeout? daqiri.duration how long it waits; by default without limit

---@class (exact) daqiri.queue.get_burst.options
---@field timeout_us? integer us: how long it waits; by default without limit

---@class (exact) daqiri.queue.on_burst.options
---@field name? string of the handler, for a call that replaces its function or removes it
---@field sample? integer bursts: one of this many is passed to the function (default: 1)
---@field policy? daqiri.policy while the script is too slow (default: "wait")

---@class (exact) daqiri.queue.pace.options
---@field rate? daqiri.rate limit of what is sent; none where absent, and 0 is refused
---@field pps? number packets/s: limit of how many are sent; none where absent, and 0 is refused
---@field follow? "rx_timestamp" packets that were received keep the gaps of their receive times; excludes rate and pps
---@field speed? number the gaps are divided by it, with follow (default: 1)

---@class (exact) daqiri.queue.template.options
---@field payload? string the payload, filled up with zeros to payload_bytes
---@field payload_bytes? integer bytes: length of the payload; by default that of payload
---@field bytes? string the whole packet instead
---@field eth_dst? string an Ethernet address, or "auto": that of the owner of ipv4_dst or ipv6_dst (i:resolve; the session has to run, unless the kernel knows). By default a multicast group's own address, else frames go to all hosts, with a warning on the engines xdp and dpdk unless "ff:ff:ff:ff:ff:ff" is given
---@field eth_src? string an Ethernet address; "auto" is the interface's, or 02:00:00:00:00:01 (default: "auto")
---@field ethertype? integer 0x600 to 0xffff: the payload begins behind it
---@field vlan_id? integer 0 to 4095: of a VLAN tag
---@field vlan_pcp? integer 0 to 7: of the VLAN tag (default: 0)
---@field ipv4_src? string an IPv4 address (default: "192.0.2.1")
---@field ipv4_dst? string an IPv4 address (default: "192.0.2.2")
---@field ipv6_src? string an IPv6 address; with one of the two the packet is IPv6 (default: "2001:db8::1")
---@field ipv6_dst? string an IPv6 address (default: "2001:db8::2")
---@field tos? integer 0 to 255; of IPv6 the traffic class (default: 0)
---@field ttl? integer 0 to 255; of IPv6 the hop limit (default: 64)
---@field udp_src? integer a port (default: 4096)
---@field udp_dst? integer a port (default: 4096)
---@field tcp_src? integer a port; with an option of TCP the packet is TCP (default: 4096)
---@field tcp_dst? integer a port (default: 4096)
---@field tcp_seq? integer the sequence number (default: 0)
---@field tcp_flags? integer 0 to 255 (default: 0x10)
---@field vary? table what changes from packet to packet: field = step, field = "toggle" or field = {start, step, max, random, every, toggle}, which goes from max on to start and without max wraps at the field's width. The list part has places with these keys. every packets have the same value, and toggle has the bits that are turned by turns
---@field format? daqiri.format|daqiri.format_name its header begins the payload (of a format of the network layer: follows the Ethernet header), with the values that its fields have here, chan = 7, and payload follows it; payload_bytes counts it, too
---@field [string] any a field of the format, with its value

---@class (exact) daqiri.queue.transmit.options
---@field template daqiri.template|false what is sent; false ends it
---@field count? integer packets: how many; without it until the stop

---A receive or transmit queue of an interface (s:rx_queue, s:tx_queue).
---
---@class daqiri.queue
---@field batch_size integer How many packets a burst has at most. (packets)
---@field direction string Whether it receives or transmits. (rx or tx)
---@field id integer Its number in its direction, as in the configuration.
---@field interface string Its interface's name.
---@field layer string What its packets begin with: an Ethernet header, or the payload of a datagram or stream. (frame or payload)
---@field name string Its name.
---@field timestamps string|nil Where a receive queue's times come from; nil of a transmit queue. (hardware, kernel, software, virtual or file)
local queue = {}

---Of a transmit queue: a burst of packets with free buffers, to fill and to send; nil, status, text while there are none.
---
---```lua
---local b = assert(tx:alloc(8))
---b:fill(tpl)
---```
---@param n? integer packets: at most batch_size (default: batch_size)
---@return daqiri.burst|nil
---@return string|nil status
---@return string|nil text
function queue:alloc(n) end

---Deletes the queue while the session is open, on the engines that can add one. Packets that wait in a receive queue are
---dropped (flushed), and its handlers end; a transmit queue sends what it has. The operation ends once no burst of the
---queue is in use. Flows and pipes that name the queue come first, else nil, "RESOURCE_IN_USE", text. The counts stay in
---the ledger and the summary.
---
---```lua
---local region = { name = "passing", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
---assert(s:add_region(region))
---local extra = assert(i:add_tx_queue{ name = "extra", id = 8, cpu_core = -1, batch_size = 8,
---  memory_regions = { "passing" } })
---assert(extra:delete():wait{ timeout = 5 })
---```
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function queue:delete() end

---Of a transmit queue: waits until what was given to it has left, transmit with a count included; nil, "NOT_READY", text
---at the timeout.
---
---```lua
---s:start()
---tx:transmit{ template = tpl, count = 8 }
---assert(tx:drain{ timeout = 5 })
---```
---@param options? daqiri.queue.drain.options
---@return true|nil
---@return string|nil status
---@return string|nil text
function queue:drain(options) end

---Of a receive queue: discards what waits to be received.
---
---```lua
---print(q:flush())
---```
---@return integer # packets
function queue:flush() end

---Of a receive queue: waits for the next burst; nil, "NOT_READY", text at the timeout. From the first call on the queue's
---bursts wait for more calls, and hold the queue. The session has to run.
---
---```lua
---s:start()
---local b = q:get_burst{ timeout_us = 1000 }
---if b then b:free() end
---```
---@param options? daqiri.queue.get_burst.options
---@return daqiri.burst|nil
---@return string|nil status
---@return string|nil text
function queue:get_burst(options) end

---Of a receive queue: has a function called with each burst. The burst ends with the function, unless that keeps, sends or
---frees it. Nothing that waits can be called in it. A function for a handler of the same name takes the place of its
---function with the next burst; false removes.
---
---```lua
---q:on_burst(function(b) print(b.n) end, { policy = "drop" })
---```
---@param fn fun(b: daqiri.burst)|false called with each burst; false removes the handler of that name, or all
---@param options? daqiri.queue.on_burst.options
---@return daqiri.queue # itself
function queue:on_burst(fn, options) end

---Of a transmit queue: paces it from now on. The ledger has the accuracy of the pace, from the first packet to the last:
---l.tx_port.tx.rate_error, a part of what was asked for. In ns, how far gaps between packets are off: gap_error.p50, .p90,
---.p99, .max. A queue that runs dry spoils the rate, not the gaps; the time between two transmissions is not a gap.
---
---```lua
---tx:pace{ rate = "1Gbit/s" }
---tx:pace{ follow = "rx_timestamp", speed = 2 }
---```
---@param options? daqiri.queue.pace.options
function queue:pace(options) end

---Of a transmit queue: sends a burst; nil, "NO_SPACE_AVAILABLE", text while the ring is full. The session has to run.
---
---```lua
---s:start()
---assert(tx:send(tx:alloc(4):fill(tpl)))
---```
---@param b daqiri.burst which ends with the call, unless it fails
---@return true|nil
---@return string|nil status
---@return string|nil text
function queue:send(b) end

---Of a transmit queue: a packet to be sent many times. A queue of frames takes the headers, too; one of payloads only
---bytes, format, payload, payload_bytes and vary. Lengths and checksums are set.
---
---```lua
---local tpl = tx:template{ eth_dst = "02:00:00:00:00:02", ipv4_dst = "10.0.0.2", udp_dst = 7148,
---  payload_bytes = 100,
---  vary = { udp_src = { start = 1000, step = 1, max = 1999 } } }
---```
---@param options? daqiri.queue.template.options
---@return daqiri.template
function queue:template(options) end

---Of a transmit queue: its own thread sends the template's packets, at the queue's pace.
---
---```lua
---tx:transmit{ template = tpl, count = 1000 }
---```
---@param options daqiri.queue.transmit.options
function queue:transmit(options) end

---@class (exact) daqiri.stage.get_burst.options
---@field timeout_us? integer us: how long it waits; by default without limit

---@class (exact) daqiri.stage.on_burst.options
---@field name? string of the handler, for a call that replaces its function or removes it
---@field sample? integer bursts: one of this many is passed to the function (default: 1)
---@field policy? daqiri.policy while the script is too slow (default: "wait")

---@class (exact) daqiri.stage.write.options
---@field comment? string for each of its packets, in a pcapng; 1 to 200 bytes
---@field prefix? string names the files of the burst's packets, or its objects, PREFIX_0 for the first; of a writer with a file per packet or of objects
---@field packet_data_offset? integer bytes: left out at the front of each packet; with prefix (default: 0)

---A step of a pipe, made by s:filter, s:count, s:sample, s:gaps, s:convert, s:copy, s:rewrite, s:reorder, s:heaps, k:stage
---and the writers.
---
---@class daqiri.stage
---@field error string|nil A writer's first error, or nil.
---@field kind string What the stage does. (filter, count, sample, gaps, forward, convert, copy, rewrite, kernel, reorder, heaps, share, tap, pcap, raw, blocks or s3)
---@field name string The name of its line in the ledger.
---@field path string|nil The file that a writer writes or wrote last, of the first folder that has one, or the socket of a share stage; nil where there is none.
---@field paths string[] The files that a writer writes or wrote last. (of each folder)
---@field readers table[]|nil The programs that are attached to a share stage, with pid, lent (blocks that it has), blocks (lent to it so far) and missed; nil for other stages.
local stage = {}

---Of a writer of objects: uploads what it has, waits for that, at most end_timeout, and gives its staging memory back.
---Packets that come later are dropped as stopped.
---
---```lua
---local up = s:write_s3{ bucket = "data", endpoint = "http://127.0.0.1:1",
---  access_key = "a", secret_key = "b", attempts = 1 }
---up:close()
---```
function stage:close() end

---Of a reorder stage the next aggregate, of a copy stage the next copy, of a kernel's the next burst that it is done with,
---as q:get_burst does of a queue.
---
---```lua
---s:start()
---local a = blocks:get_burst{ timeout_us = 1000 }
---```
---@param options? daqiri.stage.get_burst.options
---@return daqiri.burst|nil
---@return string|nil status
---@return string|nil text
function stage:get_burst(options) end

---Of a reorder stage: has a function called with its aggregates, one in a burst, as q:on_burst does of a queue. A copy
---stage passes its copies, a kernel's stage what it has processed.
---
---```lua
---blocks:on_burst(function(a) print(a.batch_id, a.missing) end)
---```
---@param fn fun(b: daqiri.burst)|false called with each burst; false removes the handler of that name, or all
---@param options? daqiri.stage.on_burst.options
---@return daqiri.stage # itself
function stage:on_burst(fn, options) end

---Of a writer: takes the burst by reference, in a pipe or not; nil, "NO_SPACE_AVAILABLE", text while its ring is full.
---
---```lua
---local op = assert(w:write(b))
---```
---@param b daqiri.burst which the script keeps; its packets are read-only from then on
---@param options? daqiri.stage.write.options
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function stage:write(b, options) end

---@class (exact) daqiri.burst.free.options
---@field packet? integer which packet, from 1
---@field segment? integer which segment, from 1

---@class (exact) daqiri.burst.plot.options
---@field format? daqiri.format|daqiri.format_name one that declares samples, which are behind its header
---@field type? string a type of samples, instead of that of the packets or of the aggregate
---@field kind? "spectrum"|"waterfall"|"histogram"|"time"|"constellation" which picture (default: "spectrum")
---@field segment? integer which segment of the packets has the samples, from 1 (default: 1)
---@field packet? integer of which packet, from 1; without it of all
---@field points? integer of a transform, a power of 2 from 2 to 65536; by default as many as consecutive samples allow, up to 4096
---@field window? "hann"|"blackman-harris"|"none" the shape of a transform (default: "hann")
---@field first? integer the first sample of each packet or slot, from 1 (default: 1)
---@field step? integer takes every so many samples, such as those of one channel (default: 1)
---@field continuous? boolean whether samples continue those of the packet or slot before; otherwise no transform has samples of two (default: false)
---@field file? string writes a PNG file instead of drawing
---@field overwrite? boolean replaces a file that is there; else it stays, and the call fails (default: false)

---@class (exact) daqiri.burst.samples.options
---@field type? string a type of samples instead of that of the packets; without a format the payload has them
---@field packet? integer of which packet, from 1; without it of all
---@field segment? integer which segment has the samples, from 1 (default: 1)

---@class (exact) daqiri.burst.show.options
---@field format? daqiri.format|daqiri.format_name whose fields are shown
---@field fields? daqiri.expression[] these instead: names, or numbers over fields
---@field n? integer packets: how many, the first ones (default: 10)
---@field csv? boolean as comma-separated values (default: false)

---A batch of packets: what receive queues deliver and transmit queues take. It ends when it is sent or freed, or with its
---on_burst handler unless b:keep() was called; any use after that raises an error with the place where it ended.
---
---Packets are read-only as long as there is another reader: a second consumer of the queue, a writer, a queue that sends a
---selection. That holds for all bursts that share them, a selection and what it was made from, whichever was given away.
---
---An aggregate is a burst of a reorder stage. The fields of aggregates below are nil for other bursts.
---
---@class daqiri.burst
---@field batch_id integer|daqiri.u64|nil Of an aggregate: the batch's number as the packets have it. (a u64 above 2^53)
---@field bytes integer Bytes of all packets. (bytes)
---@field clock string The clock of its times. (realtime, virtual or file)
---@field connection daqiri.connection|nil The connection that it came from; nil where its queue has none.
---@field cut boolean|nil Of an aggregate: whether it is the first or the last of the stream, where gaps are not losses.
---@field data daqiri.packet|nil Of an aggregate: its bytes.
---@field dtype string|nil Of an aggregate: the type of its elements. ("fp32" and the like, "bytes" where elements were not converted)
---@field expected integer|nil Of an aggregate: how many parts it has: slots, or the parts of slots that an offset addresses. (parts)
---@field extra daqiri.column|nil Of an aggregate: what the rule keeps of each slot; nil where it keeps nothing.
---@field flags integer The flags of the reference (daqiri.api). (bits)
---@field imm table|nil The immediate value that each packet came with, false of one without; nil where none has one. Only those of roce:// connections, and of kernels over loop, have. (a list)
---@field interface string The name of its interface.
---@field items table[]|nil Of a heap (s:heaps): the items of its packets, each once, as f:decode gives a list, without those that place packets. Where the value is an address, it is one in b.data.
---@field last_time integer|nil Of an aggregate: the receive time of the packet that ended it; rx_time is that of the one that opened it. (ns: since the session's start, of a capture since its first packet)
---@field missing integer|nil Of an aggregate: how many of its parts did not come. (parts)
---@field n integer How many packets it has; #b is the same. (packets)
---@field present daqiri.presence|nil Of an aggregate: which of its parts came.
---@field queue string The name of its queue.
---@field rx_time integer|nil The receive time of the first packet; nil without packets or times. (ns: since the session's start, of a capture since its first packet)
---@field segments integer How many parts each packet has.
---@field slot_bytes integer|nil Of an aggregate: how long a slot is. b.data is one slot behind the other. (bytes)
---@field source_packets integer|nil Of an aggregate: packets in it. (packets)
---@field timed_out boolean|nil Of an aggregate: whether it was handed over because its time was up.
local burst = {}

---Computes the checksums of IPv4, UDP, TCP and ICMP, after headers were written by hand.
---
---```lua
---local b = tx:alloc(4):fill(tpl)
---b:packet(1):set_u16(36, 53)
---b:checksums(1)
---```
---@param i? integer which packet, from 1; without it all
function burst:checksums(i) end

---The field of every packet. It is a copy and outlives the burst.
---
---```lua
---local lengths = b:column("payload_len")
---print(lengths:mean())
---```
---@param field daqiri.expression|daqiri.place a field's name, its place, or a number over fields: "payload_len // 8"
---@param format? daqiri.format|daqiri.format_name names for further fields
---@return daqiri.column
function burst:column(field, format) end

---How many packets match.
---
---```lua
---print(b:count("udp_dst == 7148 and len > 60"))
---```
---@param condition daqiri.condition which packets
---@param format? daqiri.format|daqiri.format_name names for further fields
---@return integer # packets
function burst:count(condition, format) end

---Writes the template's packets into the burst, each with the next values of what varies.
---
---```lua
---local b = tx:alloc(8):fill(tpl)
---```
---@param template daqiri.template of a queue of the same session
---@return daqiri.burst # itself
function burst:fill(template) end

---The id of each packet's flow.
---
---```lua
---print(b:flow_ids()[1])
---```
---@return integer[] # 0 for none
function burst:flow_ids() end

---Returns the burst; or the buffers of one packet, of one segment, or of one packet's segment, which stay empty. A
---selection that was made before keeps its packets.
---
---```lua
---b:free{ packet = 1 }
---b:free()
---```
---@param options? daqiri.burst.free.options
function burst:free(options) end

---Lets the burst outlive its handler. A few packets of large super-buffers (UDP) are copied, so that they don't hold
---those.
---
---```lua
---local kept
---q:on_burst(function(b) kept = b:keep() end)
---```
---@return daqiri.burst # itself
function burst:keep() end

---How long each packet is.
---
---```lua
---print(b:lengths()[1])
---```
---@param segment? integer of which segment, from 1 (default: 1)
---@return integer[] # bytes
function burst:lengths(segment) end

---Where each packet begins in its memory region: for another process that owns the region's memory (memory). Keep the
---burst while that process reads it.
---
---```lua
---local offsets, region = b:offsets()
---print(region, offsets[1])
---```
---@param segment? integer of which segment, from 1 (default: 1)
---@return integer[] # bytes
---@return string # the region's name; empty for memory of the engine
function burst:offsets(segment) end

---A view of one packet, for looking at it. What is done to many packets has a method of the burst.
---
---```lua
---print(b:packet(1):hex())
---```
---@param i integer which packet, from 1
---@param segment? integer which of its segments, from 1 (default: 1)
---@return daqiri.packet
function burst:packet(i, segment) end

---Where a packet came from; nil where the queue has no peers.
---
---```lua
---print(b:peer(1))
---```
---@param i? integer which packet, from 1 (default: 1)
---@return string|nil # ADDRESS:PORT
function burst:peer(i) end

---Draws the samples of packets, as b:samples reads them, or of all slots of an aggregate, as a.data:samples does: on a
---terminal as characters, elsewhere as numbers separated by tabs. Values are codes, those of floating-point numbers and
---levels are scaled. Missing slots are gaps.
---
---```lua
---b:plot{ type = "ci8", kind = "histogram" }
---b:plot{ type = "ci8", kind = "time", file = "time.png", overwrite = true }
---```
---@param options? daqiri.burst.plot.options
function burst:plot(options) end

---Puts the template's packet in front of each packet, as headers, and sets the lengths and checksums of IP and UDP: the
---burst holds payloads before. A buffer has room for 128 bytes.
---
---```lua
---local head = tx:template{ eth_dst = "02:00:00:00:00:02", ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2",
---  udp_src = 4000, udp_dst = 7148, payload_bytes = 0 }
---local b = tx:alloc(2)
---b:set_lengths(100)
---print(b:prepend(head).bytes)
---```
---@param template daqiri.template of a queue of the same session, without vary
---@return daqiri.burst # itself
function burst:prepend(template) end

---The receive time of each packet; false where it has none: it was made here, or captured without one. With "epoch" times
---are absolute: of CLOCK_REALTIME, of a capture as recorded, and on the virtual clock since the session's own epoch.
---b:tx_times accepts both.
---
---```lua
---local times = b:rx_timestamps()
---local first = b:rx_timestamps("epoch")[1]
---if first then print(first.ns) end
---```
---@param since? "session"|"epoch" what times are relative to (default: "session")
---@return table # ns: since the session's start, of a capture since its first packet; or daqiri.times
function burst:rx_timestamps(since) end

---The numbers in the payloads, converted by the type that the format declares or that a packet names. Packets without
---data, such as leaders and context packets, have none, but name the type for the later packets of their stream in the
---burst.
---
---```lua
---local x = b:samples(nil, { type = "ci8" })
---print(#x, x:power())
---```
---@param format? daqiri.format|daqiri.format_name one that declares samples, which are behind its header
---@param options? daqiri.burst.samples.options
---@return daqiri.samples
function burst:samples(format, options) end

---A burst of the packets that match, maybe of none. In on_burst it ends with its handler, as the burst does, unless it is
---kept.
---
---```lua
---local long = b:select("len > 1000")
---if long then print(long.n) end
---```
---@param condition daqiri.condition which packets
---@param format? daqiri.format|daqiri.format_name names for further fields
---@return daqiri.burst|nil
---@return string|nil status
---@return string|nil text
function burst:select(condition, format) end

---Writes fields of all packets: {field = value}, {field = {start, step}}, {field = "auto"} of eth_src and eth_dst (as in
---q:template), and in the list part places with value and step. ipv6_src and ipv6_dst are addresses, too, whose lower 64
---bits step. Checksums follow by the difference, so right ones stay right, wrong ones wrong, and a UDP checksum of 0 stays
---0; checksums = false leaves them.
---
---```lua
---local b = tx:alloc(4):fill(tpl)
---b:set{ udp_dst = 7149, ipv4_src = "10.0.0.7", udp_src = { 1000, 1 } }
---b:set{ { at = "payload", bit_offset = 0, bit_width = 32, value = 1, step = 1 } }
---```
---@param fields table<daqiri.field_name|"checksums", any> values by field, see below
---@param format? daqiri.format|daqiri.format_name names for further fields
---@return integer # packets: those that have all the fields
function burst:set(fields, format) end

---Sets how long the packets are, at most as long as a buffer.
---
---```lua
---b:set_lengths(60)
---```
---@param lengths integer|integer[]|daqiri.column bytes: of all packets, or of each
---@param segment? integer of which segment, from 1 (default: 1)
function burst:set_lengths(lengths, segment) end

---Prints packets as a table: values with their names, scaled, with units; - where a packet has none.
---
---```lua
---b:show{ fields = { "len", "udp_dst", "payload_len // 8" }, n = 3 }
---```
---@param options? daqiri.burst.show.options
function burst:show(options) end

---Keeps the first packets and returns the buffers of the others.
---
---```lua
---b:truncate(2)
---```
---@param n integer packets: how many stay
function burst:truncate(n) end

---When to send each packet. Packets of a queue leave in their order: one behind another waits for it. A burst with another
---reader has no send times, a selection of it has. A time that has passed is now, counted: l.tx_port.tx.late of
---l.tx_port.tx.timed packets; time_error.p50, .p90, .p99, .max say in ns how long after their times packets left.
---
---```lua
---local b = tx:alloc(4):fill(tpl)
---b:tx_times(daqiri.time "now + 1ms", 1000)
---```
---@param times integer|any[]|daqiri.column|daqiri.time ns: since the session's start, or absolute times, of each packet or of the first one; 0 is at once
---@param step? integer ns: between packets, where the first one's time was given
function burst:tx_times(times, step) end

---@class (exact) daqiri.packet.samples.options
---@field format? daqiri.format|daqiri.format_name one that declares the type of unconverted data
---@field type? string a type of samples, where it is another one than that of the aggregate, such as "cf32" of converted complex samples

---A view of one packet of a burst, for looking at it; what is done to many packets has a method of the burst. Offsets are
---bytes, from 0.
---
---@class daqiri.packet
---@field length integer How long the packet is; #p is the same. (bytes)
---@field peer string|nil Where the packet came from; nil where the queue has no peers. (ADDRESS:PORT)
local packet = {}

---A part of the packet.
---
---```lua
---local ethertype = p:bytes(12, 2)
---```
---@param offset? integer bytes: from the packet's start (default: 0)
---@param length? integer bytes: by default all of the rest
---@return string
function packet:bytes(offset, length) end

---A part of the packet as hexadecimal digits.
---
---```lua
---print(p:hex(0, 14))
---```
---@param offset? integer bytes: from the packet's start (default: 0)
---@param length? integer bytes: by default all of the rest
---@return string
function packet:hex(offset, length) end

---Of an aggregate's data: the numbers of its slots. Slots of which a part is missing are not there; raw counts them.
---
---```lua
---local x = a.data:samples(1, { type = "i8" })
---print(#x, x.raw)
---```
---@param slot? integer which slot, from 1; without it all
---@param options? daqiri.packet.samples.options
---@return daqiri.samples
function packet:samples(slot, options) end

---Writes bytes.
---
---```lua
---p:set_bytes(42, "hello")
---```
---@param offset integer bytes: from the packet's start
---@param text string what is written; all of it has to fit
function packet:set_bytes(offset, text) end

---Writes 2 bytes, the highest first (network byte order).
---
---```lua
---p:set_u16(42, 7)
---```
---@param offset integer bytes: from the packet's start
---@param v integer|daqiri.u64 from 0 on; it has to fit
function packet:set_u16(offset, v) end

---Writes 2 bytes, the lowest first (little endian).
---
---```lua
---p:set_u16_le(42, 7)
---```
---@param offset integer bytes: from the packet's start
---@param v integer|daqiri.u64 from 0 on; it has to fit
function packet:set_u16_le(offset, v) end

---Writes 4 bytes, the highest first (network byte order).
---
---```lua
---p:set_u32(42, 7)
---```
---@param offset integer bytes: from the packet's start
---@param v integer|daqiri.u64 from 0 on; it has to fit
function packet:set_u32(offset, v) end

---Writes 4 bytes, the lowest first (little endian).
---
---```lua
---p:set_u32_le(42, 7)
---```
---@param offset integer bytes: from the packet's start
---@param v integer|daqiri.u64 from 0 on; it has to fit
function packet:set_u32_le(offset, v) end

---Writes 8 bytes, the highest first (network byte order).
---
---```lua
---p:set_u64(42, 7)
---```
---@param offset integer bytes: from the packet's start
---@param v integer|daqiri.u64 from 0 on; it has to fit
function packet:set_u64(offset, v) end

---Writes 8 bytes, the lowest first (little endian).
---
---```lua
---p:set_u64_le(42, 7)
---```
---@param offset integer bytes: from the packet's start
---@param v integer|daqiri.u64 from 0 on; it has to fit
function packet:set_u64_le(offset, v) end

---Writes a byte.
---
---```lua
---p:set_u8(42, 7)
---```
---@param offset integer bytes: from the packet's start
---@param v integer|daqiri.u64 from 0 on; it has to fit
function packet:set_u8(offset, v) end

---Reads 2 bytes, the highest first (network byte order).
---
---```lua
---print(p:u16(12))
---```
---@param offset integer bytes: from the packet's start
---@return integer
function packet:u16(offset) end

---Reads 2 bytes, the lowest first (little endian).
---
---```lua
---print(p:u16_le(12))
---```
---@param offset integer bytes: from the packet's start
---@return integer
function packet:u16_le(offset) end

---Reads 4 bytes, the highest first (network byte order).
---
---```lua
---print(p:u32(12))
---```
---@param offset integer bytes: from the packet's start
---@return integer
function packet:u32(offset) end

---Reads 4 bytes, the lowest first (little endian).
---
---```lua
---print(p:u32_le(12))
---```
---@param offset integer bytes: from the packet's start
---@return integer
function packet:u32_le(offset) end

---Reads 8 bytes, the highest first (network byte order).
---
---```lua
---print(p:u64(12))
---```
---@param offset integer bytes: from the packet's start
---@return daqiri.u64
function packet:u64(offset) end

---Reads 8 bytes, the lowest first (little endian).
---
---```lua
---print(p:u64_le(12))
---```
---@param offset integer bytes: from the packet's start
---@return daqiri.u64
function packet:u64_le(offset) end

---Reads a byte.
---
---```lua
---print(p:u8(12))
---```
---@param offset integer bytes: from the packet's start
---@return integer
function packet:u8(offset) end

---@class (exact) daqiri.column.histogram.options
---@field bins? integer how many, 1 to 65536 (default: 10)
---@field min? number the lower end, from 0 on; by default the smallest value
---@field max? number the upper end, from 0 on; by default the largest value

---One field of every packet of a burst (b:column). It is a copy and outlives the burst; #col is the number of packets.
---
---@class daqiri.column
---@field name string The field, or the text, that it is of.
---@field [integer] integer|nil the value of a packet, nil where it lacks the field; raises above 2^53
local column = {}

---Counts the values in bins of equal width. What lies outside is in below and above.
---
---```lua
---local hist = col:histogram{ bins = 4, min = 0, max = 1500 }
---print(hist.counts[1], hist.above)
---```
---@param options? daqiri.column.histogram.options
---@return table # counts (a list), min, max, width, below, above
function column:histogram(options) end

---The largest value; nil where no packet has the field.
---
---```lua
---print(col:max())
---```
---@return integer|daqiri.u64|nil
function column:max() end

---The mean of the values; nil where no packet has the field.
---
---```lua
---print(col:mean())
---```
---@return number|nil
function column:mean() end

---The smallest value; nil where no packet has the field.
---
---```lua
---print(col:min())
---```
---@return integer|daqiri.u64|nil
function column:min() end

---The sum of the values: a u64 above 2^53; raises where 64 bits do not hold it.
---
---```lua
---print(col:sum())
---```
---@return integer|daqiri.u64
function column:sum() end

---A value as text: addresses as such, anything else in decimal; nil where the packet lacks the field.
---
---```lua
---print(col:text(1))
---```
---@param i integer which packet, from 1
---@return string|nil
function column:text(i) end

---A value with all its bits; nil where the packet lacks the field.
---
---```lua
---print(col:u64(1))
---```
---@param i integer which packet, from 1
---@return daqiri.u64|nil
function column:u64(i) end

---The different values, in order.
---
---```lua
---print(#col:unique())
---```
---@return any[] # numbers, and u64s above 2^53
function column:unique() end

---@class (exact) daqiri.samples.spectrum.options
---@field points? integer of a block, a power of 2 from 2 to 65536 (default: 1024)
---@field window? "hann"|"blackman-harris"|"none" the shape of a block (default: "hann")
---@field first? integer the first sample of each packet, from 1 (default: 1)
---@field step? integer takes every so many samples, such as those of one channel (default: 1)
---@field continuous? boolean whether samples continue those of the packet before; otherwise no block has samples of two packets (default: false)

---The numbers in the payloads of packets (b:samples) or in an aggregate (a.data:samples), all of one type. They are a copy
---and outlive the burst; #x is how many there are, a complex one counts once.
---
---@class daqiri.samples
---@field complex boolean Whether samples are complex.
---@field frequency number|nil The middle of the band, as the format declares it for the first packet. (Hz)
---@field rate number|nil Samples per second, as the format declares it for the first packet.
---@field raw integer How many packets, or slots, have samples that are not here. Their type is unknown, or differs from that of the first packet, or they are not whole.
---@field shape integer[]|nil The dimensions of the first packet's samples, the outermost first, as the format declares them.
---@field time number|nil The time of the first sample, as the format declares it for the first packet. (s)
---@field type string The type: daqiri-run doc samples describes the names.
local samples = {}

---The value of a sample: (v + offset) * scale, or that of its code's level.
---
---```lua
---if #x > 0 then print(x:get(1)) end
---```
---@param i integer which sample, from 1
---@return number # its value, the real part of a complex one
---@return number|nil # the imaginary part of a complex one
function samples:get(i) end

---How often each code is there, without those that are not: a code is the bits of an element as an unsigned number, and
---complex samples have two. Types of up to 16 bits that are integers have codes.
---
---```lua
---for code, n in pairs(x:histogram()) do print(code, n) end
---```
---@return table # counts by code
function samples:histogram() end

---The mean of the values; nil without samples.
---
---```lua
---print(x:mean())
---```
---@return number|nil # the real part of complex samples
---@return number|nil # the imaginary part
function samples:mean() end

---The mean of |x|^2; nil without samples.
---
---```lua
---print(x:power())
---```
---@return number|nil
function samples:power() end

---The mean power of blocks of samples in dBFS: a complex tone, or a real sine, of full scale has 0. The full scale of
---floating-point numbers and levels is 1. Frequencies are in Hz if the rate is known, around frequency if that is,
---otherwise in cycles per sample.
---
---```lua
---local spectrum = x:spectrum{ points = 16 }
---if spectrum then print(spectrum.peak, spectrum.peak_frequency) end
---```
---@param options? daqiri.samples.spectrum.options
---@return table|nil # lists by frequency, levels, max and frequencies, and blocks, peak, peak_frequency; nil where there are fewer samples than a block has
function samples:spectrum(options) end

---A packet to be sent many times, with fields that vary (q:template).
---
---@class daqiri.template
---@field length integer How long the packet is. (bytes)
local template = {}

---A function that runs at some time, made by s:after, s:every and s:at. It ends with the session.
---
---@class daqiri.timer
local timer = {}

---Ends the timer: its function is not called any more.
---
---```lua
---timer:cancel()
---```
function timer:cancel() end

---A Lua state with a thread of its own, as the task that made it sees it (daqiri.task). Tasks share nothing but messages,
---which are copies, and queues, which are handed over. An error in a task ends the program.
---
---@class daqiri.task
---@field done boolean Whether the task is over.
---@field name string Where the task's function was written. (FILE:LINE of the function, or the module's name)
local task = {}

---Has a function called with what the task sends (daqiri.send).
---
---```lua
---t:on_message(function(v) print(v) end)
---```
---@param fn fun(v: any) called with each message
function task:on_message(fn) end

---Sends the task a copy of a value; nil, status, text when its inbox is full or it is over.
---
---```lua
---assert(t:send{ gain = 5 })
---```
---@param v any nil, a boolean, number, string, u64 or time, or a table of these
---@return true|nil
---@return string|nil status
---@return string|nil text
function task:send(v) end

---Asks the task to end: what it waits in raises there, and its handlers end.
---
---```lua
---t:stop "enough"
---```
---@param reason? string for its log
function task:stop(reason) end

---An absolute time (daqiri.time, daqiri.now), in ns. t + seconds, t - seconds and comparisons are there; t - t is in
---seconds; tostring gives RFC 3339.
---
---@class daqiri.time
---@field nic daqiri.u64 The time in the form that kernels with DOCA's names wait for (doca_gpu_dev_eth_txq_wait_send), as doca_eth_txq_calculate_timestamp returns it. (seconds and ns of 32 bits each, as a big-endian number)
---@field ns daqiri.u64 The time, exactly. (ns: since the epoch)
---@field seconds number The time, rounded to a double. (s: since the epoch)
---@operator add(daqiri.duration): daqiri.time
---@operator sub(daqiri.time|daqiri.duration): any
local time = {}

---A 64-bit unsigned integer. Arithmetic with u64s and numbers wraps, and / rounds down; comparison is with u64s; ..,
---tostring, string.format and JSON take it.
---
---@class daqiri.u64
---@operator add(daqiri.u64|integer): daqiri.u64
---@operator sub(daqiri.u64|integer): daqiri.u64
---@operator mul(daqiri.u64|integer): daqiri.u64
---@operator div(daqiri.u64|integer): daqiri.u64
---@operator mod(daqiri.u64|integer): daqiri.u64
local u64 = {}

---Whether it is equal to the other one. == compares u64s alone.
---
---```lua
---print(u:eq(5))
---```
---@param v daqiri.u64|integer the other one
---@return boolean
function u64:eq(v) end

---Text that can be the key of a table: two u64s of the same value are two keys.
---
---```lua
---local seen = {}
---seen[u:key()] = true
---```
---@return string # decimal
function u64:key() end

---Whether it is less than the other one or equal.
---
---```lua
---print(u:le(5))
---```
---@param v daqiri.u64|integer the other one
---@return boolean
function u64:le(v) end

---Whether it is less than the other one.
---
---```lua
---print(u:lt(5))
---```
---@param v daqiri.u64|integer the other one
---@return boolean
function u64:lt(v) end

---The value as a number; raises above 2^53, where a number would lose bits.
---
---```lua
---print(u:number())
---```
---@return integer
function u64:number() end

---@class (exact) daqiri.op.wait.options
---@field timeout? daqiri.duration how long it waits; by default without limit

---Work that was begun and ends later: the writing of a burst (w:write(b)), an operation on a peer's memory (c:write,
---c:read), or a run of a kernel (k:launch), which counts as one packet. It outlives the burst and the session.
---
---@class daqiri.op
---@field burst daqiri.burst|nil What c:read brought, once it has ended without a failure: the script's to free; else nil.
---@field bytes_written integer Bytes of the completed packets. (bytes)
---@field completed_packets integer Packets that are in a file: handed to the system, not only staged. (packets)
---@field error string|nil The first failure, or nil.
---@field failed_packets integer Packets that will not be in a file. (packets)
---@field value daqiri.u64|nil What an atomic operation found, once it has ended without a failure; else nil.
local op = {}

---Has a function run at the end. Several run in the order in which they came.
---
---```lua
---op:on_done(function(op) print(op.completed_packets, op.error) end)
---```
---@param fn fun(op: daqiri.op) runs once every packet has completed or failed; at once where that is so already
function op:on_done(fn) end

---Whether every packet has completed or failed.
---
---```lua
---while not op:poll() do daqiri.sleep("1ms") end
---```
---@return boolean
function op:poll() end

---Waits until every packet has completed or failed; nil, "NOT_READY", text at the timeout.
---
---```lua
---assert(op:wait{ timeout = 5 })
---```
---@param options? daqiri.op.wait.options
---@return true|nil
---@return string|nil status
---@return string|nil text
function op:wait(options) end

---Which parts of an aggregate came (b.present): slots, or the parts of slots that an offset addresses. #present is how
---many there are. It outlives the burst.
---
---@class daqiri.presence
---@field count integer How many parts came.
---@field hex string Which parts came, as hexadecimal digits. (a bit a part, the first one the highest of the first digit)
---@field text string Which parts came, as 1 and 0. (a character a part)
---@field [integer] boolean|nil whether a part came
local presence = {}

---The parts that did not come.
---
---```lua
---for _, slot in ipairs(present:missing()) do print(slot) end
---```
---@return integer[] # numbers of parts, from 1
function presence:missing() end

---@class (exact) daqiri.format.vectors.options
---@field n? integer how many, 1 to 100000 (default: 8)
---@field seed? integer other seeds give other packets (default: 1)

---The header of an application's packets, declared once: daqiri.format makes it of a table, or finds one of the library by
---its name. Its names are taken wherever fields are: in b:column("seq", f), b:select, b:count, b:set, and with the option
---format in s:filter, s:rewrite, s:reorder, s:convert and q:template. Where a format is taken, so is its name, "chips".
---Fields that every packet has are known beside its own, and so are header_bytes, payload_bytes and names of values,
---packet_type.context.
---
---Texts and columns have numbers as they stand in the packet; b:show and dissectors show them with scale, unit and names.
---A packet that is of another format, for a constant differs, or that is too short lacks the fields. A condition with one
---is false, and in a rule the packet belongs nowhere (bad_place).
---
---s:reorder and s:convert with a format take the payload from behind its header, as long as that is in each packet, and as
---much of it as the format specifies. at or payload_byte_offset override that. How a table declares one: formats.
---
---@class daqiri.format
---@field fields string[] The names of the fields, in order.
---@field header_bytes integer|nil How long the header in front of the data is; nil where it depends on the packet, or of places. (bytes)
---@field name string The format's name; of fields where it has none.
---@field sequence string|nil The field that counts packets: of the stream, or of each value of the fields that the declaration names as per.
---@field title string What the packets are, in words.
local format = {}

---Reads one packet; nil, "INVALID_PARAMETER", text where it is of another format.
---
---```lua
---local packet = daqiri.format("simple"):decode("\0\0\0\0\0\0\0\7rest")
---print(packet.seq)    -- 7
---```
---@param packet daqiri.packet|string a packet, or the bytes from the header's start on
---@return table|nil # values by field; those that the packet lacks are absent, and a list is a table of tables; a signed number beyond 2^53 is a text
---@return string|nil status
---@return string|nil text
function format:decode(packet) end

---A dissector for Wireshark and tshark (tshark -X lua_script:x.lua), as daqiri-run dissector NAME prints it.
---
---```lua
---print(#f:dissector())
---```
---@return string # Lua for Wireshark
function format:dissector() end

---Makes the bytes of one packet. A field that is not given has the value of the format, else 0. A value that does not fit
---raises.
---
---```lua
---local bytes = daqiri.format("simple"):encode{ seq = 7, payload = "rest" }
---print(#bytes)    -- 12
---```
---@param values table<string, any> by field; payload is what follows the header
---@return string
function format:encode(values) end

---A page that describes the format: its fields with their places, widths, units and values.
---
---```lua
---print(daqiri.format("chips"):page())
---```
---@return string # Markdown
function format:page() end

---Packets with random values, for tests of other programs that know the format.
---
---```lua
---for _, v in ipairs(daqiri.format("chips"):vectors{ n = 2 }) do print(daqiri.hex(v.bytes), v.fields.seq) end
---```
---@param options? daqiri.format.vectors.options
---@return table[] # {bytes, fields}
function format:vectors(options) end

---A region that is lent to the peer of a connection (c:lend): until it is revoked, or the session ends, the peer reads and
---writes there when it likes.
---
---@class daqiri.lease
---@field addr integer|daqiri.u64 Its address here, as the peer names it.
---@field bytes integer How long it is. (bytes)
---@field name string The name that the peer knows it by.
---@field rkey integer Its key, which each access needs.
local lease = {}

---What is there now: a peer that writes without an immediate value does not notify this side.
---
---```lua
---local lease = c:lend("others")
---if lease then print(lease:get(0, 16)) end
---```
---@param offset integer bytes: from the beginning
---@param n integer bytes: how many
---@return string
function lease:get(offset, n) end

---Puts bytes there, for a peer that reads.
---
---```lua
---local lease = c:lend("others")
---if lease then lease:put(0, "first") end
---```
---@param offset integer bytes: from the beginning
---@param data string what is put there
function lease:put(offset, data) end

---Takes it back: when it returns the peer can't reach it any more. What is under way fails, and the connection ends with
---it.
---
---```lua
---local lease = c:lend("others")
---if lease then lease:revoke() end
---```
---@return true|nil
---@return string|nil status
---@return string|nil text
function lease:revoke() end

---@class (exact) daqiri.kernel.stage.options
---@field args? table a list of arguments, one for each of the kernel's: numbers and arrays as of k:launch. Of the burst that came there are "data", "present", "extra", "batch_id" (of an aggregate), "packets" (how many), "burst"
---@field name? string of its line in the ledger; by default the kernel's
---@field session? daqiri.session by default the one that was opened last
---@field policy? daqiri.policy while 64 launches are under way (default: "drop")

---@class (exact) daqiri.kernel.start.options
---@field tx? daqiri.queue|daqiri.queue[] a transmit ring for each, which it sends on
---@field rx? daqiri.queue|daqiri.queue[] a receive ring for each, which gets what it receives
---@field semaphores? integer how many (default: 0)
---@field regions? string[] memory that it may also read, write and send from; that of its queues comes before them
---@field remote? string[] memory that stands for a peer's, where put, get and add go; after those. With conn names of what the peer lends
---@field conn? daqiri.connection of the transmit queues' interface: put, get and add go to what its peer lends (roce://)
---@field writers? daqiri.stage[] writers of files, which the kernel knows by their places, from 0: gn_file hands bytes to their threads
---@field args? table a list of arguments: numbers, arrays, "context", and names of regions, which become the numbers that gn_place takes; by default the context alone. For kernels with DOCA's names also tables: { txq = 1 }, { rxq = 1 }, { qp = 1, rx = 1 }, { qps = { 1, 2 } }, { dma = 1 } and { rdma = 1 } are pointers to rings, in the order of tx and rx. { buffers = "region", bytes = 256 } is an array of buffers, { address = "region", offset = 64 } and { key = "region" } are places of memory. { semaphore = array } has items in rows of an array behind a row of its own, and { exit = true } is a word that k:stop sets. { mlx5 = 1 } is a transmit ring as a queue pair of an mlx5 NIC, whose entries, doorbell record and completion entries a kernel writes and reads by hand
---@field policy? daqiri.policy when a receive ring is full (default: "drop")
---@field limit? daqiri.duration of the kernel's waits that name none; by default 10s
---@field timers? boolean count in the ledger how long operations took, each kind by itself: send_time, put_time, … (default: false)
---@field timeout? daqiri.duration for how long a kernel in a process of its own may be silent before it is killed; by default 5s
---@field restarts? integer how often a kernel in a process of its own that died is started again (default: 3)
---@field session? daqiri.session by default the one that was opened last

---@class (exact) daqiri.kernel.stop.options
---@field timeout? daqiri.duration how long it waits; by default 5s

---@class (exact) daqiri.kernel.wait.options
---@field timeout? daqiri.duration how long it waits; by default without limit

---Code of the script's own that runs on a GPU, or on the host (daqiri.kernel): by itself, with k:launch, or for each burst
---of a pipe, with k:stage.
---
---@class daqiri.kernel
---@field completed integer Of a persistent kernel: descriptors that are done, refused ones among them.
---@field fault string|nil Of a persistent kernel: what was wrong with the last descriptor that was refused, or with the ring that broke; nil: nothing was.
---@field name string The kernel's name, in errors and of its stages.
---@field on_host boolean Whether the host runs it.
---@field posted integer Of a persistent kernel: descriptors that were taken from its transmit rings.
---@field received integer Of a persistent kernel: descriptors that were written into its receive rings.
---@field refused integer Of a persistent kernel: descriptors that were refused, or failed.
---@field restarted integer Of a persistent kernel: how often it died and was started again.
---@field running boolean Of a persistent kernel: whether it runs.
---@field semaphores daqiri.semaphore[] Of a persistent kernel that was started: its semaphores.
local kernel = {}

---Begins a run of the kernel. Until its end it holds bursts and arrays, whatever the script does with them; other memory
---the kernel must not touch. On the virtual clock time stands still until then, on the host the kernel has run when the
---call returns. Runs of one kernel begin in order; nil, "NOT_READY", text while 64 of them are under way. What can't be
---passed raises; what goes wrong on the GPU is in op.error.
---
---```lua
---local op = assert(k:launch(array, 2))
---op:wait()
---print(op.error)
---```
---@param ... any an argument for each of the kernel's: numbers and u64s; arrays, passed as pointers; columns and b.present, as pointers to copies of their words of 64 bits. b.data is passed as a pointer to an aggregate's data, a burst as a pointer to a daqiri_burst
---@return daqiri.op|nil
---@return string|nil status
---@return string|nil text
function kernel:launch(...) end

---Makes a stage that launches the kernel for each burst and holds the burst until the kernel has ended. Then the burst
---continues to the stages behind it in the pipe, on_burst and get_burst of the stage, in order; where there are none it
---ends there. A kernel that writes packets requires that no other consumer reads them meanwhile.
---
---```lua
---local sum = daqiri.kernel{ memory = "host", grid = 1, block = 64, src = [[
---  __global__ void sum(const unsigned char *data, int *out) { atomicAdd(out, data[threadIdx.x]); }
---]] }
---local out = daqiri.array{ kind = "host", type = "int32", shape = { 1 } }
---s:pipe(blocks, sum:stage{ args = { "data", out } })
---```
---@param options? daqiri.kernel.stage.options
---@return daqiri.stage
function kernel:stage(options) end

---Starts a persistent kernel. It includes gn.h and gets its context as a pointer. What its descriptors say is checked: a
---kernel is not trusted. It runs in a process of its own, which has the regions and arrays that it was given and no other
---memory of the program. On a GPU it has one only where the program has no other kernels and stages there when it starts.
---Otherwise it runs in the program's process, and the report states that. One of a process of its own that dies, or that
---neither waits nor calls gn_beat for so long, is killed. Its rings release what they hold (dropped as stopped), and it
---starts from its beginning while the script waits. When that was done often enough, the run ends as by a device that
---failed. Its rings have lines in the ledger, NAME.tx and NAME.rx. The session's clock is real.
---
---```lua
---k:start{ tx = s:tx_queue("a", 0), rx = s:rx_queue("b", 0), semaphores = 2 }
---```
---@param options? daqiri.kernel.start.options
---@return daqiri.kernel # itself
function kernel:start(options) end

---Ends the waits of a persistent kernel, waits until it has ended and until what it posted is done, and closes its rings;
---nil, "NOT_READY", text at the timeout. The kernel can be started again then.
---
---```lua
---k:stop()
---```
---@param options? daqiri.kernel.stop.options
---@return true|nil
---@return string|nil status
---@return string|nil text
function kernel:stop(options) end

---Waits until a persistent kernel has ended by itself, and what it posted is done; nil, "NOT_READY", text at the timeout,
---where the text names what is not over. Without a timeout it raises when the kernel has ended and a queue that nothing
---reads has what it sent. When the wait exceeds 5 s, it logs once what it waits for.
---
---```lua
---k:wait{ timeout = "1s" }
---```
---@param options? daqiri.kernel.wait.options
---@return true|nil
---@return string|nil status
---@return string|nil text
function kernel:wait(options) end

---An order in which a persistent kernel hands items to the script (k.semaphores): two numbers each, which mean what both
---agree on.
---
---@class daqiri.semaphore
local semaphore = {}

---Has a function called with each item that the kernel puts into the semaphore, in order; when it returns the item is
---done. The task looks each 0.5 ms. A semaphore with a function has no other consumer.
---
---```lua
---sem:on_ready(function(first, count) print(first, count) end)
---```
---@param fn fun(first: integer, second: integer) gets the two numbers of the item
---@return daqiri.semaphore # itself
function semaphore:on_ready(fn) end

---@class (exact) daqiri.array.histogram.options
---@field bins? integer how many, 1 to 65536 (default: 10)
---@field min? number the lower end; by default the smallest element
---@field max? number the upper end; by default the largest element

---@class (exact) daqiri.array.write.options
---@field overwrite? boolean replaces a file that is there; else it stays, and the call fails (default: false)

---Numbers of one type that kernels and the script share (daqiri.array); the last index is the fastest. #array is how many
---there are. What the script reads is what the array has at that moment: a kernel that is under way may change it
---(op:wait() waits for one).
---
---@class daqiri.array
---@field kind string Where it is. (host, host_pinned or device)
---@field shape integer[] How many elements it has in each dimension.
---@field type string The type of its elements. ("fp32", …)
local array = {}

---Sets all elements to the same number.
---
---```lua
---array:fill(0)
---```
---@param value number of all elements
function array:fill(value) end

---Reads an element, or all.
---
---```lua
---print(array:get(1), #array:get())
---```
---@param ... integer an index for each dimension, from 1; none: all elements
---@return number|daqiri.u64|table # an element; or all of them in order, a list
function array:get(...) end

---Counts the elements in bins of equal width. What lies outside is in below and above.
---
---```lua
---print(array:histogram{ bins = 4, min = 0, max = 1 }.counts[1])
---```
---@param options? daqiri.array.histogram.options
---@return table # counts (a list), min, max, width, below, above
function array:histogram(options) end

---The largest element; nil where none is a number.
---
---```lua
---print(array:max())
---```
---@return number|daqiri.u64|nil
function array:max() end

---The smallest element; nil where none is a number.
---
---```lua
---print(array:min())
---```
---@return number|daqiri.u64|nil
function array:min() end

---Writes an element, or all. A whole number that the type has not raises; others are rounded. An element of type uint64
---takes a u64 exactly.
---
---```lua
---array:set(1, 0.5)
---array:set{ 1, 2, 3, 4 }
---```
---@param ... any an index for each dimension, from 1, and the number; or one argument: a list of all numbers in order, or a string with all bytes
function array:set(...) end

---A copy in the host's memory, which no kernel of a GPU changes.
---
---```lua
---print(array:snapshot():sum())
---```
---@return daqiri.array
function array:snapshot() end

---The sum of the elements; raises where 64 bits don't hold that of whole numbers.
---
---```lua
---print(array:sum())
---```
---@return number|daqiri.u64
function array:sum() end

---Writes the elements to a file, in the host's byte order.
---
---```lua
---assert(array:write(dir .. "/out.npy"))
---```
---@param file string its name; where that ends in .npy numpy reads it (numpy.load), else the file has the elements' bytes alone
---@param options? daqiri.array.write.options
---@return true|nil
---@return string|nil status
---@return string|nil text
function array:write(file, options) end

---An order of kernels on a GPU (daqiri.stream): those of one stream run one behind the other, those of different ones at
---the same time.
---
---@class daqiri.stream
local stream = {}

---Waits until nothing is under way in the stream: kernels of the main chunk and of stages. A GPU that was lost raises.
---
---```lua
---stream:synchronize()
---```
function stream:synchronize() end

---A socket on which other programs send commands to a running script: daqiri.control. A line is a verb, {"verb": "rate",
---"mbit": 500} or just rate 500 (whose words behind the verb are the message's text), and gets a line back: {"ok": true,
---"reply": …}, or {"ok": false, "error": "…"}. A message's id comes back with its answer. help lists the verbs. Each line
---is noted in the log, of those that are refused one a second. Where there is a token, a message has it as token, or the
---line token TOKEN goes ahead of what the connection brings. Of 64 connections the one that was silent for longest makes
---room for the next. Over TCP one that does not give the token within 10 s ends, and so does one that uses HTTP. From a
---shell: echo rate 500 | nc -UN /run/daqiri/tx.sock.
---
---@class daqiri.control
---@field address string Where it listens: the path, or IP:PORT.
local control = {}

---Ends it, and its connections. The end of the script does so, too.
---
---```lua
---ctl:close()
---```
function control:close() end

---Has a function answer a verb. It runs on the script's thread, in turn with other handlers; an error in it is the answer,
---and ends nothing.
---
---```lua
---ctl:on("status", function(m) return { packets = s:stats().b.rx.packets } end)
---ctl:on("stop", function(m) s:stop(m.text) end)
---```
---@param verb string letters, digits, _ and -
---@param fn? function called with the message, a table; its result is the answer's reply, anything that daqiri.json takes; nil, status, text is a failure. Without it the verb goes
function control:on(verb, fn) end

---Scripts have the libraries of Lua 5.1. These functions are replaced; what else differs is in Lua. Reading a global that
---is not there raises where it is certain to be a mistake (Lua).
---

---As Lua's. Of this program's objects it is the name of their type.
---
---```lua
---print(getmetatable(s))    -- session
---```
---@param v any any value
---@return any # its metatable, its field __metatable, or nil
function getmetatable(v) end

---As Lua's. A call that waits works inside.
---
---```lua
---local ok, why = pcall(function() return s:interface "absent" end)
---print(ok, why)
---```
---@param fn function what is called
---@param ... any its arguments
---@return boolean # whether no error was raised
---@return any ... # the function's results, or the error
function pcall(fn, ...) end

---As Lua's, to the program's stdout.
---
---```lua
---print("packets", 5)
---```
---@param ... any what is printed
function print(...) end

---As Lua's, with arguments as in Lua 5.2.
---
---```lua
---print(xpcall(function(n) return n + 1 end, debug.traceback, 1))
---```
---@param fn function what is called
---@param handler fun(e: any) called with the error, where it was raised
---@param ... any arguments of fn
---@return boolean # whether no error was raised
---@return any ... # the function's results, or the handler's
function xpcall(fn, handler, ...) end

---A random number of the task's own generator, seeded the same in every run.
---
---```lua
---print(math.random(6))
---```
---@param m? integer the upper limit, or the lower one where n follows
---@param n? integer the upper limit
---@return number # in [0, 1) without arguments, else a whole number within the limits
function math.random(m, n) end

---Seeds the task's generator.
---
---```lua
---math.randomseed(42)
---```
---@param n number the same number, the same sequence
function math.randomseed(n) end

---Seconds since the Lua state began, on the clock of the tasks.
---
---```lua
---print(os.clock())
---```
---@return number # s
function os.clock() end

---A date as text, in UTC.
---
---```lua
---print(os.date("%F %T", 0))    -- 1970-01-01 00:00:00
---```
---@param format? string directives of C99's strftime, as in locale "C", and %s; or "*t" (default: "%c")
---@param time? number s: since the epoch (default: os.time())
---@return string|table # a table with "*t": year, month, day, hour, min, sec, wday, yday, isdst
function os.date(format, time) end

---Ends the program in order: sessions are finished, the summary is made.
---
---```lua
---os.exit(3)
---```
---@param code? integer|boolean 0 to 255; true is 0, false is 1 (default: 0)
function os.exit(code) end

---The time, on the clock of the tasks, or that of the table.
---
---```lua
---print(os.time{ year = 2026, month = 11, day = 20, hour = 0 })
---```
---@param when? table year, month, day, and maybe hour (12), min (0), sec (0), in UTC
---@return integer # s: since the epoch
function os.time(when) end

---As Lua's. %d, %u, %x, %X, %o and %s also take a u64.
---
---```lua
---print(("%d packets, %x"):format(5, daqiri.u64(255)))
---```
---@param text string with directives as of C's printf
---@param ... any a value for each directive
---@return string
function string.format(text, ...) end

return daqiri
