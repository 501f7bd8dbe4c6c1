package s3_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/s3"
)

// store is an S3 server that discards objects and records requests. It accepts objects, whole and in parts, and refuses requests selected by the
// test.
type store struct {
	*httptest.Server
	refuse func(r *request) (status int, code string) // 0: accept
	listed string                                     // name of an existing object

	mu   sync.Mutex
	seen []*request
}

// request is a received request and the status of its response.
type request struct {
	what   string // list, put, begin, part, complete or abort
	part   string // part number
	header http.Header
	body   []byte
	status int
}

func newStore(t *testing.T) *store {
	s := &store{refuse: func(*request) (int, string) { return 0, "" }}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *store) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := r.URL.Query()
	x := &request{part: q.Get("partNumber"), header: r.Header.Clone(), body: body}
	answer := ""
	switch {
	case r.Method == http.MethodPut && x.part != "":
		x.what = "part"
	case r.Method == http.MethodPut:
		x.what = "put"
	case r.Method == http.MethodPost && q.Has("uploads"):
		x.what, answer = "begin", "<InitiateMultipartUploadResult><UploadId>an-upload</UploadId></InitiateMultipartUploadResult>"
	case r.Method == http.MethodPost:
		x.what, answer = "complete", "<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>run</Key><ETag>\"0\"</ETag></CompleteMultipartUploadResult>"
	case r.Method == http.MethodDelete && q.Get("uploadId") == "an-upload":
		x.what = "abort"
	default:
		x.what, answer = "list", "<ListBucketResult></ListBucketResult>"
		if s.listed != "" {
			answer = "<ListBucketResult><Contents><Key>" + s.listed + "</Key><Size>1</Size></Contents></ListBucketResult>"
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, x)
	var code string
	if x.status, code = s.refuse(x); x.status != 0 {
		w.WriteHeader(x.status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test says</Message></Error>", code)
		return
	}
	x.status = http.StatusOK
	w.Header().Set("ETag", `"0123"`)
	_, _ = io.WriteString(w, answer)
}

// of returns the requests of one kind.
func (s *store) of(what string) []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.seen), func(x *request) bool { return x.what != what })
}

// whats returns the kinds of all requests, in order.
func (s *store) whats() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, x := range s.seen {
		all = append(all, x.what)
	}
	return strings.Join(all, " ")
}

// tally is an Account that sums up its calls.
type tally struct {
	mu                              sync.Mutex
	packets, bytes, objects         int
	lost, behind, retries, underway int
}

func (a *tally) Uploaded(packets, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.packets, a.bytes, a.objects = a.packets+packets, a.bytes+bytes, a.objects+1
}

func (a *tally) Lost(why error, packets int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost += packets; why == s3.ErrBehind {
		a.behind += packets
	}
}

func (a *tally) Retried() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.retries++
}

func (a *tally) Stalled(time.Duration) {}

func (a *tally) Busy(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underway += n
}

// to returns a writer that uploads to the store.
func (s *store) to(t *testing.T, c s3.Config) (*s3.Writer, *tally) {
	t.Helper()
	c.Endpoint, c.Bucket, c.Prefix, c.AccessKey, c.SecretKey, c.Wait = s.URL, "bucket", "run", "key", "a-secret", true
	a := &tally{}
	w, err := s3.New(c, a)
	if err != nil {
		t.Fatal(err)
	}
	return w, a
}
