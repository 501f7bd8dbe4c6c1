package levels

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct {
		pkg, pattern string
		want         Level
	}{
		{"./tests", "^TestGnOrder$/^whole$", Test},
		{"./tests", "TestArm64", Deep},
		{"./tests/units", "^TestNative$/^plain$/^ring$", Deep},
		{"./tests/units", "^TestNative$/^asan+ubsan$/^ring$", Test},
		{"./tests/units", "TestNative", Test},
		{"./tests/vm", "TestRDMA", Deep},
		{"./bindings", "TestMembers/virtual", Deep},
		{"./bindings", "TestMembersOf", Test},
		{"./runtime/spec", ".", Test},
	} {
		if got := Of(c.pkg, c.pattern); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.pkg, c.pattern, got, c.want)
		}
	}
}
