package repl

import "testing"

func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		text, want string
		ok         bool
	}{
		{"for i = 1, 2 do\n  print(i)\nend", "for i = 1, 2 do   print(i) end", true},
		{"x = 1 -- one\ny = '--no' --[[ long\ncomment ]] z = 3", "x = 1  y = '--no'   z = 3", true},
		{"s = [[a\nb]]", `s = "a\nb"`, true},
		{"s = [==[\na]]\n]==] t = [[plain]]", `s = "a]]\n" t = [[plain]]`, true},
		{"a --", "a", true}, {"a[b[1]]\n= 2", "a[b[1]] = 2", true},
		{"s = 'a\\\nb'", "", false},
		{"oops(\n", "oops(", false},
	} {
		got, ok := oneLine(c.text)
		if got != c.want || ok != c.ok {
			t.Errorf("%q: %q %v, want %q %v", c.text, got, ok, c.want, c.ok)
		}
	}
}
