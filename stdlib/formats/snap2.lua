-- OVRO-LWA F-engine packets of SNAP2 boards.
return {
  name = "snap2",
  title = "SNAP2 packets of OVRO-LWA F-engines",
  document = "bifrost, src/formats/snap2.hpp",
  sequence = { "seq", per = { "chan_block_id", "pol0" },
    place = 'batch = "seq // 10", slot = "seq % 10 * 2 + pol0 // 64", slots = 20, source = "pol0"' },
  samples = { type = "ci4", shape = { "nchan", "npol" } }, -- real part in the high half, as other CASPER boards; not in the header
  { "seq", 64, "counts spectra" },
  { "sync_time", 32, "when seq was 0, UTC", unit = "s" },
  { "npol", 16, "inputs in this packet" },
  { "npol_tot", 16, "inputs of all boards" },
  { "nchan", 16, "channels in this packet" },
  { "nchan_tot", 16, "channels of all packets of a spectrum" },
  { "chan_block_id", 32, "which block of channels this is, from 0" },
  { "chan0", 32, "first channel" },
  { "pol0", 32, "first input" },
  vectors = { { hex = "0000000000000007 65536f80 0040 02c0 0060 0c00 00000002 00000540 00000080", seq = 7, sync_time = 1699966848, npol = 64,
    npol_tot = 704, nchan = 96, nchan_tot = 3072, chan_block_id = 2, chan0 = 1344, pol0 = 128 } },
}
