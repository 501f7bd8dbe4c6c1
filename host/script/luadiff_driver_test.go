package script

// luaDriver runs on both sides: run(source) returns a program's output and how it ended. Each program has its own environment; P prints, S
// formats values independently of number formats, T ends long runs.
const luaDriver = `
local format, floor, concat, select, type, tostring = string.format, math.floor, table.concat, select, type, tostring
local function S(v)
  local t = type(v)
  if t == "number" then
    if v ~= v then return "nan" elseif v == 0 then return "0"
    elseif v == 1 / 0 then return "inf" elseif v == -1 / 0 then return "-inf"
    elseif v == floor(v) and v < 1e14 and v > -1e14 then return format("%d", v) end
    return format("%.13g", v)
  elseif t == "string" then -- of an error's text only the line counts
    if v:find("^can ?not ") then return "cannot" elseif v:find("ticks$") then return "ticks" elseif v:find("out$") then return "out"
    elseif v:find("attempt to compare") then return "compare" end -- in table.sort Lua gives no line
    return (v:match("^p:%d+: E%d") or v:match("^p:%d+:") or v)
  elseif t == "nil" or t == "boolean" then return tostring(v) end
  return t
end
local shared = { "assert", "error", "getmetatable", "setmetatable", "ipairs", "pairs", "next", "pcall", "xpcall", "rawequal", "rawget",
  "rawset", "select", "tonumber", "type", "unpack", "string", "table", "math", "loadstring", "getfenv", "setfenv" }
function run(source)
  local out, n, ticks, made, most = {}, 0, 0, 0, 400
  local env = { S = S }
  for _, name in ipairs(shared) do env[name] = _G[name] end
  env._G = env
  function env.P(...)
    if n > most then error("out", 0) end
    n = n + 1
    local line = {}
    for i = 1, select("#", ...) do line[i] = S((select(i, ...))) end
    out[n] = concat(line, " ")
  end
  function env.T()
    ticks = ticks + 1
    if ticks > 60 then error("ticks", 0) end
    return true
  end
  env.coroutine = {} -- few of them: how deep they nest is a limit of each side's own
  for name, f in pairs(coroutine) do env.coroutine[name] = f end
  for _, name in ipairs{ "create", "wrap" } do
    env.coroutine[name] = function(f)
      made = made + 1
      if made > 100 then error("ticks", 0) end
      return coroutine[name](f)
    end
  end
  local f, why = loadstring(source, CHUNK)
  if not f then return "does not compile" end
  setfenv(f, env)
  local function last(ok, ...)
    most = n + 1
    if ok then
      env.P("returned", ...)
    else
      local why = ...
      out[n + 1] = "raised " .. S(why)
    end
  end
  last(pcall(f, 11, "twelve", nil, 14))
  return concat(out, "\n")
end`

// luaServer runs the driver for programs read from standard input, each preceded by a line with its length.
const luaServer = `CHUNK = "=p"` + luaDriver + `
for line in io.lines() do
  local out = run(io.read(tonumber(line)))
  io.write(#out, "\n", out)
  io.flush()
end`
