package attach

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/host/repl"
)

// FuzzServer checks that a job survives arbitrary input of a peer and answers the next peer.
func FuzzServer(f *testing.F) {
	f.Add(`{"protocol":1,"mode":"prompt"}` + "\n" + `{"id":1,"exec":{"Name":"=stdin","Source":"return 1"}}` + "\n")
	f.Add(`{"protocol":1,"mode":"prompt"}` + "\n" + `{"id":1,"complete":{"Line":"string.fo","Pos":-9}}` + "\n" + `{"interrupt":true}` + "\n")
	f.Add(`{"protocol":1,"mode":"view"}` + "\n" + `{"text":"x","line":"y","view":"z"}` + "\n")
	f.Add("{}\n[]\nnull\n")
	f.Add(`{"protocol":1,"mode":"prompt"}` + "\n" + strings.Repeat(`{"id":1,"exec":{"Source":"return 1"}}`+"\n", 50))
	dir, err := os.MkdirTemp("", "attach")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	x := &repl.Lua{L: L}
	requests := make(chan repl.Request)
	go func() {
		for r := range requests {
			r.Serve(x)
		}
	}()
	s, err := Listen(filepath.Join(dir, "s"), Options{Version: "v", Script: "x.lua", Log: func(string, map[string]any) {},
		Serve: func(asked <-chan repl.Request) (func(), error) {
			go func() {
				for r := range asked {
					requests <- r
				}
			}()
			return x.Interrupt, nil
		}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, output string) {
		if strings.Contains(output, "while") || strings.Contains(output, "repeat") || strings.Contains(output, "for") || strings.Contains(output, "goto") || strings.Contains(output, "..") {
			t.Skip() // endless chunks are valid
		}
		c, err := net.Dial("unix", s.Path())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte(output)); err != nil && !strings.Contains(err.Error(), "broken pipe") {
			t.Fatal(err)
		}
		_ = c.Close()
		viewer, err := Dial(s.Path(), "view", "v")
		if err != nil {
			t.Fatal(err)
		}
		viewer.Close()
	})
}

// FuzzClient checks that arbitrary input of a job ends a client with an error only.
func FuzzClient(f *testing.F) {
	good, err := json.Marshal(hello{Protocol: protocol, Version: "v", PID: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good) + "\n" + string(good) + "\n" + `{"text":"x"}` + "\n" + `{"line":"1","view":"2"}` + "\n")
	f.Add(`{"error":"no"}` + "\n")
	f.Fuzz(func(t *testing.T, output string) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = ours.Write([]byte(output))
			_ = ours.Close()
		}()
		go func() {
			buf := make([]byte, 4096)
			for {
				if _, err := ours.Read(buf); err != nil {
					return
				}
			}
		}()
		c := &Client{conn: theirs, w: newWire(theirs)}
		if c.greet("view", "v") == nil {
			_ = c.Watch(func(string, string) {}, func(string) {})
		}
		c.Close()
	})
}
