package format

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// dissectorHead is the start of every dissector: functions that read bits of a packet as numbers, and operators on numbers that may be absent. It
// requires Lua 5.2, as in Wireshark.
const dissectorHead = `
local function two(f) return function(a, b) if a and b then return f(a, b) end end end
local add, sub, mul = two(function(a, b) return a + b end), two(function(a, b) return a - b end), two(function(a, b) return a * b end)
local div = two(function(a, b) if b ~= 0 then return math.floor(a / b) end end)
local mod = two(function(a, b) if b ~= 0 then return a - math.floor(a / b) * b end end)
local eq, ne = two(function(a, b) return a == b end), two(function(a, b) return a ~= b end)
local lt, le = two(function(a, b) return a < b end), two(function(a, b) return a <= b end)
local gt, ge = two(function(a, b) return a > b end), two(function(a, b) return a >= b end)
local shl, shr = two(function(a, b) return a * 2 ^ b end), two(function(a, b) return math.floor(a / 2 ^ b) end)
local function bitwise(f)
  return two(function(a, b)
    local v, one = 0, 1
    while a >= 1 or b >= 1 do
      v, one = v + f(a % 2, b % 2) * one, one * 2
      a, b = math.floor(a / 2), math.floor(b / 2)
    end
    return v
  end)
end
local band, bor = bitwise(function(a, b) return a * b end), bitwise(function(a, b) return a + b - a * b end)
local bxor = bitwise(function(a, b) return (a + b) % 2 end)

-- Bits from a bit on as a number; nil where the packet ends before. Of a little-endian field they count from the lowest.
local function bits(tvb, at, width, little)
  if not at or at < 0 or at + width > tvb:len() * 8 then return nil end
  local first, last = math.floor(at / 8), math.floor((at + width - 1) / 8)
  local skip, v = at - first * 8, 0
  if little then
    for i = last, first, -1 do
      local byte = tvb(i, 1):uint()
      local over = (i + 1) * 8 - (at + width)
      if over > 0 then byte = byte % 2 ^ (8 - over) end
      if i == first then v = v * 2 ^ (8 - skip) + math.floor(byte / 2 ^ skip) else v = v * 256 + byte end
    end
    return v
  end
  for i = first, last do
    local byte, from, to = tvb(i, 1):uint(), 0, 8
    if i == first then from = skip end
    if i == last then to = (at + width - 1) % 8 + 1 end
    byte = math.floor(byte % 2 ^ (8 - from) / 2 ^ (8 - to))
    v = v * 2 ^ (to - from) + byte
  end
  return v
end
local function wide(tvb, at, width, little)
  local high, low
  if little then
    low, high = bits(tvb, at, 32, true), bits(tvb, at + 32, width - 32, true)
  else
    high, low = bits(tvb, at, width - 32), bits(tvb, at + width - 32, 32)
  end
  return UInt64.new(low, high)
end
local function signed(v, width) if v and v >= 2 ^ (width - 1) then return v - 2 ^ width end return v end
local function span(tvb, at, width)
  local first = math.floor(at / 8)
  return tvb(first, math.floor((at + width - 1) / 8) - first + 1)
end
`

// dissector generates the source of a dissector.
type dissector struct {
	strings.Builder
	f *Format
}

// Dissector returns the source of a Lua dissector for Wireshark and tshark: a protocol daqiri_NAME with a field for each field of the format.
func (f *Format) Dissector() string {
	d := &dissector{f: f}
	title := f.Spec.Title
	if title == "" {
		title = f.label()
	}
	d.line("-- %s.lua: a dissector for Wireshark, made by daqiri-run from the format's declaration.", f.Protocol())
	as := ""
	if k := dissectorTables[f.Spec.Layer]; k.table != "" && f.Spec.UDPPort+f.Spec.Ethertype == 0 {
		as = fmt.Sprintf(" -d %s==%s,%s", k.table, k.number, f.Protocol())
	}
	d.line("--   tshark -X lua_script:%s.lua%s -r FILE -V", f.Protocol(), as)
	d.WriteString(dissectorHead)
	d.line("\nlocal p = Proto(%q, %q)", f.Protocol(), title)
	d.fields()
	d.values()
	d.dissect()
	d.register()
	return d.String()
}

// Protocol returns the name of the format's protocol in Wireshark.
func (f *Format) Protocol() string { return "daqiri_" + strings.ReplaceAll(f.label(), "-", "_") }

