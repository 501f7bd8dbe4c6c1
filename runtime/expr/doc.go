// Package expr is the project's one text grammar: conditions and numbers that a script writes as
// text and that are checked at set-up and evaluated natively.
//
// It is pure: it imports the standard library only and knows neither sessions nor C. An Expr is
// immutable and safe for concurrent use.
//
// # Grammar
//
// Operators and their precedence are Lua's (5.3), lowest first; all but ^ associate to the left:
//
//	or
//	and
//	== ~= != < <= > >= in
//	|
//	~                       exclusive or
//	&
//	<< >>
//	+ -
//	* / // %
//	not - ~                 unary
//	^                       power, to the right: 2^3^2 is 2^9, and -2^2 is -(2^2)
//
// Operands are numbers, addresses, names, and expressions in parentheses:
//
//	number   7148  0x1be4  1e-6  10Gbit/s  8KiB  2us
//	address  10.0.0.1  2001:db8::1  02:00:5e:10:00:00
//	prefix   10.0.0.0/8  2001:db8::/32          behind `in` only
//	name     udp_dst  rx_port.rx.dropped  tx_port.tx.gap_error.p99
//
// A unit follows its number at once and turns it into bits per second, bytes or nanoseconds:
// bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s; B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB
// (powers of 1024); ns, us, ms, s. IPv4 and MAC addresses are numbers of 32 and 48 bits.
//
// Every expression is either a number or a condition, which Parse settles: `and`, `or` and `not`
// take conditions, everything else takes numbers. // and % round towards minus infinity. Spaces and
// line ends separate and mean nothing else.
//
// # Values of names: Eval
//
// Thresholds are evaluated in floating point over names whose values change. A name without a value
// makes what depends on it unknown, and so does an operation without a result (0/0, bits of a
// fraction). `false and unknown` is false, `true or unknown` is true.
//
// # Packet fields: CompilePacket
//
// Filters become programs over the fields of a packet, in whole numbers of 64 bits:
//
//   - A signed field, and any field of at most 63 bits, is a signed number; an unsigned field of 64
//     bits is an unsigned one. A signed number that meets an unsigned one is taken as unsigned; a
//     negative constant compared with an unsigned number is an error. A constant takes the type of
//     what it meets.
//   - Arithmetic wraps at 2^64. >> is logical; a shift by less than 0 or more than 63 gives 0.
//   - Constant parts are computed exactly at set-up, so 2^20, 1.5us and 3/4*8 are fine; / and ^
//     between fields are not, and neither is a constant that is not whole.
//   - A comparison with a field that the packet hasn't got, or that divides by zero, is false. So
//     `not (udp_dst == 53)` holds for a packet without UDP, `udp_dst ~= 53` doesn't.
//   - An IPv6 field, known to the resolver by its halves name_hi and name_lo, compares by ==, ~=
//     and in with IPv6 addresses.
package expr
