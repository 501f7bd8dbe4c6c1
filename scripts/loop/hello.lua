-- hello.lua: sends a burst to itself and receives it.
--   daqiri-run hello
-- The default session is one interface in memory that receives what it sends: no NIC, no root, no configuration.
local daqiri = require "daqiri"

local s = daqiri.open()
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
s:start()

local burst = tx:alloc(8)                                   -- eight packet buffers of the queue's region
burst:fill(tx:template{ udp_dst = 7148, payload = "hello, packets" })
tx:send(burst)                                              -- takes ownership of the burst; using it afterwards is an error

local got = rx:get_burst{ timeout_us = 1e6 }
print(("%d packets, %d bytes, all to port %d: %s"):format(got.n, got.bytes, got:column("udp_dst"):min(),
  got:packet(1):bytes(42)))                                 -- after Ethernet, IPv4 and UDP
got:free()
