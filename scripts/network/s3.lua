-- s3.lua: writes packets directly to objects of an S3 store, without files in between.
--   daqiri-run s3 --endpoint http://10.0.0.5:9000 --bucket telescope --seconds 60
-- Credentials: from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), or ~/.aws/credentials.
local daqiri = require "daqiri"
local args = daqiri.args{
  config = { "udp.yaml", help = "has rx_port, and tx_port to generate" },
  endpoint = { "", help = "of the store: http://HOST:PORT; without one there is nothing to do" },
  bucket = { "daqiri", help = "that the objects go to" },
  prefix = { "capture", help = "of the objects' names" },
  rate = { "100Mbit/s", help = "at which to generate; empty: only what others send" },
  seconds = { 3, unit = "s", help = "how long" },
}
if args.endpoint == "" then
  print("no store: give --endpoint http://HOST:PORT")
  os.exit(77)
end

local s = daqiri.open(args.config)
local store = s:write_s3{ name = "store", endpoint = args.endpoint, bucket = args.bucket, prefix = args.prefix, bytes_per_object = "64MiB" }
s:pipe(s:rx_queue("rx_port"), store)
if args.rate ~= "" then
  local tx = s:tx_queue("tx_port")
  tx:pace{ rate = args.rate }
  tx:transmit{ template = tx:template{ payload_bytes = 1400 } }
end
s:threshold("store.dropped == 0")
local sum = s:run{ seconds = args.seconds }
print(("%d packets in %d objects"):format(sum.store.out, sum.store.objects))
