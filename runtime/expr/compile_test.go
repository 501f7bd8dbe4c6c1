package expr

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// fields is a Resolver backed by a map.
type fields map[string]Field

func (f fields) Field(name string) (Field, bool) {
	v, ok := f[name]
	return v, ok
}

func (f fields) Names() []string { return slices.Sorted(maps.Keys(f)) }

// testFields have distinct offsets, by which the interpreter below identifies them.
var testFields = fields{
	"port":        {Base: BaseL4, Need: 0x30, BitWidth: 16, BitOffset: 16},
	"chan":        {Base: BasePayload, BitWidth: 32, BitOffset: 64},
	"feng":        {Base: BasePayload, BitWidth: 32, BitOffset: 96},
	"stamp":       {Base: BasePayload, BitWidth: 64, BitOffset: 128},
	"delta":       {Base: BasePayload, Flags: FieldSigned, BitWidth: 64, BitOffset: 192},
	"rx_time":     {Base: BaseMeta, Meta: 3, Flags: FieldSigned, BitWidth: 64},
	"ipv4_src":    {Base: BaseL3, Need: 4, BitWidth: 32, BitOffset: 96},
	"ipv6_src_hi": {Base: BaseL3, Need: 8, BitWidth: 64, BitOffset: 65},
	"ipv6_src_lo": {Base: BaseL3, Need: 8, BitWidth: 64, BitOffset: 129},
}

var opNames = map[Op]string{
	OpAdd: "add", OpSub: "sub", OpMul: "mul", OpDivS: "div_s", OpDivU: "div_u", OpModS: "mod_s", OpModU: "mod_u",
	OpAnd: "and", OpOr: "or", OpXor: "xor", OpShl: "shl", OpShr: "shr", OpSar: "sar", OpNeg: "neg", OpInv: "inv",
	OpEq: "eq", OpNe: "ne", OpLtS: "lt_s", OpLeS: "le_s", OpGtS: "gt_s", OpGeS: "ge_s", OpLtU: "lt_u", OpLeU: "le_u",
	OpGtU: "gt_u", OpGeU: "ge_u", OpNot: "not", OpJz: "jz", OpJnz: "jnz", OpRet: "ret",
}

func disassemble(p Program) string {
	var out []string
	for _, i := range p {
		switch i.Op {
		case OpPush:
			out = append(out, fmt.Sprint(int64(i.Imm)))
		case OpLoad:
			for name, f := range testFields {
				if f.load() == i {
					out = append(out, name)
				}
			}
		case OpJz, OpJnz:
			out = append(out, fmt.Sprintf("%s:%d", opNames[i.Op], i.C))
		default:
			out = append(out, opNames[i.Op])
		}
	}
	return strings.Join(out, " ")
}

