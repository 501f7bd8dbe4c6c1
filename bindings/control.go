package bindings

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/control"
)

// controlHandle is a control socket on which clients send commands to the script. Cold.
type controlHandle struct {
	server   *control.Server
	token    string
	verbs    map[string]*lua.LFunction
	refusals refusals
}

func (*controlHandle) LuaType() string { return "control" }

var controlType = &typeDef{
	name: "control",
	self: "ctl",
	doc: `a control channel
		A socket on which other programs send commands to a running script: 'daqiri.control'. A line is a verb, '{"verb": "rate", "mbit": 500}' or just
		'rate 500' (whose words behind the verb are the message's 'text'), and gets a line back: '{"ok": true, "reply": …}', or '{"ok": false, "error": "…"}'.
		A message's 'id' comes back with its answer. 'help' lists the verbs. Each line is noted in the log, of those that are refused one a second. Where there is a token, a message has it as 'token', or
		the line 'token TOKEN' goes ahead of what the connection brings. Of 64 connections the one that was silent for longest makes room for the next. Over TCP one
		that does not give the token within 10 s ends, and so does one that uses HTTP.
		From a shell: 'echo rate 500 | nc -UN /run/daqiri/tx.sock'.`,
	fields: []field{
		{"address", `-> string
			Where it listens: the path, or IP:PORT.
			> print(ctl.address)`},
	},
	get: func(_ *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		if key == lua.LString("address") {
			return lua.LString(self.(*controlHandle).server.Address())
		}
		return nil
	},
	methods: []entry{
		{"close", controlClose, `Ends it, and its connections. The end of the script does so, too.
			> ctl:close()`},
		{"on", controlOn, `- verb string: letters, digits, '_' and '-'
			- fn? function: called with the message, a table; its result is the answer's 'reply', anything that 'daqiri.json' takes; nil, status, text is a failure. Without it the verb goes
			Has a function answer a verb. It runs on the script's thread, in turn with other handlers; an error in it is the answer, and ends nothing.
			> ctl:on("status", function(m) return { packets = s:stats().b.rx.packets } end)
			> ctl:on("stop", function(m) s:stop(m.text) end)`}},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		h, _ := row.Userdata[*controlHandle](c.L.Get(1))
		return c.Push(lua.LString("control " + h.server.Address()))
	}}},
}

// moduleControl implements daqiri.control{unix | tcp, mode, token}.
func moduleControl(c *call) int {
	c.AtMost(1)
	o := c.options(1)
	o.ExactlyOne("tcp", "unix")
	h := &controlHandle{token: o.Str("token", ""), verbs: map[string]*lua.LFunction{}}
	conf := control.Options{Unix: o.Str("unix", ""), TCP: o.Str("tcp", ""), Mode: 0o600}
	if o.Has("mode") {
		conf.Mode = o.socketMode()
		if conf.Unix == "" {
			o.Wrong("mode", "three octal digits expected, as text, beside unix: \"0660\"")
		}
	}
	if conf.TCP != "" && h.token == "" {
		o.Wrong("tcp", "any program of this machine can connect to %s, a web page in a browser too: give a token, or use a unix socket", conf.TCP)
	}
	rt := c.rt
	conf.Answer = func(p *control.Peer, line []byte) []byte { return rt.answerControl(h, p, slices.Clone(line)) }
	server, err := control.Listen(conf)
	if err != nil {
		o.Raise("%v", err)
	}
	h.server = server
	rt.Task.AtExit(server.Close)
	rt.listening++ // keeps a spawned task running
	return c.Push(rt.newLasting(h))
}

// socketMode reads the option mode, the permissions of a socket's file; the default permits its user only.
func (o *options) socketMode() fs.FileMode {
	mode, err := strconv.ParseUint(o.Str("mode", "600"), 8, 9)
	if err != nil {
		o.Wrong("mode", "three octal digits expected, as text, beside unix: \"0660\"")
	}
	return fs.FileMode(mode)
}

func controlOn(c *call) int {
	h := receiver[*controlHandle](c, "control")
	verb := c.Str(1, "verb")
	if verb == "" || strings.Trim(verb, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		c.ArgError(1, "%q: a verb has letters, digits, '_' and '-'", verb)
	}
	if verb == "token" {
		c.ArgError(1, "the line 'token TOKEN' authorizes a connection")
	}
	if c.Arg(2) == lua.LNil {
		delete(h.verbs, verb)
		return 0
	}
	h.verbs[verb] = c.Func(2, "function(message)")
	return 0
}

func controlClose(c *call) int {
	receiver[*controlHandle](c, "control").server.Close()
	return 0
}

// answerControl answers a line of a peer on the script's thread. Lines of unauthorized peers are refused without running the script. Safe from
// any thread; blocks until the answer is ready or the script ends.
func (rt *Runtime) answerControl(h *controlHandle, peer *control.Peer, line []byte) []byte {
	message, err := controlMessage(line)
	if err == nil {
		err = h.admit(peer, message)
	}
	if err != nil {
		h.refusals.note(rt, peer, err)
		return refusal(message["id"], err)
	}
	answer := make(chan []byte, 1)
	if rt.Task.Post(func() { answer <- rt.answerMessage(h, peer, message) }) == nil {
		select {
		case text := <-answer:
			return text
		case <-rt.Task.Done():
		}
	}
	return refusal(nil, errors.New("the script has ended"))
}

