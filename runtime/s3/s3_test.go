package s3_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/s3"
)

// packet returns a packet of size bytes, all equal to number.
func packet(number byte, size int, at int64) *s3.Packet {
	return &s3.Packet{Len: size, Bytes: slices.Values([][]byte{bytes.Repeat([]byte{number}, size)}), Time: at}
}

// TestRetries checks that temporary errors are retried up to the limit and permanent ones are not.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   int
		code     string
		refusals int // number of requests that the store refuses
		puts     int
		lost     int
	}{
		{"internal error", 500, "InternalError", 1, 2, 0},
		{"overload", 503, "SlowDown", 2, 3, 0},
		{"gateway", 502, "", 1, 2, 0},
		{"too many requests", 429, "TooManyRequests", 1, 2, 0},
		{"time-out", 408, "RequestTimeout", 1, 2, 0},
		{"broken on its way", 400, "BadDigest", 1, 2, 0},
		{"for ever", 503, "SlowDown", 99, 3, 1},
		{"not allowed", 403, "AccessDenied", 99, 1, 1},
		{"wrong request", 400, "InvalidRequest", 99, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, n := newStore(t), 0
			s.refuse = func(*request) (int, string) {
				if n++; n <= c.refusals {
					return c.status, c.code
				}
				return 0, ""
			}
			w, a := s.to(t, s3.Config{Attempts: 3})
			w.Add(packet(1, 100, 5))
			w.Close()
			if puts := len(s.of("put")); puts != c.puts || a.retries != c.puts-1 {
				t.Errorf("%d requests and %d retries, want %d requests", puts, a.retries, c.puts)
			}
			if a.lost != c.lost || a.packets != 1-c.lost || a.underway != 0 || (w.Err() != nil) != (c.lost > 0) {
				t.Errorf("%+v, %v", a, w.Err())
			}
			for _, x := range s.of("put") {
				if !bytes.Equal(x.body, bytes.Repeat([]byte{1}, 100)) {
					t.Errorf("a request brought %d bytes", len(x.body))
				}
			}
		})
	}
}

// TestChecksums recomputes the checksum of each body: S3 refuses an object whose header differs.
func TestChecksums(t *testing.T) {
	const whole, parts = 70000, 9 << 20 // more than a chunk; more than a part
	crc := func(body []byte) string {
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
	}
	hash := func(body []byte) string {
		sum := md5.Sum(body)
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	for _, c := range []struct {
		name, header, other string
		md5                 bool
		sum                 func([]byte) string
	}{
		{"CRC-32C", "X-Amz-Checksum-Crc32c", "Content-Md5", false, crc},
		{"MD5", "Content-Md5", "X-Amz-Checksum-Crc32c", true, hash},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			w, a := s.to(t, s3.Config{MD5: c.md5, Attempts: 2})
			w.Add(packet(1, whole, 5))
			w.Add(packet(2, parts, 6))
			w.Close()
			if a.bytes != whole+parts || a.objects != 2 {
				t.Fatalf("%+v, %v", a, w.Err())
			}
			total := 0
			for _, x := range append(s.of("put"), s.of("part")...) {
				total += len(x.body)
				if got := x.header.Get(c.header); got != c.sum(x.body) || x.header.Get(c.other) != "" {
					t.Errorf("%s %s of %d bytes has the %s %q, want %q; %q", x.what, x.part, len(x.body), c.header, got, c.sum(x.body), x.header.Get(c.other))
				}
			}
			begun, completed := s.of("begin"), s.of("complete")
			if total != whole+parts || len(begun) != 1 || len(completed) != 1 || len(s.of("part")) != 2 {
				t.Fatalf("%d bytes by %s", total, s.whats())
			}
			if output := begun[0].header.Get("X-Amz-Checksum-Algorithm"); (output == "CRC32C") == c.md5 {
				t.Errorf("the upload in parts begins with the algorithm %q", output)
			}
			for _, x := range s.of("part") {
				named := strings.Contains(string(completed[0].body), "<ChecksumCRC32C>"+c.sum(x.body))
				if named == c.md5 {
					t.Errorf("part %s: its end says\n%s", x.part, completed[0].body)
				}
			}
		})
	}
}