func (d *dissector) line(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *dissector) fields() {
	d.line("local F = {}")
	for _, x := range d.f.Fields {
		if !x.Reserved {
			d.line("F.%s = %s", x.Name, d.protoField(x.Row, x.Name))
		}
	}
	for _, l := range d.f.Lists {
		for _, r := range l.Rows {
			d.line("F[%q] = %s", l.List+"."+r.Name, d.protoField(r, l.List+"."+r.Name))
		}
		for _, i := range l.Items {
			d.line("F.%s = %s", i.Name, d.protoField(l.Rows[len(l.Rows)-1], i.Name))
		}
	}
	d.line("for _, f in pairs(F) do p.fields[#p.fields + 1] = f end")
}

// protoField returns the Lua call that creates Wireshark's ProtoField.
func (d *dissector) protoField(r Row, name string) string {
	abbrev := d.f.Protocol() + "." + name
	kind, more := "uint32", ", base.DEC"
	if r.Hex {
		more = ", base.HEX"
	}
	switch {
	case r.Kind == Float:
		kind, more = map[int]string{32: "float", 64: "double"}[r.Bits], ""
	case r.Kind == Bytes:
		kind, more = "bytes", ""
	case r.Kind == MAC:
		kind, more = "ether", ""
	case r.Kind == IPv4, r.Kind == IPv6:
		kind, more = strings.ToLower(r.Kind.short()), ""
	case r.Kind == Signed && r.Bits > 32:
		kind = "int64"
	case r.Kind == Signed:
		kind = "int32"
	case r.Bits > 32:
		kind = "uint64"
	}
	if names := r.names(); names != "" {
		more += ", " + names
	}
	return fmt.Sprintf("ProtoField.%s(%q, %q%s)", kind, abbrev, name, more)
}

// names returns a Lua table of the names of values; "" if there are none, or numbers are wider than Lua's.
func (r Row) names() string {
	var names []string
	for _, v := range r.Values {
		names = append(names, fmt.Sprintf("[%s] = %q", shown(v.Number, r), v.Name))
	}
	if len(names) == 0 || r.Bits > 32 {
		return ""
	}
	return "{ " + strings.Join(names, ", ") + " }"
}

func (k Kind) short() string {
	return [...]string{"", "", "", "", "", "IPv4", "IPv6"}[k]
}

// place returns a Lua expression of a position, in bits or nil.
func (d *dissector) place(p place) string {
	out := fmt.Sprint(p.bit)
	for _, t := range p.terms {
		part := fmt.Sprint(t.Bits)
		if t.Count != nil {
			part = fmt.Sprintf("mul(%d, %s)", t.Bits, d.text(t.Count))
		}
		if len(t.When) > 0 {
			part = fmt.Sprintf("(%s and %s or 0)", d.when(t.When), part)
		}
		out = fmt.Sprintf("add(%s, %s)", out, part)
	}
	return out
}

func (d *dissector) when(when []*expr.Expr) string {
	var all []string
	for _, w := range when {
		all = append(all, d.text(w))
	}
	return strings.Join(all, " and ")
}

func (d *dissector) text(e *expr.Expr) string {
	return e.Lua(func(name string) string {
		if v, ok := d.f.Constant(name); ok {
			return fmt.Sprint(v)
		}
		switch name {
		case HeaderBytes:
			return "div(V.header_bits(c), 8)"
		case PayloadBytes:
			return "sub(c.tvb:len(), div(V.header_bits(c), 8))"
		}
		return fmt.Sprintf("V.%s(c)", name)
	})
}

// values writes two functions per field, for its number and its position; their argument c holds the packet and the values read so far.
func (d *dissector) values() {
	d.line("\nlocal P, V = {}, {} -- by field: where it lies, bits from the header's start; and its number. nil: the packet has none")
	d.line("function V.header_bits(c) return %s end", d.place(d.f.header))
	for _, x := range d.f.Fields {
		if x.Reserved {
			continue
		}
		guard := ""
		if len(x.when) > 0 {
			guard = fmt.Sprintf("if not (%s) then return nil end ", d.when(x.when))
		}
		d.line("function P.%s(c) %sreturn %s end", x.Name, guard, d.place(x.place))
		if x.Kind.number() {
			read := fmt.Sprintf("bits(c.tvb, P.%s(c), %d, %t)", x.Name, x.Bits, x.Little)
			if x.Kind == Signed {
				read = fmt.Sprintf("signed(%s, %d)", read, x.Bits)
			}
			d.line("function V.%s(c) if c[%q] == nil then c[%q] = %s end return c[%q] end", x.Name, x.Name, x.Name, read, x.Name)
		}
	}
	for _, l := range d.f.Lists {
		for _, i := range l.Items {
			it := d.f.items[i.Name]
			last := l.Rows[len(l.Rows)-1].Bits
			d.line("function V.%s(c)", i.Name)
			d.line("  local at = %s", d.place(l.place))
			d.line("  for k = 1, %s or 0 do", d.text(l.count))
			d.line("    local key, v = bits(c.tvb, at, %d), bits(c.tvb, add(at, %d), %d)", int(l.itemBits)-last, int(l.itemBits)-last, last)
			d.line("    if not v then return nil end")
			d.line("    if key == %d then return v end", it.key)
			d.line("    at = at + %d", l.itemBits)
			d.line("  end\nend")
		}
	}
}

