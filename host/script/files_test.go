package script

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// fileCalls produces the same output in Lua 5.1, in the folder dir: modes, errno and texts, reading of numbers, default files.
const fileCalls = `
local function show(what, ...)
	local t = { pcall(...) }
	for i = 1, 8 do t[i] = (tostring(t[i]):gsub("^.*bad argument #%d", "bad argument"):gsub(" to [^(]+ %(", " ("):gsub("^p:%d+: ", ""):gsub("^%(command line%):%d+: ", ""):gsub(dir, "DIR"):gsub("^file %(0x%x+%)$", "file"):gsub("got no value", "got nil"):gsub("\\n", "/")) end
	write(what:gsub("\\n", "/") .. ": " .. table.concat(t, " ") .. "\n")
end
local path = dir .. "/f"
local function put(text) local f = assert(io.open(path, "wb")) f:write(text) f:close() end
local function all() local f = io.open(path) local text = f:read("*a") f:close() return text end
for _, mode in ipairs{ "r", "rb", "r+", "r+b", "rb+", "w", "wb", "w+b", "wb+", "a", "ab", "a+", "a+b", "ab+", "rw", "rt", "q", "", "+", "br", "wx", "b" } do
	put("12345678")
	show("mode " .. mode, function()
		local f, why, errno = io.open(path, mode)
		if not f then return f, why, errno end
		local read, whyRead, errnoRead = f:read(2)
		f:seek("cur")
		local written, whyWritten, errnoWritten = f:write("ab")
		f:close()
		return read, whyRead, errnoRead, written, whyWritten, errnoWritten, all()
	end)
end
for _, at in ipairs{ "/missing", "/f/x", "/empty/x/y", "/loop", "" } do
	for _, mode in ipairs{ "r", "w", "a+" } do show("open " .. at .. " " .. mode, io.open, dir .. at, mode) end
	show("lines " .. at, function() for line in io.lines(dir .. at) do return line end end)
	if at ~= "" then show("input " .. at, io.input, dir .. at) show("output " .. at, io.output, dir .. at .. "/") end
	show("remove " .. at, os.remove, dir .. at)
	show("rename " .. at, os.rename, dir .. at, dir .. "/new/x")
end
show("no name", io.open)
show("mode is a number", io.open, dir .. "/missing", 5)
show("mode nil", function() put("x") return io.open(path, nil):read("*a") end)
show("read a folder", function() local f = io.open(dir) local a, b, c = f:read("*a") f:close() return a, b, c end)
show("remove a full folder", os.remove, dir)
show("remove", function() put("") return os.remove(path), io.open(path) end)
show("rename", function() put("moved") return os.rename(path, path .. "2"), os.rename(path .. "2", path), all() end)
for _, args in ipairs{ { "no" }, { "full" }, { "line" }, { "full", 10 }, { "line", "20" }, { "none" }, { nil }, { "full", "x" } } do
	show("setvbuf " .. tostring(args[1]), function()
		put("")
		local f = io.open(path, "w")
		local done = f:setvbuf(args[1], args[2])
		f:write("a", "b\n", 7)
		f:setvbuf("no")
		f:close()
		return done, all()
	end)
end
show("held back", function()
	put("")
	local f, out = io.open(path, "w+"), {}
	f:setvbuf("full", 100)
	local function wrote(text) f:write(text) out[#out + 1] = #all() end
	wrote("1") f:flush() wrote("2") f:seek("cur") wrote("3") f:flush() wrote("4") f:flush() f:setvbuf("no") wrote("5")
	f:setvbuf("full") wrote(("x"):rep(5000)) f:write("6") f:seek("set") out[#out + 1] = f:read(5) f:seek("end") f:write("7") f:close()
	return table.concat(out, " "), #all()
end)
show("setvbuf to read", function() local f = io.open(path) return f:setvbuf("line"), f:setvbuf("full", 100), f:flush() end)
show("seek", function()
	put("0123456789")
	local f = io.open(path)
	local out = { f:seek("end"), f:read(0) == nil, f:seek("set", 3), f:read(2), f:seek(), f:seek("cur", -1), f:read(1), f:seek("cur", "2"), f:seek("set", 2.9), f:read(0), f:seek("end", 5), tostring(f:read(0)) }
	for i = 1, #out do out[i] = tostring(out[i]) end
	return table.concat(out, " ")
end)
show("seek before the start", function() return io.open(path):seek("set", -1) end)
show("seek by a word", function() return io.open(path):seek("begin") end)
show("read and write", function()
	put("0123456789")
	local f = io.open(path, "r+")
	local a = f:read(3)
	f:seek("cur", 0)
	f:write("xy")
	f:seek("cur", 0)
	local b = f:read(2)
	f:close()
	return a, b, all()
end)
show("output cuts", function()
	put("a long text of before")
	local before = io.output()
	io.output(path)
	io.write("new", 1, "\n")
	io.output():write("x")
	io.close()
	io.output(before)
	return all()
end)
show("input", function()
	put("line 1\nline 2\n")
	local before = io.input()
	io.input(path)
	local a, b = io.read(), io.read("*l", "*l")
	io.input():close()
	io.input(before)
	return a, b
end)
show("closed", function() local f = io.open(path) local done = f:close() return done, io.type(f), pcall(f.read, f) and 1, pcall(f.seek, f) and 1, pcall(f.close, f) and 1 end)
show("closed again", function() local f = io.open(path) f:close() return f:close() end)
show("standard", function() return io.stdout:close() end)
show("types", function() return io.type(5), io.type(io.stdout), io.type({}) end)
show("many arguments", function() put("7 x\nrest\nend") local f = io.open(path) return f:read("*n", 2, "*l", "*a", "*a", "*l") end)
show("lines", function() put("a\n\nb") local n, t = 0, "" for line in io.lines(path) do n, t = n + 1, t .. line .. ";" end return n, t end)
for _, text in ipairs{ "12 0x1F -3.5e2 abc", "1e", "1ex", "1e+", "1e+x", "0x", "0xg", "0x.8", "0x1p4", "0x1pz", ".5", ".", "-", "+-1", "5.", "5.e1", "inf 1", "-infinity 2",
	"infi", "na", "0x1.8p1 3", "1_0", "1,2", "  \n\t7", "", "   ", "1e400 2", "1e-400", "00012", "0b1", "0xabcdefg", "1.2.3", "1e5e5", "0e", "00x1", "0x1e+1", "-0x10", "1\0002" } do
	show("number " .. text, function()
		put(text)
		local f = io.open(path)
		local a, b, c = f:read("*n", "*n", "*n")
		local rest = f:read("*a")
		f:close()
		return ("%g"):format(a or -1), b and ("%g"):format(b), c and ("%g"):format(c), rest
	end)
end
show("environment", function() return os.getenv("DAQIRI_TEST_EMPTY"), os.getenv("DAQIRI_TEST_UNSET") end)
show("locale", function() return os.setlocale(), os.setlocale("C"), os.setlocale("", "numeric"), os.setlocale("xx_YY") end)
`

