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

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/recording"
)

// sessionWrite implements s:write_pcap{}, s:write_raw{}, s:write_blocks{} and recordings, s:write_sigmf{} and others.
func sessionWrite(kind string) function {
	return func(c *call) int {
		o := selfSession(c)
		formats := session.Formats(kind)
		opts := c.options(1)
		w := opts.writer()
		name := opts.Str("name", "")
		w.Prefix = opts.Str("prefix", cmp.Or(name, kind))
		w.Format = opts.chosen(formats)
		opts.files(&w)
		if w.Format.Takes("samples") {
			opts.recording(&w)
		}
		for _, dir := range w.Dirs {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				c.Check(&session.StorageError{Err: fmt.Errorf("folder %s can't be made: %w", dir, err)})
			}
		}
		st, err := o.s.WriteFiles(name, w)
		if err == nil && o.live.Load() {
			c.rt.warnRenamed(st)
		}
		return c.pushStage(st, o, err)
	}
}

// warnRenamed logs a warning if the writer's first file could not get the name given by the script.
func (rt *Runtime) warnRenamed(st *session.Stage) {
	if text := st.Aside(); text != "" {
		rt.Log("warn", text, nil)
	}
}

// writer reads the options common to all writers.
func (o *options) writer() session.WriterOptions {
	w := session.WriterOptions{Dirs: o.folders(), Policy: o.Policy(session.Drop), Rotate: o.rotation(),
		Quota: uint64(o.Size("quota")), NoManifest: !o.Bool("manifest", true)}
	full := o.choice("when_full", "drop", "delete_oldest", "stop")
	w.DeleteOldest, w.StopWhenFull = full == "delete_oldest", full == "stop"
	if o.Has("quota") && w.Quota == 0 {
		o.Wrong("quota", "a number of bytes above 0 expected")
	}
	return w
}

// chosen reads which of a kind's formats is selected.
func (o *options) chosen(of []session.Format) session.Format {
	if len(of) == 1 {
		return of[0]
	}
	words := make([]string, len(of))
	for i := range of {
		words[i] = of[i].Choice
	}
	word := o.choice("format", words...)
	if last := len(words) - 1; o.Has("per") {
		if word = o.Str("per", ""); !slices.Contains(words, word) {
			o.Wrong("per", `per %q: it is "%s" or %q`, word, strings.Join(words[:last], `", "`), words[last])
		}
	}
	return of[slices.Index(words, word)]
}

// files reads the options of some formats; a writer kind that does not support an option does not list it.
func (o *options) files(w *session.WriterOptions) {
	w.PacketDataOffset = int(o.Whole("packet_data_offset", 0, 0, 1<<16))
	w.BySlot = o.choice("present", "packet", "slot") == "slot"
	w.Snaplen = int(o.Whole("snaplen", 0, 0, 1<<18))
	w.Micro = o.choice("precision", "ns", "us") == "us"
	w.Append = o.Bool("append", false)
	w.Overwrite = !w.Append && w.Rotate == session.Rotation{} && o.Bool("overwrite", o.c.rt.Open.Overwrite)
	w.Text = o.Str("comment", o.header())
	switch {
	case o.Str("comment", "") != "" && !w.Format.Takes("comment"):
		o.Wrong("comment", "only a pcapng has comments: set format = \"pcapng\"")
	case len(w.Text) > maxText:
		o.Wrong("comment", "it has %d bytes, at most %d are kept", len(w.Text), maxText)
	case w.Append && w.Rotate != session.Rotation{}:
		o.Wrong("append", "rotated files are never written to again, and those of an earlier run stay: leave it out")
	case o.Bool("overwrite", false) && w.Rotate != session.Rotation{}:
		o.Wrong("overwrite", "rotated files get numbers behind those of an earlier run, which stay: leave it out")
	case o.Bool("overwrite", false) && w.Append:
		o.Wrong("overwrite", "it stands beside 'append', which keeps what the file has: leave one of them out")
	}
}

