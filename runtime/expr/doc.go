// Package expr implements the text grammar of conditions and numbers in scripts. Expressions are checked at setup and evaluated natively.
//
// The package is pure: it imports the standard library only and depends neither on sessions nor on C. An Expr is immutable and safe for concurrent
// use.
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
//	^                       power, right-associative: 2^3^2 is 2^9, and -2^2 is -(2^2)
//
// Operands are numbers, addresses, names, and expressions in parentheses:
//
//	number   7148  0x1be4  1e-6  10Gbit/s  8KiB  2us
//	address  10.0.0.1  2001:db8::1  02:00:5e:10:00:00
//	prefix   10.0.0.0/8  2001:db8::/32          only after `in`
//	name     udp_dst  rx_port.rx.dropped  tx_port.tx.gap_error.p99
//
// A unit follows its number without a space and converts it to bits per second, bytes or nanoseconds: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s; B, KB,
// MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024); ns, us, ms, s. IPv4 and MAC addresses are numbers of 32 and 48 bits.
//
// Parse determines whether an expression is a number or a condition: `and`, `or` and `not` take conditions, everything else takes numbers. // and %
// round towards minus infinity. Spaces and line ends only separate tokens.
//
// # Values of names: Eval
//
// Thresholds are evaluated in floating point over named values that change. A name without a value makes the results that depend on it unknown, as do
// operations without a result (0/0, bits of a fraction). `false and unknown` is false, `true or unknown` is true.
//
// # Packet fields: CompilePacket
//
// Filters compile to programs over the fields of a packet, in integers of 64 bits:
//
//   - A signed field, and any field of at most 63 bits, is a signed number; an unsigned field of 64
//     bits is unsigned. An operation on a signed and an unsigned number is unsigned; a negative
//     constant compared with an unsigned number is an error. A constant takes the type of the other
//     operand.
//   - Arithmetic wraps at 2^64. >> is logical; a shift by less than 0 or more than 63 gives 0.
//   - Constant parts are computed exactly at setup, so 2^20, 1.5us and 3/4*8 are valid; / and ^
//     between fields are not, and neither is a constant that is not an integer.
//   - A comparison with a field that the packet lacks, or with a division by zero, is false. So
//     `not (udp_dst == 53)` is true for a packet without UDP, and `udp_dst ~= 53` is false.
//   - An IPv6 field, which the resolver has as two halves name_hi and name_lo, can be compared with
//     IPv6 addresses by ==, ~= and in.
package expr