func TestCompilePacket(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"port == 7148", "port 7148 eq ret"},
		{"7148 == port", "port 7148 eq ret"},
		{"5 < port", "port 5 gt_s ret"},
		{"chan // 256 < 4 and port == 7148", "chan 8 sar 4 lt_s jz:9 port 7148 eq ret"},
		{"chan // 256 < 4 and port == 1 and feng == 2", "chan 8 sar 4 lt_s jz:9 port 1 eq jz:13 feng 2 eq ret"},
		{"port == 1 or port == 2", "port 1 eq jnz:7 port 2 eq ret"},
		{"not (port == 1)", "port 1 eq not ret"},
		{"chan % 8 == 3", "chan 7 and 3 eq ret"},
		{"chan % 6 == 3", "chan 6 mod_s 3 eq ret"},
		{"chan // 6 == 3", "chan 6 div_s 3 eq ret"},
		{"stamp // 2^20 == 3", "stamp 20 shr 3 eq ret"},
		{"stamp // 10 >= 3", "stamp 10 div_u 3 ge_u ret"},
		{"stamp % 10 == 3", "stamp 10 mod_u 3 eq ret"},
		{"delta // 4 < -1", "delta 2 sar -1 lt_s ret"},
		{"stamp > 0xffffffffffffffff - 1", "stamp -2 gt_u ret"},
		{"chan < 2^63", "chan -9223372036854775808 lt_u ret"},
		{"chan * 2 + feng > 1.5us", "chan 2 mul feng add 1500 gt_s ret"},
		{"chan == 3 / 4 * 8", "chan 6 eq ret"},
		{"chan == (12 ~ 10)", "chan 6 eq ret"},
		{"chan == (12 | 10) + (12 & 10)", "chan 22 eq ret"},
		{"chan & ~0xff == 0", "chan -256 and 0 eq ret"},
		{"chan >> 4 ~ feng << 2 | 1 == 0", "chan 4 shr feng 2 shl xor 1 or 0 eq ret"},
		{"stamp << chan < stamp", "stamp chan shl stamp lt_u ret"},
		{"chan > -1 << 2", "chan -4 gt_s ret"},
		{"chan > -8 >> 0", "chan -8 gt_s ret"},
		{"chan << stamp < -1", "chan stamp shl -1 lt_s ret"},
		{"-chan < ~feng", "chan neg feng inv lt_s ret"},
		{"rx_time < 5s", "rx_time 5000000000 lt_s ret"},
		{"1 == 2", "2 1 eq ret"},
		{"ipv4_src == 10.0.0.1", "ipv4_src 167772161 eq ret"},
		{"ipv4_src in 10.0.0.0/8", "ipv4_src -16777216 and 167772160 eq ret"},
		{"ipv4_src in 0.0.0.0/0", "ipv4_src -4294967296 and 0 eq ret"},
		{"ipv6_src == ::1", "ipv6_src_hi -1 and 0 eq jz:11 ipv6_src_lo -1 and 1 eq ret"},
		{"ipv6_src ~= ::1", "ipv6_src_hi 0 ne jnz:7 ipv6_src_lo 1 ne ret"},
		{"ipv6_src in 2001:db8::/32", "ipv6_src_hi -4294967296 and 2306139568115548160 eq ret"},
		{"ipv6_src in ::/0", "ipv6_src_hi 0 and 0 eq ret"},
		{"ipv6_src in ::1:0/112", "ipv6_src_hi -1 and 0 eq jz:11 ipv6_src_lo -65536 and 65536 eq ret"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			p, err := mustParse(t, tc.text).CompilePacket(testFields)
			if err != nil {
				t.Fatal(err)
			}
			if got := disassemble(p); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestCompilePacketErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"port + 1", "expression:1:6: a packet condition must be true or false: compare the number with something"},
		{"prot == 1", "expression:1:1: unknown name 'prot' (did you mean 'port'?)"},
		{"port == 1 and wavelength > 2", "expression:1:15: unknown name 'wavelength'"},
		{"port == 1.5", "expression:1:9: 3/2 is not a whole number: packet conditions work in whole numbers"},
		{"port & 1.5 == 1", "expression:1:8: 3/2 is not a whole number: packet conditions work in whole numbers"},
		{"port == 1.5 & 1", "expression:1:9: 3/2 is not a whole number: packet conditions work in whole numbers"},
		{"port == ~1.5", "expression:1:10: 3/2 is not a whole number: packet conditions work in whole numbers"},
		{"port == 2^64", "expression:1:10: the constant does not fit 64 bits"},
		{"port == -2^64", "expression:1:9: the constant does not fit 64 bits"},
		{"port == 1e400 * 1e400 * 1e400 * 1e400", "expression:1:31: the constant is too large"},
		{"port == 2^2^20", "expression:1:10: the exponent is not a whole number in -400..400"},
		{"port == 1e300^300", "expression:1:14: the constant is too large"},
		{"port == 0^-1", "expression:1:10: division by zero"},
		{"port // 0 == 1", "expression:1:6: division by zero"},
		{"port == 1 % 0", "expression:1:11: division by zero"},
		{"port / 2 == 1", "expression:1:6: '/' of a field may be a fraction: packet conditions work in whole numbers (use '//')"},
		{"port ^ 2 == 1", "expression:1:6: '^' of a field may be a fraction: packet conditions work in whole numbers"},
		{"stamp > -1", "expression:1:9: -1 is negative, and the other side an unsigned 64-bit number"},
		{"stamp // -2 == 1", "expression:1:10: an unsigned 64-bit number cannot be divided by a negative one"},
		{"port >> 64 == 1", "expression:1:9: a shift by 64 is outside 0..63"},
		{"port << -1 == 1", "expression:1:9: a shift by -1 is outside 0..63"},
		{"ipv6_src > 5", "expression:1:1: 'ipv6_src' has 128 bits: compare it with an IPv6 address, or use ipv6_src_hi and ipv6_src_lo"},
		{"port == ::1", "expression:1:1: 'port' is not an IPv6 address"},
		{"ipv6_scr == ::1", "expression:1:1: unknown name 'ipv6_scr' (did you mean 'ipv6_src'?)"},
		{strings.Repeat("port+(", 40) + "1" + strings.Repeat(")", 40) + " == 1",
			"expression:1:1: the condition is nested too deeply: it needs a stack of 41, more than 32"},
		{strings.Repeat("port==1 or ", 300) + "port==1", "expression:1:1: the condition needs 1204 instructions, more than 1024"},
	} {
		name := tc.text
		if len(name) > 40 {
			name = name[:40]
		}
		t.Run(name, func(t *testing.T) {
			p, err := mustParse(t, tc.text).CompilePacket(testFields)
			if err == nil {
				t.Fatalf("compiles to %s", disassemble(p))
			}
			if err.Error() != tc.want {
				t.Errorf("\n got %s\nwant %s", err, tc.want)
			}
		})
	}
}