// recording reads the options of a recording for other programs.
func (o *options) recording(w *session.WriterOptions) {
	if len(w.Dirs) > 1 {
		o.Wrong("dirs", "a recording is one stream of samples in one folder: give dir")
	}
	if w.Format.Kind == "zarr" {
		o.zarr(w)
		return
	}
	badType, s := o.samples()
	if w.Format.Kind == "sigmf" {
		o.sigmf(w, badType, &s)
		return
	}
	keys, err := recording.ParseKeys(w.Text)
	if err != nil {
		o.Wrong("header", "%v", err)
	}
	text := s.DADA
	if w.Format.Kind == "guppi" {
		text = s.GUPPI
	}
	if _, _, err := text(nil); err != nil {
		badType(err)
	}
	if w.Text, w.Samples.Dtype, err = text(keys); err != nil {
		o.Wrong("header", "%v", err)
	}
}

// samples reads the table samples, whose members are by default the constants that the option format declares. It also returns a function that raises
// an error of the type.
func (o *options) samples() (badType func(error), s recording.Samples) {
	f := o.format()
	if f == nil {
		o.Need("samples")
	} else if err := declared(f, &s); err != nil {
		o.Wrong("format", "%v", err)
	}
	in := o.samplesTable(&s)
	byFormat := in == nil || !in.Has("type")
	badType = func(err error) {
		if byFormat {
			o.Wrong("format", "format %s: samples: type: %v", f.Name, err)
		}
		in.Wrong("type", "%v", err)
	}
	if d := samplesOf(f); s.Type == "" && f == nil {
		in.Need("type")
	} else if s.Type == "" && d == nil {
		o.Wrong("format", "format %s declares no samples: give samples = { type = … }", f.Name)
	} else if s.Type == "" {
		o.Wrong("format", "format %s: %s: give samples = { type = … }", f.Name, d.Varies())
	}
	return badType, s
}

// samplesOf returns what a format, which may be nil, declares of its samples; nil: nothing.
func samplesOf(f *luaformat.Format) *format.Samples {
	if f == nil || f.Declared == nil {
		return nil
	}
	return f.Declared.Spec.Samples
}

// samplesTable sets the members of s that the table samples has, and returns the table's options; nil: there is none.
func (o *options) samplesTable(s *recording.Samples) *options {
	if !o.Has("samples") {
		return nil
	}
	t, ok := o.Get("samples").(*lua.LTable)
	if !ok {
		o.Wrong("samples", "table expected, got %s", row.Describe(o.Get("samples")))
	}
	in := newOptions(o.c, o.Arg, t)
	in.Allow([]string{"frequency", "rate", "type"})
	s.Type, s.Rate = in.Str("type", s.Type), in.Number("rate", s.Rate)
	if in.Has("frequency") {
		f := in.Number("frequency", 0)
		s.Frequency = &f
	}
	if in.Has("rate") && s.Rate == 0 {
		in.Wrong("rate", "a number of samples/s above 0 expected")
	}
	if key, err := s.Check(); err != nil {
		in.Wrong(key, "%v", err)
	}
	return in
}

// declared sets what a format declares of its samples as constants: the type, the rate and the frequency.
func declared(f *luaformat.Format, s *recording.Samples) error {
	d := samplesOf(f)
	if d == nil {
		return nil
	}
	if d.Varies() == "" {
		s.Type = d.Type
	}
	if v, constant := format.Number(d.Rate); constant {
		s.Rate = v
	}
	if v, constant := format.Number(d.Frequency); constant && d.Frequency != "" {
		s.Frequency = &v
	}
	if key, err := s.Check(); err != nil {
		return fmt.Errorf("format %s: samples: %s: %w", f.Name, key, err)
	}
	return nil
}

// zarr reads the options of a Zarr array, whose samples may be unknown.
func (o *options) zarr(w *session.WriterOptions) {
	var s recording.Samples
	var badType func(error)
	if o.Has("samples") || o.Has("format") {
		badType, s = o.samples()
	}
	if w.Rotate.After > 0 {
		o.Wrong("rotate", "the shards of an array have the same number of blocks: rotate by size or packets")
	}
	var err error
	if w.Zarr, w.Samples, err = s.Zarr(w.Text); err != nil {
		badType(err)
	}
	if n := len(w.Zarr.Attributes); n > recording.MaxAttributes {
		o.Wrong("header", "the attributes have %d bytes, at most %d fit", n, recording.MaxAttributes)
	}
}

