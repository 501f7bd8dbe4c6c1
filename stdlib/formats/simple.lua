-- A counter in front of samples, as ROACH and SNAP boards send it in its simplest form.
return {
  name = "simple",
  title = "A 64-bit counter, then samples",
  document = "bifrost, src/formats/simple.hpp",
  sequence = "seq",
  { "seq", 64, "counts packets" },
  vectors = { { hex = "0000 0000 0000 0102 73616d70", seq = 0x102, payload = "samp" } },
}
