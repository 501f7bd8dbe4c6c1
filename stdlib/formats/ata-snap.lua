-- F-engine packets of the Allen Telescope Array.
return {
  name = "ata-snap",
  title = "F-engine packets of the Allen Telescope Array (SNAP and RFSoC)",
  document = "ata_snap and RFSoC F-engine manuals of Real Time Radio Systems",
  sequence = { "timestamp", per = { "feng_id", "chan" },
    place = 'batch = "timestamp // 160", slot = "timestamp // 16 % 10 * 2 + feng_id", slots = 20, source = "feng_id"' },
  data = "snap_version >= 128",
  -- Bit 0 of snap_type: the order of the axes; bit 1: 8-bit numbers, which no firmware sends. Other orders are left raw.
  samples = { type = { of = "snap_type & 3", [1] = "ci4" }, shape = { "n_chans", "*", 2 } },
  { "snap_version", 8, "firmware; the top bit is set of voltages" },
  { "snap_type", 8, "what the payload is" },
  { "n_chans", 16, "channels in this packet" },
  { "chan", 16, "first channel" },
  { "feng_id", 16, "antenna" },
  { "timestamp", 64, "spectrum of the first sample, since the synchronisation" },
  vectors = { { hex = "80 02 0060 0180 0005 0000 0000 0000 0030", snap_version = 128, snap_type = 2, n_chans = 96, chan = 384, feng_id = 5,
    timestamp = 48 } },
}
