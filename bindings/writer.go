package bindings

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// sessionWrite is s:write_pcap{name, dir | dirs, prefix, snaplen, policy} and s:write_raw{name, dir | dirs, prefix,
// per, packet_data_offset, policy}.
func sessionWrite(kind string) function {
	return func(c *call) int {
		o := selfSession(c)
		known := []string{"dir", "dirs", "name", "policy", "prefix", "snaplen"}
		if kind == session.KindRaw {
			known = []string{"dir", "dirs", "name", "packet_data_offset", "per", "policy", "prefix"}
		}
		opts := c.options(1, known...)
		w := session.WriterOptions{Dirs: opts.folders(), Policy: opts.policy(session.Drop),
			Snaplen:          int(opts.whole("snaplen", 0, 0, 1<<18)),
			PacketDataOffset: int(opts.whole("packet_data_offset", 0, 0, 1<<16))}
		var err error
		if w.Per, err = session.ParsePer(opts.str("per", "packet")); err != nil {
			opts.wrong("per", "%v", err)
		}
		name := opts.str("name", "")
		w.Prefix = opts.str("prefix", cmp.Or(name, kind))
		for _, dir := range w.Dirs {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				opts.fault("folder %s can't be made: %v", dir, err)
			}
		}
		make := o.s.WritePcap
		if kind == session.KindRaw {
			make = o.s.WriteRaw
		}
		st, err := make(name, w)
		return c.pushStage(st, o, err)
	}
}

// folders reads dir, or the list dirs; the current folder where both are absent.
func (o *options) folders() []string {
	list, ok := o.get("dirs").(*lua.LTable)
	switch {
	case !o.has("dirs"):
		return []string{o.str("dir", ".")}
	case o.has("dir"):
		o.wrong("dirs", "it stands beside 'dir': keep one of them")
	case !ok || list.Len() < 1 || list.Len() > session.MaxDirs:
		o.wrong("dirs", "a list of 1 to %d folders expected, got %s", session.MaxDirs, describe(o.get("dirs")))
	}
	dirs := make([]string, list.Len())
	for i := range dirs {
		dir, ok := list.RawGetInt(i + 1).(lua.LString)
		if !ok {
			o.wrong("dirs", "a folder's name expected, got %s", describe(list.RawGetInt(i+1)))
		}
		dirs[i] = string(dir)
	}
	return dirs
}

// write is what became of a burst that was handed to a writer. Cold.
type write struct{ w *session.Write }

func (*write) luaType() string { return "write" }

var writeType = &typeDef{
	name:   "write",
	fields: []string{"bytes_written", "completed_packets", "error", "failed_packets"},
	get: func(_ *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		w := self.(*write).w
		switch key {
		case lua.LString("bytes_written"):
			return lua.LNumber(w.State().Bytes)
		case lua.LString("completed_packets"):
			return lua.LNumber(w.State().Completed)
		case lua.LString("failed_packets"):
			return lua.LNumber(w.State().Failed)
		case lua.LString("error"):
			if err := w.Error(); err != nil {
				return lua.LString(err.Error())
			}
			return lua.LNil
		}
		return nil
	},
	methods: []entry{{"poll", writePoll}, {"wait", writeWait}},
}

// maxPrefix is how many bytes of a file's name stand before the index.
const maxPrefix = 200

// stageWrite is w:write(b, {prefix, packet_data_offset}): it hands the burst to a writer, which the script keeps.
func stageWrite(c *call) int {
	st := receiver[*stage](c, "stage")
	b, ok := userdata[*burst](c.arg(1))
	if !ok {
		c.wanted(1, "burst")
	}
	if !b.b.Live() {
		c.argError(1, "%s", b.gone())
	}
	st.of.running(c)
	opts := c.options(2, "packet_data_offset", "prefix")
	var names *session.WriteNames
	if opts.has("prefix") || opts.has("packet_data_offset") {
		opts.need("prefix")
		names = &session.WriteNames{Prefix: opts.str("prefix", ""), PacketDataOffset: int(opts.whole("packet_data_offset", 0, 0, 1<<31-1))}
		if n := len(names.Prefix); n < 1 || n > maxPrefix || strings.ContainsRune(names.Prefix, '/') {
			opts.wrong("prefix", "%q is not the beginning of a file's name, of 1 to %d bytes without '/'", names.Prefix, maxPrefix)
		}
	}
	w, err := st.st.Write(b.b, names)
	if names != nil && errors.Is(err, session.ErrInvalid) {
		c.argError(2, "only a writer of a file per packet takes names of its own for a burst")
	} else if err != nil {
		return c.fail(err)
	}
	return c.push(c.rt.newObject(&write{w}))
}

func writePoll(c *call) int {
	return c.push(lua.LBool(receiver[*write](c, "write").w.State().Done))
}

// Between two looks of h:wait: soon at first, as a writer that has nothing else to do writes at once.
const (
	firstLook = 50 * time.Microsecond
	lastLook  = 2 * time.Millisecond
)

// writeWait is h:wait{timeout}: true once all packets are written or failed; nil, "NOT_READY", text at the timeout.
func writeWait(c *call) int {
	w := receiver[*write](c, "write").w
	timeout, limited := c.options(1, "timeout").seconds("timeout")
	c.canWait()
	until := c.rt.Task.Now() + timeout
	for pause := firstLook; !w.State().Done; pause = min(2*pause, lastLook) {
		now := c.rt.Task.Now()
		if limited && now >= until {
			return c.fail(fmt.Errorf("the burst is not written yet: %w", session.ErrNotReady))
		}
		next := now + int64(pause)
		if limited {
			next = min(next, until)
		}
		c.waitFor(next, func(*task.Item) bool { return false })
	}
	return c.push(lua.LTrue)
}