// refusal returns the answer to a line that was not passed to the script.
func refusal(id any, err error) []byte {
	answer := map[string]any{"ok": false, "error": err.Error()}
	if id != nil {
		answer["id"] = id
	}
	text, _ := json.Marshal(answer) // marshals values that were decoded from JSON
	return text
}

// refusals logs refused lines, at most one per second. Safe for concurrent use.
type refusals struct {
	mu   sync.Mutex
	next time.Time
	left int // refusals not logged since the last log line
}

func (r *refusals) note(rt *Runtime, peer *control.Peer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.next) {
		r.left++
		return
	}
	noted := map[string]any{"peer": peer.Name, "error": err.Error()}
	if r.left > 0 {
		noted["refused_before"] = r.left
	}
	r.next, r.left = now.Add(time.Second), 0
	rt.Log("warn", "control", noted)
}

// answerMessage runs a message of an authorized peer and returns the answer. Must run on the script's thread.
func (rt *Runtime) answerMessage(h *controlHandle, peer *control.Peer, message map[string]any) []byte {
	out := rt.root.NewTable()
	if id, ok := message["id"]; ok {
		out.RawSetString("id", rt.fromGo(id))
	}
	verb, _ := message["verb"].(string)
	noted := map[string]any{"peer": peer.Name}
	if h.verbs[verb] != nil || verb == "help" || verb == "token" {
		noted["verb"] = verb // an unknown verb may be a mistyped token: it is not logged
	}
	var err error
	if verb != "token" {
		err = rt.runVerb(h, verb, message, out)
	}
	if err != nil {
		noted["error"] = err.Error()
		out.RawSetString("error", lua.LString(err.Error()))
	}
	out.RawSetString("ok", lua.LBool(err == nil))
	rt.Log(map[bool]string{true: "info", false: "warn"}[err == nil], "control", noted)
	text, err := value.AppendJSON(nil, out, 0)
	if err != nil {
		return refusal(nil, fmt.Errorf("the answer: %w", err))
	}
	return text
}

// controlMessage parses a line: JSON, or a verb and its words.
func controlMessage(line []byte) (map[string]any, error) {
	text := strings.TrimSpace(string(line))
	if !strings.HasPrefix(text, "{") {
		verb, rest, _ := strings.Cut(text, " ")
		return map[string]any{"verb": verb, "text": strings.TrimSpace(rest)}, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var message map[string]any
	err := d.Decode(&message)
	if err == nil {
		err = value.Finite(message)
	}
	if err == nil && d.More() {
		err = errors.New("more text behind the object")
	}
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return message, nil
}

// admit returns an error unless the peer is authorized. A token in a message, or the line 'token TOKEN', authorizes the rest of the connection.
func (h *controlHandle) admit(peer *control.Peer, message map[string]any) error {
	verb, _ := message["verb"].(string)
	given, has := message["token"].(string)
	if text, ok := message["text"].(string); ok && verb == "token" && !has {
		given, has = text, true
	}
	delete(message, "token")
	right := subtle.ConstantTimeCompare([]byte(given), []byte(h.token)) == 1
	switch {
	case h.token == "" || right:
		peer.Known = true
	case has || !peer.Known:
		return errors.New("the token is missing, or another")
	}
	return nil
}

// runVerb runs the handler of the verb and stores its reply in out.
func (rt *Runtime) runVerb(h *controlHandle, verb string, message map[string]any, out *lua.LTable) error {
	fn := h.verbs[verb]
	known := slices.Sorted(maps.Keys(h.verbs))
	if fn == nil && verb == "help" {
		out.RawSetString("reply", value.List(rt.root, known))
		return nil
	}
	if fn == nil {
		return fmt.Errorf("%s; there are %s", row.Unknown("verb", verb, append(known, "help")), strings.Join(append(known, "help"), ", "))
	}
	results, err := rt.callVerb(fn, rt.fromGo(message))
	if err != nil {
		return err
	}
	if results[0] == lua.LNil && results[1] != lua.LNil {
		return errors.New(strings.TrimPrefix(results[1].String()+": "+results[2].String(), "nil: "))
	}
	if _, err := value.AppendJSON(nil, results[0], 0); err != nil {
		return fmt.Errorf("the reply of '%s': %w", verb, err)
	}
	out.RawSetString("reply", results[0])
	return nil
}

// callVerb calls a handler; an error of the handler is returned and ends nothing else.
func (rt *Runtime) callVerb(fn *lua.LFunction, message lua.LValue) (results [3]lua.LValue, err error) {
	before := rt.place
	rt.place = inHandler
	defer func() { rt.place = before }()
	values, err := rt.threads.CallApart(rt.threads.Current(), fn, message)
	if err != nil {
		return results, errors.New(lua51.Raised(err).String())
	}
	for i := range results {
		results[i] = lua.LNil
		if i < len(values) {
			results[i] = values[i]
		}
	}
	return results, nil
}
