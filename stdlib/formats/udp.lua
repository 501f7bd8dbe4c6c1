-- The UDP header.
return {
  name = "udp",
  title = "UDP header",
  document = "RFC 768",
  layer = "transport",
  where = "ip_proto == 17",
  payload = "length - 8",
  { "source_port", 16 },
  { "destination_port", 16 },
  { "length", 16, unit = "B", is = "header_bytes + payload_bytes" },
  { "checksum", 16, "0: none" },
  vectors = { { hex = "1000 1bec 000c 0000 64617461", source_port = 4096, destination_port = 7148, length = 12, checksum = 0, payload = "data" } },
}
