-- find_limit.lua: the highest rate that passes, by halving; trials may wait.
local daqiri = require "daqiri"
local t = require "check"

local function search(options, passes)
  local asked = {}
  options.trial = function(rate)
    asked[#asked + 1] = rate
    daqiri.sleep(1e-4)
    return passes(rate)
  end
  local limit, trials = daqiri.find_limit(options)
  t.equal(#trials, #asked)
  for i, x in ipairs(trials) do t.equal(x.rate, asked[i]) end
  return limit, trials
end

local limit, trials = search({ low = "1Mbit/s", high = "1Gbit/s", precision = "1Mbit/s" }, function(rate) return rate <= 3e8 end)
assert(limit <= 3e8 and limit > 3e8 - 1e6, limit)
assert(#trials <= 12, #trials)
limit, trials = search({ low = 1e6, high = 1e9 }, function() return true end)
t.equal(limit, 1e9)
t.equal(#trials, 1)
limit, trials = search({ low = 1e6, high = 1e9 }, function() return false end)
t.equal(limit, nil)
t.equal(#trials, 2)
limit, trials = search({ low = 1e6, high = 1e9, precision = 1e6 }, function(rate) return rate < 5e8 or "invalid" end)
assert(limit < 5e8 and limit > 4.9e8, limit)
t.equal(trials[1].verdict, "invalid")
t.raises("has to be above low", daqiri.find_limit, { low = 2, high = 1, trial = print })
t.raises('true, false or "invalid", not', daqiri.find_limit, { low = 1, high = 2, trial = function() return 1 end })
