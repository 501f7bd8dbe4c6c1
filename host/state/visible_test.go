package state

import "testing"

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü … \"quoted\"":  "plain ü … \"quoted\"",
		"\x1b[2J\"x\"":          `\x1b[2J\"x\"`,
		"a\x9bb\xff":            `a\x9bb\xff`,
		"\u202e":                `\u202e`,
		"one\n\ttwo\x07\nthree": "one\n\ttwo\\a\nthree",
	} {
		if got := VisibleLines(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Visible("a\nb"); got != `a\nb` {
		t.Errorf("%q", got)
	}
}
