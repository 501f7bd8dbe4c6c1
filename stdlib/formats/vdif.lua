-- VDIF frames of VLBI stations, with the header of 32 bytes and the legacy one of 16.
-- Seconds since 1970: 10957 days until 2000, then half years, the second of which begins on day 181 or 182. The header lacks the frames per second, so
-- only the first frame of a second has a time: for others this divides by 0.
local time = "((10957 + epoch // 2 * 365 + (epoch // 2 + 3) // 4 + epoch % 2 * (181 + (3 - epoch // 2 % 4) // 3)) * 86400 + seconds) / ((16777215 - frame) // 16777215)"

return {
  name = "vdif",
  title = "VDIF frames",
  document = "VLBI Data Interchange Format (VDIF), release 1.1.1 (2014)",
  endian = "little",
  sequence = { "frame", per = { "seconds", "thread" },
    place = 'batch = "(seconds * 100 + frame) // 10", slot = "frame % 10 * 2 + thread", slots = 20, source = "thread"' },
  data = "invalid == 0",
  payload = "frame_length * 8 - header_bytes",
  -- Codes of 4 and 8 bits have no scale in the frame. Readers divide 4 bits by 2.95 and take (code - 127.5) / 35.5 of 8 bits.
  samples = { type = { of = "bits_minus_1", [0] = "o1.lsb", [1] = "o2.lsb", [3] = "o4.lsb", [7] = "o8", [15] = "o16le", [31] = "o32le" }, complex = "complex",
    levels = "vlbi", shape = { "*", "1 << log2_channels" }, time = time },
  { "seconds", 30, "since the reference epoch", unit = "s" },
  { "legacy", 1, "the header has 16 bytes" },
  { "invalid", 1, "the data are not valid" },
  { "frame", 24, "number of the frame within the second, from 0" },
  { "epoch", 6, "half years since 2000" },
  { reserved = 2 },
  { "frame_length", 24, "units of 8 bytes, with the header", is = "(header_bytes + payload_bytes) // 8" },
  { "log2_channels", 5 },
  { "vdif_version", 3 },
  { "station", 16, "two letters, or a number" },
  { "thread", 10 },
  { "bits_minus_1", 5, "bits of a sample, less 1" },
  { "complex", 1 },
  { when = "legacy == 0",
    { "extended0", 24 },
    { "edv", 8, "version of the extended user data" },
    { "extended1", 32 },
    { "extended2", 32 },
    { "extended3", 32 },
  },
  vectors = {
    { hex = "1027 0080 2a00 0036 0500 0022 5358 030c 0100 0002 0000 0000 0000 0000 0000 0000 6461 7461 6461 7461", seconds = 10000, legacy = 0, invalid = 1, frame = 42, epoch = 54,
      frame_length = 5, log2_channels = 2, vdif_version = 1, station = 0x5853, thread = 3, bits_minus_1 = 3, complex = 0, extended0 = 1,
      edv = 2, extended1 = 0, extended2 = 0, extended3 = 0, payload = "datadata" },
    { hex = "0100 0040 0000 0001 0300 0000 0100 0004 6461 7461 6461 7461", seconds = 1, legacy = 1, frame = 0, epoch = 1, frame_length = 3, station = 1, bits_minus_1 = 1,
      payload = "datadata" },
  },
}
