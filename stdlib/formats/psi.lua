-- Frames of the detectors of the Paul Scherrer Institute (Jungfrau, Eiger, Mythen 3, Gotthard 2).
return {
  name = "psi",
  title = "Detector frames of PSI, header of 48 bytes",
  document = "slsDetectorPackage 7, docs/src/udpheader.rst, version 2.0, as its receiver reads it on x86",
  endian = "little",
  sequence = { "packet_number", per = { "frame_number", "row", "column" },
    place = 'batch = "frame_number", slot = "row * 128 + packet_number", slots = 256, source = "row"' },
  -- Jungfrau has the gain stage in bits 15 and 14. Eiger has 16 bits unless its dynamic range is set to 4, 8, 12 or 32, which is not in the header:
  -- then give u8, u12.lsb or u32le. Descriptions of the order of its 4-bit data differ: u4 or u4.lsb. Types of other detectors are not listed.
  samples = { type = { of = "det_type", [1] = "u16le", [3] = "u16le" } },
  { "frame_number", 64 },
  { "exp_length", 32, "exposure", scale = 100, unit = "ns" },
  { "packet_number", 32, "which packet of the frame, from 0" },
  { "det_spec1", 64 },
  { "det_time", 64, "time stamp", scale = 100, unit = "ns" },
  { "mod_id", 16 },
  { "row", 16 },
  { "column", 16 },
  { "det_spec2", 16 },
  { "det_spec3", 32 },
  { "det_spec4", 16 },
  { "det_type", 8, values = { [0] = "generic", [1] = "eiger", [2] = "gotthard", [3] = "jungfrau", [4] = "chiptestboard", [5] = "moench",
    [6] = "mythen3", [7] = "gotthard2" } },
  { "header_version", 8 },
  vectors = { { hex = "0a00000000000000 e8030000 7f000000 0000000000000000 4042 0f00 0000 0000 0100 0200 0300 0000 00000000 0000 03 02",
    frame_number = 10, exp_length = 1000, packet_number = 127, det_time = 1000000, mod_id = 1, row = 2, column = 3, det_type = "jungfrau",
    header_version = 2 } },
}
