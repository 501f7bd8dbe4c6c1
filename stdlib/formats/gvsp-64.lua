-- GigE Vision stream packets with block ids of 64 bits.
return {
  name = "gvsp-64",
  title = "GigE Vision stream packets, block ids of 64 bits",
  document = "GigE Vision 2.2 (2022), section 25; Wireshark, packet-gvsp.c",
  sequence = "packet_id",
  { "status", 16 },
  { "flags", 16 },
  { "extended", 1, const = 1 },
  { reserved = 3 },
  { "packet_format", 4, values = { [1] = "leader", [2] = "trailer", [3] = "data", [4] = "all_in", [5] = "h264", [6] = "multi_zone" } },
  { reserved = 24 },
  { "block_id", 64, "which image, from 1" },
  { "packet_id", 32, "which packet of the image: 0 the leader, data from 1 on" },
  vectors = { { hex = "0000 0000 83 000000 0000000100000002 00000005 706978656c73", status = 0, flags = 0, packet_format = "data",
    block_id = 2 ^ 32 + 2, packet_id = 5, payload = "pixels" } },
}
