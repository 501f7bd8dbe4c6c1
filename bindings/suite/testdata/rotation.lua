-- Rotation, quota, formats and appending: what the writers make of their options.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }

local function run(make)
  local s = daqiri.open()
  local tx = s:tx_queue("loop0")
  local w = make(s)
  s:pipe(s:rx_queue("loop0"), w)
  tx:transmit{ template = tx:template{ payload_bytes = 100, udp_dst = 7148 }, count = 100 } -- frames of 142 bytes
  return s:run{ packets = 100, seconds = 20 }, w
end

local function contents(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

local sum, w = run(function(s) return s:write_pcap{ name = "size", dir = args.dir, rotate = 24 + 10 * 158, policy = "wait" } end)
t.equal({ sum.size.written, sum.size.files }, { 100, 10 })
assert(w.path:find("/size_000009.pcap", 1, true), w.path)
t.equal(#contents(w.path), 24 + 10 * 158)
sum = run(function(s) return s:write_pcap{ name = "count", dir = args.dir, rotate = { packets = 30, seconds = "1h" }, policy = "wait" } end)
t.equal(sum.count.files, 4)
sum, w = run(function(s) return s:write_raw{ name = "full", dir = args.dir, per = "file", quota = "1420B", policy = "wait" } end)
t.equal({ sum.full.written, sum.full.dropped_by.quota }, { 10, 90 })
assert(w.error:find("quota is used up", 1, true), w.error)
sum = run(function(s)
  return s:write_pcap{ name = "ring", dir = args.dir, rotate = "1KB", quota = "5KB", when_full = "delete_oldest", policy = "wait" }
end)
t.equal({ sum.ring.written, sum.ring.dropped, sum.ring.deleted_files > 0 }, { 100, 0, true })
-- A writer that has what it was to write ends the run, and that is no fault.
do
  local s = daqiri.open()
  w = s:write_raw{ name = "enough", dir = args.dir, per = "file", quota = "1430B", when_full = "stop", policy = "wait" }
  s:pipe(s:rx_queue("loop0"), w)
  local tx = s:tx_queue("loop0")
  tx:pace{ pps = 10000 }
  tx:transmit{ template = tx:template{ payload_bytes = 100, udp_dst = 7148 } }
  sum = s:run{ seconds = 20 }
  t.equal({ sum.reason, sum.enough.written, sum.enough.dropped == sum.enough.dropped_by.enough, w.error }, { "enough has as much as it was to write", 10, true })
end
for n = 1, 2 do
  sum, w = run(function(s) return s:write_pcap{ name = "more", dir = args.dir, append = true, precision = "us", policy = "wait" } end)
  t.equal(#contents(w.path), 24 + n * 100 * 158)
end
t.raises("another resolution", function()
  run(function(s) return s:write_pcap{ name = "more", dir = args.dir, append = true } end)
end)
sum, w = run(function(s) return s:write_pcap{ name = "ng", dir = args.dir, format = "pcapng", comment = "by night", policy = "wait" } end)
assert(contents(w.path):find("by night", 1, true))
sum, w = run(function(s) return s:write_blocks{ name = "blocks", dir = args.dir, header = { site = 3 }, present = "slot" } end)
t.equal({ sum.blocks.written, sum.blocks.dropped_by.write_error }, { 0, 100 })
assert(w.error:find("put a reorder stage before the writer", 1, true), w.error)
local radio = { type = "ci16le", rate = 1e6, frequency = 1.4e9 }
sum, w = run(function(s) return s:write_sigmf{ name = "radio", dir = args.dir, policy = "wait", packet_data_offset = 42, samples = radio, header = { ["site:x"] = 1 } } end)
t.equal({ sum.radio.written, #contents(w.path) }, { 100, 10000 })
local meta = daqiri.from_json(contents(args.dir .. "/radio.sigmf-meta"))
t.equal({ meta.global["core:datatype"], meta.global["site:x"], meta.captures[1]["core:frequency"], #meta.captures, #meta.annotations }, { "ci16_le", 1, 1.4e9, 1, 0 })
assert(meta.captures[1]["core:datetime"]:find("^20%d%d%-%d%d%-%d%dT"), meta.captures[1]["core:datetime"])
sum, w = run(function(s) return s:write_sigmf{ name = "odd", dir = args.dir, policy = "wait", samples = { type = "cf32le" } } end)
t.equal(sum.odd.dropped_by.write_error, 100)
assert(w.error:find("do not consist of whole samples", 1, true), w.error)
sum = run(function(s) return s:write_guppi{ name = "guppi", dir = args.dir, samples = { type = "ci8" } } end)
t.equal({ sum.guppi.written, sum.guppi.dropped_by.write_error }, { 0, 100 }) -- they are not reordered
local declared = daqiri.format{ name = "declared", samples = { type = "ci16le", rate = 2e6, frequency = "1.4e9 + 5" },
  { "n", 8 } }
sum, w = run(function(s)
  return s:write_sigmf{ name = "by_format", dir = args.dir, policy = "wait", packet_data_offset = 42, format = declared, samples = { rate = 3e6 } }
end)
meta = daqiri.from_json(contents(args.dir .. "/by_format.sigmf-meta"))
t.equal({ meta.global["core:datatype"], meta.global["core:sample_rate"], meta.captures[1]["core:frequency"] }, { "ci16_le", 3e6, 1400000005 })
sum, w = run(function(s) return s:write_zarr{ name = "zarr", dir = args.dir, samples = radio } end)
t.equal({ sum.zarr.written, sum.zarr.dropped_by.write_error }, { 0, 100 })
assert(w.error:find("put a reorder stage before the writer", 1, true), w.error)

local function manifest(name) return daqiri.from_json(contents(args.dir .. "/" .. name)) end
local function rotated() return run(function(s) return s:write_pcap{ name = "turn", dir = args.dir, rotate = { packets = 50 }, policy = "wait" } end) end
for _ = 1, 3 do rotated() end -- each run's manifest has its own files
for n, name in ipairs{ "turn.manifest.1.json", "turn.manifest.2.json", "turn.manifest.json" } do
  local m = manifest(name)
  t.equal({ m.state, #m.files }, { "finished", 2 })
  assert(m.files[1].path:find(("/turn_%06d.pcap"):format(2 * n - 2), 1, true), m.files[1].path)
end
for _ = 1, 2 do -- the second run writes the first one's files again, which need not be all of them
  run(function(s) return s:write_raw{ name = "each", dir = args.dir, per = "packet", policy = "wait" } end)
end
local m = manifest("each.manifest.json")
t.equal({ #m.files, m.writer.naming, m.writer.file_count }, { 0, "DIR/PREFIX_INDEX", 100 })
t.equal(manifest("each.manifest.1.json").writer.file_count, 100)

local s = daqiri.open()
local function wrong(text, options, make)
  t.raises(text, function() s[make or "write_pcap"](s, options) end)
end
wrong("one of them is needed", { rotate = {} })
wrong("above 0", { rotate = 0 })
wrong("above 0", { quota = 0 })
wrong("never too long", { rotate = 100, per = "packet" }, "write_raw")
wrong("needs a quota", { when_full = "delete_oldest" })
wrong('when_full "stop" needs a quota', { when_full = "stop" })
wrong("more than the quota of 1000: raise it, or rotate earlier", { quota = 1000, rotate = 1001 })
wrong("hint: rotate at 333 bytes or less", { when_full = "delete_oldest", quota = 1000, rotate = 400 })
wrong('not one of pcap, pcapng (did you mean "pcapng"?)', { format = "pcapgn" })
wrong("not one of ns, us", { precision = "ms" })
wrong("only a pcapng has comments", { comment = "x" })
wrong("rotated files are never written to again", { append = true, rotate = 100 })
wrong("unknown option 'snaplen'", { snaplen = 3 }, "write_blocks")
local function recording(text, samples, more)
  local o = { samples = samples }
  for k, v in pairs(more or {}) do o[k] = v end
  wrong(text, o, "write_sigmf")
end
recording("option 'samples' is missing", nil)
recording("table expected, got the string", "ci8")
recording("unknown option 'tpye'", { tpye = "ci8" })
recording("no packed samples; hint: convert to int8 or int16", { type = "ci4" })
recording("1e+300 is not a valid sample rate", { type = "ci8", rate = 1e300 })
recording("above 0 expected", { type = "ci8", rate = 0 })
recording("a number from 0 expected", { type = "ci8", rate = 0 / 0 })
recording("+Inf is not a valid frequency", { type = "ci8", frequency = 1 / 0 })
recording("one stream of samples in one folder", radio, { dirs = { args.dir, "b" } })
recording("did you mean \"core:author\"?", radio, { header = { author = "x" } })
recording("not a table of keys and values", radio, { header = "x" })
recording("unknown option 'append'", radio, { append = true })
local made = 0
local function by(text, samples, more)
  made = made + 1
  wrong("format f" .. made .. text, { format = daqiri.format{ name = "f" .. made, samples = samples, { "n", 8 } }, samples = more }, "write_sigmf")
end
by(" declares no samples: give samples = { type = … }", nil)
by(": the type of its samples depends on 'n' of each packet: give samples", { type = { of = "n", [1] = "ci8" } })
by(": samples: type: ci4 is not a type of SigMF recordings", { type = "ci4" }, { rate = 1e6 })
by(": samples: rate: -1 is not a valid sample rate", { type = "ci8", rate = -1 })
wrong("'type': ci4 is not a type", { format = declared, samples = { type = "ci4" } }, "write_sigmf")
wrong("a format, or the name of one, expected", { format = 3 }, "write_zarr")
wrong("NBIT can't be set", { samples = radio, header = { NBIT = 3 } }, "write_dada")
wrong("rotate by size or packets", { rotate = { seconds = 1 } }, "write_zarr")
wrong("ci4 is not a type of Zarr arrays", { samples = { type = "ci4" } }, "write_zarr")
wrong("in one folder: give dir", { dirs = { args.dir, "b" } }, "write_zarr")
wrong("at most 4095 fit", { header = ("\1"):rep(1000) }, "write_zarr")
wrong("which have complex samples; hint: ci8", { samples = { type = "i8" } }, "write_guppi")
local keeps = s:reorder{ name = "keeps", memory_region = "packets", packets_per_batch = 8, sequence_number = { bit_offset = 336, bit_width = 32 }, payload_byte_offset = 46, fill = "keep" }
t.raises("missing packets of reorder keeps keep earlier data", function()
  s:pipe(s:rx_queue("loop0"), keeps, s:write_dada{ name = "dada", dir = args.dir, samples = radio })
end)
t.raises("reorder converted makes int16, which samples.type does not describe", function()
  local converted = s:reorder{ name = "converted", memory_region = "packets", packets_per_batch = 8, sequence_number = { bit_offset = 336, bit_width = 32 },
    payload_byte_offset = 46, data_types = { input_type = "int16", output_type = "int16", endianness = "network" } }
  s:pipe(s:rx_queue("loop0"), converted, s:write_zarr{ name = "other", dir = args.dir, samples = { type = "f32le" } })
end)
wrong("at most 3071 fit", { header = ("x"):rep(3072) }, "write_blocks")

local ng = s:write_pcap{ name = "noted", dir = args.dir, format = "pcapng" }
local plain = s:write_pcap{ name = "plain", dir = args.dir }
local tx = s:tx_queue("loop0")
s:start()
local b = tx:alloc(2)
b:fill(tx:template{ payload = "abcd", udp_dst = 7148 })
t.equal(ng:write(b, { comment = "seen at noon" }):wait(), true)
t.raises("only a writer of pcapng takes comments", function() plain:write(b, { comment = "x" }) end)
t.raises("a file per packet has no comments", function() ng:write(b, { comment = "x", prefix = "y" }) end)
assert(select(2, contents(ng.path):gsub("seen at noon", "")) == 2)
b:free()
s:run{ seconds = 0 }
