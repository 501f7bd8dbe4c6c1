package expr

import "testing"

// nested maps names to expressions over other names.
type nested map[string]string

func (n nested) Field(name string) (Field, bool) { return Field{BitWidth: 32}, name == "x" }
func (n nested) Names() []string                 { return nil }
func (n nested) Constant(string) (uint64, bool)  { return 0, false }
func (n nested) Derived(name string) (Derived, bool) {
	text, ok := n[name]
	if !ok {
		return Derived{}, false
	}
	e, err := Parse(text)
	return Derived{Text: e}, err == nil
}

// TestShared checks that a repeated name is computed once, also across conditional jumps, with the same result.
func TestShared(t *testing.T) {
	names := nested{"a": "x * 3", "b": "a + a", "c": "b * b + a"}
	for text, want := range map[string]func(x uint64) bool{
		"c == 36 * x * x + 3 * x":         func(uint64) bool { return true },
		"a < 10 and b < 10 or c > 100000": func(x uint64) bool { return 6*x < 10 || 36*x*x+3*x > 100000 },
	} {
		p, err := names.compile(t, text)
		if err != nil {
			t.Fatal(err)
		}
		for x := range uint64(100) {
			if got := run(t, p, map[uint32]uint64{0: x}); got != want(x) {
				t.Errorf("%s of x = %d: %v: %s", text, x, got, disassemble(p))
			}
		}
	}
	e, _ := Parse("c + c + b + a")
	p, _, err := e.CompileNumber(names)
	if n := len(p); err != nil || n > 20 {
		t.Errorf("%d instructions, %v: %s", n, err, disassemble(p))
	}
	if _, err := (nested{"a": "b", "b": "a"}).compile(t, "a == 1"); err == nil {
		t.Error("names that depend on each other compile")
	}
}

func (n nested) compile(t *testing.T, text string) (Program, error) {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e.CompilePacket(n)
}