// sigmf makes the texts of a SigMF recording.
func (o *options) sigmf(w *session.WriterOptions, badType func(error), s *recording.Samples) {
	header, err := recording.ParseHeader(w.Text)
	if err != nil {
		o.Wrong("header", "%v", err)
	}
	if w.Text, w.Capture, w.Samples, err = s.SigMF(header, Version); err != nil {
		badType(err)
	}
	if len(w.Text) > maxText {
		o.Wrong("header", "the global object has %d bytes, at most %d fit", len(w.Text), maxText)
	}
}

// choice reads one of words; the default is the first.
func (o *options) choice(key string, words ...string) string {
	word := o.Str(key, words[0])
	if !slices.Contains(words, word) {
		o.Wrong(key, "%q is not one of %s%s", word, strings.Join(words, ", "), row.Suggestion(word, words))
	}
	return word
}

// maxText is the maximum length of a comment or of a block file's header text, in bytes.
const maxText = 3071

// header reads the header text of block files: a string, or a value that is written as JSON.
func (o *options) header() string {
	text, ok := o.Get("header").(lua.LString)
	if !ok && o.Has("header") {
		v, err := value.Of(o.Get("header"), 0)
		data := []byte(nil)
		if err == nil {
			data, err = json.Marshal(v)
		}
		if err != nil {
			o.Wrong("header", "%v", err)
		}
		text = lua.LString(data)
	}
	if len(text) > maxText {
		o.Wrong("header", "it has %d bytes, at most %d fit", len(text), maxText)
	}
	return string(text)
}

// rotation reads the option rotate: a size, or {size, seconds, packets}.
func (o *options) rotation() (r session.Rotation) {
	t, ok := o.Get("rotate").(*lua.LTable)
	if !ok {
		if r.Bytes = uint64(o.Size("rotate")); o.Has("rotate") && r.Bytes == 0 {
			o.Wrong("rotate", "a number of bytes above 0 expected")
		}
		return r
	}
	in := newOptions(o.c, o.Arg, t)
	in.Allow([]string{"packets", "seconds", "size"})
	r.Bytes = uint64(in.Size("size"))
	r.Packets = uint64(in.Whole("packets", 0, 1, 1<<53))
	after, given := in.Seconds("seconds")
	r.After = after
	if r == (session.Rotation{}) || (given && after <= 0) || (in.Has("size") && r.Bytes == 0) {
		o.Wrong("rotate", "size, seconds and packets are above 0, and one of them is needed")
	}
	return r
}