// TestParts checks that the parts of a completed object are in order, and that a failed multipart upload is aborted: its parts would be invisible but
// billed.
func TestParts(t *testing.T) {
	for _, c := range []struct{ name, refused string }{{"all taken", ""}, {"a part fails", "part"}, {"its end fails", "complete"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.refuse = func(x *request) (int, string) {
				if x.what == c.refused && (x.part == "" || x.part == "2") {
					return 400, "InvalidRequest"
				}
				return 0, ""
			}
			w, a := s.to(t, s3.Config{PacketsPerObject: 20, Attempts: 2})
			for k := range 20 {
				w.Add(packet(byte(k), 1<<20, 5))
			}
			w.Close()
			aborted := len(s.of("abort"))
			if c.refused != "" {
				if aborted != 1 || a.lost != 20 || a.packets != 0 || w.Err() == nil {
					t.Errorf("%s: %+v, %v", s.whats(), a, w.Err())
				}
				return
			}
			if aborted != 0 || a.packets != 20 || len(s.of("complete")) != 1 {
				t.Fatalf("%s: %+v, %v", s.whats(), a, w.Err())
			}
			end, at := string(s.of("complete")[0].body), 0
			for _, number := range []string{"1", "2", "3"} {
				k := strings.Index(end, "<PartNumber>"+number+"<")
				if k < at {
					t.Errorf("part %s is out of order:\n%s", number, end)
				}
				at = k
			}
			for _, x := range s.of("part") {
				first := map[string]byte{"1": 0, "2": 8, "3": 16}[x.part]
				if x.body[0] != first {
					t.Errorf("part %s begins with packet %d", x.part, x.body[0])
				}
			}
		})
	}
}

// TestMetadata checks that an object's metadata has the number of its packets and the receive times of the first and the last.
func TestMetadata(t *testing.T) {
	s := newStore(t)
	w, _ := s.to(t, s3.Config{PacketsPerObject: 3, PacketDataOffset: 42})
	for k, at := range []int64{s3.NoTime, 0, 1700000000000000999, 1700000001000000000, s3.NoTime, s3.NoTime, s3.NoTime} {
		w.Add(packet(byte(k), 142, at))
	}
	w.Close()
	puts := s.of("put")
	if len(puts) != 3 {
		t.Fatal(s.whats())
	}
	var got []string
	for _, x := range puts {
		h := x.header.Get
		got = append(got, h("X-Amz-Meta-Packets")+" "+h("X-Amz-Meta-First-Ns")+" "+h("X-Amz-Meta-Last-Ns"))
	}
	slices.Sort(got)
	// Time 0 (the epoch) is valid; objects without receive times have no such metadata.
	if want := []string{"1  ", "3 0 1700000000000000999", "3 1700000001000000000 1700000001000000000"}; !slices.Equal(got, want) {
		t.Errorf("packets, first and last times: %q, want %q", got, want)
	}
}

// TestBytesPerObject checks that no object exceeds the configured size.
func TestBytesPerObject(t *testing.T) {
	s := newStore(t)
	w, _ := s.to(t, s3.Config{BytesPerObject: 250})
	for k := range 5 {
		w.Add(packet(byte(k), 100, 5))
	}
	w.Close()
	sizes := map[int]int{}
	for _, x := range s.of("put") {
		sizes[len(x.body)]++
	}
	if len(sizes) != 2 || sizes[200] != 2 || sizes[100] != 1 {
		t.Errorf("objects by their bytes: %v", sizes)
	}
}

// TestCheck checks that existing objects and wrong credentials are detected before packets are uploaded.
func TestCheck(t *testing.T) {
	s := newStore(t)
	w, _ := s.to(t, s3.Config{})
	defer w.Close()
	if err := w.Check(false); err != nil {
		t.Errorf("an empty bucket: %v", err)
	}
	s.listed = "run_0"
	if err := w.Check(false); err == nil || !strings.Contains(err.Error(), "run_0") {
		t.Errorf("an object of this name: %v", err)
	}
	if err := w.Check(true); err != nil {
		t.Errorf("an object that may be replaced: %v", err)
	}
	s.refuse = func(*request) (int, string) { return 403, "SignatureDoesNotMatch" }
	if err := w.Check(false); err == nil || !strings.Contains(err.Error(), "the secret key is not the one") {
		t.Errorf("a wrong key: %v", err)
	}
}