func TestFilesInLua(t *testing.T) {
	t.Setenv("DAQIRI_TEST_EMPTY", "")
	t.Setenv("LC_ALL", "C")
	theirs, ours := t.TempDir(), t.TempDir()
	for _, dir := range []string{theirs, ours} {
		if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
			t.Fatal(err)
		}
	}
	dir := func(path string) string { return fmt.Sprintf("local dir = %q ", path) }
	sameInLua(t, dir(theirs)+fileCalls, dir(ours)+fileCalls, strings.NewReplacer())
	want, err := os.Stat(filepath.Join(theirs, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.Stat(filepath.Join(ours, "f")); err != nil || got.Mode() != want.Mode() {
		t.Errorf("%v, %v: a new file has mode %v in Lua 5.1", got.Mode(), err, want.Mode())
	}
}

// TestHeldBackAtEnd ends scripts that do not close a file with buffered writes.
func TestHeldBackAtEnd(t *testing.T) {
	for name, end := range map[string]string{"end": "", "os.exit": "os.exit(3)", "error": "error 'x'", "closed": "f:close()"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			write(t, dir, "s.lua", fmt.Sprintf("f = io.open(%q, 'w') f:setvbuf('full', 1000) f:write('all of it') %s", path, end))
			p, err := New(Options{Path: filepath.Join(dir, "s.lua"), Stdout: io.Discard, Stderr: io.Discard, Log: func(string, string, map[string]any) {}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			p.Start()
			<-p.Done()
			if text, err := os.ReadFile(path); err != nil || string(text) != "all of it" {
				t.Errorf("the file has %q, %v", text, err)
			}
		})
	}
}

// TestProcessReadsToEnd closes a process that reads its input to the end.
func TestProcessReadsToEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	L := newState(t)
	lua51.ReplaceFiles(L)
	lua51.ReplaceStdio(L, io.Discard, io.Discard)
	if err := L.DoString(fmt.Sprintf(`local p = io.popen("cat > %s", "w") p:write("all") p:close()`, path)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "all" {
		t.Errorf("the process has read %q, %v", text, err)
	}
}