// run interprets a program as defined by dq_ops.h; values holds field values by offset.
func run(t testing.TB, p Program, values map[uint32]uint64) bool {
	t.Helper()
	var stack []uint64
	spoilt := false
	for pc := 0; ; pc++ {
		i := p[pc]
		if len(stack) > MaxStack {
			t.Fatalf("the stack is too deep in %s", disassemble(p))
		}
		top := len(stack) - 1
		switch {
		case i.Op == OpPush:
			stack = append(stack, i.Imm)
		case i.Op == OpLoad:
			v, ok := values[i.C]
			spoilt = spoilt || !ok
			stack = append(stack, v)
		case i.Op >= OpAdd && i.Op <= OpSar:
			v, ok := calculate(i.Op, stack[top-1], stack[top])
			spoilt = spoilt || !ok
			stack = append(stack[:top-1], v)
		case i.Op >= OpEq && i.Op <= OpGeU:
			v := !spoilt && ordered(i.Op, stack[top-1], stack[top])
			spoilt = false
			stack = append(stack[:top-1], bit(v))
		case i.Op == OpPick:
			stack = append(stack, stack[i.C])
		case i.Op == OpNeg:
			stack[top] = -stack[top]
		case i.Op == OpInv:
			stack[top] = ^stack[top]
		case i.Op == OpOnes:
			stack[top] = uint64(bits.OnesCount64(stack[top]))
		case i.Op == OpNot:
			stack[top] = bit(stack[top] == 0)
		case i.Op == OpJz || i.Op == OpJnz:
			if (stack[top] == 0) == (i.Op == OpJz) {
				pc = int(i.C) - 1
			} else {
				stack = stack[:top]
			}
		default:
			if i.Op != OpRet || pc != len(p)-1 || len(stack) == 0 {
				t.Fatalf("malformed program: %s", disassemble(p))
			}
			return stack[top] != 0
		}
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func calculate(op Op, a, b uint64) (uint64, bool) {
	divides := op >= OpDivS && op <= OpModU
	if divides && b == 0 {
		return 0, false
	}
	switch op {
	case OpAdd:
		return a + b, true
	case OpSub:
		return a - b, true
	case OpMul:
		return a * b, true
	case OpDivU:
		return a / b, true
	case OpModU:
		return a % b, true
	case OpDivS:
		return uint64(floorDiv(int64(a), int64(b))), true
	case OpModS:
		return a - b*uint64(floorDiv(int64(a), int64(b))), true
	case OpAnd:
		return a & b, true
	case OpOr:
		return a | b, true
	case OpXor:
		return a ^ b, true
	case OpShl:
		return shiftLeft(a, int64(b)), true
	case OpShr:
		return shiftRight(a, int64(b)), true
	}
	return uint64(int64(a) >> min(b, 63)), true
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func ordered(op Op, a, b uint64) bool {
	x, y := int64(a), int64(b)
	return []bool{a == b, a != b, x < y, x <= y, x > y, x >= y, a < b, a <= b, a > b, a >= b}[op-OpEq]
}

// gen generates random expressions together with their values.
type gen struct {
	*rand.Rand
	chan_, feng int64
}

func (g *gen) num(depth int) (string, int64, bool) {
	if depth == 0 || g.IntN(4) == 0 {
		switch g.IntN(4) {
		case 0:
			return "chan", g.chan_, true
		case 1:
			return "feng", g.feng, true
		case 2:
			return "port", 0, false // absent from the packet
		}
		v := g.Int64N(1 << g.IntN(20))
		return fmt.Sprint(v), v, true
	}
	x, a, ok1 := g.num(depth - 1)
	y, b, ok2 := g.num(depth - 1)
	ok := ok1 && ok2
	text := func(op string) string { return "(" + x + ")" + op + "(" + y + ")" }
	switch g.IntN(8) {
	case 0:
		return text("-"), a - b, ok
	case 1:
		return text("*"), a * b, ok
	case 2:
		return text("&"), a & b, ok
	case 3:
		return text("~"), a ^ b, ok
	case 4:
		if b == 0 {
			return text("+"), a + b, ok
		}
		return text("//"), floorDiv(a, b), ok
	case 5:
		if b == 0 {
			return text("|"), a | b, ok
		}
		return text("%"), a - b*floorDiv(a, b), ok
	case 6:
		return "-(" + x + ")", -a, ok1
	}
	return text("+"), a + b, ok
}

func (g *gen) cond(depth int) (string, bool) {
	if depth == 0 || g.IntN(4) == 0 {
		x, a, ok1 := g.num(3)
		y, b, ok2 := g.num(1)
		switch g.IntN(3) {
		case 0:
			return x + " <= " + y, ok1 && ok2 && a <= b
		case 1:
			return x + " ~= " + y, ok1 && ok2 && a != b
		}
		return x + " > " + y, ok1 && ok2 && a > b
	}
	x, a := g.cond(depth - 1)
	y, b := g.cond(depth - 1)
	switch g.IntN(3) {
	case 0:
		return "(" + x + ") and (" + y + ")", a && b
	case 1:
		return "(" + x + ") or (" + y + ")", a || b
	}
	return "not (" + x + ")", !a
}

// TestRandomConditions compares compiled programs with Go's arithmetic, including folding and short-circuit evaluation.
func TestRandomConditions(t *testing.T) {
	g := &gen{Rand: rand.New(rand.NewPCG(1, 2))}
	compiled := 0
	for range 20000 {
		g.chan_, g.feng = g.Int64N(1<<32), g.Int64N(64)
		text, want := g.cond(3)
		e, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "longer than") {
				continue
			}
			t.Fatalf("%s: %v", text, err)
		}
		p, err := e.CompilePacket(testFields)
		if err != nil {
			continue // a constant part that overflows 64 bits
		}
		compiled++
		got := run(t, p, map[uint32]uint64{64: uint64(g.chan_), 96: uint64(g.feng)})
		if got != want {
			t.Fatalf("chan %d, feng %d: %s is %v, want %v: %s", g.chan_, g.feng, text, got, want, disassemble(p))
		}
	}
	if compiled < 15000 {
		t.Errorf("only %d of 20000 conditions compile", compiled)
	}
}

// TestStrengthReduction checks that shifts and masks give the same results as the divisions they replace.
func TestStrengthReduction(t *testing.T) {
	for shift := range 63 {
		for _, v := range []int64{0, 1, -1, 255, -256, -257, 1 << 40, -(1 << 40) - 1} {
			d := int64(1) << shift
			text := fmt.Sprintf("delta // %d == %d and delta %% %d == %d", d, floorDiv(v, d), d, v-d*floorDiv(v, d))
			p, err := mustParse(t, text).CompilePacket(testFields)
			if err != nil {
				t.Fatal(err)
			}
			if !run(t, p, map[uint32]uint64{192: uint64(v)}) {
				t.Errorf("delta %d: %s is false", v, text)
			}
			u := uint64(v)
			text = fmt.Sprintf("stamp // %d == %d and stamp %% %d == %d", d, u/uint64(d), d, u%uint64(d))
			if p, err = mustParse(t, text).CompilePacket(testFields); err != nil {
				t.Fatal(err)
			}
			if !run(t, p, map[uint32]uint64{128: u}) {
				t.Errorf("stamp %d: %s is false", u, text)
			}
		}
	}
}

func TestLayout(t *testing.T) {
	if opCount != 38 {
		t.Errorf("there are %d opcodes, enum dq_opcode has 38 with DQ_OP_INVALID", opCount)
	}
	if got := bits.Len64(testFields["rx_time"].load().Imm); got > 24 {
		t.Errorf("a load uses %d bits of Imm, the engine knows 24", got)
	}
}
