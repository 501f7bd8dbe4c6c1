-- samples.lua: converts packed samples of several types to numbers, and finds a tone at its frequency.
--   daqiri-run samples --input u12.lsb
-- Each packet has the same 12 bytes; the script prints what they are in each type. Then one packet has a complex tone of 4-bit
-- offset-binary samples, of which the script computes the power at the tone's frequency and at its mirror.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "virtual.yaml", help = "has tx_port and rx_port on the loop engine" },
  input = { "i12,i12.w32le,u12.lsb,u12.gev,o8,ci16be", help = "types of samples, separated by commas" },
}
local BYTES, CYCLES, SAMPLES = "\18\52\86\120\154\188\222\240\15\30\45\60", 5, 64

-- Sends a payload and returns its elements as numbers.
local function converted(input, payload)
  local s = daqiri.open(args.config)
  local tx = s:tx_queue("tx_port")
  local convert = s:convert{ name = "numbers", memory_region = "packets", at = "payload",
    data_types = { input_type = input, output_type = "int16" } }
  local blocks = s:copy{ name = "blocks", memory_region = "packets" }
  local list = {}
  s:pipe(s:rx_queue("rx_port"), convert, blocks)
  blocks:on_burst(function(b)
    local p = b:packet(1)
    for at = 42, #p - 2, 2 do
      local v = p:u8(at) + 256 * p:u8(at + 1)
      list[#list + 1] = v < 32768 and v or v - 65536
    end
    s:stop("converted")
  end)
  s:after(0, function()
    local b = tx:alloc(1)
    b:fill(tx:template{ udp_dst = 7148, payload = payload })
    assert(tx:send(b))
  end)
  s:run{ seconds = 1 }
  return list
end

for input in args.input:gmatch("[^,]+") do
  print(("%-10s %s"):format(input, table.concat(converted(input, BYTES), " ")))
end

-- A tone: the real part in the high half of each byte, the imaginary part in the low one, 8 is zero.
local bytes, turn = {}, 2 * math.pi * CYCLES / SAMPLES
for i = 0, SAMPLES - 1 do
  local re, im = math.floor(7 * math.cos(turn * i) + 8.5), math.floor(7 * math.sin(turn * i) + 8.5)
  bytes[i + 1] = string.char(16 * re + im)
end
local v = converted("co4", table.concat(bytes))
for _, cycles in ipairs{ CYCLES, -CYCLES } do
  local re, im = 0, 0
  for i = 0, SAMPLES - 1 do
    local c, s = math.cos(2 * math.pi * cycles / SAMPLES * i), math.sin(2 * math.pi * cycles / SAMPLES * i)
    re, im = re + v[2 * i + 1] * c + v[2 * i + 2] * s, im + v[2 * i + 2] * c - v[2 * i + 1] * s
  end
  print(("%+d cycles: amplitude %.1f"):format(cycles, math.sqrt(re ^ 2 + im ^ 2) / SAMPLES))
end
