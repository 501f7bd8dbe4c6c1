-- daqiri.args: run with --count 7 name=x --flag --ratio=0.5 --hosts a,b -e role=tx
local daqiri, t = require "daqiri", require "check"
local args = daqiri.args{
  count = 3,
  name = { type = "string", help = "a name" },
  flag = false,
  ratio = { 1, unit = "s", help = "part" },
  hosts = { { "z" }, help = "list" },
  role = { "rx", choices = { "rx", "tx" } },
  unset = { type = "number" },
}
t.equal(args.count, 7)
t.equal(args.name, "x")
t.equal(args.flag, true)
t.equal(args.ratio, 0.5)
t.equal(args.hosts, { "a", "b" })
t.equal(args.role, "tx")
t.equal(args.unset, nil)
t.raises("unknown argument 'nam' (did you mean 'name'?)", function() return args.nam end)
t.raises("unknown option 'hlp' (did you mean 'help'?)", daqiri.args, { a = { 1, hlp = "x" } })
t.raises("unknown argument '--count'", daqiri.args, { cnt = 1 })
t.raises("-e role: unknown argument 'role' (did you mean 'rle'?)", daqiri.args,
  { rle = 1, count = 1, name = "", flag = false, ratio = 1, hosts = { {} } })

-- faults of a declaration
t.raises("a: its default is the number 1, and its type string", daqiri.args, { a = { 1, type = "string" } })
t.raises("a: its default is not one of x, y", daqiri.args, { a = { "z", choices = { "x", "y" } } })
t.raises("option 'choices': a list expected, got the number 5", daqiri.args, { a = { "z", choices = 5 } })
