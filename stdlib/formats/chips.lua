-- LWA-SV and OVRO-LWA F-engine packets, "CHIPS".
return {
  name = "chips",
  title = "CHIPS packets of LWA F-engines",
  document = "bifrost, src/formats/chips.hpp",
  sequence = { "seq", per = { "roach", "subband" },
    place = 'batch = "(seq - 1) // 10", slot = "(seq - 1) % 10 * 2 + roach - 1", slots = 20, source = "roach"' },
  samples = { type = "ci4", shape = { "nchan", "*" } }, -- real part in the high half, as other CASPER boards; not in the header
  { "roach", 8, "board, from 1" },
  { "gbe", 8, "network interface of the board" },
  { "nchan", 8, "channels in this packet" },
  { "nsubband", 8, "subbands of a spectrum" },
  { "subband", 8, "which of them this is, from 0" },
  { "nroach", 8, "boards" },
  { "chan0", 16, "first channel" },
  { "seq", 64, "counts spectra, from 1" },
  vectors = { { hex = "0301 6d01 0010 0258 0000 0000 0001 0000", roach = 3, gbe = 1, nchan = 109, nsubband = 1, subband = 0, nroach = 16,
    chan0 = 600, seq = 65536 } },
}
