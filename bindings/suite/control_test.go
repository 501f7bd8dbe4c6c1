package suite

import (
	"bufio"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/bindings"
)

const controlScript = `
local daqiri = require "daqiri"
local ctl = daqiri.control{ unix = daqiri.args{ path = "" }.path, token = "open sesame" }
assert(tostring(ctl) == "control " .. ctl.address)
local count, over = 0, false                                -- upvalues that an error in a handler must leave as they are
ctl:on("add", function(m) count = count + (m.n or m.text) return count end)
ctl:on("fail", function() error "it went wrong" end)
ctl:on("refuse", function() return nil, "NO_SPACE_AVAILABLE", "it is full" end)
ctl:on("strange", function() return print end)
ctl:on("wait", function() daqiri.sleep(0.001) return "waited" end)
ctl:on("gone", function() end)
ctl:on("gone")
ctl:on("stop", function() over = true end)
while not over do daqiri.sleep(0.001) end
assert(count == 9, count)
for text, o in pairs{ ["exactly one of the options"] = {}, ["give a token"] = { tcp = "127.0.0.1:0" }, ["is not IP:PORT"] = { tcp = "here", token = "x" },
  ["three octal digits expected"] = { unix = "x", mode = "rw" } } do
  local ok, why = pcall(daqiri.control, o)
  assert(not ok and tostring(why):find(text, 1, true), tostring(why))
end
local ok, why = pcall(ctl.on, ctl, "two words", function() end)
assert(not ok and tostring(why):find("a verb has letters", 1, true), why)
ok, why = pcall(ctl.on, ctl, "token", function() end)
assert(not ok and tostring(why):find("authorizes a connection", 1, true), why)
ctl:close()
`

// TestControl checks the answers of a script to valid and invalid lines, and that no line ends the script.
func TestControl(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	talked := make(chan string, 1)
	go func() { talked <- talk(path) }()
	o := run(t, "control.lua", controlScript, func(rt *bindings.Runtime) { rt.ScriptArgs = []string{"--path", path} })
	if o.err != nil {
		t.Errorf("%v\n%s", o.err, o.out)
	}
	if problem := <-talked; problem != "" {
		t.Error(problem)
	}
}

// talk sends each line and compares the answer; it returns "" if all match.
func talk(path string) (problem string) {
	var c net.Conn
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var err error
		if c, err = net.Dial("unix", path); err == nil {
			break
		} else if time.Now().After(deadline) {
			return err.Error()
		}
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for _, x := range [][2]string{
		{`{"verb":"add","n":5}`, `{"error":"the token is missing, or another","ok":false}`},
		{`add 5`, `the token is missing`},
		{`{"verb":"add","n":5,"token":"open sesame"}`, `{"ok":true,"reply":5}`},
		{`add 1`, `{"ok":true,"reply":6}`}, // authorized by an earlier line
		{`{"verb":"add","n":100,"token":"another"}`, `the token is missing, or another`},
		{`{"verb":"fail","token":"open sesame","id":"a"}`, `it went wrong","id":"a","ok":false}`},
		{`{"verb":"add","n":3,"token":"open sesame","id":null}`, `{"ok":true,"reply":9}`},
		{`{"verb":"refuse","token":"open sesame"}`, `{"error":"NO_SPACE_AVAILABLE: it is full","ok":false}`},
		{`{"verb":"strange","token":"open sesame"}`, `the reply of 'strange'`},
		{`{"verb":"wait","token":"open sesame"}`, `{"ok":true,"reply":"waited"}`},
		{`{"verb":"gone","token":"open sesame"}`, `unknown verb 'gone'`},
		{`{"verb":5,"token":"open sesame"}`, `unknown verb ''`},
		{`{"verb":"add"} more`, `json: more text behind the object`},
		{`{"n":1e999}`, `json: `},
		{`{"verb":"help","token":"open sesame"}`, `"reply":["add","fail","refuse","stop","strange","wait"]`},
		{`{"verb":"stop","token":"open sesame"}`, `{"ok":true}`},
	} {
		if _, err := c.Write([]byte(x[0] + "\n")); err != nil {
			return err.Error()
		}
		answer, err := r.ReadString('\n')
		if err != nil || !strings.Contains(answer, x[1]) {
			problem += x[0] + " -> " + answer
		}
	}
	return problem
}
