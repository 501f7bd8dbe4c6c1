package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/stdlib"
)

// options are the defaults of the command line.
var options = Options{Library: stdlib.Files}

// config has the names used by the scripts below.
const config = `version: 1
stream_type: raw
master_core: 0
loopback: sw
memory_regions:
- {name: packets, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
- {name: blocks, kind: host, affinity: 0, num_bufs: 16, buf_size: 4096}
interfaces:
- name: rx_port
  address: loop0
  rx:
    queues:
    - {name: science, id: 0, cpu_core: -1, batch_size: 32, timeout_us: 100, memory_regions: [packets]}
    - {name: control, id: 1, cpu_core: -1, batch_size: 32, timeout_us: 100, memory_regions: [packets]}
- name: tx_port
  address: loop1
  tx:
    queues:
    - {name: out, id: 0, cpu_core: -1, batch_size: 32, memory_regions: [packets]}
`

// head is the first line of the scripts.
const head = `local daqiri = require "daqiri" local args = daqiri.args{ config = "rx.yaml", n = 5 } local s = daqiri.open(args.config)
`

// faultsOf checks a script next to the configuration file.
func faultsOf(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rx.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range Script(filepath.Join(dir, "s.lua"), source, options) {
		lines = append(lines, strings.ReplaceAll(f.Error(), dir+"/", ""))
	}
	return strings.Join(lines, "\n")
}

