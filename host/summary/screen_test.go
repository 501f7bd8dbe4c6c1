package summary

import (
	"bytes"
	"fmt"
	"testing"
)

func TestScreen(t *testing.T) {
	var terminal bytes.Buffer
	s := NewScreen(&terminal, func() (int, int) { return 8, 4 })
	out := s.Writer(&terminal)
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"nothing to clear", s.Clear, ""},
		{"output before the line", func() { fmt.Fprint(out, "a\n") }, "a\n"},
		{"the line", func() { s.Show("rates") }, "\r\x1b[Krates"},
		{"redrawn", func() { s.Show("rate") }, "\r\x1b[Krate"},
		{"output over the line", func() { fmt.Fprint(out, "b") }, "\r\x1b[Kb"},
		{"no line while another is open", func() { s.Show("rates") }, ""},
		{"the open line ends", func() { fmt.Fprint(out, "c\n") }, "c\n"},
		{"cut to the width", func() { s.Show("0123456789") }, "\r\x1b[K0123456\x1b[0m"},
		{"colour takes no room", func() { s.Show("\x1b[31m012345\x1b[0m6") }, "\r\x1b[K\x1b[31m012345\x1b[0m6"},
		{"a block", func() { s.Show("one\ntwo\n") }, "\r\x1b[Kone\r\ntwo"},
		{"redrawn, cut to the height", func() { s.Show("1\n2\n3\n4") }, "\x1b[1A\r\x1b[J1\r\n2\r\n3"},
		{"output over the block", func() { fmt.Fprint(out, "b\n") }, "\x1b[2A\r\x1b[Jb\n"},
		{"one line again", func() { s.Show("rates") }, "\r\x1b[Krates"},
		{"cleared", s.Clear, "\r\x1b[K"},
		{"cleared once", s.Clear, ""},
	} {
		terminal.Reset()
		step.do()
		if terminal.String() != step.want {
			t.Errorf("%s: got %q, want %q", step.name, terminal.String(), step.want)
		}
	}
}
