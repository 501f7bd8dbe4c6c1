package bindings

import (
	"cmp"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
)

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
