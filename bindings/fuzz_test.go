package bindings

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/runtime/control"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// endless matches Lua keywords that allow unbounded time or memory: such input is skipped, as the reader is not expected to bound it.
var endless = regexp.MustCompile(`\b(while|repeat|for|function|goto)\b|\.\.`)

// FuzzFormat checks that no format file causes a panic, that the dissector of an accepted format is text, and that packets of arbitrary bytes can
// be decoded.
func FuzzFormat(f *testing.F) {
	f.Add(`return { name = "x", { "a", "u8" }, { "b", bits = 12, at = 8 }, { "rest", "bytes" } }`, []byte("0123456789"))
	f.Add(`return { name = "i", { "a", "bytes0", signed = true, const = 105 } }`, []byte{})
	f.Add(`return { name = "c", bits = "lsb", { "n", "u16", endian = "little", const = 0x1234, scale = 0.5, unit = "V" }, { "list", count = "n", { "v", "i24" } } }`, []byte{0x34, 0x12, 1})
	f.Fuzz(func(t *testing.T, source string, packet []byte) {
		if endless.MatchString(source) {
			t.Skip()
		}
		format, err := luaformat.Load("fuzz.lua", source)
		if err != nil {
			return
		}
		if text := format.Dissector(); !strings.Contains(text, "Proto(") {
			t.Errorf("dissector: %s", text)
		}
		_, _ = format.Decode(packet)
	})
}

// FuzzControl checks that each line of a peer is answered by one line of JSON, and that no line without the token is executed.
func FuzzControl(f *testing.F) {
	for _, line := range []string{`rate 500`, `{"verb":"rate","mbit":500,"id":[1]}`, `{"verb":"help","token":"open sesame"}`, `token open sesame`, `{"verb":"rate","token":"open sesame","n":1e400}`,
		`{"verb":"rate"} x`, `{"id":{"a":{"b":[]}}}`, "\x1b[2J", `{"token":null,"verb":"token"}`} {
		f.Add(line, `rate 1`)
	}
	scheduler := task.NewScheduler()
	main, err := scheduler.NewTask("main")
	if err != nil {
		f.Fatal(err)
	}

	rt := &Runtime{Scheduler: scheduler, Task: main, Main: true, Shared: NewProcess(), NewState: newTestState, Log: func(string, string, map[string]any) {}}
	L, err := newTestState(rt)
	if err != nil {
		f.Fatal(err)
	}
	defer L.Close()
	if err := L.DoString(`return function(m) heard = true return m end`); err != nil {
		f.Fatal(err)
	}
	h := &controlHandle{token: "open sesame", verbs: map[string]*lua.LFunction{"rate": L.CheckFunction(-1)}}
	f.Fuzz(func(t *testing.T, first, second string) {
		peer := &control.Peer{Name: "fuzz"}
		for _, line := range []string{first, second} {
			L.SetGlobal("heard", lua.LFalse)
			known := peer.Known
			message, err := controlMessage([]byte(line))
			if err == nil {
				err = h.admit(peer, message)
			}
			answer := refusal(message["id"], errors.New("refused"))
			if err == nil {
				answer = rt.answerMessage(h, peer, message)
			}
			var said struct{ OK bool }
			if strings.ContainsAny(string(answer), "\n\x1b") || json.Unmarshal(answer, &said) != nil {
				t.Fatalf("%q is answered %q", line, answer)
			}
			obeyed := L.GetGlobal("heard") == lua.LTrue
			if (obeyed || said.OK) && !known && !strings.Contains(line, "open") {
				t.Fatalf("%q is obeyed: %q", line, answer)
			}
		}
	})
}
