-- A counter before samples, the simplest format of ROACH and SNAP boards.
return {
  name = "simple",
  title = "A 64-bit counter, then samples",
  document = "bifrost, src/formats/simple.hpp",
  sequence = "seq",
  { "seq", 64, "counts packets" },
  vectors = { { hex = "0000 0000 0000 0102 73616d70", seq = 0x102, payload = "samp" } },
}
