package lua51

import (
	"fmt"
	"os/exec"
	"runtime"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// numbersSource covers results that differ in plain gopher-lua.
const numbersSource = `return "010" + 0, "0x10" * 1, 2 - "1e1", -"010", "7" % "4", "2" ^ 3, "9" / "3",
	tostring(pcall(function() return "1_0" + 0 end)), tostring(pcall(function() return "0b1" + 0 end)), tostring(pcall(function() return {} + "1" end)),
	"x" + setmetatable({}, { __add = function(a, b) return a end }), setmetatable({}, { __add = function(a, b) return b end }) + "y",
	tonumber("1e3"), tonumber(" 010\n"), tonumber("0x1F"), tonumber("1f", 16), tonumber(12), tostring(tonumber("1e")), tostring(tonumber("")), tostring(tonumber({})),
	tostring(tonumber("0x")), tostring(math.huge == 1 / 0), tostring(-math.huge < -1e308), ("x"):rep(3), #("abc"), tonumber("-0x10"), tonumber(".5"), tostring(tonumber("5 5"))`

func TestNumbers(t *testing.T) {
	theirs, err := exec.Command(require.Lua51(t), "-e", "local function f() "+numbersSource+" end io.write(table.concat({f()}, ' '))").CombinedOutput()
	if err != nil {
		t.Fatal(err, string(theirs))
	}
	if got := results(t, numbersSource); got != string(theirs) {
		t.Errorf("got  %s\nwant %s, as Lua 5.1", got, theirs)
	}
}

// TestSparseTable checks that a packet number as a key does not allocate a list up to it, and that lists remain lists.
func TestSparseTable(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := results(t, "local t = {} t[60000000] = 'x' t[1] = 'y' local n = 0 for k in pairs(t) do n = n + k end return #t, n, t[60000000]"); got != "1 60000001 x" {
		t.Error(got)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("one key took %d bytes", used)
	}
	if got, want := results(t, "local t = {} for i = 1, 300000 do t[#t + 1] = i end table.insert(t, 7) return #t, t[300001], table.remove(t), #t"), fmt.Sprint(300001, 7, 7, 300000); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
