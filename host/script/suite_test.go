package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// suite lists Lua's own test scripts, run from gopher-lua's module. Those without upTo run to their end, the others to the line that contains it.
// Scripts listed below are omitted.
//
//	all, main, checktable, api     start the others or the interpreter, or need C functions that only a debug build has
//	big, verybig                   need 4 GB, and minutes
//	db                             hooks and names of locals, of which gopher-lua has none
//	errors                         the texts of errors, which differ
//	gc                             the collector, which is Go's
var suite = []struct{ file, upTo, why string }{
	{"attrib.lua", "", ""},
	{"calls.lua", "", ""},
	{"closure.lua", "", ""},
	{"code.lua", "", ""},
	{"constructs.lua", "", ""},
	{"events.lua", "", ""},
	{"files.lua", "", ""},
	{"literals.lua", "", ""},
	{"locals.lua", "", ""},
	{"math.lua", "", ""},
	{"nextvar.lua", "table.foreach(", "functions that Lua 5.1 itself calls deprecated are missing"},
	{"pm.lua", "", ""},
	{"sort.lua", "", ""},
	{"strings.lua", "", ""},
	{"vararg.lua", "", ""},
}

// suiteHead defines globals that the scripts read, and sets the search path of their modules.
const suiteHead = "T, Message, err, when, X, NX, WX1, WX2, K, A, B, D, f, x, a, b, i, j = nil package.path = package.path .. ';DIR/?.lua' "

func TestLuaSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/gopher-lua").Output()
	if err != nil {
		t.Skipf("no module cache: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "_lua5.1-tests")
	for _, c := range suite {
		t.Run(c.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, c.file))
			if err != nil {
				t.Fatal(err)
			}
			source := strings.ReplaceAll(suiteHead, "DIR", dir) + head(t, string(text), c.upTo)
			t.Chdir(t.TempDir())
			if err := os.MkdirAll("libs/P1", 0o755); err != nil {
				t.Fatal(err)
			}
			L, close := fullState(t)
			defer close()
			fn, err := lua51.Compile(L, c.file, source)
			if err != nil {
				t.Fatal(err)
			}
			L.Push(fn)
			if err := L.PCall(0, 0, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// head returns a text up to the line with a mark, which must exist.
func head(t *testing.T, text, mark string) string {
	t.Helper()
	if mark == "" {
		return text
	}
	at := strings.Index(text, mark)
	if at < 0 {
		t.Fatalf("no line has %q", mark)
	}
	return text[:strings.LastIndexByte(text[:at], '\n')+1]
}
