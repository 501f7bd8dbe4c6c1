-- ICMP messages: echo; for others the last four bytes of the header are shown as the same two numbers.
return {
  name = "icmp",
  title = "ICMP messages",
  document = "RFC 792",
  layer = "transport",
  where = "ip_proto == 1",
  sequence = { "echo_sequence", per = { "type", "echo_id" },
    place = 'batch = "echo_sequence // 8", wrap = 8192, slot = "echo_sequence % 8 * 2 + echo_id", slots = 16, source = "echo_id", at = "start"' },
  data = "type == 8",
  { "type", 8, values = { [0] = "echo_reply", [3] = "unreachable", [8] = "echo_request", [11] = "time_exceeded" } },
  { "code", 8 },
  { "checksum", 16 },
  { "echo_id", 16 },
  { "echo_sequence", 16 },
  vectors = { { hex = "08 00 f7fc 0001 0002", type = "echo_request", code = 0, checksum = 0xf7fc, echo_id = 1, echo_sequence = 2 } },
}