// folders reads dir or the list dirs; the default is the current folder.
func (o *options) folders() []string {
	list, ok := o.Get("dirs").(*lua.LTable)
	switch {
	case !o.Has("dirs"):
		return []string{o.Str("dir", ".")}
	case o.Has("dir"):
		o.Wrong("dirs", "it stands beside 'dir': keep one of them")
	case !ok || list.Len() < 1 || list.Len() > session.MaxDirs:
		o.Wrong("dirs", "a list of 1 to %d folders expected, got %s", session.MaxDirs, row.Describe(o.Get("dirs")))
	}
	dirs := make([]string, list.Len())
	for i := range dirs {
		dir, ok := list.RawGetInt(i + 1).(lua.LString)
		if !ok {
			o.Wrong("dirs", "a folder's name expected, got %s", row.Describe(list.RawGetInt(i+1)))
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
	b, ok := row.Userdata[*burst](c.Arg(1))
	if !ok {
		c.Wanted(1, "burst")
	}
	if !b.b.Live() {
		c.ArgError(1, "%s", b.gone())
	}
	st.of.running(c)
	opts := c.options(2)
	var names *session.WriteNames
	if opts.Has("comment") {
		names = &session.WriteNames{Comment: opts.Str("comment", "")}
		if n := len(names.Comment); n < 1 || n > maxPrefix {
			opts.Wrong("comment", "it has %d bytes, 1 to %d expected", n, maxPrefix)
		}
		if opts.Has("prefix") || opts.Has("packet_data_offset") {
			opts.Wrong("comment", "a file per packet has no comments")
		}
	} else if opts.Has("prefix") || opts.Has("packet_data_offset") {
		opts.Need("prefix")
		names = &session.WriteNames{Prefix: opts.Str("prefix", ""), PacketDataOffset: int(opts.Whole("packet_data_offset", 0, 0, 1<<31-1))}
		object := st.st.Kind() == session.KindS3
		switch n := len(names.Prefix); {
		case n < 1, n > maxPrefix, object && names.Prefix[0] == '/':
			opts.Wrong("prefix", "%q is not the beginning of a name, of 1 to %d bytes", names.Prefix, maxPrefix)
		case !object && strings.ContainsRune(names.Prefix, '/'):
			opts.Wrong("prefix", "%q is not the beginning of a file's name, which has no '/'", names.Prefix)
		}
	}
	w, err := st.st.Write(b.b, names)
	if names != nil && errors.Is(err, session.ErrInvalid) {
		what := "only a writer of a file per packet takes names of its own for a burst: s:write_raw{ per = \"packet\" }"
		if names.Comment != "" {
			what = "only a writer of pcapng takes comments"
		}
		c.ArgError(2, "%s", what)
	} else if err != nil {
		return c.Fail(err)
	}
	return c.Push(c.rt.newOp(w))
}

// sessionWriteS3 implements s:write_s3{}.
func sessionWriteS3(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("bucket")
	name := opts.Str("name", "")
	w := session.S3Options{Policy: opts.Policy(session.Drop), Overwrite: opts.Bool("overwrite", c.rt.Open.Overwrite)}
	w.Bucket = opts.Str("bucket", "")
	w.Prefix = opts.Str("prefix", cmp.Or(name, session.KindS3))
	w.Endpoint, w.Region = opts.Str("endpoint", ""), opts.Str("region", "")
	w.PathStyle = opts.Bool("path_style", false)
	w.AccessKey, w.SecretKey = opts.Str("access_key", ""), opts.Str("secret_key", "")
	w.SessionToken, w.Profile = opts.Str("session_token", ""), opts.Str("profile", "")
	w.PacketsPerObject = int(opts.Whole("packets_per_object", 0, 1, 1<<31-1))
	w.BytesPerObject = int64(opts.Size("bytes_per_object"))
	w.PacketDataOffset = int(opts.Whole("packet_data_offset", 0, 0, 1<<31-1))
	w.MD5 = opts.choice("checksum", "crc32c", "md5") == "md5"
	w.Staging = int64(opts.Size("staging"))
	w.Uploads = int(opts.Whole("uploads", 0, 1, 256))
	w.Attempts = int(opts.Whole("attempts", 0, 1, 1000))
	w.Text = opts.header()
	opts.uploadTimes(&w)
	if n := len(w.Prefix); n < 1 || n > maxPrefix || strings.HasPrefix(w.Prefix, "/") {
		opts.Wrong("prefix", "%q is not the beginning of an object's name, of 1 to %d bytes", w.Prefix, maxPrefix)
	}
	st, err := o.s.WriteS3(name, w)
	return c.pushStage(st, o, err)
}

// stageClose implements w:close() of an S3 writer.
func stageClose(c *call) int {
	st := receiver[*stage](c, "stage")
	st.of.check(c)
	if st.st.Kind() != session.KindS3 {
		c.Raise("'close' is for writers of objects (s:write_s3), and %s is a %s", st.st.Name(), st.st.Kind())
	}
	c.canWait()
	w, err := st.st.EndUploads()
	c.Check(err)
	o := &op{w: w}
	o.watch(c)
	// Polled as well: the clock of a session that has not started does not advance for uploads.
	for !c.waitUntil(c.rt.Task.In(closeLook), func() bool { return o.w.State().Done }, o) {
	}
	return 0
}

const closeLook = int64(10 * time.Millisecond)

// uploadTimes reads the timeouts, and checks that they and the sizes are positive if given.
func (o *options) uploadTimes(w *session.S3Options) {
	for key, to := range map[string]*time.Duration{"end_timeout": &w.EndTimeout, "object_timeout": &w.Timeout} {
		after, given := o.Seconds(key)
		if given && after <= 0 {
			o.Wrong(key, "a time above 0 expected")
		}
		*to = time.Duration(after)
	}
	for key, n := range map[string]int64{"bytes_per_object": w.BytesPerObject, "staging": w.Staging} {
		if o.Has(key) && n <= 0 {
			o.Wrong(key, "a number of bytes above 0 expected")
		}
	}
}
