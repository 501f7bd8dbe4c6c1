package s3

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// Pauses between attempts: half of each is fixed, the other half random.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

const (
	crcHeader  = "x-amz-checksum-crc32c"
	algoHeader = "x-amz-checksum-algorithm"
	slowest    = 64 << 10 // bytes/s: minimum rate of an attempt that takes more than a minute
)

// Reasons for lost packets other than errors of the store.
var (
	ErrBehind = errors.New("the writer was behind: its staging memory is full")
	ErrDevice = errors.New("the GPU that had its packets is lost")
)

// object is an object being filled or uploaded. Parts are uploaded while further packets are added.
type object struct {
	key         string
	meta        map[string]string
	shape       string
	packets     int
	bytes       int64 // size of the object
	data        int   // bytes of its packets
	timed       bool
	first, last int64 // receive times, if timed
	fill        body  // next part
	parts       int   // number of parts uploaded or in progress
	shares      []share

	mu     sync.Mutex
	err    error
	left   int    // parts not completed, plus one while the object is being filled
	upload string // id of the multipart upload; empty: none yet
	done   []minio.CompletePart
}

// share is the part of an object that belongs to one Op.
type share struct {
	op             Op
	packets, bytes int
}

// job is one request: a part, or, if part 1 is the last one, the whole object.
type job struct {
	o    *object
	part int
	body body
	last bool
}

func (o *object) add(p *Packet, size, data int) {
	if p.Time != NoTime {
		if !o.timed {
			o.first, o.timed = p.Time, true
		}
		o.last = p.Time
	}
	o.packets++
	o.bytes += int64(size)
	o.data += data
	if p.Op == nil {
		return
	}
	if k := len(o.shares) - 1; k < 0 || o.shares[k].op != p.Op {
		o.shares = append(o.shares, share{op: p.Op})
	}
	s := &o.shares[len(o.shares)-1]
	s.packets++
	s.bytes += data
}

func (o *object) grow() {
	o.mu.Lock()
	o.left++
	o.mu.Unlock()
}

func (o *object) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

func (o *object) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// metadata returns the user metadata of the object.
func (o *object) metadata() map[string]string {
	m := map[string]string{"packets": strconv.Itoa(o.packets)}
	if o.timed {
		m["first-ns"], m["last-ns"] = strconv.FormatInt(o.first, 10), strconv.FormatInt(o.last, 10)
	}
	maps.Copy(m, o.meta)
	return m
}

// work sends requests until the job channel is closed.
func (w *Writer) work() {
	for j := range w.jobs {
		if err := j.o.failure(); err == nil {
			if err = w.send(&j); err != nil {
				j.o.fail(err)
			}
		}
		j.body.release(w.staging)
		j.o.mu.Lock()
		j.o.left--
		over := j.o.left == 0
		j.o.mu.Unlock()
		if over {
			w.conclude(j.o)
		}
		w.account.Busy(-1)
	}
}

func (w *Writer) send(j *job) error {
	if j.last && j.part == 1 {
		return w.put(j)
	}
	id, err := w.begin(j.o)
	if err != nil {
		return err
	}
	header, sum := http.Header{}, ""
	if !w.c.MD5 {
		header.Set(crcHeader, j.body.checksum())
	} else {
		sum = j.body.md5()
	}
	return w.try(j.body.n, func(ctx context.Context) error {
		p, err := w.core.PutObjectPart(ctx, w.c.Bucket, j.o.key, id, j.part, j.body.reader(), j.body.n,
			minio.PutObjectPartOptions{CustomHeader: header.Clone(), Md5Base64: sum, DisableContentSha256: true})
		if err != nil {
			return err
		}
		c := minio.CompletePart{PartNumber: j.part, ETag: p.ETag}
		if !w.c.MD5 {
			c.ChecksumCRC32C = j.body.checksum()
		}
		j.o.mu.Lock()
		j.o.done = append(j.o.done, c)
		j.o.mu.Unlock()
		return nil
	})
}

// put uploads a whole object in one request.
func (w *Writer) put(j *job) error {
	o, sum := w.options(j.o.metadata()), ""
	if !w.c.MD5 {
		o.UserMetadata[crcHeader] = j.body.checksum()
	} else {
		sum = j.body.md5()
	}
	return w.try(j.body.n, func(ctx context.Context) error {
		_, err := w.core.PutObject(ctx, w.c.Bucket, j.o.key, j.body.reader(), j.body.n, sum, "", o)
		return err
	})
}

func (w *Writer) options(meta map[string]string) minio.PutObjectOptions {
	return minio.PutObjectOptions{UserMetadata: meta, DisableContentSha256: true, ContentType: "application/octet-stream"}
}

