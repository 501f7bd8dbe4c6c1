package expr

import "testing"

func TestCompileNumber(t *testing.T) {
	for _, tc := range []struct {
		text, want string
		signed     bool
	}{
		{"chan // 256", "chan 8 sar ret", true},
		{"feng * 16 + chan // 256", "feng 16 mul chan 8 sar add ret", true},
		{"stamp // 2^20", "stamp 20 shr ret", false},
		{"7", "7 ret", true},
	} {
		p, signed, err := mustParse(t, tc.text).CompileNumber(testFields)
		if err != nil || disassemble(p) != tc.want || signed != tc.signed {
			t.Errorf("%s: %q, signed %v, %v; want %q, %v", tc.text, disassemble(p), signed, err, tc.want, tc.signed)
		}
	}
	for _, tc := range []struct{ text, want string }{
		{"chan == 1", "expression:1:6: a number over packet fields is wanted, and this is a condition"},
		{"chan / 2", "expression:1:6: '/' of a field may be a fraction: packet conditions work in whole numbers (use '//')"},
		{"chna + 1", "expression:1:1: unknown name 'chna' (did you mean 'chan'?)"},
	} {
		if _, _, err := mustParse(t, tc.text).CompileNumber(testFields); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %q", tc.text, err, tc.want)
		}
	}
}
