-- RTP packets of any payload.
-- Packets with padding are decoded, but stages that take the payload drop them, as its end is not known from the header.
return {
  name = "rtp",
  title = "RTP packets",
  document = "RFC 3550, section 5.1",
  sequence = { "sequence_number", per = { "ssrc" },
    place = 'batch = "sequence_number // 8", wrap = 8192, slot = "sequence_number % 8 * 2 + ssrc", slots = 16, source = "ssrc"' },
  data = "padding == 0",
  { "version", 2, const = 2 },
  { "padding", 1, "bytes behind the payload, which the last one counts" },
  { "extension", 1, "a header extension follows" },
  { "csrc_count", 4 },
  { "marker", 1, "of the payload type, such as the end of a frame" },
  { "payload_type", 7, "of the session description" },
  { "sequence_number", 16 },
  { "timestamp", 32, "of the first sample, in units of the payload type" },
  { "ssrc", 32, "the source" },
  { list = "contributors", count = "csrc_count", { "csrc", 32 } },
  { when = "extension == 1", { "extension_profile", 16 }, { "extension_words", 16 } },
  { list = "extensions", count = "extension_words", when = "extension == 1", { "extension_word", 32 } },
  vectors = {
    { hex = "80 e0 0102 00000064 0000002a 64617461", marker = 1, payload_type = 96, sequence_number = 0x102, timestamp = 100, ssrc = 42, payload = "data" },
    { hex = "91 61 0007 00000001 0000002a 00000003 bede 0001 10aa0000 64617461", csrc_count = 1, payload_type = 97, sequence_number = 7, timestamp = 1,
      ssrc = 42, contributors = { { csrc = 3 } }, extension = 1, extension_profile = 0xbede, extension_words = 1,
      extensions = { { extension_word = 0x10aa0000 } }, payload = "data" },
  },
}
