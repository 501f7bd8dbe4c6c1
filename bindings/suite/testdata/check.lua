-- check.lua: what the test scripts here share.
local M = {}

-- equal raises unless a is b; tables are compared entry by entry.
function M.equal(a, b, what)
  if type(a) == "table" and type(b) == "table" then
    for k, v in pairs(a) do M.equal(v, b[k], (what or "") .. "." .. tostring(k)) end
    for k in pairs(b) do assert(rawget(a, k) ~= nil, (what or "") .. "." .. tostring(k) .. " is missing") end
    return
  end
  if a ~= b then error(("%s: got %s, want %s"):format(what or "value", tostring(a), tostring(b)), 2) end
end

-- raises calls fn, which must raise an error that contains the text.
function M.raises(text, fn, ...)
  local ok, err = pcall(fn, ...)
  if ok then error("no error, want: " .. text, 2) end
  if not tostring(err):find(text, 1, true) then error("got error: " .. tostring(err) .. "\nwant: " .. text, 2) end
end

-- frames sends n frames of a template through the default session.
function M.send(tx, n, options)
  local b = assert(tx:alloc(n))
  b:fill(tx:template(options))
  assert(tx:send(b))
end

-- receive collects exactly n packets as a list of bursts.
function M.receive(rx, n)
  local list, got = {}, 0
  while got < n do
    local b = assert(rx:get_burst{ timeout_us = 5e6 })
    got = got + b.n
    list[#list + 1] = b
  end
  M.equal(got, n, "packets")
  return list
end

return M
