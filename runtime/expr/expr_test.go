package expr

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) *Expr {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return e
}

// TestString covers precedence: the canonical form has only the required parentheses.
func TestString(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"chan//256<4 and port==7148", "chan // 256 < 4 and port == 7148"},
		{"((a+b))*c == 1", "(a + b) * c == 1"},
		{"a-(b-c)", "a - (b - c)"},
		{"(a-b)-c", "a - b - c"},
		{"2^3^2", "2 ^ 3 ^ 2"},
		{"(2^3)^2", "(2 ^ 3) ^ 2"},
		{"-2^2", "-2 ^ 2"},
		{"(-2)^2", "(-2) ^ 2"},
		{"2^-3", "2 ^ -3"},
		{"- -x", "--x"},
		{"~~x", "~~x"},
		{"a|b~c&d<<e+f*g", "a | b ~ c & d << e + f * g"},
		{"((((((a|b)~c)&d)<<e)+f)*g)", "(((((a | b) ~ c) & d) << e) + f) * g"},
		{"not(a==1)or b==2 and c==3", "not (a == 1) or b == 2 and c == 3"},
		{"(a==1 or b==2)and c==3", "(a == 1 or b == 2) and c == 3"},
		{"a != 1", "a ~= 1"},
		{"a\n\t< 1", "a < 1"},
		{"ipv4_src in 10.0.0.0/8", "ipv4_src in 10.0.0.0/8"},
		{"ipv6_src in 2001:db8::/32", "ipv6_src in 2001:db8::/32"},
		{"ipv6_src==::1", "ipv6_src == ::1"},
		{"eth_dst == 02:00:5e:10:00:00", "eth_dst == 02:00:5e:10:00:00"},
		{"tx_port.tx.gap_error.p99<2us", "tx_port.tx.gap_error.p99 < 2us"},
		{"rate>10Gbit/s", "rate > 10Gbit/s"},
		{"rate>10Gbit/s/2", "rate > 10Gbit/s / 2"},
		{"face.cafe == 0xBeef", "face.cafe == 0xBeef"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			e := mustParse(t, tc.text)
			if got := e.String(); got != tc.want {
				t.Fatalf("String is %q, want %q", got, tc.want)
			}
			if again := mustParse(t, tc.want).String(); again != tc.want {
				t.Errorf("parsed again it is %q", again)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "expression:1:1: unexpected end"},
		{"1 +", "expression:1:4: unexpected end"},
		{"port == 7148)", "expression:1:13: unexpected ')'"},
		{"(port == 1", "expression:1:11: missing ')' for the '(' at 1:1"},
		{"port == 1 port == 2", "expression:1:11: unexpected 'port': an operator is missing before it"},
		{"port 7148", "expression:1:6: unexpected '7148': an operator is missing before it"},
		{"a == 1 &&\nb == 2", "expression:1:8: unexpected '&&' (did you mean 'and'?)"},
		{"a == 1 || b == 2", "expression:1:8: unexpected '||' (did you mean 'or'?)"},
		{"a = 1", "expression:1:3: unexpected '=' (did you mean '=='?)"},
		{"!a", "expression:1:1: unexpected '!' (did you mean 'not'?)"},
		{"a == 1 and\n  b == $", "expression:2:8: unexpected character '$'"},
		{"é == 1", "expression:1:1: unexpected character 'é'"},
		{"a: == 1", "expression:1:2: unexpected character ':'"},
		{"a < 2usec", "expression:1:6: unknown unit 'usec'"},
		{"a < 2Gbit", "expression:1:6: unknown unit 'Gbit' (did you mean 'Gbit/s'?)"},
		{"a < 1e", "expression:1:6: unknown unit 'e'"},
		{"a < 1..2", "expression:1:5: malformed number '1..2'"},
		{"a < 0x", "expression:1:5: malformed number '0x'"},
		{"a < 1e999", "expression:1:5: the exponent of '1e999' is outside -400..400"},
		{"a < 1e99999999999999999999", "expression:1:5: malformed number '1e99999999999999999999'"},
		{"a < b < c", "expression:1:7: '<' compares numbers (join conditions with 'and': a < b and b < c)"},
		{"not a == 1", "expression:1:1: 'not' takes a condition (it binds tighter than '==': put the comparison in parentheses)"},
		{"a and b == 1", "expression:1:3: 'and' takes a condition on either side"},
		{"(a == 1) + 2", "expression:1:10: '+' takes a number on either side"},
		{"-(a == 1)", "expression:1:1: '-' takes a number"},
		{"a in 10.0.0.1", "expression:1:6: 'in' takes a prefix such as 10.0.0.0/8 on its right (compare with '==')"},
		{"a in b", "expression:1:6: 'in' takes a prefix such as 10.0.0.0/8 on its right"},
		{"a == 10.0.0.0/8", "expression:1:6: '10.0.0.0/8' is a prefix: compare with 'in'"},
		{"a in 10.0.0.1/8", "expression:1:6: '10.0.0.1/8' has bits beyond its prefix (did you mean '10.0.0.0/8'?)"},
		{"a in 10.0.0.0/33", "expression:1:6: prefix length 33 of '10.0.0.0' is outside 0..32"},
		{"a == 10.0.0.256", "expression:1:6: malformed address '10.0.0.256'"},
		{"a == 2001:::1", "expression:1:6: malformed address '2001:::1'"},
		{"a == 02:00:5e:10:00:f", "expression:1:6: malformed address '02:00:5e:10:00:f'"},
		{"a == 02:00:5e:10:00:00/8", "expression:1:6: '02:00:5e:10:00:00' is a MAC address and takes no prefix length"},
		{"a < ::1", "expression:1:3: '<' does not compare IPv6 addresses ('==', '~=' and 'in' do)"},
		{"::1 == a", "expression:1:5: '==' needs the address on its right"},
		{"a + 1 == ::1", "expression:1:7: only a field compares with an IPv6 address"},
		{"2001:db8::/32", "expression:1:1: an address alone is not a condition: compare a field with it"},
		{strings.Repeat("(", 200), "expression:1:101: nested more than 100 deep"},
		{strings.Repeat("1+", 3000) + "1", "expression:1:1: longer than 4096 bytes"},
	} {
		name := tc.text
		if len(name) > 40 {
			name = name[:40]
		}
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.text)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Parse gives %v, want an *Error", err)
			}
			if err.Error() != tc.want {
				t.Errorf("\n got %s\nwant %s", err, tc.want)
			}
		})
	}
}

