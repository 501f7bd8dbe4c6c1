package manual

import (
	"github.com/daqiri/daqiri-run/runtime/session/words"
)

// Samples describes the names of types of samples.
var Samples = Topic{Name: "samples", Short: "types of samples: names, byte and bit orders, conversions", Parts: sampleParts}

func sampleParts() []Part {
	kinds, orders, aliases := &Table{Columns: []string{"kind", "meaning"}}, &Table{Columns: []string{"order", "meaning"}}, &Table{Columns: []string{"alias", "type"}}
	for _, r := range words.SampleKinds() {
		kinds.Rows = append(kinds.Rows, []string{"`" + r.Name + "`", r.Text})
	}
	for _, r := range words.SampleOrders() {
		name := "none"
		if r.Name != "" {
			name = "`" + r.Name + "`"
		}
		orders.Rows = append(orders.Rows, []string{name, r.Text})
	}
	for _, r := range words.SampleAliases() {
		aliases.Rows = append(aliases.Rows, []string{"`" + r.Name + "`", "`" + r.Text + "`"})
	}
	return []Part{
		{Words: "A type of samples describes how numbers are packed into bytes, such as `u12.lsb` or `ci16be`. `data_types` of `s:convert`, `s:reorder` and " +
			"`s:copy` have one as `input_type`, and [formats](formats.md#samples) declare one. `b:samples` returns the numbers of a burst, `a.data:samples` those of an aggregate. " +
			"A type's name is `[c|q] KIND BITS [/CONTAINER [h]] [le|be] [.ORDER]`."},
		{Words: "`c` makes pairs of elements complex numbers, with the real part first; with `q` the imaginary part is first, and a conversion exchanges them. " +
			"BITS is the width of an element, 1 to 32, of one part if it is complex. `bfp` has 8 to 16 bits and is always complex."},
		{Table: kinds},
		{Words: "`/16` and `/32` place each element in a container of that many bits. The value is in the low end, with `h` in the high end; the other bits " +
			"are ignored. `i12/16le` is a 12-bit element in a little-endian 16-bit container."},
		{Words: "Elements of 16, 24, 32 and 64 bits and containers need `be`, `le` or a word order. Other elements have one of the other orders:"},
		{Table: orders},
		{Head: "conversion"},
		{Words: "Samples become `fp16`, `bf16`, `fp32`, `fp64`, `int32`, `int16` or `int8`; `u32` becomes a float. `f32`, `i16` and so on are short " +
			"names of these, with `c` in front for complex input. The output has the host's byte order."},
		{Words: "The value of an element is `(v + offset) * scale`. `scale = \"full\"` is 2^-(bits-1), and 2^-bits for unsigned types, so that the full scale is 1. For floating-point types it is 1. " +
			"`levels` lists the value of each code instead, for types of up to 8 bits. `levels = \"vlbi\"` has those of 2-bit VLBI data."},
		{Words: "With fp64 as output, or 64-bit elements as input, the arithmetic is in fp64, otherwise in fp32, rounded after each operation. Integers are rounded to the nearest, ties to even, and end " +
			"at their least and greatest values. NaN stays NaN in a floating-point output and becomes 0 in an integer. Infinities stay infinite, or become the least and greatest integer. " +
			"fp16 and bf16 are rounded from fp32; values beyond their range become infinities."},
		{Words: "`s:convert` can choose type and scale for each packet. `input_type = { of = \"bits\", [8] = \"i8\", [12] = \"i12\" }` chooses by a field, or " +
			"another number of the packet. `scale` may be such a number, with constant factors and divisors, or 2 to the power of one. A format that declares its samples so needs neither key. " +
			"Packets whose number is not listed, or that lack a field, pass unchanged and count as `raw`."},
		{Words: "A payload must consist of whole elements, for word orders also of whole words. Otherwise the packet counts as `bad_payload`. " +
			"`i10` needs a multiple of 5 bytes, `i12.w32le` one of 12."},
		{Words: "GPUs convert integers and `bfp` in the same way, with the same results. Floating-point input is refused for a region on a GPU: convert it into a region in host memory."},
		{Words: "Data that stay packed keep their type. Where a format declares offset binary of 1, 2, 4 or 8 bits, gaps of `s:reorder` and `s:heaps` are filled with the code of 0, " +
			"such as the byte 0x88 for `o4`. Otherwise they are filled with bytes of 0, which for offset binary is the least value: give `fill`."},
		{Head: "aliases"},
		{Words: "Names of other programs are accepted too: SigMF, UHD, PFNC (GigE Vision), and the older ones of this program."},
		{Table: aliases},
	}
}