// TestMisspelt checks that each kind of mistake is found at its line, without further errors.
func TestMisspelt(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"function of the module", `daqiri.opn()`, "s.lua:2: unknown function 'opn' (did you mean 'open'?) in module daqiri"},
		{"function of another module", `print(bit.bnd(1, 2))`, "s.lua:2: unknown function 'bnd' (did you mean 'band'?) in module bit"},
		{"function of the module as a method", `daqiri:sleep(1)`, "s.lua:2: 'sleep' is a function of the module daqiri: write .sleep instead of :sleep"},
		{"method of a session", "\ns:rn{}", "s.lua:3: unknown field or method 'rn' (did you mean 'run'?) of session"},
		{"field of a session", `print(s.nam)`, "s.lua:2: unknown field or method 'nam' (did you mean 'name'?) of session"},
		{"field that is called", `s:name()`, "s.lua:2: 'name' of a session is a field, not a method: write .name without ()"},
		{"method of a queue", `s:rx_queue("rx_port", 0):on_brst(print)`, "s.lua:2: unknown field or method 'on_brst' (did you mean 'on_burst'?) of queue"},
		{"method of a queue of a list", "for _, q in ipairs(s:rx_queues('rx_port')) do\n q:flsh() end", "s.lua:3: unknown field or method 'flsh' (did you mean 'flush'?) of queue"},
		{"method of a burst in a handler", "s:rx_queue('rx_port', 0):on_burst(function(b)\n b:colum('len') end)", "s.lua:3: unknown field or method 'colum' (did you mean 'column'?) of burst"},
		{"field of a burst in a handler that has a name", "local function seen(b) print(b.byts) end\ns:rx_queue('rx_port', 0):on_burst(seen)", "s.lua:2: unknown field or method 'byts' (did you mean 'bytes'?) of burst"},
		{"method of a stage", "local st = s:count{ name = 'seen' }\nst:on_brst(print)", "s.lua:3: unknown field or method 'on_brst' (did you mean 'on_burst'?) of stage"},
		{"method of what a call may fail to return", "local b = assert(s:tx_queue('tx_port'):alloc(4))\nb:fil()", "s.lua:3: unknown field or method 'fil' (did you mean 'fill'?) of burst"},
		{"argument of the script", `print(args.confg)`, "s.lua:2: unknown argument 'confg' (did you mean 'config'?)"},
		{"option", `s:write_pcap{ nme = "x" }`, "s.lua:2: bad argument #1 to 'write_pcap' (unknown option 'nme' (did you mean 'name'?))"},
		{"option behind an argument", `s:rx_queue("rx_port", 1):on_burst(print, { smaple = 2 })`, "s.lua:2: bad argument #2 to 'on_burst' (unknown option 'smaple' (did you mean 'sample'?))"},
		{"option of a table in an option", `s:reorder{ memory_region = "blocks", packets_per_batch = 2, sequence_number = { bit_offset = 0, bit_widht = 8, bit_width = 8 } }`,
			"s.lua:2: bad argument #1 to 'reorder' (option 'sequence_number': unknown option 'bit_widht' (did you mean 'bit_width'?))"},
		{"option that is missing", `s:sample{ name = "few" }`, "s.lua:2: bad argument #1 to 'sample' (option 'every' is missing)"},
		{"options that are missing", `s:sample()`, "s.lua:2: bad argument #1 to 'sample' (option 'every' is missing)"},
		{"argument that is missing", `s:after(1)`, "s.lua:2: bad argument #2 to 'after' (fn is missing)"},
		{"argument of another type", `s:every(1, "x")`, `s.lua:2: bad argument #2 to 'every' (function expected, got the string "x")`},
		{"object of another type", `s:pipe(s:rx_queue("rx_port", 0), s)`, "s.lua:2: bad argument #2 to 'pipe' (stage or queue expected, got a session)"},
		{"option of another type", `s:write_pcap{ overwrite = "yes" }`, `s.lua:2: bad argument #1 to 'write_pcap' (option 'overwrite': boolean expected, got the string "yes")`},
		{"number that is not whole", `s:sample{ every = 2.5 }`, "s.lua:2: bad argument #1 to 'sample' (option 'every': 2.5 is not a whole number)"},
		{"word", `s:write_pcap{ policy = "wiat" }`, "s.lua:2: bad argument #1 to 'write_pcap' (option 'policy': 'wiat' is not one of drop, wait (did you mean 'wait'?))"},
		{"condition", `s:filter{ where = "len >" }`, `s.lua:2: bad argument #1 to 'filter' (option 'where': where "len >": expression:1:6: unexpected end)`},
		{"field in a condition", `s:filter{ where = "udp_dts == 53" }`,
			`s.lua:2: bad argument #1 to 'filter' (option 'where': where "udp_dts == 53": expression:1:1: unknown name 'udp_dts' (did you mean 'udp_dst'?))`},
		{"field of a format in a condition", `s:filter{ format = "chips", where = "chips_seq == 1 or sqe == 5" }`,
			`s.lua:2: bad argument #1 to 'filter' (option 'where': where "chips_seq == 1 or sqe == 5": expression:1:1: unknown name 'chips_seq')`},
		{"field of a format of the script", "local f = daqiri.format{ { 'seq', 32 } }\ns:filter{ format = f, where = 'sqe == 5' }",
			`s.lua:3: bad argument #1 to 'filter' (option 'where': where "sqe == 5": expression:1:1: unknown name 'sqe' (did you mean 'seq'?))`},
		{"condition without a format's fields", "local function f() return daqiri.format('chips') end\ns:filter{ format = f(), where = 'seq >> ' }",
			`s.lua:3: bad argument #1 to 'filter' (option 'where': where "seq >> ": expression:1:8: unexpected end)`},
		{"number over fields", `s:reorder{ memory_region = "blocks", format = "chips", batch = "seq // ", slot = "sq % 4", slots = 4 }`,
			`s.lua:2: bad argument #1 to 'reorder' (option 'batch': "seq // ": expression:1:8: unexpected end)` + "\n" +
				`s.lua:2: bad argument #1 to 'reorder' (option 'slot': "sq % 4": expression:1:1: unknown name 'sq' (did you mean 'seq'?))`},
		{"condition that is a number", `s:filter{ where = "len" }`,
			`s.lua:2: bad argument #1 to 'filter' (option 'where': where "len": expression:1:1: a packet condition must be true or false: compare the number with something)`},
		{"fields that are set", "s:rx_queue('rx_port', 0):on_burst(function(b)\n b:set{ upd_dst = 5, checksums = false } end)",
			"s.lua:3: bad argument #1 to 'set' (unknown field 'upd_dst' (did you mean 'udp_dst'?))"},
		{"field of a rewriter", `s:rewrite{ udp_dts = 5 }`, "s.lua:2: bad argument #1 to 'rewrite' (unknown option 'udp_dts' (did you mean 'udp_dst'?))"},
		{"name of a format", `s:filter{ format = "chps", where = "len > 1" }`, "s.lua:2: bad argument #1 to 'filter' (option 'format': unknown format 'chps' (did you mean 'chips'?))"},
		{"grammar of a threshold", `s:threshold("rx_port.rx.dropped = 0")`,
			`s.lua:2: bad argument #1 to 'threshold' (threshold "rx_port.rx.dropped = 0": expression:1:20: `},
		{"figure of an interface", `s:threshold("rx_port.rx.droped == 0")`,
			`s.lua:2: bad argument #1 to 'threshold' (threshold "rx_port.rx.droped == 0": rx_port.rx.droped has no value; did you mean "rx_port.rx.dropped"?)`},
		{"figure of a stage", "s:threshold('disk.writen > 0')\ns:write_pcap{ name = 'disk' }",
			`s.lua:2: bad argument #1 to 'threshold' (threshold "disk.writen > 0": disk.writen has no value; did you mean "disk.written"?)`},
		{"interface in a threshold", `s:threshold("rx_prt.rx.dropped == 0")`,
			`s.lua:2: bad argument #1 to 'threshold' (threshold "rx_prt.rx.dropped == 0": rx_prt.rx.dropped has no value; did you mean "rx_port.rx.dropped"?)`},
		{"metric in a threshold", "s:metric('limit_bps', 5)\ns:threshold('limit_bsp > 1')",
			`s.lua:3: bad argument #1 to 'threshold' (threshold "limit_bsp > 1": limit_bsp has no value; did you mean "limit_bps"?)`},
		{"duration", `s:after("5 secs", print)`, `s.lua:2: bad argument #1 to 'after' ("5 secs" has an unknown unit "secs" (known: ns, us, µs, ms, s, min, h))`},
		{"size", `s:write_pcap{ rotate = "5 parsecs" }`, `s.lua:2: bad argument #1 to 'write_pcap' (option 'rotate': "5 parsecs" has an unknown unit "parsecs"`},
		{"interface", `s:interface("rx_prt")`, "s.lua:2: bad argument #1 to 'interface' (unknown interface 'rx_prt' (did you mean 'rx_port'?))"},
		{"interface of a queue", `s:tx_queue("tx_prt")`, "s.lua:2: bad argument #1 to 'tx_queue' (unknown interface 'tx_prt' (did you mean 'tx_port'?))"},
		{"name of a queue", `s:rx_queue("rx_port", "sciense")`, "s.lua:2: bad argument #2 to 'rx_queue' (interface rx_port: unknown queue 'sciense' (did you mean 'science'?))"},
		{"number of a queue", `s:rx_queue("rx_port", 2)`, "s.lua:2: bad argument #2 to 'rx_queue' (interface rx_port: unknown queue '2')"},
		{"queue in the other direction", `s:tx_queue("rx_port", 0)`, "s.lua:2: bad argument #2 to 'tx_queue' (interface rx_port: unknown queue '0')"},
		{"queue that is one of several", `s:rx_queue("rx_port")`, "s.lua:2: bad argument #2 to 'rx_queue' (interface rx_port has 2 such queues: name one, or give its id)"},
		{"interface that is one of several", `s:tx_queues()`, "s.lua:2: bad argument #1 to 'tx_queues' (the configuration has 2 interfaces: name one)"},
		{"match", `s:filter{ match = { udp_dts = 53 } }`, "s.lua:2: bad argument #1 to 'filter' (option 'match': table: match.udp_dts: unknown key"},
		{"match of a flow", `s:interface("rx_port"):add_flows("x", { { match = { udp_dst = "x" } } })`, "s.lua:2: bad argument #2 to 'add_flows' (option 'match': table: match.udp_dst: "},
		{"region", `s:region("packtes")`, "s.lua:2: bad argument #1 to 'region' (unknown memory region 'packtes' (did you mean 'packets'?))"},
		{"queue, none of which is added", "s:add_region{ name = 'x', kind = 'host', affinity = 0, num_bufs = 1, buf_size = 64 }\ns:rx_queue('rx_port', 'sciense')",
			"s.lua:3: bad argument #2 to 'rx_queue' (interface rx_port: unknown queue 'sciense'"},
		{"region in an option", `s:copy{ memory_region = "block" }`, "s.lua:2: bad argument #1 to 'copy' (option 'memory_region': unknown memory region 'block' (did you mean 'blocks'?))"},
		{"stage", "s:count{ name = 'seen' }\ns:stage('sen')", "s.lua:3: bad argument #1 to 'stage' (unknown stage 'sen' (did you mean 'seen'?))"},
		{"format in a call", "daqiri.format{ name = 'mine',\n { 'seq', 32 },\n { 'chan', 70 } }", "s.lua:4: format mine: field 'chan': a width of 70 bits is outside 1 to 64"},
		{"configuration in a table", `daqiri.open{ version = 1, stream_type = "row", master_core = 0, memory_regions = {}, interfaces = {} }`,
			`s.lua:2: the configuration: `},
		{"in a function for one of the script", "local function each(f) f(1) end\neach(function() s:rn() end)", "s.lua:3: unknown field or method 'rn' (did you mean 'run'?) of session"},
		{"in a function for Lua's own", "table.sort({ 2, 1 }, function(a, b) return a < s.rn end)", "s.lua:2: unknown field or method 'rn' (did you mean 'run'?) of session"},
		{"global that is no local", "rx = s:rx_queue('rx_port', 0)\nrx:flsh()", "s.lua:3: unknown field or method 'flsh' (did you mean 'flush'?) of queue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := faultsOf(t, head+c.source)
			if !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > strings.Count(c.want, "\n") && !strings.HasSuffix(c.want, " ") {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestUnknown checks that uncertain values are not reported.
func TestUnknown(t *testing.T) {
	for name, source := range map[string]string{
		"a local that is assigned again":       "local x = s:rx_queue('rx_port', 0)\nif args.n > 4 then x = { foo = 1 } end\nprint(x.foo)",
		"a local that a function assigns":      "local x = s\nlocal function f() x = { foo = print } end\nf() x.foo()",
		"a global that is assigned twice":      "x = s\nx = { foo = print }\nx.foo()",
		"another variable of that name":        "do local s = { foo = print } s.foo() end\nlocal function f(s) s:foo() end f{ foo = print }",
		"a parameter":                          "local function f(q) q:foo() end\nf(s:rx_queue('rx_port', 0))",
		"a handler that is called, too":        "local function f(b) print(b.foo) end\ns:rx_queue('rx_port', 0):on_burst(f)\nf{ foo = 1 }",
		"an error that another module expects": "local t = require 'check'\nt.raises('x', function() s:foo() end)",
		"an error that is expected":            "local function raises(f) assert(not pcall(f)) end\nraises(function() s:foo() end)\nprint(pcall(function() return s.foo end))",
		"a function that is replaced":          "function daqiri.mine() end\ndaqiri.other = 5\nprint(daqiri.mine(), daqiri.other)",
		"require of the script's own":          "local function require() return { opn = print } end\nlocal d = require 'daqiri'\nd.opn()",
		"a key that is computed":               "local key = 'name'\ns:sample{ [key] = 'x' }",
		"a text that is computed":              "s:filter{ where = 'len > ' .. os.time() }",
		"arguments that a call returns":        "s:after((function() return 1, print end)())\ns:every(table.unpack and 1 or 2, print)",
		"a default of an argument":             "local a = daqiri.args{ where = '', file = '' }\nif a.where ~= '' then s:filter{ where = a.where } end",
		"a configuration that is not here":     "local o = daqiri.open('gone.yaml')\no:rx_queue('anything', 'x')\no:threshold('any.rx.droped == 0')",
		"a configuration that is changed":      "local set = {}\nlocal o = daqiri.open(args.config, { set = set })\no:rx_queue('anything')",
		"names that are made":                  "for i = 1, 2 do s:write_pcap{ name = 'disk' .. i } end\ns:threshold('disk1.dropped == 0') s:stage('disk2')",
		"a metric that comes later":            "s:threshold('temperature < 50') s:threshold('made.up.by_me < 5')",
		"a flow's figure":                      "s:threshold('rx_port.rx.flow.3.packets > 0')",
		"the other name of a reason":           "s:threshold('rx_port.rx.dropped.no_flow == 0')",
		"further items of a format":            "local f = daqiri.format('spead-64-48', { items = { timestamp = 0x1600 } })\ns:filter{ format = f, where = 'timestamp > 5' }",
		"a format of the script by name":       "daqiri.format{ name = 'mine', { 'seq', 32 } }\ns:filter{ format = 'mine', where = 'seq > 5' }",
		"further names of a rule":              "s:reorder{ memory_region = 'blocks', fields = { seq = { bit_offset = 0, bit_width = 32 } }, batch = 'seq // 4', slot = 'seq % 4', slots = 4, source = 'peer' }",
		"a comparison with nil":                "local c = s:tx_queue('tx_port'):alloc(1):column('len')\nprint(c:u64(1) == nil)",
		"a module that returns a table":        "return { name = 'x', { 'a', 1000 }, f = print }",
	} {
		t.Run(name, func(t *testing.T) {
			if got := faultsOf(t, head+source); got != "" {
				t.Error(got)
			}
		})
	}
}

// TestFormatFile checks files that return a format.
func TestFormatFile(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"return { name = 'mine', endian = 'big',\n  { 'seq', 32 },\n  { 'chan', 70 } }", "s.lua:3: format mine: field 'chan': a width of 70 bits is outside 1 to 64"},
		{"return { name = 'mine', endain = 'big',\n  { 'seq', 32 } }", "s.lua:1: format mine: unknown key 'endain' (did you mean 'endian'?)"},
		{"return { name = 'mine', sequence = 'sqe',\n  { 'seq', 32 } }", "s.lua:1: format mine: "},
		{"return { name = 'mine', struct = '>IH', 'seq' }", "s.lua:1: format mine: struct has more fields than there are names"},
		{"return { name = 'mine', { 'seq', 32 } }", ""},
		{"return { { 'seq', 32 }, { 'chan', 70 } }", ""},
	} {
		if got := faultsOf(t, c.source); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %s, want %s", c.source, got, c.want)
		}
	}
}