func TestNamesAndCheck(t *testing.T) {
	e := mustParse(t, "disk.dropped == 0 and blocks.missing < 1e-5 * blocks.expected\nor disk.dropped > 5")
	var got []string
	for _, n := range e.Names() {
		got = append(got, n.Text)
	}
	if want := "disk.dropped blocks.missing blocks.expected"; strings.Join(got, " ") != want {
		t.Errorf("Names is %v, want %s", got, want)
	}
	if err := e.Check([]string{"disk.dropped", "blocks.missing", "blocks.expected"}); err != nil {
		t.Errorf("Check: %v", err)
	}
	err := e.Check([]string{"disk.dropped", "blocks.missed", "blocks.late"})
	want := "expression:1:23: unknown name 'blocks.missing' (did you mean 'blocks.missed'?)"
	if err == nil || err.Error() != want {
		t.Errorf("Check is %v, want %s", err, want)
	}
	err = mustParse(t, "a == 1 or b == ::1").Check([]string{"a", "b"})
	want = "expression:1:16: only packet fields compare with IPv6 addresses"
	if err == nil || err.Error() != want {
		t.Errorf("Check is %v, want %s", err, want)
	}
}

func TestEvalNumbers(t *testing.T) {
	env := func(name string) (float64, bool) {
		v, ok := map[string]float64{"x": 7, "neg": -7, "half": 0.5, "addr": 0x0a010203}[name]
		return v, ok
	}
	nan := math.NaN()
	for _, tc := range []struct {
		text string
		want float64 // NaN: unknown
	}{
		{"1 + 2 * 3", 7}, {"2^3^2", 512}, {"-2^2", -4}, {"2^-1", 0.5}, {"7 // 2", 3}, {"neg // 2", -4}, {"x // -2", -4},
		{"neg % 3", 2}, {"x % -3", -2}, {"x % 3", 1}, {"x / 2", 3.5}, {"x / 0", math.Inf(1)}, {"0 / 0", nan}, {"x % 0", nan},
		{"12 & 10", 8}, {"12 | 10", 14}, {"12 ~ 10", 6}, {"~0", -1}, {"1 << 4", 16}, {"256 >> 4", 16}, {"1 << 64", 0},
		{"1 << 62", 1 << 62}, {"1 << 63", -1 << 63}, {"2^53 & 2^53", 1 << 53}, {"2^60 & 2^60", nan},
		{"half & 1", nan}, {"~half", nan}, {"missing + 1", nan}, {"-missing", nan},
		{"10Gbit/s", 1e10}, {"1.5kbit/s", 1500}, {"8KiB", 8192}, {"8KB", 8000}, {"64GiB", 64 << 30}, {"1TiB", 1 << 40},
		{"3MiB", 3 << 20}, {"2B", 2}, {"3MB", 3e6}, {"4GB", 4e9}, {"5TB", 5e12}, {"6bit/s", 6}, {"7Mbit/s", 7e6}, {"8Tbit/s", 8e12}, {"9ns", 9},
		{"2us", 2000}, {"1.5ms", 1.5e6}, {"3s", 3e9}, {"1e-6", 1e-6}, {"1e3ns", 1000}, {"0x1F", 31}, {".5", 0.5}, {"010", 10},
		{"0e5", 0}, {"00", 0}, {"08", 8}, {"2^20", 1 << 20}, {"10.0.0.1", 0x0a000001}, {"02:00:5e:10:00:ff", 0x02005e1000ff},
	} {
		t.Run(tc.text, func(t *testing.T) {
			e := mustParse(t, tc.text)
			if e.IsCondition() {
				t.Fatal("is a condition")
			}
			got := e.Eval(env)
			if got.Known == math.IsNaN(tc.want) || got.Known && got.Num != tc.want {
				t.Errorf("Eval is %+v, want %v", got, tc.want)
			}
		})
	}
}

