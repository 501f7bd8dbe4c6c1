-- raw.lua: a raw interface on soft-RoCE, which has no raw packets.
require("daqiri").open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, engine = "ibverbs",
  memory_regions = { { name = "in", kind = "host", affinity = 0, num_bufs = 64, buf_size = 2048 } },
  interfaces = { { name = "b", address = "v0", rx = { queues = { { name = "q", id = 0, poll_mode = "direct", batch_size = 32, memory_regions = { "in" } } } } } } } } }
