-- Every format of the library that begins a payload: a generator of it, and a receiver that puts what came into blocks.
local daqiri, t = require "daqiri", require "check"

local first = { vrt = { packet_type = "data_with_stream_id", has_class_id = 1, has_trailer = 1, tsi = "utc", tsf = "sample_count", trailer = 7 },
  vdif = { bits_minus_1 = 7 }, ["ata-snap"] = { snap_version = 128 }, ecpri = { ecpri_type = "iq_data" }, gvsp = { packet_format = "data" }, ["gvsp-64"] = { packet_format = "data" } }

for _, name in ipairs{ "simple", "chips", "snap2", "ata-snap", "vrt", "vdif", "ecpri", "gvsp", "gvsp-64", "psi" } do
  local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
    loopback = { mode = "sw", clock = "virtual", seed = 3, reorder = 0.2, loss = 0.1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 512, buf_size = 512 },
      { name = "blocks", kind = "host", affinity = 0, num_bufs = 16, buf_size = 4096 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
  local f, tx = daqiri.format(name), s:tx_queue "port"
  local blocks = s:reorder{ name = "blocks", format = name, memory_region = "blocks", sequence_number = daqiri.format(name).sequence, packets_per_batch = 4, slot_bytes = 16, window = 2, timeout_us = 5000 }
  s:pipe(s:rx_queue "port", blocks)
  local came, wrong = 0, 0
  blocks:on_burst(function(b)
    for slot = 0, 3 do
      local want = b.present[slot + 1] and ("%016d"):format(b.batch_id * 4 + slot) or ("\0"):rep(16)
      if b.data:bytes(slot * 16, 16) ~= want then wrong = wrong + 1 end
      if b.present[slot + 1] then came = came + 1 end
    end
  end)
  s:after(0, function()
    for n = 0, 39 do
      local o = { format = f, payload = ("%016d"):format(name == "vrt" and n % 16 or n), udp_dst = 4015, [f.sequence] = name == "vrt" and n % 16 or n }
      for k, v in pairs(first[name] or {}) do o[k] = v end
      local b = tx:alloc(1)
      assert(tx:send(b:fill(tx:template(o))))
      daqiri.sleep(2e-5)
    end
  end)
  local l = s:run{ seconds = 0.05 }
  t.equal({ name, wrong, came }, { name, 0, 40 - l.port.wire.dropped - l.blocks.dropped })
  assert(came > 20, ("%s: %d came, %d were lost"):format(name, came, l.port.wire.dropped))
end