func TestEvalConditions(t *testing.T) {
	env := func(name string) (float64, bool) {
		v, ok := map[string]float64{"x": 7, "addr": 0x0a010203, "blocks.missing": 3, "blocks.expected": 1e6}[name]
		return v, ok
	}
	for _, tc := range []struct{ text, want string }{
		{"blocks.missing < 1e-5 * blocks.expected", "true"},
		{"x == 7", "true"}, {"x ~= 7", "false"}, {"x != 7", "false"}, {"x < 7", "false"}, {"x <= 7", "true"},
		{"x > 7", "false"}, {"x >= 7", "true"}, {"not (x == 7)", "false"},
		{"x == 7 and x == 8", "false"}, {"x == 7 or x == 8", "true"}, {"x == 8 or x == 9", "false"}, {"x == 7 and x < 8", "true"},
		{"u == 1", "unknown"}, {"not (u == 1)", "unknown"}, {"0/0 == 0/0", "unknown"},
		{"u == 1 and x == 8", "false"}, {"x == 8 and u == 1", "false"}, {"x == 7 and u == 1", "unknown"},
		{"u == 1 or x == 7", "true"}, {"x == 7 or u == 1", "true"}, {"x == 8 or u == 1", "unknown"},
		{"addr in 10.0.0.0/8", "true"}, {"addr in 10.1.2.3/32", "true"}, {"addr in 11.0.0.0/8", "false"},
		{"addr in 0.0.0.0/0", "true"}, {"addr + 2^32 in 0.0.0.0/0", "false"}, {"u in 0.0.0.0/0", "unknown"}, {"x / 2 in 0.0.0.0/0", "unknown"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			e := mustParse(t, tc.text)
			if !e.IsCondition() {
				t.Fatal("is not a condition")
			}
			got := "unknown"
			if v := e.Eval(env); v.Known && v.True {
				got = "true"
			} else if v.Known {
				got = "false"
			}
			if got != tc.want {
				t.Errorf("Eval is %s, want %s", got, tc.want)
			}
		})
	}
}
