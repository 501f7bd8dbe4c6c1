-- VITA 49 context packets, which describe the samples of a data stream. Only context fields of fixed size are covered.
-- The payload format names the samples of the stream's data packets. Fields that have bits beside an item, repeated items, polar numbers and the
-- floating-point types of VITA 49 itself are not covered. Fixed-point numbers are codes here; their full scale is 1 in the standard.
local types = {}
local kinds = { [0] = "i", [7] = "i", [16] = "u", [23] = "u" } -- by data_item_format
for bits = 1, 32 do
  local whole = bits == 16 or bits == 24 or bits == 32
  local efficient = whole and "be" or ""
  local padded = 32 % bits == 0 and efficient or ".pad32"
  for format = 0, 23 do
    local kind = kinds[format]
    if kind then
      types[format * 64 + bits - 1] = kind .. bits .. padded
      types[2048 + format * 64 + bits - 1] = kind .. bits .. efficient
    end
  end
end
for efficient = 0, 2048, 2048 do
  types[efficient + 13 * 64 + 15], types[efficient + 14 * 64 + 31], types[efficient + 15 * 64 + 63] = "f16be", "f32be", "f64be"
end
types.of = "(event_tag_size | channel_tag_size | repeat_count | packing_field_size ~ item_size) << 12 | packing_method << 11 | data_item_format << 6 | item_size"

return {
  name = "vrt-context",
  title = "VITA 49 context packets",
  document = "ANSI/VITA 49.0 (2015), sections 6.1 and 7.1.5; Wireshark, epan/dissectors/packet-vrt.c",
  sequence = { "packet_count", per = { "stream_id" },
    place = 'batch = "packet_count // 4", wrap = 4, slot = "packet_count % 4 * 2 + stream_id", slots = 8, source = "stream_id"' },
  samples = { type = types, complex = "real_complex", rate = "sample_rate * 2 ^ -20", frequency = "rf_frequency * 2 ^ -20" },
  { "packet_type", 4, const = 4 },
  { "has_class_id", 1 },
  { reserved = 2 },
  { "tsm", 1, "times are of one sample, not exact", },
  { "tsi", 2, "integer times", values = { [0] = "none", [1] = "utc", [2] = "gps", [3] = "other" } },
  { "tsf", 2, "fractional times", values = { [0] = "none", [1] = "sample_count", [2] = "picoseconds", [3] = "free_running" } },
  { "packet_count", 4, "counts packets, modulo 16" },
  { "packet_words", 16, "32-bit words of the whole packet", is = "(header_bytes + payload_bytes) // 4" },
  { "stream_id", 32 },
  { when = "has_class_id == 1",
    { reserved = 8 },
    { "class_oui", 24 },
    { "info_class", 16 },
    { "packet_class", 16 },
  },
  { "integer_time", 32, when = "tsi ~= 0", unit = "s" },
  { "fractional_time", 64, when = "tsf ~= 0" },
  { "indicators", 32, "which fields follow, and in the top bit whether one changed" },
  { "reference_point", 32, when = "indicators & 0x40000000 ~= 0" },
  { "bandwidth", "i64", when = "indicators & 0x20000000 ~= 0", scale = 2 ^ -20, unit = "Hz" },
  { "if_frequency", "i64", when = "indicators & 0x10000000 ~= 0", scale = 2 ^ -20, unit = "Hz" },
  { "rf_frequency", "i64", when = "indicators & 0x8000000 ~= 0", scale = 2 ^ -20, unit = "Hz" },
  { "rf_frequency_offset", "i64", when = "indicators & 0x4000000 ~= 0", scale = 2 ^ -20, unit = "Hz" },
  { "if_band_offset", "i64", when = "indicators & 0x2000000 ~= 0", scale = 2 ^ -20, unit = "Hz" },
  { when = "indicators & 0x1000000 ~= 0", { reserved = 16 }, { "reference_level", "i16", scale = 1 / 128, unit = "dBm" } },
  { when = "indicators & 0x800000 ~= 0", { "gain2", "i16", scale = 1 / 128, unit = "dB" }, { "gain1", "i16", scale = 1 / 128, unit = "dB" } },
  { "over_range_count", 32, when = "indicators & 0x400000 ~= 0" },
  { "sample_rate", "i64", when = "indicators & 0x200000 ~= 0", scale = 2 ^ -20, unit = "Hz" },
  { "time_adjustment", "i64", when = "indicators & 0x100000 ~= 0", unit = "fs" },
  { "time_calibrated", 32, when = "indicators & 0x80000 ~= 0", unit = "s" },
  { when = "indicators & 0x40000 ~= 0", { reserved = 16 }, { "temperature", "i16", scale = 1 / 64, unit = "degC" } },
  { when = "indicators & 0x20000 ~= 0", { reserved = 8 }, { "manufacturer_oui", 24 }, { reserved = 16 }, { "device_code", 16 } },
  { "state_events", 32, when = "indicators & 0x10000 ~= 0" },
  { when = "indicators & 0x8000 ~= 0",
    { "packing_method", 1, "how fields fill 32-bit words", values = { [0] = "processing_efficient", [1] = "link_efficient" } },
    { "real_complex", 2, values = { [0] = "real", [1] = "cartesian", [2] = "polar" } },
    { "data_item_format", 5, "type of a number", values = { [0] = "signed_fixed", [7] = "signed_integer", [13] = "half", [14] = "single", [15] = "double",
      [16] = "unsigned_fixed", [23] = "unsigned_integer" } },
    { "repeat_indicator", 1, "components are repeated one by one, not whole samples" },
    { "event_tag_size", 3, "bits beside an item" },
    { "channel_tag_size", 4, "bits beside an item" },
    { "item_fraction_size", 4, "bits behind the point" },
    { "packing_field_size", 6, "bits of a field, less 1" },
    { "item_size", 6, "bits of a number, less 1" },
    { "repeat_count", 16, "copies of a sample, less 1" },
    { "vector_size", 16, "samples of the same time, less 1" },
  },
  vectors = { { hex = "40 60 000a 00000007 6553f100 0000000000000000 00208000 0000010000000000 a00002cb 00000003",
    indicators = 0x208000, sample_rate = 2 ^ 40, packing_method = "link_efficient", real_complex = "cartesian", data_item_format = "signed_fixed",
    repeat_indicator = 0, event_tag_size = 0, channel_tag_size = 0, item_fraction_size = 0, packing_field_size = 11, item_size = 11,
    repeat_count = 0, vector_size = 3, stream_id = 7, integer_time = 1700000000, fractional_time = 0, tsi = "utc", tsf = "picoseconds",
    packet_words = 10 }, { hex = "40 61 0009 00000007 6553f100 0000000000000000 08240000 00055d4a80000000 0000000100000000 0000 0640",
    packet_type = 4, has_class_id = 0, tsm = 0, tsi = "utc", tsf = "picoseconds", packet_count = 1, packet_words = 9, stream_id = 7,
    integer_time = 1700000000, fractional_time = 0, indicators = 0x08240000, rf_frequency = 0x00055d4a80000000, sample_rate = 4096 * 2 ^ 20,
    temperature = 1600 } },
}