func (d *dissector) dissect() {
	d.line("\nfunction p.dissector(tvb, pinfo, tree)")
	d.line("  local c = { tvb = tvb }")
	for _, x := range d.f.Fields {
		if x.Const != nil && !x.Reserved {
			d.line("  if V.%s(c) ~= %s then return 0 end", x.Name, shown(*x.Const, x.Row))
		}
	}
	if dissectorTables[d.f.Spec.Layer].table != "" {
		d.line("  pinfo.cols.protocol = %q", strings.ToUpper(d.f.label()))
	}
	d.line("  local t = tree:add(p, tvb())")
	d.line("  local at, v, info = nil, nil, {}")
	for _, x := range d.f.Fields {
		if !x.Reserved {
			d.show(x)
		}
	}
	for _, l := range d.f.Lists {
		d.list(l)
	}
	d.line("  local n = div(V.header_bits(c), 8)")
	d.line("  if n and n < tvb:len() then t:add(tvb(n), \"Payload: \" .. tvb:len() - n .. \" bytes\") end")
	if dissectorTables[d.f.Spec.Layer].table != "" {
		d.line("  pinfo.cols.info = table.concat(info, \", \", 1, math.min(#info, %d))", infoFields)
	}
	d.line("  return tvb:len()\nend")
}

// infoFields is the maximum number of fields in the column Info.
const infoFields = 8

// info writes the code that appends a field to the text of the column Info, as b:show displays it: fields that differ among packets.
func (d *dissector) info(x *Field, span string) {
	wide := fmt.Sprintf("wide(tvb, at, %d, %t)", x.Bits, x.Little)
	number, text := x.number(span), ""
	switch {
	case x.Kind == Bytes || x.Const != nil:
		return
	case x.Kind == MAC, x.Kind == IPv4, x.Kind == IPv6:
		text = fmt.Sprintf("tostring(%s:%s())", span, map[Kind]string{MAC: "ether", IPv4: "ipv4", IPv6: "ipv6"}[x.Kind])
	case x.Kind == Float:
		text = fmt.Sprintf("string.format(\"%%.6g\", %s)", number)
	case x.Bits > 32 && x.Hex:
		text = fmt.Sprintf("\"0x\" .. %s:tohex(16):gsub(\"^0+(.)\", \"%%1\")", wide)
	case x.Bits > 32 && x.Kind == Signed:
		text = fmt.Sprintf("tostring(Int64.new(%s:lower(), %s:higher()))", wide, wide)
	case x.Bits > 32:
		text = fmt.Sprintf("tostring(%s)", wide)
	case x.Hex:
		text = fmt.Sprintf("string.format(\"0x%%x\", %s)", number)
	default:
		text = fmt.Sprintf("string.format(\"%%d\", %s)", number)
	}
	if names := x.names(); names != "" {
		text = fmt.Sprintf("((%s)[%s] or %s)", names, number, text)
	}
	if x.scaled() {
		text = fmt.Sprintf("string.format(\"%%.10g\", %s)", x.scaleText(number))
	}
	if x.Unit != "" {
		text += fmt.Sprintf(" .. %q", " "+x.Unit)
	}
	d.line("    info[#info + 1] = \"%s \" .. %s", x.Name, text)
}

// number returns a Lua expression of the field's number.
func (x *Field) number(span string) string {
	switch {
	case x.Kind == Float && x.Little:
		return span + ":le_float()"
	case x.Kind == Float:
		return span + ":float()"
	}
	return fmt.Sprintf("V.%s(c)", x.Name)
}

