-- start.lua: opens a session, receives a burst and ends: what every script pays.
--   daqiri-run start.lua
local daqiri = require "daqiri"
local s = daqiri.open()
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
s:start()
local b = tx:alloc(8)
b:fill(tx:template{ udp_dst = 7148, payload = "hello, packets" })
tx:send(b)
local got = rx:get_burst{ timeout_us = 1e6 }
print(daqiri.json{ packets = got.n })
