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
	opts.need("bucket")
	name := opts.str("name", "")
	w := session.S3Options{Policy: opts.policy(session.Drop), Overwrite: opts.bool("overwrite", c.rt.Open.Overwrite)}
	w.Bucket = opts.str("bucket", "")
	w.Prefix = opts.str("prefix", cmp.Or(name, session.KindS3))
	w.Endpoint, w.Region = opts.str("endpoint", ""), opts.str("region", "")
	w.PathStyle = opts.bool("path_style", false)
	w.AccessKey, w.SecretKey = opts.str("access_key", ""), opts.str("secret_key", "")
	w.SessionToken, w.Profile = opts.str("session_token", ""), opts.str("profile", "")
	w.PacketsPerObject = int(opts.whole("packets_per_object", 0, 1, 1<<31-1))
	w.BytesPerObject = int64(opts.size("bytes_per_object"))
	w.PacketDataOffset = int(opts.whole("packet_data_offset", 0, 0, 1<<31-1))
	w.MD5 = opts.choice("checksum", "crc32c", "md5") == "md5"
	w.Staging = int64(opts.size("staging"))
	w.Uploads = int(opts.whole("uploads", 0, 1, 256))
	w.Attempts = int(opts.whole("attempts", 0, 1, 1000))
	w.Text = opts.header()
	opts.uploadTimes(&w)
	if n := len(w.Prefix); n < 1 || n > maxPrefix || strings.HasPrefix(w.Prefix, "/") {
		opts.wrong("prefix", "%q is not the beginning of an object's name, of 1 to %d bytes", w.Prefix, maxPrefix)
	}
	st, err := o.s.WriteS3(name, w)
	return c.pushStage(st, o, err)
}

// stageClose implements w:close() of an S3 writer.
func stageClose(c *call) int {
	st := receiver[*stage](c, "stage")
	st.of.check(c)
	if st.st.Kind() != session.KindS3 {
		c.raise("'close' is for writers of objects (s:write_s3), and %s is a %s", st.st.Name(), st.st.Kind())
	}
	c.canWait()
	w, err := st.st.EndUploads()
	c.check(err)
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
		after, given := o.seconds(key)
		if given && after <= 0 {
			o.wrong(key, "a time above 0 expected")
		}
		*to = time.Duration(after)
	}
	for key, n := range map[string]int64{"bytes_per_object": w.BytesPerObject, "staging": w.Staging} {
		if o.has(key) && n <= 0 {
			o.wrong(key, "a number of bytes above 0 expected")
		}
	}
}