// begin starts the multipart upload of o unless it is already started, and returns its id. Other parts of the object wait meanwhile.
func (w *Writer) begin(o *object) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.upload != "" || o.err != nil {
		return o.upload, o.err
	}
	meta := maps.Clone(o.meta)
	if meta == nil {
		meta = map[string]string{}
	}
	if !w.c.MD5 {
		meta[algoHeader] = "CRC32C"
	}
	o.err = w.try(0, func(ctx context.Context) (err error) {
		o.upload, err = w.core.NewMultipartUpload(ctx, w.c.Bucket, o.key, w.options(meta))
		return err
	})
	return o.upload, o.err
}

// conclude finishes an object whose parts are all completed, and reports its outcome to the account.
func (w *Writer) conclude(o *object) {
	if o.upload != "" && o.err == nil {
		o.err = w.complete(o)
	}
	if o.err != nil && o.upload != "" { // abort in any case, because the store bills for incomplete parts
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 2*time.Second)
		_ = w.core.AbortMultipartUpload(ctx, w.c.Bucket, o.key, o.upload)
		cancel()
	}
	var err error
	if o.err == nil {
		w.account.Uploaded(o.packets, o.data)
	} else {
		err = fmt.Errorf("object %s: %w", o.key, o.err)
		w.note(err)
		w.account.Lost(o.err, o.packets)
	}
	for _, s := range o.shares {
		settle(s.op, s.packets, s.bytes, err)
	}
}

func (w *Writer) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed++
	if w.err == nil {
		w.err = err
	}
}

// try sends a request with a body of so many bytes, and repeats it after temporary errors.
func (w *Writer) try(bytes int64, request func(context.Context) error) error {
	limit := time.Minute + time.Duration(bytes/slowest)*time.Second
	all, end := context.WithTimeout(w.ctx, w.c.Timeout)
	defer end()
	for n, pause := 1, firstPause; ; n, pause = n+1, min(2*pause, lastPause) {
		ctx, cancel := context.WithTimeout(all, limit)
		err := request(ctx)
		cancel()
		switch {
		case err == nil:
			return nil
		case w.ctx.Err() != nil:
			return fmt.Errorf("it was not uploaded in the %v that the end waits: %w", w.c.EndTimeout, words(err))
		case all.Err() != nil:
			return fmt.Errorf("%s did not take it in %v: %w (%d attempts)", w.core.EndpointURL(), w.c.Timeout, words(err), n)
		case isFinal(err):
			return w.stop(err)
		case n == w.c.Attempts:
			return fmt.Errorf("%w (%d attempts)", words(err), n)
		}
		w.account.Retried()
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-all.Done():
		}
	}
}

// stop records an error that affects all later objects too, and returns it with a hint.
func (w *Writer) stop(err error) error {
	text, r := words(err), minio.ToErrorResponse(err)
	hint := hints[r.Code]
	if hint == "" && (r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized) {
		hint = "%[2]s, which has bucket %[1]s, refuses these credentials: see AWS_ACCESS_KEY_ID and the profile"
	}
	if hint != "" {
		text = fmt.Errorf("%w; hint: %s", text, fmt.Sprintf(hint, w.c.Bucket, w.core.EndpointURL()))
		w.mu.Lock()
		w.broken = text
		w.mu.Unlock()
	}
	return text
}

// hints maps error codes that affect every object to advice for bucket %[1]s at endpoint %[2]s.
var hints = map[string]string{
	"NoSuchBucket":          "make bucket %[1]s at %[2]s, or correct 'bucket' and 'endpoint'",
	"AccessDenied":          "these credentials may not write to bucket %[1]s at %[2]s: they need s3:PutObject",
	"SignatureDoesNotMatch": "the secret key is not the one that %[2]s, which has bucket %[1]s, knows: see AWS_SECRET_ACCESS_KEY",
	"ExpiredToken":          "the credentials for bucket %[1]s at %[2]s have expired: get new ones",
	"InvalidToken":          "the session token for bucket %[1]s at %[2]s is wrong: get new credentials",
	"RequestTimeTooSkewed":  "this machine's clock and that of %[2]s, with bucket %[1]s, differ: set it",
}

// isFinal reports whether further attempts are useless.
func isFinal(err error) bool {
	r := minio.ToErrorResponse(err)
	switch r.StatusCode {
	case 0, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return hints[r.Code] != ""
	}
	return r.StatusCode < 500 && r.Code != "RequestTimeout" && r.Code != "BadDigest" && r.Code != "XAmzContentChecksumMismatch"
}

// words returns err without the request's URL, which adds nothing to the object's name.
func words(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
