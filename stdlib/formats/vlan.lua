-- The outermost VLAN tag of a frame.
return {
  name = "vlan",
  title = "Ethernet header with a VLAN tag",
  document = "IEEE 802.1Q (2022), section 9.6",
  layer = "frame",
  { "destination", "mac" },
  { "source", "mac" },
  { "tpid", 16, const = 0x8100 },
  { "pcp", 3, "priority" },
  { "dei", 1, "may be dropped first" },
  { "vid", 12, "VLAN" },
  { "type", 16, "of what is behind the tag" },
  vectors = { { hex = "020000000002 020000000001 8100 6005 0800", destination = "02:00:00:00:00:02", source = "02:00:00:00:00:01", pcp = 3,
    dei = 0, vid = 5, type = 0x0800 } },
}
