-- w:write, its account, raw files of every kind, and several folders.
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{ dir = "." }
local s = daqiri.open()
local rx, tx = s:rx_queue("loop0"), s:tx_queue("loop0")
local two = { args.dir .. "/a", args.dir .. "/b" }
local pcap = s:write_pcap{ name = "hand", dir = args.dir }
local flat = s:write_raw{ name = "flat", dir = args.dir, packet_data_offset = 42 }
local each = s:write_raw{ name = "each", dir = args.dir, per = "burst" }
local single = s:write_raw{ name = "single", dir = args.dir, per = "packet" }
local pair = s:write_pcap{ name = "pair", dirs = two, policy = "wait" }
local count = s:count{ name = "count" }
s:pipe(rx, pair)
t.raises("has not started", function() pcap:write(tx:alloc(1)) end)
s:start()

local function contents(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

-- objects: what is wrong shows before anything is sent; a store that isn't there, at the start, here at once
local store = { bucket = "bucket", endpoint = "http://127.0.0.1:1", access_key = "a", secret_key = "s" }
local function s3(option, value)
  local o = {}
  for k, v in pairs(store) do o[k] = v end
  if option then o[option] = value end
  return function() s:write_s3(o) end
end
t.raises("option 'bucket' is missing", function() s:write_s3{} end)
t.raises("endpoint \"nowhere/x\": http://HOST:PORT", s3("endpoint", "nowhere/x"))
t.raises("an access key and a secret key come together", s3("access_key", ""))
t.raises("staging of 1000 bytes: at least 16777216", s3("staging", 1000))
t.raises("option 'staging': a number of bytes above 0", s3("staging", 0))
t.raises("option 'end_timeout': a time above 0", s3("end_timeout", 0))
t.raises("option 'prefix': \"/x\"", s3("prefix", "/x"))
t.raises("option 'checksum': \"sha1\" is not one of crc32c, md5", s3("checksum", "sha1"))
t.raises("connection refused", s3())
t.raises("bucket \"b\": Bucket name cannot be shorter", s3("bucket", "b"))

local b = tx:alloc(3)
b:fill(tx:template{ payload = "abcd", udp_dst = 7148 })
t.raises("burst expected", function() pcap:write(3) end)
t.raises("stage count: it is not a writer", function() count:write(b) end)
local h = assert(pcap:write(b))
t.equal(h:wait{ timeout = 10 }, true)
t.equal(h:poll(), true)
t.equal(h.completed_packets, 3)
t.equal(h.failed_packets, 0)
t.equal(h.bytes_written, 3 * 46)
t.equal(h.error, nil)
t.equal(#contents(pcap.path), 24 + 3 * (16 + 46))
t.raises("read", function() b:packet(1):set_u8(0, 1) end) -- what is being written stays as it is
local some = b:select("udp_dst == 7148")
t.equal(flat:write(some):wait(), true)
t.equal(contents(flat.path), "abcdabcdabcd")
t.equal(each:write(b):wait{ timeout = "10s" }, true)
t.equal(each:write(b):wait{}, true)
t.equal(#contents(each.path), 3 * 46)
assert(each.path:find("each_1", 1, true), each.path)
some:free()
for _, offset in ipairs{ 0, 40 } do
  t.equal(single:write(b, { prefix = "named" .. offset, packet_data_offset = offset }):wait(), true)
  t.equal(#contents(args.dir .. "/named" .. offset .. "_2"), 46 - offset)
end
local again = single:write(b, { prefix = "named0", packet_data_offset = 40 }) -- what is there stays
again:wait()
t.equal(again.failed_packets, 3)
t.equal(#contents(args.dir .. "/named0_2"), 46)
t.equal(single.path, nil) -- those of its own count
t.raises("option 'prefix' is missing", function() single:write(b, { packet_data_offset = 1 }) end)
t.raises("is not the beginning of a file's name", function() single:write(b, { prefix = "a/b" }) end)
t.raises('only a writer of a file per packet takes names of its own for a burst: s:write_raw{ per = "packet" }', function() each:write(b, { prefix = "named" }) end)
t.raises("only a writer of a file per packet", function() pcap:write(b, { prefix = "named" }) end)
assert(tx:send(b)) -- the script kept it

-- bursts in turn to two folders
for _ = 1, 10 do
  local more = tx:alloc(8)
  more:fill(tx:template{ payload_bytes = 100 })
  assert(tx:send(more))
end
local sum = s:run{ packets = 83, seconds = 10 }
t.equal(sum.pair.written, 83)
t.equal(sum.hand.packets, 3)
t.equal(sum.hand.written, 3)
t.equal(sum.flat.written, 3)
t.equal({ sum.each.written, sum.single.written }, { 6, 6 })
t.equal(#pair.paths, 2)
t.equal(#sum.files, 5)
t.equal(#contents(pair.paths[1]) + #contents(pair.paths[2]), 2 * 24 + 80 * (16 + 142) + 3 * (16 + 46))
t.raises("has stopped", function() pcap:write(tx:alloc(1)) end)
