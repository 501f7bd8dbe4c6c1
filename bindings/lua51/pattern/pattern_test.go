package pattern

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/require"
)

// show formats a match like the Lua program of TestAgainstLua.
func show(src, pat string) string {
	m := New(src, pat, nil)
	start, end, err := m.Find(0)
	if err != nil {
		return "error"
	}
	if end < 0 {
		return "nil"
	}
	text := fmt.Sprintf("%d %d", start+1, end)
	for _, c := range m.Captures() {
		if c.End == Position {
			text += fmt.Sprintf(" @%d", c.Start+1)
		} else {
			text += fmt.Sprintf(" [%s]", src[c.Start:c.End])
		}
	}
	return text
}

func TestMatches(t *testing.T) {
	for _, c := range []struct{ src, pat, want string }{
		{"hello world", "o w", "5 7"},
		{"hello", "l+", "3 4"},
		{"hello", "(h)(.)(%l+)", "1 5 [h] [e] [llo]"},
		{"hello", "()ll()", "3 4 @3 @5"},
		{"x(y(z))w", "%b()", "2 7"},
		{"THE (quick) fox", "%f[%a]%a+%f[%A]", "1 3"},
		{"abcabc", "(abc)%1", "1 6 [abc]"},
		{"a]b", "[]]", "2 2"},
		{"a-b", "[a%-]+", "1 2"},
		{"a^b", "[^^]b", "nil"},
		{"key = 5", "(%w+)%s*=%s*(%d-)$", "1 7 [key] [5]"},
		{" a\tb\r\nc", "a%sb%s%s", "2 6"},
		{"a1 B2", "%u%d", "4 5"},
		{"ab cd", "%f[%s]", "3 2"},
		{"", "", "1 0"},
		{"x", "(", "error"},
		{"x", ")", "error"},
		{"x", "%", "error"},
		{"x", "[a", "error"},
		{"x", "%1", "error"},
		{"\x00\xff", "%z.", "1 2"},
		{"x", strings.Repeat("()", 33), "error"},
		{"x", strings.Repeat("y?", 300), "1 0"},
		{strings.Repeat("y", 300), strings.Repeat("y?", 300), "error"}, // exceeds maxDepth
	} {
		if got := show(c.src, c.pat); got != c.want {
			t.Errorf("%q in %.40q: %s, want %s", c.pat, c.src, got, c.want)
		}
	}
}

// TestInterrupt ends a match that would take practically forever.
func TestInterrupt(t *testing.T) {
	late := errors.New("late")
	until := time.Now().Add(10 * time.Millisecond)
	m := New(strings.Repeat("a", 90000), strings.Repeat("a-", 30)+"b", func() error {
		if time.Now().After(until) {
			return late
		}
		return nil
	})
	if _, _, err := m.Find(0); !errors.Is(err, late) {
		t.Errorf("error %v", err)
	}
}

// TestAgainstLua compares random patterns on random texts with the system's lua5.1.
func TestAgainstLua(t *testing.T) {
	program, err := exec.LookPath("lua5.1")
	if err != nil {
		require.Lack(t, "lua5.1", err.Error())
	}
	r := rand.New(rand.NewPCG(1, 7))
	pick := func(from []string, most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteString(from[r.IntN(len(from))])
		}
		return b.String()
	}
	items := []string{"a", "b", ".", "%a", "%d", "%S", "[ab]", "[^b]", "[a-c%d]", "%b()", "%f[a]", "(", ")", "()", "%1", "*", "+", "-", "?", "$", "^", "1", " ", "]", "[", "%"}
	texts := []string{"a", "b", "c", "1", " ", "(", ")", "-", "]", "^", "$"}
	const n = 100000
	quote := func(s string) string { return "[==[" + s + "]==]" }
	var questions bytes.Buffer
	var want []string
	var cases [][2]string
	questions.WriteString(`local function show(s, p)
	local r = { pcall(string.find, s, p) }
	if not r[1] then return "error" elseif r[2] == nil then return "nil" end
	local t = r[2] .. " " .. r[3]
	for i = 4, #r do t = t .. (type(r[i]) == "number" and " @" .. r[i] or " [" .. r[i] .. "]") end
	return t
end
`)
	for range n {
		src, pat := pick(texts, 10), strings.TrimPrefix(pick(items, 6), "^")
		if Plain(pat) || strings.HasPrefix(pat, "^") {
			continue
		}
		cases = append(cases, [2]string{src, pat})
		fmt.Fprintf(&questions, "print(show(%s, %s))\n", quote(src), quote(pat))
	}
	cmd := exec.Command(program, "-")
	cmd.Stdin = &questions
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want = strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(want) != len(cases) {
		t.Fatalf("%d answers to %d questions", len(want), len(cases))
	}
	for i, c := range cases {
		if got := show(c[0], c[1]); got != want[i] {
			t.Fatalf("%q in %q: %s, want %s", c[1], c[0], got, want[i])
		}
	}
}
