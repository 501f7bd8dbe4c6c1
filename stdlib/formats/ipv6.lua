-- The IPv6 header, without extension headers.
return {
  name = "ipv6",
  title = "IPv6 header",
  document = "RFC 8200, section 3",
  layer = "network",
  where = "ethertype == 0x86dd",
  payload = "payload_length",
  { "ip_version", 4, const = 6 },
  { "traffic_class", 8 },
  { "flow_label", 20 },
  { "payload_length", 16, unit = "B", is = "payload_bytes" },
  { "next_header", 8, values = { [6] = "tcp", [17] = "udp", [58] = "icmpv6" } },
  { "hop_limit", 8 },
  { "source", "ipv6" },
  { "destination", "ipv6" },
  vectors = { { hex = "6 00 12345 0004 11 40 20010db8000000000000000000000001 20010db8000000000000000000000002 64617461", flow_label = 0x12345,
    payload_length = 4, next_header = "udp", hop_limit = 64, source = "2001:db8::1", destination = "2001:db8::2", payload = "data" } },
}