func (r Row) scaled() bool { return r.Scale != 0 || r.Offset != 0 }

// scaleText returns a Lua expression of a number with scale and offset.
func (r Row) scaleText(number string) string {
	return fmt.Sprintf("%s * %g + %g", number, cmp.Or(r.Scale, 1), r.Offset)
}

// show writes the code that adds a field to the tree.
func (d *dissector) show(x *Field) {
	d.line("  at = P.%s(c)", x.Name)
	d.line("  if at and at >= 0 and at + %d <= tvb:len() * 8 then", x.Bits)
	span := fmt.Sprintf("span(tvb, at, %d)", x.Bits)
	switch {
	case x.Kind == Float && x.Little:
		d.line("    v = t:add_le(F.%s, %s)", x.Name, span)
	case !x.Kind.number() || x.Kind == MAC || x.Kind == IPv4:
		d.line("    v = t:add(F.%s, %s)", x.Name, span)
	case x.Bits > 32 && x.Kind == Signed:
		d.line("    v = t:add(F.%s, %s, Int64.new(wide(tvb, at, %d, %t):lower(), wide(tvb, at, %d, %t):higher()))", x.Name, span, x.Bits, x.Little, x.Bits, x.Little)
	case x.Bits > 32:
		d.line("    v = t:add(F.%s, %s, wide(tvb, at, %d, %t))", x.Name, span, x.Bits, x.Little)
	default:
		d.line("    v = t:add(F.%s, %s, V.%s(c))", x.Name, span, x.Name)
	}
	if x.scaled() {
		unit := strings.ReplaceAll(x.Unit, "%", "%%")
		if unit != "" {
			unit = " " + unit
		}
		d.line("    v:append_text(string.format(%q, %s))", " (%.10g"+unit+")", x.scaleText(x.number(span)))
	} else if x.Unit != "" {
		d.line("    v:append_text(%q)", " "+x.Unit)
	}
	if dissectorTables[d.f.Spec.Layer].table != "" {
		d.info(x, span)
	}
	d.line("  end")
}

func (d *dissector) list(l *List) {
	d.line("  at = %s", d.place(l.place))
	guard := ""
	if len(l.when) > 0 {
		guard = d.when(l.when) + " and "
	}
	d.line("  for k = 1, %s%s or 0 do", guard, d.text(l.count))
	d.line("    if at + %d > tvb:len() * 8 then break end", l.itemBits)
	d.line("    local item = t:add(span(tvb, at, %d), \"%s \" .. k)", l.itemBits, l.List)
	for _, r := range l.Rows {
		value := fmt.Sprintf("bits(tvb, at, %d)", r.Bits)
		if r.Bits > 32 {
			value = fmt.Sprintf("wide(tvb, at, %d)", r.Bits)
		}
		d.line("    item:add(F[%q], span(tvb, at, %d), %s)", l.List+"."+r.Name, r.Bits, value)
		d.line("    at = at + %d", r.Bits)
	}
	d.line("  end")
	for _, i := range l.Items {
		value := fmt.Sprintf("V.%s(c)", i.Name)
		d.line("  v = %s", value)
		if l.Rows[len(l.Rows)-1].Bits > 32 {
			d.line("  if v then t:add(F.%s, UInt64.new(v %% 2 ^ 32, math.floor(v / 2 ^ 32))):set_generated() end", i.Name)
		} else {
			d.line("  if v then t:add(F.%s, v):set_generated() end", i.Name)
		}
	}
}

// dissectorTables maps a layer to Wireshark's dissector table and the meaning of its keys. Frames have no table: their dissectors are postdissectors.
var dissectorTables = map[string]struct{ table, number string }{
	"payload": {"udp.port", "PORT"}, "transport": {"ip.proto", "NUMBER"}, "network": {"ethertype", "TYPE"},
}

// register writes the registration of the protocol with Wireshark.
func (d *dissector) register() {
	table := dissectorTables[d.f.Spec.Layer].table
	if table == "" {
		d.line("\nregister_postdissector(p)")
		return
	}
	d.line("\nDissectorTable.get(%q):add_for_decode_as(p)", table)
	if d.f.Spec.UDPPort != 0 {
		d.line("DissectorTable.get(\"udp.port\"):add(%d, p)", d.f.Spec.UDPPort)
	}
	if d.f.Spec.Ethertype != 0 {
		d.line("DissectorTable.get(\"ethertype\"):add(%d, p)", d.f.Spec.Ethertype)
	}
}
