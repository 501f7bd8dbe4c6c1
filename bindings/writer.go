package bindings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// writerOptions are the options that all writers of files take, and those that only one kind does.
var writerOptions = map[string][]string{
	"":                 {"dir", "dirs", "manifest", "name", "policy", "prefix", "quota", "rotate", "when_full"},
	session.KindPcap:   {"append", "comment", "format", "precision", "snaplen"},
	session.KindRaw:    {"packet_data_offset", "per"},
	session.KindBlocks: {"header", "present"},
}

// sessionWrite is s:write_pcap{}, s:write_raw{} and s:write_blocks{}.
func sessionWrite(kind string) function {
	return func(c *call) int {
		o := selfSession(c)
		opts := c.options(1, slices.Concat(writerOptions[""], writerOptions[kind])...)
		w := opts.writer()
		name := opts.str("name", "")
		w.Prefix = opts.str("prefix", cmp.Or(name, kind))
		make := o.s.WritePcap
		switch kind {
		case session.KindRaw:
			var err error
			if w.Per, err = session.ParsePer(opts.str("per", "packet")); err != nil {
				opts.wrong("per", "%v", err)
			}
			w.PacketDataOffset = int(opts.whole("packet_data_offset", 0, 0, 1<<16))
			make = o.s.WriteRaw
		case session.KindBlocks:
			w.BySlot = opts.choice("present", "packet", "slot") == "slot"
			w.Text = opts.header()
			make = o.s.WriteBlocks
		default:
			opts.pcap(&w)
		}
		for _, dir := range w.Dirs {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				opts.fault("folder %s can't be made: %v", dir, err)
			}
		}
		st, err := make(name, w)
		return c.pushStage(st, o, err)
	}
}

// writer reads the options that all writers have.
func (o *options) writer() session.WriterOptions {
	w := session.WriterOptions{Dirs: o.folders(), Policy: o.policy(session.Drop), Rotate: o.rotation(),
		Quota: uint64(o.size("quota")), NoManifest: !o.bool("manifest", true)}
	w.DeleteOldest = o.choice("when_full", "drop", "delete_oldest") == "delete_oldest"
	if o.has("quota") && w.Quota == 0 {
		o.wrong("quota", "a number of bytes above 0 expected")
	}
	return w
}

// pcap reads the options of write_pcap.
func (o *options) pcap(w *session.WriterOptions) {
	w.Snaplen = int(o.whole("snaplen", 0, 0, 1<<18))
	w.PcapNG = o.choice("format", "pcap", "pcapng") == "pcapng"
	w.Micro = o.choice("precision", "ns", "us") == "us"
	w.Append = o.bool("append", false)
	w.Text = o.str("comment", "")
	switch {
	case !w.PcapNG && w.Text != "":
		o.wrong("comment", "only a pcapng has comments: set format = \"pcapng\"")
	case len(w.Text) > maxText:
		o.wrong("comment", "it has %d bytes, at most %d are kept", len(w.Text), maxText)
	case w.Append && w.Rotate != session.Rotation{}:
		o.wrong("append", "rotated files are never written to again, and those of an earlier run stay: leave it out")
	}
}

// choice reads one of these words; the first where the option is absent.
func (o *options) choice(key string, words ...string) string {
	word := o.str(key, words[0])
	if !slices.Contains(words, word) {
		o.wrong(key, "%q is not one of %s%s", word, strings.Join(words, ", "), maybe(word, words))
	}
	return word
}

// maxText is how many bytes a comment or the text of a block file's header may have.
const maxText = 3071

// header reads the text for the headers of block files: a string, or a value that is written as JSON.
func (o *options) header() string {
	text, ok := o.get("header").(lua.LString)
	if !ok && o.has("header") {
		v, err := plainValue(o.get("header"), 0)
		data := []byte(nil)
		if err == nil {
			data, err = json.Marshal(v)
		}
		if err != nil {
			o.wrong("header", "%v", err)
		}
		text = lua.LString(data)
	}
	if len(text) > maxText {
		o.wrong("header", "it has %d bytes, at most %d fit", len(text), maxText)
	}
	return string(text)
}

// rotation reads rotate: a size, or {size, seconds, packets}.
func (o *options) rotation() (r session.Rotation) {
	t, ok := o.get("rotate").(*lua.LTable)
	if !ok {
		if r.Bytes = uint64(o.size("rotate")); o.has("rotate") && r.Bytes == 0 {
			o.wrong("rotate", "a number of bytes above 0 expected")
		}
		return r
	}
	in := &options{c: o.c, n: o.n, t: t}
	in.allow([]string{"packets", "seconds", "size"})
	r.Bytes = uint64(in.size("size"))
	r.Packets = uint64(in.whole("packets", 0, 1, 1<<53))
	after, given := in.seconds("seconds")
	r.After = after
	if r == (session.Rotation{}) || (given && after <= 0) || (in.has("size") && r.Bytes == 0) {
		o.wrong("rotate", "size, seconds and packets are above 0, and one of them is needed")
	}
	return r
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

// stageWrite is w:write(b, {comment, prefix, packet_data_offset}): it hands the burst to a writer, which the script keeps.
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
	opts := c.options(2, "comment", "packet_data_offset", "prefix")
	var names *session.WriteNames
	if opts.has("comment") {
		names = &session.WriteNames{Comment: opts.str("comment", "")}
		if n := len(names.Comment); n < 1 || n > maxPrefix {
			opts.wrong("comment", "it has %d bytes, 1 to %d expected", n, maxPrefix)
		}
		if opts.has("prefix") || opts.has("packet_data_offset") {
			opts.wrong("comment", "a file per packet has no comments")
		}
	} else if opts.has("prefix") || opts.has("packet_data_offset") {
		opts.need("prefix")
		names = &session.WriteNames{Prefix: opts.str("prefix", ""), PacketDataOffset: int(opts.whole("packet_data_offset", 0, 0, 1<<31-1))}
		object := st.st.Kind() == session.KindS3
		switch n := len(names.Prefix); {
		case n < 1, n > maxPrefix, object && names.Prefix[0] == '/':
			opts.wrong("prefix", "%q is not the beginning of a name, of 1 to %d bytes", names.Prefix, maxPrefix)
		case !object && strings.ContainsRune(names.Prefix, '/'):
			opts.wrong("prefix", "%q is not the beginning of a file's name, which has no '/'", names.Prefix)
		}
	}
	w, err := st.st.Write(b.b, names)
	if names != nil && errors.Is(err, session.ErrInvalid) {
		what := "only a writer of a file per packet takes names of its own for a burst"
		if names.Comment != "" {
			what = "only a writer of pcapng takes comments"
		}
		c.argError(2, "%s", what)
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
	until := c.rt.Task.In(timeout)
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
