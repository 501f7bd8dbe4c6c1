package script

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

func TestStdio(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	for _, c := range []struct{ name, source, stdout, stderr, result string }{
		{"io.write", `return tostring(io.write("a", 1, "b"))`, "a1b", "", "true"},
		{"stdout", `io.stdout:write("x")`, "x", "", ""},
		{"stderr", `io.stderr:write("y", "\n")`, "", "y\n", ""},
		{"another default output", `io.output("` + file + `") io.write("z") io.close() return io.open("` + file + `"):read("*a")`, "", "", "z"},
		{"a file's own write", `local f = io.open("` + file + `", "w") f:write("q") f:close() return io.open("` + file + `"):read("*a")`,
			"", "", "q"},
		{"what can't be written", `return select(2, pcall(function() io.write({}) end))`, "", "",
			"<string>:1: bad argument #1 to write (number or string expected, got table)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			L := newState(t)
			var stdout, stderr bytes.Buffer
			lua51.ReplaceStdio(L, &stdout, &stderr)
			top := L.GetTop()
			if err := L.DoString(c.source); err != nil {
				t.Fatal(err)
			}
			result := ""
			if L.GetTop() > top {
				result = L.Get(-1).String()
			}
			if stdout.String() != c.stdout || stderr.String() != c.stderr || result != c.result {
				t.Errorf("stdout %q, stderr %q, result %q", stdout.String(), stderr.String(), result)
			}
		})
	}
}

func TestForbidExec(t *testing.T) {
	L := newState(t)
	forbidExec(L)
	for source, want := range map[string]string{
		`os.execute("true")`:       "<string>:1: os.execute: a script may start programs only under daqiri-run --allow-exec",
		`io.popen("true"):read(1)`: "<string>:1: io.popen: a script may start programs only under daqiri-run --allow-exec",
	} {
		if err := L.DoString(source); err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte(want)) {
			t.Errorf("%s: %v", source, err)
		}
	}
}
