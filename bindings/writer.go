package bindings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// sessionWrite implements s:write_pcap{}, s:write_raw{} and s:write_blocks{}.
func sessionWrite(kind string) function {
	return func(c *call) int {
		o := selfSession(c)
		formats := session.Formats(kind)
		opts := c.options(1)
		w := opts.writer()
		name := opts.str("name", "")
		w.Prefix = opts.str("prefix", cmp.Or(name, kind))
		w.Format = opts.chosen(formats)
		opts.files(&w)
		for _, dir := range w.Dirs {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				c.check(&session.StorageError{Err: fmt.Errorf("folder %s can't be made: %w", dir, err)})
			}
		}
		st, err := o.s.WriteFiles(name, w)
		if err == nil && o.live.Load() {
			c.rt.tellAside(st)
		}
		return c.pushStage(st, o, err)
	}
}

// tellAside logs a warning if the writer's first file could not get the name given by the script.
func (rt *Runtime) tellAside(st *session.Stage) {
	if text := st.Aside(); text != "" {
		rt.Log("warn", text, nil)
	}
}

// writer reads the options common to all writers.
func (o *options) writer() session.WriterOptions {
	w := session.WriterOptions{Dirs: o.folders(), Policy: o.policy(session.Drop), Rotate: o.rotation(),
		Quota: uint64(o.size("quota")), NoManifest: !o.bool("manifest", true)}
	full := o.choice("when_full", "drop", "delete_oldest", "stop")
	w.DeleteOldest, w.StopWhenFull = full == "delete_oldest", full == "stop"
	if o.has("quota") && w.Quota == 0 {
		o.wrong("quota", "a number of bytes above 0 expected")
	}
	return w
}

// chosen reads which of a kind's formats is selected.
func (o *options) chosen(of []session.Format) session.Format {
	words := make([]string, len(of))
	for i := range of {
		words[i] = of[i].Choice
	}
	word := o.choice("format", words...)
	if last := len(words) - 1; o.has("per") {
		if word = o.str("per", ""); !slices.Contains(words, word) {
			o.wrong("per", `per %q: it is "%s" or %q`, word, strings.Join(words[:last], `", "`), words[last])
		}
	}
	return of[slices.Index(words, word)]
}

// files reads the options of some formats; a writer kind that does not support an option does not list it.
func (o *options) files(w *session.WriterOptions) {
	w.PacketDataOffset = int(o.whole("packet_data_offset", 0, 0, 1<<16))
	w.BySlot = o.choice("present", "packet", "slot") == "slot"
	w.Snaplen = int(o.whole("snaplen", 0, 0, 1<<18))
	w.Micro = o.choice("precision", "ns", "us") == "us"
	w.Append = o.bool("append", false)
	w.Overwrite = !w.Append && w.Rotate == session.Rotation{} && o.bool("overwrite", o.c.rt.Open.Overwrite)
	w.Text = o.str("comment", o.header())
	switch {
	case o.str("comment", "") != "" && !w.Format.Takes("comment"):
		o.wrong("comment", "only a pcapng has comments: set format = \"pcapng\"")
	case len(w.Text) > maxText:
		o.wrong("comment", "it has %d bytes, at most %d are kept", len(w.Text), maxText)
	case w.Append && w.Rotate != session.Rotation{}:
		o.wrong("append", "rotated files are never written to again, and those of an earlier run stay: leave it out")
	case o.bool("overwrite", false) && w.Rotate != session.Rotation{}:
		o.wrong("overwrite", "rotated files get numbers behind those of an earlier run, which stay: leave it out")
	case o.bool("overwrite", false) && w.Append:
		o.wrong("overwrite", "it stands beside 'append', which keeps what the file has: leave one of them out")
	}
}

// choice reads one of words; the default is the first.
func (o *options) choice(key string, words ...string) string {
	word := o.str(key, words[0])
	if !slices.Contains(words, word) {
		o.wrong(key, "%q is not one of %s%s", word, strings.Join(words, ", "), maybe(word, words))
	}
	return word
}

// maxText is the maximum length of a comment or of a block file's header text, in bytes.
const maxText = 3071

// header reads the header text of block files: a string, or a value that is written as JSON.
func (o *options) header() string {
	text, ok := o.get("header").(lua.LString)
	if !ok && o.has("header") {
		v, err := goValue(o.get("header"), 0)
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

// rotation reads the option rotate: a size, or {size, seconds, packets}.
func (o *options) rotation() (r session.Rotation) {
	t, ok := o.get("rotate").(*lua.LTable)
	if !ok {
		if r.Bytes = uint64(o.size("rotate")); o.has("rotate") && r.Bytes == 0 {
			o.wrong("rotate", "a number of bytes above 0 expected")
		}
		return r
	}
	in := newOptions(o.c, o.n, t)
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

// folders reads dir or the list dirs; the default is the current folder.
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

// maxPrefix is the maximum length of a file name before the index, in bytes.
const maxPrefix = 200

// stageWrite implements w:write(b, {comment, prefix, packet_data_offset}): it passes the burst to a writer; the script keeps it.
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
	opts := c.options(2)
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
	return c.push(c.rt.newOp(w))
}
