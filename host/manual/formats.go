package manual

import (
	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/stdlib"
)

// Formats describes format declarations and the library's formats.
var Formats = Topic{Name: "formats", Short: "formats: headers of packets, declared", Parts: formatParts}

const formatExample = `local daqiri = require "daqiri"
local mine = daqiri.format{
  name = "mine", title = "Packets of my board", sequence = "seq", payload = "size", lsb0 = false,
  { "magic", 16, const = 0xabcd },
  { "kind", 4, "what the packet is", values = { [1] = "data", [2] = "status" } },
  { "has_gain", 1 }, { reserved = 3 },
  { "size", 16, unit = "B", is = "payload_bytes" },
  { when = "has_gain == 1", { "gain", "i16", scale = 0.5, unit = "dB" } },
  { "chan", "u16le" }, { "seq", 32 },
}
print(daqiri.hex(mine:encode{ kind = "data", has_gain = 1, gain = -3, chan = 7, payload = "abcd" }))`

func formatParts() []Part {
	parts := []Part{
		{Words: "A format declares the header of an application's packets: `daqiri.format` takes the table, or a file of Lua returns it " +
			"(`daqiri.format(require \"mine\")`, `daqiri-run dissector mine.lua`). Its names are then known to conditions, columns, place rules, templates and " +
			"changes, and `f:decode`, `f:encode`, `b:show`, `f:page` and `f:dissector` work by it. " +
			"`daqiri-run new NAME --format F` begins a script that records such packets and writes their payloads as blocks, with a reader and a dissector. An error in a format names the field and its line."},
		{Lua: formatExample},
		{Head: "fields"},
		{Words: "A field is `{ NAME, WIDTH, WORDS, … }`, one behind the other, from the most significant bit of the first byte on. A width is a number of " +
			"bits up to 64, or a type: `u16`, `i16` (signed), `f32`, `f64`, `bytes6`, `mac`, `ipv4`, `ipv6`; `u32le` is little endian. Of little-endian fields " +
			"bits count from the least significant one of the first byte, so bits of a word are declared from its lowest on. In a table with both byte orders, `lsb0` or `bits` give the order of single bits."},
		{Table: &Table{[]string{"key of a field", "takes", "what it does"}, [][]string{
			{"`at`", "bits, or text", "where the field lies: a number is checked, gaps and overlaps are errors; a text over fields is a place apart, such as a trailer's"},
			{"`base`", "`hex`", "`b:show` and dissectors show it in hexadecimal: an unsigned number without unit and scale"},
			{"`bits`", "`{ cal = 0, overflow = 1 }`", "names of single bits, from the least significant one, of an unsigned number; each is a field too"},
			{"`const`", "a value", "what it is in every such packet: others are none of this format"},
			{"`doc`", "text", "the words about it"},
			{"`endian`", "`big`, `little`", "also a key of the whole table"},
			{"`is`", "a number as text", "the value that `encode` writes by default"},
			{"`scale`, `offset`, `unit`", "numbers, text", "how `b:show` and dissectors show it: number * scale + offset; elsewhere numbers are as in the packet"},
			{"`signed`", "true", "two's complement"},
			{"`values`", "`{ [4] = \"context\" }`", "names of values, which `encode` takes, and conditions as `FIELD.NAME`"},
			{"`when`", "a condition as text", "where it is there; what follows moves"},
		}}},
		{Words: "`{ reserved = BITS }` are bits that mean nothing. `{ when = \"…\", {…}, {…} }` is a part of several fields. A list is " +
			"`{ list = NAME, count = \"…\", {…}, {…} }`, its items one behind the other. With `key`, `match` and `items` single ones have names. " +
			"The first item whose key field has that value, and whose other fields before the last one equal `match`, has it in its last field. " +
			"With `struct = \">IBBH\"`, as of Python's struct module, rows are names alone."},
		{Head: "keys of the whole table"},
		{Table: &Table{[]string{"key", "takes", "what it does"}, [][]string{
			{"`name`, `title`, `document`", "text", "what it is called, what it is, and which document defines it; a name is small letters, digits and `-`"},
			{"`lsb0`", "true, false", "whether bits count from the least significant one of a byte, or from the most significant one; a table with little-endian numbers and fields of parts of bytes needs it"},
			{"`layer`", "`payload`, `frame`, `network`, `transport`", "from where it counts; by default the innermost payload"},
			{"`where`", "a condition as text", "over fields that every packet has: packets for which it is false are none of this format"},
			{"`data`", "a condition as text", "over its fields: packets for which it is false (leaders, trailers, context) are decoded, but stages that take the payload drop them as `bad_place`"},
			{"`sequence`", "a field, or `{ FIELD, per = { FIELD, … }, place = TEXT }`", "counts packets of the stream: the `sequence_number` of `s:reorder` beside " +
				"`packets_per_batch`; with `per` it begins again for each value of these fields, and `s:reorder` refuses it and shows `place`, options that place such packets"},
			{"`payload`", "a number as text", "bytes of the payload behind the header; without it all that is there"},
			{"`samples`", "a table", "what the payload's samples are, see below"},
			{"`udp_port`, `ethertype`", "a number", "where dissectors look for it; of layer `network` the type that templates send"},
			{"`vectors`", "a list", "packets, `{ hex = \"…\", FIELD = value, … }`, which are decoded and encoded when the format is declared"},
		}}},
		{Words: "Beside the fields, texts know `header_bytes` and `payload_bytes`."},
		{Head: "samples"},
		{Words: "`samples` describes the numbers in the payload, for `b:samples` and for `data_types` without `input_type`. Types are those of [samples](samples.md). " +
			"The other keys take a number, or a text over the packet's fields such as `\"2 ^ -gain\"`. Texts also know `header_bytes` and `payload_bytes`."},
		{Table: &Table{[]string{"key of samples", "takes", "what it does"}, [][]string{
			{"`type`", "a type, `{ of = TEXT, [0] = TYPE, … }` or `{ from = FORMAT }`", "the type of all packets; the type with the number of the text; or the type " +
				"in packets of another format, such as context packets, of the same stream. Samples of a packet whose number is not listed are not converted; " +
				"`b:samples` counts the packet in `raw`"},
			{"`complex`", "a field", "1: the samples are complex, and the type gets a `c` in front; 0: they are real; other values are as a number that is not listed"},
			{"`count`", "a number", "samples in the packet, a complex one counts once; without it all that the payload has"},
			{"`shape`", "a list of numbers", "dimensions of a packet's samples, the outermost first; one can be `\"*\"`, which has what the others leave"},
			{"`levels`", "a list, or `vlbi`", "the value of each code, for types with as many codes; `vlbi` has those of 1-bit and 2-bit VLBI data"},
			{"`scale`, `offset`", "a number", "the value is (v + offset) * scale; `scale = \"full\"` makes the full scale 1"},
			{"`rate`", "a number", "samples per second"},
			{"`frequency`", "a number", "of the middle of the band, in Hz"},
			{"`time`", "a number", "of the packet's first sample, in s"},
		}}},
		{Words: "A packet can lack a field that `type`, `rate`, `frequency`, `scale` or `offset` needs. Then the last packet of its stream before it in the burst counts. " +
			"Packets with the same values of the fields of `per` are a stream."},
		{Head: "the library"},
		{Words: "Formats that come with the program, each in a file of `stdlib/formats`:"},
	}
	index := &Table{Columns: []string{"format", "what it is"}}
	var pages []Part
	for _, name := range luaformat.LibraryNames(stdlib.Files) {
		f, err := luaformat.FromLibrary(stdlib.Files, name)
		if err != nil {
			panic(err) // can't happen: tests load every library file
		}
		index.Rows = append(index.Rows, []string{"`" + name + "`", f.Spec.Title})
		head := ""
		for _, s := range f.Head() {
			head += " " + s
		}
		pages = append(pages, Part{Code: name}, Part{Words: f.Spec.Title + "." + head}, Part{Table: &Table{format.Columns, f.Table()}})
	}
	return append(append(parts, Part{Table: index}), pages...)
}
